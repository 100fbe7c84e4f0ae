"""A look at the model with public batches, before anything is spent: what would go wrong is said here.

Batches of two and of a few made-up rows are sent through in training mode; nothing of the data but shapes and types is
used. That no row has a part in the loss of another is tried (other values, other gradients), not proved: it is
assumption A1 of `rounding.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from mosha.core.errors import DataError, InvalidParameter, MoshaError
from mosha.learning.engine import Engine, check_losses
from mosha.learning.kept import Kept

__all__ = ["Losses", "check_kept", "probe"]

Losses = Callable[[nn.Module, tuple[Any, ...]], Tensor]
Moves = Callable[[Tensor], Tensor]

EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
MOVES: tuple[Moves, ...] = (
    torch.randn_like,
    lambda value: value + 1000 * torch.randn_like(value).abs(),  # a new largest row
    lambda value: value - 1000 * torch.randn_like(value).abs(),  # a new smallest one
)


def probe(engine: Engine, losses: Losses, public: Callable[[int], tuple[Any, ...]]) -> None:
    """Refuse a model, a loss or a shape of data with which gradients of single examples cannot be had.

    Raises:
        InvalidParameter, DataError: naming the layer or the parameter, or what PyTorch said. Nothing was spent.
    """
    try:
        _probe(engine, losses, public)
    except (RuntimeError, TypeError, IndexError, ValueError, AttributeError) as error:
        if isinstance(error, MoshaError):
            raise
        notes = "".join(f"{note} " for note in getattr(error, "__notes__", []))
        raise InvalidParameter(
            "model and loss do not work on a made-up batch of the shapes and types of your data, in which whole "
            f"numbers are zeros: {error}. {notes}Nothing was spent."
        ) from error


def _probe(engine: Engine, losses: Losses, public: Callable[[int], tuple[Any, ...]]) -> None:
    training, kept = {module: module.training for module in engine.model.modules()}, Kept(engine.model)
    engine.model.train()
    try:
        rows = _rows(public(1))
        for number in (2, rows):
            _check_used(engine, _records(engine, losses, public(number), number))
        check_kept(kept)
        batch = public(rows)
        _check_values(engine.model, losses, batch)
        _check_gradients(engine, losses, batch)
        check_kept(kept)
    finally:
        kept.restore()
        for module, was in training.items():
            module.training = was


def _rows(batch: tuple[Any, ...]) -> int:
    """How many rows to try: no other axis is as long, so that the axis of rows is known by its length."""
    lengths: set[int] = {length for values in batch for length in values.shape[1:]}
    return next(rows for rows in range(3, 1 << 20) if rows not in lengths)


def _as_it_is(values: Tensor) -> Tensor:
    return values


def check_kept(kept: Kept) -> None:
    """Refuse, after putting it back, what a model wrote down while a batch passed."""
    name = kept.changed()
    if name is not None:
        kept.restore()
        raise InvalidParameter(
            f"buffer {name!r} changes while batches pass: it would keep traces of private examples. Use a layer "
            "without running statistics. Its earlier values were put back, and nothing of the batch is left in it."
        )


def _check_used(engine: Engine, seen: set[str]) -> None:
    unused = sorted(set(engine.parameters) - seen)
    if unused:
        raise InvalidParameter(
            f"parameter {unused[0]!r} has no part in the loss: nothing could be learned for it but noise. Freeze "
            "it (requires_grad_(False)) or use it. Nothing was spent."
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


def _check_values(model: nn.Module, losses: Losses, batch: tuple[Any, ...]) -> None:
    """Whatever stands in one row, numbers, tokens or what embeddings make of them: the losses of the others stay."""
    rows = len(batch[0])
    before = _tried(model, losses, batch, _as_it_is)
    for row in range(rows):
        others = [other for other in range(rows) if other != row]
        for after in _with_another_row(model, losses, batch, row):
            if not torch.allclose(before[others], after[others], rtol=1e-4, atol=1e-6, equal_nan=True):
                _mixes()


def _with_another_row(model: nn.Module, losses: Losses, batch: tuple[Any, ...], row: int) -> Iterator[Tensor]:
    """The losses of batches that differ in one row."""
    for move in MOVES:

        def moved(values: Tensor, move: Moves = move) -> Tensor:
            new = values.detach().clone()
            new[row] = move(new[row])
            return new

        shifted = tuple(moved(v) if v.is_floating_point() else v for v in batch)
        yield _tried(model, losses, shifted, moved)
    if all(v.is_floating_point() for v in batch[:-1]):
        return
    sizes = [module.num_embeddings for module in model.modules() if isinstance(module, EMBEDDINGS)]
    for most in {2, min(sizes, default=2)}:
        found = (*(_other_tokens(values, row, most) for values in batch[:-1]), batch[-1])
        try:
            after = _tried(model, losses, found, _as_it_is)
        except Exception:  # noqa: BLE001, S112  (numbers that this model has no meaning for; all of them are made up)
            continue
        yield after


def _other_tokens(values: Tensor, row: int, most: int) -> Tensor:
    new = values.clone()
    if values.dtype == torch.bool:
        new[row] = ~new[row]
    elif not values.is_floating_point():
        new[row] = torch.randint(most, new[row].shape)
    return new


def _tried(model: nn.Module, losses: Losses, batch: tuple[Any, ...], change: Moves) -> Tensor:
    """The losses, with the same dropout every time, and with what embeddings give changed."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]), _embedded(model, change, len(batch[0])):
        torch.manual_seed(0)
        return losses(model, batch)


@contextmanager
def _embedded(model: nn.Module, change: Moves, rows: int) -> Iterator[None]:
    """Inside, the outputs of embeddings that have one entry a row are changed."""

    def hook(_module: nn.Module, _inputs: Any, out: Any) -> Any:
        if isinstance(out, Tensor) and out.ndim and out.shape[0] == rows:
            state = torch.get_rng_state()
            out = change(out)
            torch.set_rng_state(state)  # dropout draws what it would have drawn
        return out

    handles = [module.register_forward_hook(hook) for module in model.modules() if isinstance(module, EMBEDDINGS)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _check_gradients(engine: Engine, losses: Losses, batch: tuple[Any, ...]) -> None:
    """The loss of a row has no derivative by another row: of the inputs, of embeddings, of what layers give."""
    points: list[Tensor] = []
    rows = len(batch[0])

    def hook(_module: nn.Module, _inputs: Any, out: Any) -> Any:
        if isinstance(out, Tensor) and out.is_floating_point() and out.ndim and out.shape[0] == rows:
            points.append(torch.zeros_like(out).requires_grad_())
            return out + points[-1]
        return out

    inputs = tuple(v.clone().requires_grad_() if v.is_floating_point() else v for v in batch[:-1])
    watched = {*engine._changed, *(m for m in engine.model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag))}  # noqa: SLF001
    handles = [module.register_forward_hook(hook) for module in watched]
    try:
        with torch.random.fork_rng(devices=[]):
            values = losses(engine.model, (*inputs, batch[-1]))
    finally:
        for handle in handles:
            handle.remove()
    points += [v for v in inputs if v.is_floating_point()]
    for row in range(rows if points and values.requires_grad else 0):
        others = [other for other in range(rows) if other != row]
        for found in torch.autograd.grad(values[row], points, retain_graph=True, allow_unused=True):
            if found is not None and bool((found[others].abs() > 1e-6 * found[row].abs().max()).any()):
                _mixes()


def _mixes() -> NoReturn:
    raise DataError(
        "the loss of one example depends on other examples of its batch: the model or the loss mixes them, so no "
        "clipping could bound what one example does. Nothing was spent."
    )
