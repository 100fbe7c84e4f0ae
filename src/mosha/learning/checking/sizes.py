"""Whether rows are computed alike in physical batches of two sizes: then fewer of them have to be filled up.

How a kernel goes through rows follows from shapes, and may follow from how many rows there are. So made-up rows are
computed in both sizes, and everything that layers note must be the same bit by bit, as must norms and contributions: a
sum that is taken in another order shows in some of the many numbers. Where anything differs, or could not show because
it is zero, there is one size. Tried, not proved: assumption A1 of `rounding.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mosha.learning.checking.mixing import LEAST, Losses, check_rows_apart, count_tries, find_bases
from mosha.learning.gradients.device import fork_randomness
from mosha.learning.gradients.engine import Engine
from mosha.learning.model_buffers import ModelBuffers, set_training
from mosha.learning.physical_batches import choose_smaller_size
from mosha.learning.reading.layout import Flat
from mosha.learning.terms import TrainingTerms

__all__ = ["Computation", "SmallerSize", "compute_one", "find_smaller_size"]

WORTH_IT = 100
"""Steps from which on a look at a second size costs less than the rows that it saves: assumed."""


class Computation(NamedTuple):
    """What came of one batch: all that layers noted, the norms of all units and the contribution of one."""

    noted: list[Tensor]
    norms: Tensor
    sums: dict[str, Tensor]

    def cut(self, share: float) -> Computation:
        """What was noted of the first rows alone; the memory of the others is not held any more."""
        first, norms = (values[: round(share * len(values))].clone() for values in self.noted), self.norms
        return Computation(list(first), norms[: round(share * len(norms))], self.sums)


@dataclass(frozen=True)
class SmallerSize:
    """A second number of units that a physical batch may have; it holds for so many threads of PyTorch.

    >>> SmallerSize(32, torch.get_num_threads()).has_room(30)
    True
    """

    units: int
    threads: int

    def has_room(self, units: int) -> bool:
        """Whether so many units are computed in this size."""
        return units <= self.units and torch.get_num_threads() == self.threads


def find_smaller_size(
    plan: TrainingTerms, engine: Engine, losses: Losses, public: Flat, *, targets: int
) -> SmallerSize | None:
    """The second size for this plan, where it is worth a look, and this model computes rows alike in it.

    `public` are made-up rows of a whole physical batch, the last `targets` tensors what the loss compares with.
    """
    if plan.batch is None or plan.sampling == "fixed_size" or plan.steps < WORTH_IT or count_tries(engine) < 2 * LEAST:
        return None
    size = choose_smaller_size(plan.batch, plan.at_once)
    if size is None:
        return None
    training, kept = {module: module.training for module in engine.model.modules()}, ModelBuffers(engine.model)
    most, engine.tape.most = engine.tape.most, plan.at_once
    try:
        with fork_randomness(engine.device):
            few = tuple(values[: size * plan.rows_of_unit] for values in public)
            engine.model.eval()  # no dropout, so that both sizes compute the same
            alike = _are_alike(engine, losses, public, few, plan.rows_of_unit, targets)
            set_training(engine.model, training)
            check_rows_apart(engine, losses, few, targets=targets, tries=LEAST)
    except Exception:  # noqa: BLE001  (of a size with which anything is wrong no use is made)
        return None
    finally:
        engine.tape.most = most
        kept.restore()
        for module, was in training.items():
            module.training = was
    return SmallerSize(size, torch.get_num_threads()) if alike else None


def _are_alike(engine: Engine, losses: Losses, public: Flat, few: Flat, each: int, targets: int) -> bool:
    """Whether the first rows give the same, bit by bit, alone and with the others."""
    inputs = len(public) - targets
    batch = next(find_bases(engine.model, losses, public, inputs))[0]  # tokens and labels differ, where they may
    rows, units = len(few[0]), len(few[0]) // each
    for unit in (0, units - 1):
        all_rows = compute_one(engine, losses, batch, unit, each).cut(rows / len(batch[0]))
        first_rows = compute_one(engine, losses, tuple(values[:rows] for values in batch), unit, each)
        if not _are_same(first_rows, all_rows):
            return False
    return True


def compute_one(engine: Engine, losses: Losses, batch: Flat, unit: int, each: int) -> Computation:
    """One batch, of which this unit alone counts."""

    def single_out(norms: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.arange(norms.shape[1]) == unit, np.float64)

    noted: list[Tensor] = []
    engine.tape.seen = noted
    try:
        found = engine.clip(lambda model: losses(model, batch), len(batch[0]), single_out, each=each)
    finally:
        engine.tape.seen = None
    return Computation(noted, found.norms, found.sums)


def _are_same(one: Computation, other: Computation) -> bool:
    """Whether they are the same bit by bit, and nothing is zero, where no difference could show."""
    if len(one.noted) != len(other.noted) or one.sums.keys() != other.sums.keys():
        return False
    pairs = [*zip(one.noted, other.noted, strict=True), (one.norms, other.norms)]
    return all(bool(some.any()) and torch.equal(some, others) for some, others in pairs) and all(
        torch.equal(values, other.sums[name]) for name, values in one.sums.items()
    )
