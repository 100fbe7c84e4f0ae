"""Whether the loss of one example depends on another: tried on made-up batches, of the number of rows that are run.

Rows are changed, alone and many at once, in whatever they hold: numbers, tokens, labels, what embeddings make of them.
The losses of all others must stay, and have no derivative by them. Tried, not proved: assumption A1 of `rounding.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mosha.core.errors import DataError
from mosha.learning.gradients.engine import Engine

__all__ = ["Losses", "check_rows_apart"]

Batch = tuple[Tensor, ...]
Losses = Callable[[nn.Module, Batch], Tensor]
Moves = Callable[[Tensor], Tensor]

EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
FEW = 8  # rows up to which every one is changed alone
MOVES: tuple[Moves, ...] = (
    torch.randn_like,
    lambda value: value + 1000 * torch.randn_like(value).abs(),  # a new largest row
    lambda value: value - 1000 * torch.randn_like(value).abs(),  # a new smallest one
    lambda value: 1e-3 * torch.randn_like(value),  # nearly nothing: what stays stands out
)
LABELS = (1, 2, -1, -100)  # other classes, and what losses take for a label that is missing


def check_rows_apart(engine: Engine, losses: Losses, batch: Batch, *, targets: int = 1) -> None:
    """Refuse a model or a loss in which rows of this batch have a part in the losses of others.

    The last `targets` tensors of the batch are what the loss compares with.

    Raises:
        DataError: where they have. Nothing was spent.
    """
    inputs = len(batch) - targets
    classes = _find_classes(engine.model, losses, batch)
    for base in _bases(engine.model, losses, batch, inputs):
        before = _try_losses(engine.model, losses, base, _as_it_is)
        for chosen in _choices(len(batch[0])):
            others = torch.ones(len(before), dtype=torch.bool)
            others[chosen] = False
            for after in _with_other_rows(engine.model, losses, base, chosen, inputs, classes):
                if not torch.allclose(before[others], after[others], rtol=1e-4, atol=1e-6, equal_nan=True):
                    raise _mixes()
        _check_gradients(engine, losses, base, inputs)


def _find_classes(model: nn.Module, losses: Losses, batch: Batch) -> int:
    """How many labels there may be: as many as the model gives numbers a row, or a place of one."""
    widths = [2]

    def hook(_module: nn.Module, _inputs: object, out: object) -> None:
        widths.extend(v.shape[-1] for v in tree_leaves(out) if isinstance(v, Tensor) and v.ndim > 1)

    handle = model.register_forward_hook(hook)
    try:
        _try_losses(model, losses, batch, _as_it_is)
    finally:
        handle.remove()
    return max(widths)


def _bases(model: nn.Module, losses: Losses, batch: Batch, inputs: int) -> Iterator[Batch]:
    """The batch as it is, whole numbers all zero, and one in which they differ, where the model knows such numbers."""
    yield batch
    if all(values.is_floating_point() for values in batch):
        return
    most = _vocabulary(model)
    tokens = (_other_tokens(values, slice(None), most) for values in batch[:inputs])
    mixed = (*tokens, *(_other_tokens(values, slice(None), 2) for values in batch[inputs:]))
    if _losses_of(model, losses, mixed, _as_it_is) is not None:
        yield mixed


def _choices(rows: int) -> list[Tensor]:
    """Rows that are changed together: all but one, and each alone where they are few, else three and a random half."""
    order = torch.randperm(rows)
    if rows == 1:
        return [order]
    if rows <= FEW:
        return [order[1:], *(torch.tensor([row]) for row in range(rows))]
    single = [torch.tensor([row]) for row in (0, rows - 1, int(torch.randint(rows, ())))]
    return [order[1:], order[: rows // 2], *single]


def _with_other_rows(
    model: nn.Module, losses: Losses, batch: Batch, chosen: Tensor, inputs: int, classes: int
) -> Iterator[Tensor]:
    """The losses of batches that differ in the chosen rows; of those only that the model has a meaning for."""
    for move in MOVES:

        def move_values(values: Tensor, move: Moves = move) -> Tensor:
            new = values.detach().clone()
            new[chosen] = move(new[chosen])
            return new

        yield _try_losses(
            model, losses, tuple(move_values(v) if v.is_floating_point() else v for v in batch), move_values
        )
    whole = [
        (*(_other_tokens(values, chosen, most) for values in batch[:inputs]), *batch[inputs:])
        for most in {2, _vocabulary(model)}
        if not all(v.is_floating_point() for v in batch[:inputs])
    ]
    if not all(v.is_floating_point() for v in batch[inputs:]):
        others = [[_other_labels(v, chosen, label) for v in batch[inputs:]] for label in LABELS]
        others.append([_all_labels(v, chosen, classes) for v in batch[inputs:]])
        whole += [(*batch[:inputs], *labels) for labels in others]
    for found in whole:
        after = _losses_of(model, losses, found, _as_it_is)
        if after is not None:
            yield after


def _vocabulary(model: nn.Module) -> int:
    """Tokens that every embedding of the model knows."""
    return min((module.num_embeddings for module in model.modules() if isinstance(module, EMBEDDINGS)), default=2)


def _other_tokens(values: Tensor, chosen: Tensor | slice, most: int) -> Tensor:
    new = values.clone()
    if not values.is_floating_point():
        new[chosen] = torch.randint(most, new[chosen].shape).to(new.dtype)
    return new


def _other_labels(values: Tensor, chosen: Tensor, label: int) -> Tensor:
    new = values.clone()
    if values.is_floating_point():
        return new
    new[chosen] = ~new[chosen] if values.dtype == torch.bool else new[chosen] + label
    return new


def _all_labels(values: Tensor, chosen: Tensor, classes: int) -> Tensor:
    """Every label there is, one after another, in the chosen rows: as many as have a place there."""
    new = values.clone()
    if not values.is_floating_point() and values.dtype != torch.bool:
        some = new[chosen]
        labels = (torch.arange(some.numel()) + torch.randint(classes, ())) % classes
        new[chosen] = labels.view(some.shape).to(new.dtype)
    return new


def _losses_of(model: nn.Module, losses: Losses, batch: Batch, change: Moves) -> Tensor | None:
    """The losses, or None where this model has no meaning for these whole numbers, all of which are made up."""
    try:
        return _try_losses(model, losses, batch, change)
    except Exception:  # noqa: BLE001
        return None


def _as_it_is(values: Tensor) -> Tensor:
    return values


def _try_losses(model: nn.Module, losses: Losses, batch: Batch, change: Moves) -> Tensor:
    """The losses, with the same dropout every time, and with what embeddings give changed."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]), _change_embeddings(model, change, len(batch[0])):
        torch.manual_seed(0)
        return losses(model, batch)


@contextmanager
def _change_embeddings(model: nn.Module, change: Moves, rows: int) -> Iterator[None]:
    """Inside, the outputs of embeddings that have one entry a row are changed."""

    def hook(_module: nn.Module, _inputs: object, out: object) -> Any:
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


def _check_gradients(engine: Engine, losses: Losses, batch: Batch, inputs: int) -> None:
    """No loss has a derivative by another row: of the inputs, of embeddings, of what layers give.

    Many rows are tried together: the losses of a random half, randomly weighted, have none by the other half.
    """
    points: list[Tensor] = []
    rows = len(batch[0])

    def hook(_module: nn.Module, _inputs: object, out: object) -> Any:
        if isinstance(out, Tensor) and out.is_floating_point() and out.ndim and out.shape[0] == rows:
            points.append(torch.zeros_like(out).requires_grad_())
            return out + points[-1]
        return out

    given = tuple(v.clone().requires_grad_() if v.is_floating_point() else v for v in batch[:inputs])
    watched = {*engine._changed, *(m for m in engine.model.modules() if isinstance(m, EMBEDDINGS))}  # noqa: SLF001
    handles = [module.register_forward_hook(hook) for module in watched]
    try:
        with torch.random.fork_rng(devices=[]):
            values = losses(engine.model, (*given, *batch[inputs:]))
    finally:
        for handle in handles:
            handle.remove()
    points += [v for v in given if v.is_floating_point()]
    for chosen in _choices(rows) if points and values.requires_grad else []:
        others = torch.ones(rows, dtype=torch.bool)
        others[chosen] = False
        weighted = (values[chosen] * (1 + torch.rand(len(chosen)))).sum()
        for found in torch.autograd.grad(weighted, points, retain_graph=True, allow_unused=True):
            if found is not None and bool((found[others].abs() > 1e-6 * found[chosen].abs().max()).any()):
                raise _mixes()


def _mixes() -> DataError:
    return DataError("learning.rows_mixed", spent="nothing")
