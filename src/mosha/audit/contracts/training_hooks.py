"""Audits that ride along with a training: `plan.train(..., audit=...)`.

    Canaries            examples that are in or out by fair coins; after the training, how well can that be guessed?
    TrainingContract    sensitivity, noise and sampling of this very trainer, checked on made-up examples at the start

Both see what is public: the model before and after, and data of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.audit.attacks.canary import OneRun, audit_one_run, draw_inclusion
from mosha.audit.contracts.contract import Contract
from mosha.audit.contracts.trainer import trainer_contract
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.core.number import positive_integer, strict_probability

__all__ = ["Canaries", "TrainingContract"]

LOOKED_AT = 1 << 16
"""Coordinates whose noise is looked at: of larger models a random choice, layer by layer."""


class Canaries:
    """Canaries in one run (Steinke, Nasr and Jagielski 2023; by the trade-off curve of the plan).

    Make the training data with `mixed_into`, hand the same object in as `audit=...`, and read `result` afterwards.
    A canary's score is how much its loss fell. Mislabelled or strange examples make the loudest canaries.

    `inputs` and `targets` are tensors with one canary a row, `confidence` that of the verdict, and `rng` tosses the
    coins that put canaries in (a secure one of its own where it is left out).

    Guarantee:
        That of `mosha.audit.audit_one_run`: a training that keeps its price is called broken with probability at most
        1 - confidence. Canaries are part of the private data: what they do to the model is paid for like all else.

    >>> import torch
    >>> canaries = Canaries(torch.zeros(8, 3), torch.ones(8))
    >>> inputs, targets = canaries.mixed_into((torch.zeros(20, 3), torch.zeros(20)))
    >>> len(inputs) == len(targets) == 20 + int(canaries.included.sum())
    True
    """

    def __init__(self, inputs: Any, targets: Any, *, confidence: float = 0.999, rng: Rng | None = None) -> None:
        if len(inputs) != len(targets) or len(inputs) < 2:
            raise InvalidParameter("audit.canaries_shape", parameter="targets")
        self._inputs, self._targets = inputs, targets
        self._confidence = strict_probability("confidence", confidence)
        self.included = draw_inclusion(len(inputs), rng=rng)
        self.result: OneRun | None = None
        self._first: NDArray[np.float64] | None = None

    def mixed_into(self, dataset: Any) -> Any:
        """The data set of tensors `dataset` (inputs, targets) with those canaries that the coins put in."""
        import torch  # noqa: PLC0415  (the guest, where it is needed)

        inputs, targets = dataset.tensors if hasattr(dataset, "tensors") else dataset
        chosen = torch.from_numpy(np.flatnonzero(self.included))
        return torch.cat([inputs, self._inputs[chosen]]), torch.cat([targets, self._targets[chosen]])

    def before(self, training: object) -> None:
        """Called before the first step of `training`: the losses of the canaries at the beginning."""
        self._first = self._losses(training)

    def after(self, training: Any) -> None:
        """Called after the last step of `training`: the losses of the canaries at the end, and the verdict."""
        assert self._first is not None
        fell = np.nan_to_num(self._first - self._losses(training), nan=0.0)
        claim = training.plan.event_after(training.plan.steps)
        self.result = audit_one_run(fell, self.included, confidence=self._confidence, claim=claim)

    def _losses(self, training: Any) -> NDArray[np.float64]:
        import torch  # noqa: PLC0415

        model, was = training.model, training.model.training
        model.eval()
        with torch.no_grad():
            losses = training._gradients._losses(model, (self._inputs, self._targets))  # noqa: SLF001  (its own kind)
        model.train(was)
        return np.asarray(losses.double().numpy(), dtype=np.float64)


class TrainingContract:
    """The contract of a trainer, checked on this plan, this model and this engine before the first step.

    Made-up examples of the shapes of the data are used, never the data: one NaN and one far away among them. A broken
    contract stops the training (it stays paid); the findings are in `contract` either way. Sensitivity is that of all
    coordinates; the noise of a large model is looked at in a random choice of them, made anew for every training.

    `population` is how many made-up examples there are, `updates` how many updates are drawn (None: what
    `trainer_contract` takes), `false_alarms` the probability of stopping a training that keeps its contract.

    Guarantee:
        That of `mosha.audit.trainer_contract`. For plans with Poisson samples; others are sampled otherwise.

    >>> TrainingContract(population=100).contract is None
    True
    """

    def __init__(self, *, population: int = 200, updates: int | None = None, false_alarms: float = 1e-9) -> None:
        self._population = positive_integer("population", population)
        self._updates, self._false_alarms = updates, false_alarms
        self.contract: Contract | None = None

    def before(self, training: object) -> None:
        """Called before the first step of `training`: the contract is checked, and a broken one stops the training."""
        inside = _Inside(training, self._population)
        strange = [0, 1, *range(2, self._population, self._population // 5)]
        self.contract = trainer_contract(
            inside, examples=strange, updates=self._updates, false_alarms=self._false_alarms, name="training"
        )
        if not self.contract.kept:
            raise InvalidParameter("audit.trainer_stopped", clauses=list(self.contract.broken))

    def after(self, training: object) -> None:
        """Called after the last step of `training`, when there is nothing left to check.

        Called after the last step; there is nothing left to check.
        """


class _Inside:
    """A training as `trainer_contract` wants it: batches by index, sums by layer, in units of the clip."""

    clip = 1.0

    def __init__(self, training: Any, population: int) -> None:
        from mosha.learning.batches import Sampler  # noqa: PLC0415
        from mosha.learning.reading.examples import Examples  # noqa: PLC0415

        plan, self._gradients = training.plan, training._gradients  # noqa: SLF001
        if plan.sampling != "poisson" or plan.each > 1:
            raise InvalidParameter("audit.not_poisson", parameter="plan")
        self.rate, self.population = plan.rate, population
        self.noise_multiplier = float(self._gradients.grid.sigma) * 2.0**-self._gradients.grid.bits
        public = training._data[0].shapes(population)  # noqa: SLF001
        if public[0].is_floating_point():
            public[0][0], public[0][1] = float("nan"), 1e6
        self._examples, self._sampler = Examples(public), Sampler(plan, population)
        self._looked_at = _choose_places([shape.numel() for shape in self._gradients.shapes.values()])

    def sample(self, rng: Rng) -> Any:
        return self._sampler.draw(0, rng)

    def update(self, batch: NDArray[np.int64], rng: Rng) -> dict[str, NDArray[np.float64]]:
        chosen = _Chosen(self._sampler, batch)
        gradients = self._gradients
        answer, _ = gradients.step(gradients.first(), (self._examples, chosen), None, rng)
        sizes = [shape.numel() for shape in gradients.shapes.values()]
        pieces = np.split(gradients.steps(answer)[: sum(sizes)], np.cumsum(sizes)[:-1])
        if rng.secure:  # noise is judged; otherwise it cancels, and what remains is the sensitivity
            pieces = [piece[places] for piece, places in zip(pieces, self._looked_at, strict=True)]
        return {name: piece * 2.0**-gradients.grid.bits for name, piece in zip(gradients.shapes, pieces, strict=True)}


def _choose_places(sizes: list[int]) -> list[NDArray[np.int64]]:
    """Places to look at in each layer: all of a small model, else the same share of every layer, at least two."""
    from mosha.noise import uniform  # noqa: PLC0415

    if sum(sizes) <= LOOKED_AT:
        return [np.arange(size) for size in sizes]
    counts = [min(size, 2 + size * LOOKED_AT // sum(sizes)) for size in sizes]
    return [np.unique(uniform(size, count)) for size, count in zip(sizes, counts, strict=True)]


class _Chosen:
    """A sampler that draws what it is told to."""

    def __init__(self, sampler: Any, batch: NDArray[np.int64]) -> None:
        self.physical, self._batch = sampler.physical, batch

    def draw(self, step: int, rng: Rng) -> NDArray[np.int64]:
        del step, rng
        return self._batch
