"""Multi-head attention as PyTorch has it, with its projections noted as linear layers."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from mosha.learning.gradients.dense import Forward, affine
from mosha.learning.gradients.tape import Tape

__all__ = ["attention_forward", "is_plain_attention"]


def is_plain_attention(layer: nn.MultiheadAttention) -> bool:
    """Whether the layer has one matrix for its three projections and no learned extra positions."""
    return layer._qkv_same_embed_dim and layer.bias_k is None and not layer.add_zero_attn  # noqa: SLF001


def attention_forward(layer: nn.MultiheadAttention, name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.MultiheadAttention`, noted while the tape is recording."""
    plain, width = layer.forward, layer.embed_dim

    def project(x: Tensor, first: int, last: int) -> Tensor:
        rows = None if (first, last) == (0, 3) else (first * width, last * width)
        part = slice(first * width, last * width)
        matrix, vector = layer.in_proj_weight, layer.in_proj_bias
        return _record_projection(x, matrix, vector, part, rows)

    def _record_projection(
        x: Tensor, matrix: Tensor, vector: Tensor | None, part: slice, rows: tuple[int, int] | None
    ) -> Tensor:
        def note(a: Tensor, g: Tensor) -> None:
            weight = tape.key(matrix, rows) if matrix.requires_grad else None
            bias = tape.key(vector, rows) if vector is not None and vector.requires_grad else None
            tape.affine(name, weight, bias, a, g)

        whole = rows is None
        weight = matrix if whole else matrix[part].detach().requires_grad_()
        bias = vector if whole or vector is None else vector[part].detach()
        return affine(x, weight, bias, note)

    def forward(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Any:
        if not tape.recording:
            return plain(query, key, value, *rest, **options)
        options |= dict(zip(("key_padding_mask", "need_weights", "attn_mask"), rest, strict=False))
        same = query is key and key is value
        if not layer.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        if same:
            q, k, v = project(query, 0, 3).chunk(3, dim=-1)
        else:
            q, k, v = project(query, 0, 1), project(key, 1, 2), project(value, 2, 3)
        mixed, weights = _attend(layer, q, k, v, options)
        out = _record_projection(mixed, layer.out_proj.weight, layer.out_proj.bias, slice(None), None)
        return out if layer.batch_first else out.transpose(0, 1), weights

    return forward


def _attend(layer: nn.MultiheadAttention, q: Tensor, k: Tensor, v: Tensor, options: dict[str, Any]) -> Any:
    """Softmax attention by heads; returns the mixed values and, where asked for, the weights."""
    rows, heads = q.shape[0], layer.num_heads
    q, k, v = (x.view(rows, x.shape[1], heads, -1).transpose(1, 2) for x in (q, k, v))
    mask = _mask(options.get("attn_mask"), options.get("key_padding_mask"), rows, heads, q)
    dropout = layer.dropout if layer.training else 0.0
    weights = None
    if options.get("need_weights", True):
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        weights = (scores if mask is None else scores + mask).softmax(dim=-1)
        mixed = functional.dropout(weights, dropout) @ v
        weights = weights.mean(dim=1) if options.get("average_attn_weights", True) else weights
    else:
        mixed = functional.scaled_dot_product_attention(q, k, v, mask, dropout)
    return mixed.transpose(1, 2).reshape(rows, q.shape[2], layer.embed_dim), weights


def _mask(pairs: Tensor | None, keys: Tensor | None, rows: int, heads: int, like: Tensor) -> Tensor | None:
    """Both masks as one that is added to the scores."""
    found: Tensor | None = None
    if pairs is not None:
        found = _additive_mask(pairs, like)
        found = found.view(rows, heads, *found.shape[1:]) if found.ndim == 3 else found
    if keys is not None:
        hidden = _additive_mask(keys, like).view(rows, 1, 1, -1)
        found = hidden if found is None else found + hidden
    return found


def _additive_mask(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype.is_floating_point:
        return mask.to(like.dtype)
    return like.new_zeros(mask.shape).masked_fill_(mask.bool(), -math.inf)
