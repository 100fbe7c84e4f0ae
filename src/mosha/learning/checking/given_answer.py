"""What a model answered, given again without computing it: other labels are tried for the price of a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

__all__ = ["answer_as_before", "find_answer"]

Found = TypeVar("Found")


def find_answer(model: nn.Module, ask: Callable[[], Found]) -> tuple[Found, object | None]:
    """What `ask` gives, and what the model answered meanwhile; None where it was not asked once, or no tensor is seen.

    >>> import torch
    >>> model = nn.Identity()
    >>> find_answer(model, lambda: model(torch.ones(2)) + 1)
    (tensor([2., 2.]), tensor([1., 1.]))
    """
    answers: list[object] = []
    handle = model.register_forward_hook(lambda _module, _inputs, answer: answers.append(_copy(answer)))
    try:
        values = ask()
    finally:
        handle.remove()
    known = len(answers) == 1 and any(isinstance(leaf, Tensor) for leaf in tree_leaves(answers[0]))
    return values, answers[0] if known else None


@contextmanager
def answer_as_before(model: nn.Module, answer: object) -> Iterator[None]:
    """Inside, the model gives this answer, whatever it is asked; who writes into it writes into a copy."""
    own = vars(model).get("forward")
    model.forward = lambda *_inputs, **_options: _copy(answer)
    try:
        yield
    finally:
        del vars(model)["forward"]
        if own is not None:
            model.forward = own


def _copy(answer: object) -> object:
    return tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, answer)
