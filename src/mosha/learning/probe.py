"""A look at the model with public batches, before anything is spent: what would go wrong is said here.

Batches of two and of three rows are sent through; nothing of the data but shapes and types is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mosha.core.errors import DataError, InvalidParameter
from mosha.learning.engine import Engine, check_losses

__all__ = ["Losses", "probe"]

Losses = Callable[[nn.Module, tuple[Any, ...]], Tensor]


def probe(engine: Engine, losses: Losses, public: Callable[[int], tuple[Any, ...]]) -> None:
    """Refuse a model, a loss or a shape of data with which gradients of single examples cannot be had.

    Raises:
        InvalidParameter, DataError: naming the layer or the parameter. Nothing was spent.
    """
    buffers = {name: b.clone() for name, b in engine.model.named_buffers()}
    for rows in (2, 3):
        batch = public(rows)
        seen = _records(engine, losses, batch, rows)
        unused = sorted(set(engine.parameters) - seen)
        if unused:
            raise InvalidParameter(
                f"parameter {unused[0]!r} has no part in the loss: nothing could be learned for it but noise. Freeze "
                "it (requires_grad_(False)) or use it. Nothing was spent."
            )
        _check_separate(engine.model, losses, batch)
    changed = [name for name, b in engine.model.named_buffers() if not torch.equal(b, buffers[name])]
    if changed:
        engine.model.load_state_dict(buffers, strict=False)
        raise InvalidParameter(
            f"buffer {changed[0]!r} changes while batches pass: it would keep traces of private examples. Use a layer "
            "without running statistics. Nothing was spent."
        )


def _records(engine: Engine, losses: Losses, batch: tuple[Any, ...], rows: int) -> set[str]:
    """The parameters that were noted; errors of the user's own code pass, for the batch is public."""
    with torch.random.fork_rng(devices=[]), engine.tape.record(rows, 1):
        values = losses(engine.model, batch)
        check_losses(values, rows)
        values.sum().backward()  # type: ignore[no-untyped-call]
    engine._check_outside()  # noqa: SLF001
    seen = {key.name for key in engine.tape.records}
    engine.tape.records = {}
    return seen


def _check_separate(model: nn.Module, losses: Losses, batch: tuple[Any, ...]) -> None:
    """The loss of the first row must not move with the others; only inputs that are numbers can be moved."""
    moved = tuple(torch.cat([v[:1], v[1:] + 1]) if v.is_floating_point() else v for v in batch)
    if all(a is b for a, b in zip(batch, moved, strict=True)):
        return
    training = model.training
    model.eval()
    with torch.no_grad():
        before, after = losses(model, batch)[0], losses(model, moved)[0]
    model.train(training)
    if not torch.allclose(before, after, rtol=1e-4, atol=1e-6, equal_nan=True):
        raise DataError(
            "the loss of one example depends on other examples of its batch: the model or the loss mixes them, so no "
            "clipping could bound what one example does. Nothing was spent."
        )
