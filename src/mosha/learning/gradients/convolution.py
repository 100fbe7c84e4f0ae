"""Convolutions, whose weight gradient is formed for every example where there is room to keep it, and pooling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mosha.learning.gradients.convolution_records import Convolved, How, convolution_backward
from mosha.learning.gradients.dense import Forward, lower_precision
from mosha.learning.gradients.tape import Context, Note, Tape

__all__ = ["Convolution", "convolution_forward", "pool_forward"]

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
CHANNELS_LAST = torch.channels_last
Windows = tuple[list[int], list[int], list[int], list[int], bool]
"""Of a pooling layer: sizes, strides, paddings and dilations of its windows, and whether last ones may stick out."""


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


class _MaxPool(torch.autograd.Function):
    """The largest of each window, worked out with channels side by side in memory: a CPU does so several times sooner.

    Values and gradients are those of the usual order, bit by bit; the inputs are not kept.
    """

    @staticmethod
    def forward(ctx: Context, x: Tensor, how: Windows) -> Tensor:
        found, places = torch.ops.aten.max_pool2d_with_indices(x.contiguous(memory_format=CHANNELS_LAST), *how)
        ctx.save_for_backward(places)
        ctx.sizes, ctx.kept = x.shape, how
        return found.contiguous()  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        shaped = torch.empty(ctx.sizes, memory_format=CHANNELS_LAST)  # nothing of the inputs but their shape is read
        g = gradients[0].contiguous(memory_format=CHANNELS_LAST)
        return torch.ops.aten.max_pool2d_with_indices_backward(g, shaped, *ctx.kept, places).contiguous(), None


def _windows(layer: nn.MaxPool2d) -> Windows:
    sizes = layer.kernel_size, layer.stride, layer.padding, layer.dilation
    kernel, stride, padding, dilation = ([size] * 2 if isinstance(size, int) else list(size) for size in sizes)
    return kernel, stride, padding, dilation, layer.ceil_mode


def pool_forward(layer: nn.MaxPool2d, _name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.MaxPool2d`, which has nothing to note, sooner while the tape is recording."""
    plain = layer.forward

    def forward(x: Tensor, /) -> Any:
        usual = x.ndim != 4 or x.shape[1] == 1 or x.dtype != torch.float32 or x.device.type != "cpu"
        if usual or not tape.recording or layer.return_indices or not x.is_contiguous():
            return plain(x)
        return _MaxPool.apply(x, _windows(layer))  # type: ignore[no-untyped-call]

    return forward
