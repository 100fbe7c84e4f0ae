"""Linear layers, whose weight gradient is never formed during the backward pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mosha.learning.gradients.device import multiply
from mosha.learning.gradients.tape import Context, Note, Tape

__all__ = ["Forward", "affine", "dense_forward", "lower_precision"]

Forward = Any  # what a module's `forward` is: any arguments, any outputs


def lower_precision(*tensors: Tensor | None) -> list[Any]:
    """The tensors as autocast would have them: a function of one's own has to ask."""
    kind = next(t for t in tensors if t is not None).device.type
    if not torch.is_autocast_enabled(kind):
        return list(tensors)
    wanted = torch.get_autocast_dtype(kind)
    return [t.to(wanted) if t is not None and t.is_floating_point() else t for t in tensors]


class _Affine(torch.autograd.Function):
    """x W^T + b; backward gives the gradient of x and hands (x, g) to `note`."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, weight: Tensor, bias: Tensor | None, note: Note) -> Tensor:
        ctx.note, ctx.kind = note, x.dtype
        x, weight, bias = lower_precision(x, weight, bias)
        ctx.save_for_backward(x, weight)
        return multiply(x, weight, bias)

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[Tensor | None, None, None, None]:
        (g,) = gradients
        x, weight = ctx.saved_tensors
        ctx.note(x, g)
        return multiply(g, weight.t()).to(ctx.kind) if ctx.needs_input_grad[0] else None, None, None, None


def affine(x: Tensor, weight: Tensor, bias: Tensor | None, note: Note) -> Tensor:
    """X W^T + b, noted."""
    return _Affine.apply(x, weight, bias, note)  # type: ignore[no-untyped-call,no-any-return]


def dense_forward(layer: nn.Linear, name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.Linear`, noted while the tape is recording."""
    weight_key, bias_key = tape.key(layer.weight), tape.key(layer.bias)
    plain = layer.forward

    def note(a: Tensor, g: Tensor) -> None:
        weight = weight_key if layer.weight.requires_grad else None
        bias = bias_key if layer.bias is not None and layer.bias.requires_grad else None
        tape.affine(name, weight, bias, a, g)

    def forward(x: Tensor, /) -> Tensor:
        return affine(tape.share(name, x), layer.weight, layer.bias, note) if tape.recording else plain(x)

    return forward
