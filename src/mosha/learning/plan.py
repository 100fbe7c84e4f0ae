"""The plan of a private training: what it promises (`terms.py`), and the ways to train by it.

No deep-learning library is needed to make, price and calibrate a plan.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mosha.core.errors import MissingExtra
from mosha.core.language import phrase
from mosha.learning.terms import TrainingTerms

if TYPE_CHECKING:
    from mosha.core.account import Account
    from mosha.core.measurement import Measurement
    from mosha.learning.training import Training

__all__ = ["DPSGD", "require_torch"]


def require_torch() -> None:
    """Refuse in words if PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise MissingExtra("learning", needed_for=phrase("learning.training_a_model"))


@dataclass(frozen=True, kw_only=True)
class DPSGD(TrainingTerms):
    """Stochastic gradient descent on noisy sums of clipped gradients.

    Guarantee:
        A training of this plan is as private as `event` says, for `unit`: each of `steps` updates is made from the sum
        of per-unit contributions of norm at most one (after division by the clipping norm) over a sample drawn as
        `sampling` says, plus noise of standard deviation `noise_multiplier`, and from nothing else of the data.
        The divisor of the update, `batch`, is declared and never looked up in the data. Proof: `rounding.md`.

    Units:
        `clip` is in the unit of gradient norms; `noise_multiplier` is in units of `clip`; `rate` is a probability;
        `batch` and `physical` count examples (or people); `loss_at_most` is in the unit of the loss.

    Args:
        steps: the number of updates.
        epochs: in place of `steps`: how often a unit is drawn on average, epochs / rate updates.
        rate: the probability that a unit is in the batch of a step; with "fixed_size", batch size over `population`.
        clip: the most that one unit may add to the sum of gradients, in the l2 norm.
        noise_multiplier: noise over clip; `calibrate` finds it.
        batch: the divisor of the update, normally the batch size you expect; by default 1 / rate.
        clipping: "flat", "per_layer" (an equal share of the squared clip for every parameter), "adaptive" (the clip
            follows a private quantile of the norms, starting at `clip`), "automatic" (every gradient is normalized).
        sampling: "poisson" (each unit on its own), "shuffled" (each unit in one batch of every epoch; priced without
            amplification), "fixed_size" (batches of one size without replacement; needs `population`, and a unit
            whose neighbors are replaced); or one of the objects `Poisson(rate)`, `Shuffled(batches)` and
            `FixedSize(size)` of `mosha.mechanisms.plans.sampling`, in place of `rate`.
        population: the public number of units, for "fixed_size" only.
        unit: whose presence is hidden: an Example, or a Person with `at_most` examples in a batch.
        physical: the most rows that pass through the model at once; see `rounding.md` for why it is not larger.
            By default `train` chooses up to 320, by the memory that a row of the model takes. Physical batches are
            filled up with rows that do not count (to `at_once`, or to a smaller public size).
        loss_at_most: if given, a noisy mean of the losses, each clipped to it, is part of every step; it takes a tenth
            of the norm, which adds half a percent to the noise of the gradient.
        quantile: which quantile of the norms an adaptive clip follows.
        views: how many changed copies of an example pass through the model (augmentation multiplicity): their gradients
            are averaged before they are clipped, so the price stays. `train(..., augment=...)` changes them.
        average: if given, parameters are averaged over steps, and the past counts so much in each (0.999, less in the
            first steps); see `Training.averaged_model`. Free: it is made of what was released.
        delta: the delta of the promise. The whole training is charged as one (epsilon, delta) event at this delta.

    >>> plan = DPSGD(steps=2_000, rate=0.01, clip=1.0).calibrate(epsilon=2, delta=1e-5)
    >>> round(plan.noise_multiplier, 3), plan.epsilon(delta=1e-5) <= 2, plan.epsilon(delta=1e-5) > 1.999
    (1.149, True, True)
    """

    def train(
        self,
        model: Any,
        dataset: object,
        loss: object,
        optimizer: Any,
        *,
        account: Account,
        owners: Iterable[object] | None = None,
        key: str | None = None,
        checkpoint: object = None,
        audit: Any = None,
        progress: bool = False,
        group: object = None,
        autocast: object = None,
        collate: Callable[[list[object]], object] | None = None,
        target: str | int | Sequence[str] | None = None,
        like: object = None,
        augment: Callable[..., object] | None = None,
    ) -> Training:
        """Pay for the whole plan and begin; iterate over what comes back. See `mosha.learning.Training`.

        The data set holds pairs, several inputs and a target, or mappings whose entries are handed to the model by
        name; columns (tensors, arrays, frames) are gathered at once. `target` says what the loss compares with, where
        it is not the last entry or `labels`: a name, several names, or how many entries at the end. `collate` is asked
        for a batch of one example at a time. `like` is a public batch for the look before paying, where made-up rows
        of zeros have no meaning to the model. `augment` changes the inputs of a batch at random, each row by itself and
        by PyTorch's own generator, before they pass through the model (see `views`).

        `model` learns from `dataset` with `loss`, which gives one number an example, and `optimizer`; `account` pays.
        `owners` say whose each example is (for a `Person`). Under a `key` the training can be resumed, with a
        `checkpoint` (a path, or options of one) from its last steps. `audit` looks on, `progress` prints a bar, `group`
        is the process group of several workers, and `autocast` a lower precision.
        """
        require_torch()
        from mosha.learning.training import begin  # noqa: PLC0415  (torch)

        return begin(
            self,
            model,
            dataset,
            loss,
            optimizer,
            account=account,
            owners=owners,
            key=key,
            checkpoint=checkpoint,
            audit=audit,
            progress=progress,
            group=group,
            autocast=autocast,
            collate=collate,
            target=target,
            like=like,
            augment=augment,
        )

    def candidate(self, build: Any, loss: Any, *, like: tuple[Any, ...]) -> Measurement:
        """A whole training as one measurement, for `best_of_random_runs`; its answer is the model's `state_dict`.

        `build()` makes a new model and its optimiser, without a look at the data; `like` is a public batch (inputs,
        targets) of the right shapes and types, with which everything is tried before anything is paid. The data of the
        search are those of `train`: a data set, or (data set, owners) where the unit is a Person.

        `loss` is that of `train`.

        Guarantee:
            As `train`, whose steps these are: the joint law of all of them is no easier to tell apart than `event`
            says, and the answer is made of them.
        """
        require_torch()
        from mosha.learning.candidate import candidate_measurement  # noqa: PLC0415  (torch)

        return candidate_measurement(self, build, loss, like)
