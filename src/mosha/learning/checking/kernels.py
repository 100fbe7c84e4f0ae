"""Whether the kernels of a device are what the proof assumes: tried there, with public rows, before anything is paid.

On the CPU A1 of `rounding.md` is held by tests on every kind of layer. Another device has other kernels, which nobody
here has tried: so each training tries its own model on its own device, in batches of the number of rows that is run.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mosha.core.errors import DataError
from mosha.learning.checking.mixing import Losses, find_bases
from mosha.learning.checking.sizes import Computation, compute_one
from mosha.learning.gradients.device import fork_randomness
from mosha.learning.gradients.engine import Engine
from mosha.learning.model_buffers import ModelBuffers, set_training
from mosha.learning.reading.layout import Flat
from mosha.learning.rounding import NORMS

__all__ = ["check_kernels"]


def check_kernels(engine: Engine, losses: Losses, public: Flat, *, each: int = 1, targets: int = 1) -> None:
    """Refuse a device that computes something else the second time, or for other neighbors, or longer than it says.

    Of made-up rows, `each` of which belong to one unit: what layers note, the norms and the contributions of the first
    and of the last unit must be the same, bit by bit, once more and beside other rows, and no contribution may be
    longer than its norm by more than `rounding.md` allows. The last `targets` tensors are what the loss compares with.

    Raises:
        DataError: naming what differs. Nothing was spent.
    """
    training, kept = {module: module.training for module in engine.model.modules()}, ModelBuffers(engine.model)
    try:
        with fork_randomness(engine.device):
            engine.model.eval()  # no dropout: masks are drawn anew for every batch
            batch = next(find_bases(engine.model, losses, public, len(public) - targets))[0]
            units = len(batch[0]) // each
            for unit in {0, units - 1}:
                _check_unit(engine, losses, batch, unit, each)
    finally:
        kept.restore()
        set_training(engine.model, training)


def _check_unit(engine: Engine, losses: Losses, batch: Flat, unit: int, each: int) -> None:
    rows, device = len(batch[0]), str(engine.device)
    first = compute_one(engine, losses, batch, unit, each)
    if not _are_equal(first, compute_one(engine, losses, batch, unit, each), range(rows), rows):
        raise DataError("learning.kernels_unsteady", device=device, spent="nothing")
    own = range(unit * each, (unit + 1) * each)
    others = tuple(_change_others(values, own) for values in batch)
    if not _are_equal(first, compute_one(engine, losses, others, unit, each), own, rows):
        raise DataError("learning.kernels_mix", device=device, spent="nothing")
    length = torch.stack([values.double().norm() for values in first.sums.values()]).norm()
    if bool(length > float(first.norms[unit]) * (1 + NORMS)):
        raise DataError("learning.kernels_inexact", device=device, spent="nothing")


def _change_others(values: Tensor, own: range) -> Tensor:
    """The rows that are not one's own in another order, and smaller where they are numbers."""
    others = [row for row in range(len(values)) if row not in own]
    found = values.clone()
    moved = values[others[::-1]]
    found[others] = moved / 2 if moved.is_floating_point() else moved
    return found


def _are_equal(first: Computation, second: Computation, own: range, rows: int) -> bool:
    """Whether these rows were computed alike, and what was made of the one unit that counts."""
    each = rows // len(first.norms)

    def are_alike(some: Tensor, other: Tensor, share: int) -> bool:
        part = slice(own.start * len(some) // share, own.stop * len(some) // share)
        return torch.equal(some[part], other[part])

    return (
        len(first.noted) == len(second.noted)
        and all(are_alike(some, other, rows) for some, other in zip(first.noted, second.noted, strict=True))
        and are_alike(first.norms, second.norms, len(first.norms) * each)
        and all(torch.equal(values, second.sums[name]) for name, values in first.sums.items())
    )
