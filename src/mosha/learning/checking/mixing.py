"""Whether the loss of one example depends on another: tried on made-up batches, of the number of rows that are run.

Rows are changed, alone and many at once, in whatever they hold: numbers, tokens, labels, what embeddings make of them.
The losses of all others must stay, and have no derivative by them. What a row holds is changed together, and one by one
only where a model has no meaning for the whole; labels are changed after the model has answered, once. A large model is
tried fewer times than a small one (`count_tries`). Tried, not proved: assumption A1 of `rounding.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mosha.core.errors import DataError
from mosha.learning.checking.given_answer import answer_as_before, find_answer
from mosha.learning.gradients.device import device_of, fork_randomness
from mosha.learning.gradients.engine import Engine

__all__ = ["LEAST", "Losses", "check_rows_apart", "count_tries", "find_bases"]

Batch = tuple[Tensor, ...]
Losses = Callable[[nn.Module, Batch], Tensor]
Base = tuple[Batch, Tensor, object | None]
"""A batch, its losses, and what the model gave for it."""
Change = Callable[[Tensor], Tensor]
Move = Callable[[Tensor, Tensor], Tensor]
"""From values of rows, and those of a row that stays, to other values."""

EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
LEAST, MOST = 6, 30  # tries of inputs, and of labels
SMALL = 1 << 28  # parameters of all tries together, beyond the least


def _redraw(values: Tensor, _stays: Tensor) -> Tensor:
    return torch.randn_like(values)


def _move_up(values: Tensor, _stays: Tensor) -> Tensor:
    return values + 1000 * torch.randn_like(values).abs()


def _move_down(values: Tensor, _stays: Tensor) -> Tensor:
    return values - 1000 * torch.randn_like(values).abs()


def _shrink(values: Tensor, _stays: Tensor) -> Tensor:
    """What stays stands out."""
    return 1e-3 * torch.randn_like(values)


def _imitate(values: Tensor, stays: Tensor) -> Tensor:
    """As a row that stays, nearly: what has room for some rows of a kind has none for it."""
    return stays + 1e-3 * torch.randn_like(values)


MOVES: tuple[Move, ...] = (_redraw, _move_up, _move_down, _shrink, _imitate)
LABELS = (1, 2, -1, -100)  # other classes, and what losses take for a label that is missing


class Choices(NamedTuple):
    """Rows that are changed together: two halves (the first row is in one, the last in the other), all but one, one."""

    half: Tensor
    other: Tensor
    most: Tensor
    single: Tensor


def count_tries(engine: Engine) -> int:
    """How often the rows of a batch are changed: a public number, that falls with the number of parameters."""
    parameters = sum(p.numel() for p in engine.model.parameters())
    return max(LEAST, min(MOST, SMALL // max(1, parameters)))


def check_rows_apart(
    engine: Engine, losses: Losses, batch: Batch, *, targets: int = 1, tries: int | None = None, shown: bool = False
) -> None:
    """Refuse a model or a loss in which rows of this batch have a part in the losses of others.

    The last `targets` tensors of the batch are what the loss compares with. Where the model is `shown` them, too, its
    answer may hang on them: it is computed again for other ones.

    Raises:
        DataError: where they have. Nothing was spent.
    """
    model, rows, inputs = engine.model, len(batch[0]), len(batch) - targets
    if rows == 1:
        return
    tries = count_tries(engine) if tries is None else tries
    for base, before, answer in islice(find_bases(model, losses, batch, inputs), 2 if tries == MOST else 1):
        choices = _choose(rows)
        for number, (chosen, move) in enumerate(_pair(choices, rows)[:tries]):
            most = _vocabulary(model) if number % 2 else 2
            _compare(before, _try_other_rows(model, losses, base, chosen, inputs, move, most), chosen)
        known: AbstractContextManager[None] = (
            nullcontext() if shown or answer is None else answer_as_before(model, answer)
        )
        with known:
            classes = _count_classes(answer)
            for labels, times in ((base[inputs:], tries), (batch[inputs:], tries // 3)):
                _check_labels(model, losses, (*base[:inputs], *labels), choices, inputs, classes, times)
        _check_gradients(engine, losses, base, inputs, choices)


def _compare(before: Tensor, after: Tensor, chosen: Tensor) -> None:
    others = torch.ones(len(before), dtype=torch.bool)
    others[chosen] = False
    if not torch.allclose(before[others], after[others], rtol=1e-4, atol=1e-6, equal_nan=True):
        raise _mixes()


def _count_classes(answer: object) -> int:
    """How many labels there may be: as many as the model gives numbers a row, or a place of one."""
    leaves = (values for values in tree_leaves(answer) if isinstance(values, Tensor))
    return max((values.shape[-1] for values in leaves if values.ndim > 1), default=2)


def find_bases(model: nn.Module, losses: Losses, batch: Batch, inputs: int) -> Iterator[Base]:
    """A batch in which whole numbers differ, where the model knows such numbers, and the one in which all are zero."""
    if not all(values.is_floating_point() for values in batch):
        tokens = (_other_tokens(values, slice(None), _vocabulary(model)) for values in batch[:inputs])
        mixed = (*tokens, *(_other_tokens(values, slice(None), 2) for values in batch[inputs:]))
        before, answer = find_answer(model, partial(_losses_of, model, losses, mixed))
        if before is not None:
            yield mixed, before, answer
    yield batch, *find_answer(model, partial(_try_losses, model, losses, batch))


def _choose(rows: int) -> Choices:
    inner = 1 + torch.randperm(rows - 2)
    middle = len(inner) // 2
    half, other = torch.cat([torch.tensor([0]), inner[:middle]]), torch.cat([inner[middle:], torch.tensor([rows - 1])])
    order = torch.randperm(rows)
    return Choices(half, other, order[1:], order[:1])


def _pair(choices: Choices, rows: int) -> list[tuple[Tensor, Move]]:
    """What is tried, the first six on every model: rows, and how they are changed."""
    half, other, most, _ = choices
    before_last, ends = torch.arange(rows - 1), (torch.tensor([0]), torch.tensor([rows - 1]))
    first = [(half, _move_up), (half, _move_down), (other, _redraw), (most, _shrink), (before_last, _imitate)]
    first += [(other, _move_up), (other, _move_down)]
    seen = {(id(chosen), move) for chosen, move in first}
    return first + [(c, move) for move in MOVES for c in (*choices, *ends) if (id(c), move) not in seen]


def _try_other_rows(
    model: nn.Module, losses: Losses, batch: Batch, chosen: Tensor, inputs: int, move: Move, most: int
) -> Tensor:
    """The losses with other numbers and tokens in these rows; with numbers alone, where tokens have no meaning."""
    stays = max(set(range(len(batch[0]))) - set(chosen.tolist()))

    def move_values(values: Tensor) -> Tensor:
        new = values.detach().clone()
        new[chosen] = move(new[chosen], new[stays])
        return new

    numbers = tuple(move_values(v) if v.is_floating_point() else v for v in batch)
    together = None
    if not all(values.is_floating_point() for values in batch[:inputs]):
        tokens = (_other_tokens(values, chosen, most) for values in numbers[:inputs])
        together = _losses_of(model, losses, (*tokens, *numbers[inputs:]), move_values)
    return _try_losses(model, losses, numbers, move_values) if together is None else together


def _check_labels(
    model: nn.Module, losses: Losses, batch: Batch, choices: Choices, inputs: int, classes: int, tries: int
) -> None:
    """The same with other labels, of those only that the loss has a meaning for."""
    labels, (half, other, most, single) = batch[inputs:], choices
    if all(values.is_floating_point() for values in labels):
        return
    before = _losses_of(model, losses, batch)
    if before is None:
        return
    first: list[tuple[Tensor, int | None]] = [(half, None), (other, None), (other, -100), (single, 1), (most, None)]
    rest = [
        (c, label) for label in (None, *LABELS) for c in choices if not any(c is d and label == e for d, e in first)
    ]
    for chosen, label in (first + rest)[:tries]:
        found = [_all_labels(v, chosen, classes) if label is None else _other_labels(v, chosen, label) for v in labels]
        after = _losses_of(model, losses, (*batch[:inputs], *found))
        if after is not None:
            _compare(before, after, chosen)


def _vocabulary(model: nn.Module) -> int:
    """Tokens that every embedding of the model knows."""
    return min((module.num_embeddings for module in model.modules() if isinstance(module, EMBEDDINGS)), default=2)


def _other_tokens(values: Tensor, chosen: Tensor | slice, most: int) -> Tensor:
    if values.is_floating_point():
        return values
    new = values.clone()
    new[chosen] = torch.randint(most, new[chosen].shape).to(new)
    return new


def _other_labels(values: Tensor, chosen: Tensor, label: int) -> Tensor:
    if values.is_floating_point():
        return values
    new = values.clone()
    if values.dtype == torch.bool:
        new[chosen] = ~new[chosen]
    else:
        new[chosen] = new[chosen] + label if label > 0 else label
    return new


def _all_labels(values: Tensor, chosen: Tensor, classes: int) -> Tensor:
    """Every label there is, one after another, in the chosen rows: as many as have a place there."""
    if values.is_floating_point() or values.dtype == torch.bool:
        return values
    new = values.clone()
    some = new[chosen]
    labels = (torch.arange(some.numel()) + torch.randint(classes, ())) % classes
    new[chosen] = labels.view(some.shape).to(new)
    return new


def _as_it_is(values: Tensor) -> Tensor:
    return values


def _losses_of(model: nn.Module, losses: Losses, batch: Batch, change: Change = _as_it_is) -> Tensor | None:
    """The losses, or None where this model has no meaning for these whole numbers, all of which are made up."""
    try:
        return _try_losses(model, losses, batch, change)
    except Exception:  # noqa: BLE001
        return None


def _try_losses(model: nn.Module, losses: Losses, batch: Batch, change: Change = _as_it_is) -> Tensor:
    """The losses, with the same dropout every time, and with what embeddings give changed."""
    with torch.no_grad(), fork_randomness(device_of(model)), _change_embeddings(model, change, len(batch[0])):
        torch.manual_seed(0)
        return losses(model, batch)


@contextmanager
def _change_embeddings(model: nn.Module, change: Change, rows: int) -> Iterator[None]:
    """Inside, the outputs of embeddings that have one entry a row are changed."""

    def hook(_module: nn.Module, _inputs: object, out: object) -> Any:
        if isinstance(out, Tensor) and out.ndim and out.shape[0] == rows:
            with fork_randomness(out.device):  # dropout draws what it would have drawn
                out = change(out)
        return out

    handles = [module.register_forward_hook(hook) for module in model.modules() if isinstance(module, EMBEDDINGS)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _check_gradients(engine: Engine, losses: Losses, batch: Batch, inputs: int, choices: Choices) -> None:
    """No loss has a derivative by another row: of the inputs, of embeddings, of what layers give.

    Many rows are tried together: the losses of a half, randomly weighted, have none by the other half.
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
        with fork_randomness(engine.device):
            values = losses(engine.model, (*given, *batch[inputs:]))
    finally:
        for handle in handles:
            handle.remove()
    points += [v for v in given if v.is_floating_point()]
    halves = (choices.half, choices.other), (choices.other, choices.half)
    for chosen, others in halves if points and values.requires_grad else ():
        weighted = (values[chosen] * (1 + torch.rand(len(chosen))).to(values.device)).sum()
        for found in torch.autograd.grad(weighted, points, retain_graph=True, allow_unused=True):
            if found is not None and bool((found[others].abs() > 1e-6 * found[chosen].abs().max()).any()):
                raise _mixes()


def _mixes() -> DataError:
    return DataError("learning.rows_mixed", spent="nothing")
