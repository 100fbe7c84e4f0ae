"""Whether rows are computed alike in physical batches of two sizes: then fewer of them have to be filled up.

How a kernel goes through rows follows from shapes, and may follow from how many rows there are. So made-up rows are
computed in both sizes, and everything that layers note must be the same bit by bit, as must norms and contributions: a
sum that is taken in another order shows in some of the many numbers. Where anything differs, or could not show because
it is zero, there is one size. Tried, not proved: assumption A1 of `rounding.md`.
"""

from __future__ import annotations

import hashlib
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


@dataclass(frozen=True)
class SmallerSize:
    """A second number of units that a physical batch may have; it holds for so many threads, with or without oneDNN.

    >>> SmallerSize(32, torch.get_num_threads()).has_room(30)
    True
    """

    units: int
    threads: int
    onednn: bool = True

    def has_room(self, units: int) -> bool:
        """Whether so many units are computed in this size."""
        alike = torch.get_num_threads() == self.threads and bool(torch.backends.mkldnn.enabled) == self.onednn
        return alike and units <= self.units


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
    return SmallerSize(size, torch.get_num_threads(), bool(torch.backends.mkldnn.enabled)) if alike else None


def _are_alike(engine: Engine, losses: Losses, public: Flat, few: Flat, each: int, targets: int) -> bool:
    """Whether the first rows give the same, bit by bit, alone and with the others."""
    inputs = len(public) - targets
    batch = next(find_bases(engine.model, losses, public, inputs))[0]  # tokens and labels differ, where they may
    rows, units = len(few[0]), len(few[0]) // each
    for unit in (0, units - 1):
        whole = _sign(compute_one(engine, losses, batch, unit, each), rows / len(batch[0]))
        if whole is None or whole != _sign(compute_one(engine, losses, tuple(v[:rows] for v in batch), unit, each), 1):
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


def _sign(found: Computation, share: float) -> list[bytes] | None:
    """A digest of each thing that came of the first rows, so that no batch is held while another one is computed.

    None where one of them is zero or infinite, where no difference could show.
    """
    first = [values[: round(share * len(values))] for values in (*found.noted, found.norms)]
    if not all(bool(values.any()) and bool(values.isfinite().all()) for values in first):
        return None
    return [*map(_digest, first), *(name.encode() + _digest(found.sums[name]) for name in sorted(found.sums))]


def _digest(values: Tensor) -> bytes:
    """The same for numbers that are equal, and else not."""
    exact = values.detach().cpu().to(torch.promote_types(values.dtype, torch.float32)) + 0.0  # no zero has a sign
    return hashlib.blake2b(str(tuple(exact.shape)).encode() + bytes(exact.contiguous().numpy().data)).digest()
