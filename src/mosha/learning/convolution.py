"""Convolutions: per-example weight gradients from one grouped convolution, in which every example is a group."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mosha.learning.dense import Forward, lowered
from mosha.learning.tape import Tape

__all__ = ["Convolution", "convolution_forward"]

PIECE = 3 << 20  # bytes of gradients that are formed at once
Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


def _backward(g: Tensor, x: Tensor, weight: Tensor, how: tuple[Any, ...], groups: int, mask: list[bool]) -> Any:
    stride, padding, dilation = how
    zeros = [0] * len(stride)
    arguments = (g, x, weight, [0], stride, padding, dilation, False, zeros, groups, mask)
    return torch.ops.aten.convolution_backward(*arguments)


class _Convolution(torch.autograd.Function):
    """A convolution; backward gives the gradient of x and hands (x, g) to `note`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, how: tuple[Any, ...], groups: int, note: Any
    ) -> Tensor:
        ctx.note, ctx.how, ctx.groups, ctx.kind = note, how, groups, x.dtype
        x, weight, bias = lowered(x, weight, bias)
        ctx.save_for_backward(x, weight)
        stride, padding, dilation = how
        zeros = [0] * len(stride)
        return torch.convolution(x, weight, bias, stride, padding, dilation, False, zeros, groups)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, None, None, None]:
        (g,) = gradients
        x, weight = ctx.saved_tensors
        ctx.note(x, g)
        into_x = None
        if ctx.needs_input_grad[0]:
            into_x = _backward(g, x, weight, ctx.how, ctx.groups, [True, False, False])[0].to(ctx.kind)
        return into_x, None, None, None, None, None


def per_example(x: Tensor, g: Tensor, weight: Tensor, how: tuple[Any, ...], groups: int) -> Tensor:
    """The weight gradient of every example, some rows at a time: the convolution needs as much again as it gives."""
    formed = weight.new_empty(len(x), *weight.shape)
    pieces = min(len(x), -(-4 * formed.numel() // PIECE))
    if pieces <= 1:
        return _at_once(x, g, formed, how, groups)
    most = -(-len(x) // pieces)
    for start in range(0, len(x), most):
        rows = slice(start, start + most)
        formed[rows] = _at_once(x[rows], g[rows], formed[rows], how, groups)
    return formed


def _at_once(x: Tensor, g: Tensor, shaped: Tensor, how: tuple[Any, ...], groups: int) -> Tensor:
    """The batch becomes groups of one convolution; of `shaped` only the shape is looked at."""
    wide = shaped.reshape(-1, *shaped.shape[2:])
    x, g = x.reshape(1, -1, *x.shape[2:]), g.reshape(1, -1, *g.shape[2:])
    formed = _backward(g, x, wide, how, groups * len(shaped), [False, True, False])[1]
    return formed.view(shaped.shape)  # type: ignore[no-any-return]


def convolution_forward(layer: Convolution, name: str, tape: Tape) -> Forward:
    """The forward pass of a convolution, noted while the tape is recording."""
    weight_key, bias_key = tape.key(layer.weight), tape.key(layer.bias)
    plain = layer.forward
    pointwise = math.prod(layer.kernel_size) == 1 and layer.groups == 1 and max(layer.stride) == 1

    def note(x: Tensor, g: Tensor) -> None:
        if layer.weight.requires_grad:
            _note_weight(x, g)
        if layer.bias is not None and layer.bias.requires_grad:
            tape.formed(name, bias_key, tape.rows_of(name, g).flatten(2).sum(dim=2))

    def _note_weight(x: Tensor, g: Tensor) -> None:
        x, g = tape.rows_of(name, x), tape.rows_of(name, g)
        if pointwise and not _padded(layer):
            formed = torch.bmm(g.flatten(2), x.flatten(2).transpose(1, 2)).view(x.shape[0], *layer.weight.shape)
        else:
            formed = per_example(x, g, layer.weight, _how(layer), layer.groups)
        tape.formed(name, weight_key, formed)

    def forward(x: Tensor) -> Tensor:
        if not tape.recording:
            return plain(x)
        if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
            mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
            x = functional.pad(x, layer._reversed_padding_repeated_twice, mode=mode)  # noqa: SLF001
        arguments = (x, layer.weight, layer.bias, _how(layer), layer.groups, note)
        return _Convolution.apply(*arguments)  # type: ignore[no-untyped-call,no-any-return]

    return forward


def _padded(layer: Convolution) -> bool:
    return isinstance(layer.padding, str) or max(layer.padding) > 0


def _how(layer: Convolution) -> tuple[Any, ...]:
    """Stride, padding and dilation; what is padded beforehand needs none."""
    beforehand = layer.padding_mode != "zeros" or isinstance(layer.padding, str)
    padding = [0] * len(layer.stride) if beforehand else list(layer.padding)
    return list(layer.stride), padding, list(layer.dilation)
