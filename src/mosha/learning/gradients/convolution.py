"""Convolutions, whose weight gradient is formed for every example where there is room to keep it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from mosha.learning.gradients.convolution_records import Convolved, How, convolution_backward
from mosha.learning.gradients.dense import Forward, lower_precision
from mosha.learning.gradients.tape import Context, Note, Tape

__all__ = ["Convolution", "convolution_forward"]

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


class _Convolution(torch.autograd.Function):
    """A convolution; backward gives the gradient of x and hands (x, g) to `note`."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, weight: Tensor, bias: Tensor | None, how: How, note: Note) -> Tensor:
        ctx.note, ctx.how, ctx.kind = note, how, x.dtype
        x, weight, bias = lower_precision(x, weight, bias)
        ctx.save_for_backward(x, weight)
        zeros = [0] * len(how.stride)
        return torch.convolution(x, weight, bias, how.stride, how.padding, how.dilation, False, zeros, how.groups)

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[Tensor | None, None, None, None, None]:
        (g,) = gradients
        x, weight = ctx.saved_tensors
        ctx.note(x, g, ctx.how)
        into_x = None
        if ctx.needs_input_grad[0]:
            into_x = convolution_backward(g, x, weight, ctx.how, [True, False, False])[0].to(ctx.kind)
        return into_x, None, None, None, None


def convolution_forward(layer: Convolution, name: str, tape: Tape) -> Forward:
    """The forward pass of a convolution, noted while the tape is recording."""
    weight_key, bias_key = tape.key(layer.weight), tape.key(layer.bias)
    plain = layer.forward

    def note(x: Tensor, g: Tensor, how: How) -> None:
        if layer.weight.requires_grad:
            note_weight(x, g, how)
        if layer.bias is not None and layer.bias.requires_grad:
            tape.record_gradients(name, bias_key, tape.rows_of(name, g, folded=True).flatten(2).sum(dim=2))

    def note_weight(x: Tensor, g: Tensor, how: How) -> None:
        x, g = tape.rows_of(name, x, folded=True), tape.rows_of(name, g, folded=True)
        noted = Convolved(x, g, layer.weight, how, len(x) // tape.units)
        kept = not noted.gram_is_cheaper(than_keeping=True) and tape.has_room_to_form(layer.weight, x, g)
        tape.add(weight_key, noted.form() if kept else noted)

    def forward(x: Tensor, /) -> Tensor:
        if not tape.recording:
            return plain(x)
        x = tape.share(name, x) if x.ndim == len(layer.kernel_size) + 2 else x
        if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
            mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
            x = functional.pad(x, layer._reversed_padding_repeated_twice, mode=mode)  # noqa: SLF001
        arguments = (x, layer.weight, layer.bias, _how(layer), note)
        return _Convolution.apply(*arguments)  # type: ignore[no-untyped-call,no-any-return]

    return forward


def _how(layer: Convolution) -> How:
    """As the layer says; what is padded beforehand needs no padding."""
    beforehand = layer.padding_mode != "zeros" or isinstance(layer.padding, str)
    padding = [0] * len(layer.stride) if beforehand else list(layer.padding)
    return How(list(layer.stride), padding, list(layer.dilation), layer.groups)
