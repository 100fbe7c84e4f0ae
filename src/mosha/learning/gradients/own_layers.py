"""Layers of one's own: whoever knows the gradients of single rows registers them, as users of Opacus do.

What is registered is believed no more than any other layer: before anything is paid, the gradients of made-up rows are
compared with PyTorch's own backward pass (`oracle.py`), also in batches of the number of rows that is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from mosha.core.errors import DataError, InvalidParameter
from mosha.learning.gradients.dense import Forward
from mosha.learning.gradients.tape import Context, Tape

__all__ = ["RowGradients", "find_registered", "register_layer", "registered_forward"]

RowGradients = Callable[[Any, list[Tensor], Tensor], Mapping[nn.Parameter, Tensor]]
"""From a layer, its inputs and the gradients of its output to the gradients of each parameter, one for every row."""

_REGISTERED: dict[type[nn.Module], RowGradients] = {}


def register_layer(*kinds: type[nn.Module]) -> Callable[[RowGradients], RowGradients]:
    """Register a function that knows the gradients of single rows for layers of these `kinds`; the last one counts.

    It takes the layer, a list of its tensors of input and the gradients of its output, and gives for every parameter
    that is trained, of the layer and of what is inside it, a tensor with one gradient a row. Without it such a layer is
    understood by trial or computed row by row: registering saves time and memory, never correctness.

    >>> class Scale(nn.Module):
    ...     def __init__(self, width):
    ...         super().__init__()
    ...         self.weight = nn.Parameter(torch.ones(width))
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> @register_layer(Scale)
    ... def gradients_of_scale(layer, inputs, gradients):
    ...     return {layer.weight: inputs[0] * gradients}
    """
    if not kinds or not all(isinstance(kind, type) and issubclass(kind, nn.Module) for kind in kinds):
        raise InvalidParameter("learning.register_kinds", parameter="kinds", spent="nothing")

    def register(gradients: RowGradients) -> RowGradients:
        if not callable(gradients):
            raise InvalidParameter("learning.register_kinds", parameter="kinds", spent="nothing")
        _REGISTERED.update(dict.fromkeys(kinds, gradients))
        return gradients

    return register


def find_registered(layer: nn.Module) -> RowGradients | None:
    """What was registered for the very kind of this layer; kinds derived from it may do something else."""
    return _REGISTERED.get(type(layer))


class _Seen(torch.autograd.Function):
    """What a layer gave, as it is; the gradient of it is noted. The anchor has it called where no input is trained."""

    @staticmethod
    def forward(ctx: Context, out: Tensor, anchor: Tensor, note: Callable[[Tensor], None]) -> Tensor:
        del anchor
        ctx.note = note
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[Tensor, None, None]:
        ctx.note(gradients[0])
        return gradients[0], None, None


def registered_forward(gradients: RowGradients, layer: nn.Module, name: str, tape: Tape) -> Forward:
    """The forward pass of a registered layer: its own, with parameters that PyTorch does not follow."""
    plain, inside = layer.forward, False

    def forward(*arguments: Any, **options: Any) -> Any:
        nonlocal inside
        if not tape.recording or inside:
            return plain(*arguments, **options)
        trained = {own: p for own, p in layer.named_parameters() if p.requires_grad}
        inside = True
        try:
            detached = {own: p.detach() for own, p in trained.items()}
            out = functional_call(layer, detached, arguments, options)
        finally:
            inside = False
        if not isinstance(out, Tensor):
            raise InvalidParameter("learning.registered_output", layer=name, spent="nothing")
        inputs = [v.detach() for v in (*arguments, *options.values()) if isinstance(v, Tensor)]

        def note(upstream: Tensor) -> None:
            _record(gradients(layer, inputs, upstream.detach()), trained, name, tape)

        return _Seen.apply(out, torch.zeros((), requires_grad=True), note)  # type: ignore[no-untyped-call]

    return forward


def _record(found: Any, trained: dict[str, nn.Parameter], name: str, tape: Tape) -> None:
    """Note gradients that were given for every row, after a look at their shapes."""
    given = {id(p): values for p, values in found.items()} if isinstance(found, Mapping) else {}
    for parameter in trained.values():
        values = given.get(id(parameter))
        if not isinstance(values, Tensor) or values.shape[1:] != parameter.shape:
            raise DataError("learning.registered_shapes", layer=name)
        tape.record_gradients(name, tape.key(parameter), values)
