"""Normalisation within one example: LayerNorm, RMSNorm, GroupNorm, InstanceNorm (without running statistics)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from mosha.learning.gradients.dense import Forward
from mosha.learning.gradients.tape import Context, Note, Tape

__all__ = ["group_forward", "instance_forward", "layer_forward", "root_forward"]


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        shape: list[int],
        epsilon: float,
        note: Note,
    ) -> Tensor:
        out, mean, scale = torch.native_layer_norm(x, shape, weight, bias, epsilon)
        ctx.save_for_backward(x, weight, bias, mean, scale)
        ctx.shape, ctx.note = shape, note
        return out

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[Tensor | None, None, None, None, None, None]:
        (g,) = gradients
        x, weight, bias, mean, scale = ctx.saved_tensors
        ctx.note(x, mean, scale, g)
        if not ctx.needs_input_grad[0]:
            return None, None, None, None, None, None
        arguments = (g.contiguous(), x, ctx.shape, mean, scale, weight, bias, [True, False, False])
        return torch.ops.aten.native_layer_norm_backward(*arguments)[0], None, None, None, None, None


def _sum_positions(values: Tensor, trailing: int) -> Tensor:
    """The sum over all axes between the first and the last `trailing` ones."""
    inner = tuple(range(1, values.ndim - trailing))
    return values.sum(dim=inner) if inner else values


def layer_forward(layer: nn.LayerNorm, name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.LayerNorm`, noted while the tape is recording."""
    weight_key, bias_key = tape.key(layer.weight), tape.key(layer.bias)
    plain, trailing = layer.forward, len(layer.normalized_shape)

    def note(x: Tensor, mean: Tensor, scale: Tensor, g: Tensor) -> None:
        g = tape.rows_of(name, g, folded=True)
        if layer.weight.requires_grad:
            normalised = torch.addcmul(-mean * scale, tape.rows_of(name, x, folded=True), scale)
            tape.record_gradients(name, weight_key, _sum_positions(normalised.mul_(g), trailing))
        if layer.bias is not None and layer.bias.requires_grad:
            tape.record_gradients(name, bias_key, _sum_positions(g, trailing))

    def forward(x: Tensor, /) -> Tensor:
        if not tape.recording:
            return plain(x)
        arguments = (tape.share(name, x).float(), layer.weight, layer.bias, layer.normalized_shape, layer.eps, note)
        return _LayerNorm.apply(*arguments)  # type: ignore[no-untyped-call,no-any-return]

    return forward


class _Scaled(torch.autograd.Function):
    """x times a weight along the last axes."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, weight: Tensor, note: Note) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.note = note
        return x * weight

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[Tensor | None, None, None]:
        x, weight = ctx.saved_tensors
        ctx.note(x, gradients[0])
        return gradients[0] * weight if ctx.needs_input_grad[0] else None, None, None


def root_forward(layer: nn.RMSNorm, name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.RMSNorm`, noted while the tape is recording."""
    key, plain, trailing = tape.key(layer.weight), layer.forward, len(layer.normalized_shape)

    def note(x: Tensor, g: Tensor) -> None:
        tape.record_gradients(
            name, key, _sum_positions(tape.rows_of(name, x, folded=True) * tape.rows_of(name, g, folded=True), trailing)
        )

    def forward(x: Tensor, /) -> Tensor:
        if not tape.recording:
            return plain(x)
        normalised = functional.rms_norm(tape.share(name, x), layer.normalized_shape, None, layer.eps)
        return _Scaled.apply(normalised, layer.weight, note)  # type: ignore[no-untyped-call,no-any-return]

    return forward


class _GroupNorm(torch.autograd.Function):
    """Backward takes the batch for groups of one example, with copies of its weights: their gradients are noted."""

    @staticmethod
    def forward(
        ctx: Context, x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, epsilon: float, note: Note
    ) -> Tensor:
        rows, channels = x.shape[:2]
        inner = math.prod(x.shape[2:])
        out, mean, scale = torch.native_group_norm(x, weight, bias, rows, channels, inner, groups, epsilon)
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.sizes, ctx.note = (1, rows * channels, inner, rows * groups), note
        return out

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[Tensor | None, None, None, None, None, None]:
        (g,) = gradients
        x, weight, mean, scale = ctx.saved_tensors
        copies = None if weight is None else weight.expand(len(x), -1).contiguous().view(-1)
        found = torch.ops.aten.native_group_norm_backward(
            g.contiguous().view(1, -1, *x.shape[2:]),
            x.view(1, -1, *x.shape[2:]),
            mean.view(1, -1),
            scale.view(1, -1),
            copies,
            *ctx.sizes,
            ctx.needs_input_grad[:3],
        )
        ctx.note(*found[1:])
        return None if found[0] is None else found[0].view(x.shape), None, None, None, None, None


def group_forward(layer: nn.GroupNorm, name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.GroupNorm`, noted while the tape is recording."""
    return _record_groups(layer, name, tape, layer.num_groups)


def instance_forward(layer: nn.InstanceNorm2d, name: str, tape: Tape) -> Forward:
    """The forward pass of an instance norm: a group norm with a group for each channel."""
    return _record_groups(layer, name, tape, layer.num_features)


def _record_groups(layer: nn.GroupNorm | nn.InstanceNorm2d, name: str, tape: Tape, groups: int) -> Forward:
    plain = layer.forward
    weight_key, bias_key = tape.key(layer.weight), tape.key(layer.bias)
    channels = layer.num_channels if isinstance(layer, nn.GroupNorm) else layer.num_features

    def note(*gradients: Tensor | None) -> None:
        for key, found in zip((weight_key, bias_key), gradients, strict=True):
            if found is not None:
                tape.record_gradients(name, key, found.view(-1, channels))

    def forward(x: Tensor, /) -> Tensor:
        if not tape.recording:
            return plain(x)
        tape.rows_of(name, x, folded=True)
        arguments = (x.float().contiguous(), layer.weight, layer.bias, groups, layer.eps, note)
        return _GroupNorm.apply(*arguments)  # type: ignore[no-untyped-call,no-any-return]

    return forward
