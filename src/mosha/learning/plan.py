"""The plan of a private training: sampling, clip, noise and price are fields of one frozen object.

No deep-learning library is needed to make, price and calibrate a plan.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from mosha.core.deprecation import renamed_argument, warn_of_old_name
from mosha.core.errors import InvalidParameter, MissingExtra, Unpriced
from mosha.core.event import Event
from mosha.core.events import Gaussian, Matrix
from mosha.core.number import positive, positive_integer, strict_probability
from mosha.core.options import ClippingName, SamplingName, choose
from mosha.core.unit import Example, Neighbors, Person, Unit
from mosha.learning.physical_batches import USUAL_ROWS, choose_size
from mosha.mechanisms.correlated import column_norm
from mosha.mechanisms.priced_plan import PricedPlan
from mosha.mechanisms.sampling import FixedSize, Poisson, Sampling, Shuffled

if TYPE_CHECKING:
    from mosha.core.account import Account
    from mosha.core.measurement import Measurement
    from mosha.learning.training import Training

__all__ = ["DPFTRL", "DPSGD", "require_torch"]

SHARE = 0.1
"""The share of the norm of a contribution that a declared loss, and the bit of adaptive clipping, may take each."""

LARGEST_PHYSICAL = 1024


def require_torch() -> None:
    """Refuse in words if PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise MissingExtra("learning", needed_for="training a model")


@dataclass(frozen=True, kw_only=True)
class DPSGD(PricedPlan):
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
        rate: the probability that a unit is in the batch of a step; with "fixed_size", batch size over `population`.
        clip: the most that one unit may add to the sum of gradients, in the l2 norm.
        noise_multiplier: noise over clip; `calibrate` finds it.
        batch: the divisor of the update, normally the batch size you expect; by default 1 / rate.
        clipping: "flat", "per_layer" (an equal share of the squared clip for every parameter), "adaptive" (the clip
            follows a private quantile of the norms, starting at `clip`), "automatic" (every gradient is normalized).
        sampling: "poisson" (each unit on its own), "shuffled" (each unit in one batch of every epoch; priced without
            amplification), "fixed_size" (batches of one size without replacement; needs `population`, and a unit
            whose neighbors are replaced); or one of the objects `Poisson(rate)`, `Shuffled(batches)` and
            `FixedSize(size)` of `mosha.mechanisms.sampling`, in place of `rate`.
        population: the public number of units, for "fixed_size" only.
        unit: whose presence is hidden: an Example, or a Person with `at_most` examples in a batch.
        physical: the most rows that pass through the model at once; see `rounding.md` for why it is not larger.
            By default `train` chooses up to 320, by the memory that a row of the model takes. Physical batches are
            filled up with rows that do not count (`at_once`).
        loss_at_most: if given, a noisy mean of the losses, each clipped to it, is part of every step; it takes a tenth
            of the norm, which adds half a percent to the noise of the gradient.
        quantile: which quantile of the norms an adaptive clip follows.
        delta: the delta of the promise. The whole training is charged as one (epsilon, delta) event at this delta.

    >>> plan = DPSGD(steps=2_000, rate=0.01, clip=1.0).calibrate(epsilon=2, delta=1e-5)
    >>> round(plan.noise_multiplier, 3), plan.epsilon(delta=1e-5) <= 2, plan.epsilon(delta=1e-5) > 1.999
    (1.149, True, True)
    """

    steps: int
    rate: float = 0.0
    clip: float
    noise_multiplier: float | None = None
    batch: float | None = None
    clipping: ClippingName = "flat"
    sampling: SamplingName | Sampling = "poisson"
    population: int | None = None
    unit: Unit = field(default_factory=Example)
    physical: int | None = None
    loss_at_most: float | None = None
    quantile: float = 0.5
    delta: float | None = None
    bands: ClassVar[int] = 1

    def __post_init__(self) -> None:
        self._read_sampling()
        self._set(steps=positive_integer, rate=positive, clip=positive)
        self._set_given(noise_multiplier=positive, batch=positive, population=positive_integer)
        self._set_given(physical=positive_integer)
        self._set_given(loss_at_most=positive, delta=strict_probability, quantile=strict_probability)
        clipping = choose("clipping", self.clipping, ClippingName, renamed={"per layer": "per_layer"})
        object.__setattr__(self, "clipping", clipping)
        if self.rate > 1:
            raise InvalidParameter("learning.rate_range", parameter="rate", rate=self.rate)
        if not 2.0**-64 <= self.clip <= 2.0**64:
            raise InvalidParameter("learning.clip_range", parameter="clip")
        if (self.physical or 1) > LARGEST_PHYSICAL:
            raise InvalidParameter("learning.physical_too_large", parameter="physical", most=LARGEST_PHYSICAL)
        if self.clipping == "adaptive" and self.bands > 1:
            raise InvalidParameter("learning.adaptive_with_bands", parameter="clipping")
        self._check_unit()

    def _read_sampling(self) -> None:
        """Bring `sampling` to its name and `rate` to its number: `replace(plan, rate=...)` works on either."""
        given = self.sampling
        if not isinstance(given, Sampling):
            name = choose("sampling", given, SamplingName, renamed={"fixed size": "fixed_size"})
            object.__setattr__(self, "sampling", name)
            return
        if isinstance(given, Poisson):
            name, rate = "poisson", given.rate
        elif isinstance(given, Shuffled):
            name, rate = "shuffled", 1 / given.batches
        elif isinstance(given, FixedSize) and self.population is not None:
            name, rate = "fixed_size", given.size / positive_integer("population", self.population)
        else:
            raise InvalidParameter("learning.unknown_sampling", parameter="sampling")
        if self.rate not in (0.0, rate):
            raise InvalidParameter("learning.rate_twice", parameter="rate")
        object.__setattr__(self, "sampling", name)
        object.__setattr__(self, "rate", rate)

    def _check_unit(self) -> None:
        if not isinstance(self.unit, Example | Person):
            raise InvalidParameter("learning.unit_of_training", parameter="unit")
        if isinstance(self.unit, Person) and self.unit.at_most is None:
            raise InvalidParameter("learning.person_at_most", parameter="unit")
        replaced = self.unit.neighbours is Neighbors.REPLACE_ONE
        if replaced != (self.sampling == "fixed_size"):
            raise InvalidParameter("learning.neighbors_of_sampling", parameter="unit")
        if (self.population is not None) != (self.sampling == "fixed_size"):
            raise InvalidParameter("learning.population_of_fixed_size", parameter="population")
        if self.sampling == "fixed_size" and round(self.rate * (self.population or 0)) < 1:
            raise InvalidParameter("learning.less_than_one_unit", parameter="rate")

    def _set(self, **checks: Callable[[str, Any], object]) -> None:
        for name, check in checks.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def _set_given(self, **checks: Callable[[str, Any], object]) -> None:
        self._set(**{name: check for name, check in checks.items() if getattr(self, name) is not None})

    @property
    def length(self) -> int:
        """The number of steps."""
        return self.steps

    @property
    def drawing(self) -> Sampling:
        """Who is drawn, with the price and the sensitivity of that."""
        if self.sampling == "poisson":
            return Poisson(self.rate)
        if self.sampling == "fixed_size":
            return FixedSize(round(self.rate * (self.population or 0)))
        return Shuffled(self.bins, repeated=self.bands > 1)

    @property
    def each(self) -> int:
        """How many examples of one unit may be in a batch."""
        return self.unit.at_most or 1 if isinstance(self.unit, Person) else 1

    @property
    def bins(self) -> int:
        """The number of batches in an epoch."""
        return max(1, round(1 / self.rate))

    @property
    def divisor(self) -> float:
        """What the noisy sum is divided by: declared, never counted."""
        return 1 / self.rate if self.batch is None else self.batch

    @property
    def at_once(self) -> int:
        """The number of units that pass through the model at once: physical batches are always filled up to it.

        If `batch` is declared, it is chosen so that batches of that size leave little to fill.
        """
        most = max(1, (self.physical or USUAL_ROWS) // self.each)
        if self.sampling == "fixed_size":
            size = math.ceil(self.drawing.expected_size(self.population or 0))
            return choose_size(size, most, random=False)
        return most if self.batch is None else choose_size(self.batch, most, random=True)

    @property
    def noise_deviation(self) -> float:
        """The standard deviation of the noise in each coordinate of an update, apart from `gradient_share`."""
        return self.chosen_noise * self.clip / self.divisor

    @property
    def gradient_share(self) -> float:
        """The share of the norm that is left for the gradient: the squares of all shares add up to one."""
        others = (self.loss_at_most is not None) + (self.clipping == "adaptive")
        return math.sqrt(1 - others * SHARE**2)

    def price(self, noise_multiplier: float, length: int) -> Event:
        """What `length` steps cost with this noise.

        The multiplier is over the norm of one contribution, and a step moves by `drawing.moves` of them at most.
        """
        rule = self.drawing
        return rule.price(Gaussian(noise_multiplier / rule.moves), steps=length, population=self.population or 1)

    @property
    def sold_as(self) -> Event:
        """The former name of `event`."""
        warn_of_old_name("sold_as", "event")
        return self.event

    @renamed_argument(steps="after")
    def epsilon(self, delta: float | None = None, *, after: int | None = None) -> float:
        """The tight price after `after` steps (all of them by default), at `delta` (the promised one by default)."""
        return super().epsilon(delta, after=after)

    def most_steps(self, *, epsilon: float, delta: float) -> Self:
        """The same plan with as many steps as (epsilon, delta) pays for with this noise: one more would be too many.

        >>> plan = DPSGD(steps=1, rate=0.01, clip=1.0, noise_multiplier=1.0).most_steps(epsilon=1, delta=1e-5)
        >>> plan.epsilon() <= 1 < replace(plan, steps=plan.steps + 1).epsilon()
        True
        """
        from mosha.accounting import epsilon as least_epsilon  # noqa: PLC0415  (numerical)

        wanted, promised = positive("epsilon", epsilon), strict_probability("delta", delta)

        def fits(steps: int) -> bool:
            return least_epsilon(self.price(self.chosen_noise, steps), promised) <= wanted

        if not fits(1):
            raise Unpriced("learning.one_step_too_much", spent="nothing")
        low = 1
        while low < 1 << 24 and fits(2 * low):
            low *= 2
        high = 2 * low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return replace(self, steps=low, delta=promised)

    def within(self, *, epsilon: float, delta: float) -> Self:
        """The former name of `most_steps`."""
        warn_of_old_name("within", "most_steps")
        return self.most_steps(epsilon=epsilon, delta=delta)

    def train(
        self,
        model: Any,
        dataset: Any,
        loss: Any,
        optimizer: Any,
        *,
        account: Account,
        owners: Iterable[Any] | None = None,
        key: str | None = None,
        checkpoint: Any = None,
        audit: Any = None,
        progress: bool = False,
        group: Any = None,
        autocast: Any = None,
        collate: Callable[[list[Any]], object] | None = None,
        target: str | int | Sequence[str] | None = None,
        like: object = None,
    ) -> Training:
        """Pay for the whole plan and begin; iterate over what comes back. See `mosha.learning.Training`.

        The data set holds pairs, several inputs and a target, or mappings whose entries are handed to the model by
        name; columns (tensors, arrays, frames) are gathered at once. `target` says what the loss compares with, where
        it is not the last entry or `labels`: a name, several names, or how many entries at the end. `collate` is asked
        for a batch of one example at a time. `like` is a public batch for the look before paying, where made-up rows
        of zeros have no meaning to the model.
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
        )

    def candidate(self, build: Any, loss: Any, *, like: tuple[Any, ...]) -> Measurement:
        """A whole training as one measurement, for `best_of_random_runs`; its answer is the model's `state_dict`.

        `build()` makes a new model and its optimiser, without a look at the data; `like` is a public batch (inputs,
        targets) of the right shapes and types, with which everything is tried before anything is paid. The data of the
        search are those of `train`: a data set, or (data set, owners) where the unit is a Person.

        Guarantee:
            As `train`, whose steps these are: the joint law of all of them is no easier to tell apart than `event`
            says, and the answer is made of them.
        """
        require_torch()
        from mosha.learning.candidate import candidate_measurement  # noqa: PLC0415  (torch)

        return candidate_measurement(self, build, loss, like)


@dataclass(frozen=True, kw_only=True)
class DPFTRL(DPSGD):
    """Descent with correlated noise: noise added in one step is partly taken back in the next ones, without sampling.

    Guarantee:
        As `DPSGD` with "shuffled" batches whose order is the same in every epoch: a unit is in one batch of each epoch,
        `bins` steps apart. The matrix mechanism with the encoder C of `mechanisms/correlated.md` and `bands <= bins`
        has the sensitivity sqrt(epochs) |C e_1|: columns that are `bins` apart do not overlap.

    >>> plan = DPFTRL(steps=200, rate=0.05, clip=1.0, bands=8).calibrate(epsilon=2, delta=1e-5)
    >>> plain = DPSGD(steps=200, rate=0.05, clip=1.0, sampling="shuffled").calibrate(epsilon=2, delta=1e-5)
    >>> plan.noise_multiplier > plain.noise_multiplier
    True
    """

    sampling: SamplingName | Sampling = "shuffled"
    bands: int = 4  # type: ignore[misc]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(bands=positive_integer)
        if self.sampling != "shuffled" or self.bands > self.bins:
            raise InvalidParameter("learning.bands_need_shuffled", parameter="sampling")

    def price(self, noise_multiplier: float, length: int) -> Event:
        """What `length` steps cost with this noise: one vector of all of them."""
        epochs = self.drawing.participations(length)
        return Matrix(noise_multiplier, math.sqrt(epochs) * column_norm(self.bands) * (1 + 2.0**-40))
