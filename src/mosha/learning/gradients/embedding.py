"""Embeddings: a unit touches few rows of a large table, so its gradient is never formed."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from mosha.core.errors import DataError
from mosha.learning.gradients.dense import Forward
from mosha.learning.gradients.norms import VANISHING, Squares, between_rows, row_norms_squared
from mosha.learning.gradients.records import Record
from mosha.learning.gradients.tape import Context, Note, Tape

__all__ = ["Tokens", "bag_forward", "embedding_forward"]

LONGEST_GRAM = 512
"""Up to so many positions, equal tokens are found by comparing all pairs; beyond it by sorting."""

CANCELLATION = 2.0**-20
"""A squared norm counts at least so much of the square of the sum of the norms of its terms."""


class Tokens:
    """Gradients of a table: row v of a unit's gradient is the sum of g_t over the positions t that hold token v.

    The squared norm is the sum of g_t . g_s over pairs of positions with equal tokens.
    """

    def __init__(self, tokens: Tensor, g: Tensor, rows: int) -> None:
        self.tokens, self.g, self.rows = tokens, g, rows

    def squared_norms(self) -> Squares:
        if self.tokens.shape[1] > LONGEST_GRAM:
            return self._by_sorting().cpu().numpy()
        found = self._by_pairs(self.g, self.tokens)
        positions, width = self.g.shape[1:]
        small = found * 2.0**-14 < VANISHING * positions**2 * width
        if bool(small.any()):
            found[small] = self._by_pairs(self.g[small].double(), self.tokens[small])
        return found.cpu().numpy()

    @staticmethod
    def _by_pairs(g: Tensor, tokens: Tensor) -> Tensor:
        between = between_rows(g)
        same = tokens.unsqueeze(2) == tokens.unsqueeze(1)
        length = torch.diagonal(between, dim1=1, dim2=2).clamp_min(0).sqrt().double().sum(dim=1)
        found = between.mul_(same).sum(dim=2).double().sum(dim=1)
        return torch.maximum(found, length.square() * CANCELLATION)

    def _by_sorting(self) -> Tensor:
        units, width = self.tokens.shape[0], self.g.shape[2]
        keys = self._places().flatten()
        found, place = torch.unique(keys, return_inverse=True)
        sums = self.g.new_zeros(len(found), width).index_add_(0, place, self.g.reshape(-1, width))
        own = torch.from_numpy(row_norms_squared(sums)).to(self.g.device)
        squares = own.new_zeros(units).index_add_(0, found // self.rows, own)
        length = torch.linalg.vector_norm(self.g, dim=2).double().sum(dim=1)
        return torch.maximum(squares, length.square() * CANCELLATION)

    def per_unit(self) -> Tensor:
        units, width = self.tokens.shape[0], self.g.shape[2]
        whole = self.g.new_zeros(units * self.rows, width)
        return whole.index_add_(0, self._places().flatten(), self.g.reshape(-1, width)).view(units, self.rows, width)

    def _places(self) -> Tensor:
        """Where the tokens of each unit stand, were the tables of all units one below the other."""
        return torch.arange(len(self.tokens), device=self.tokens.device).unsqueeze(1) * self.rows + self.tokens

    def weighted_sum(self, weights: Tensor, out: Tensor) -> None:
        g = self.g * weights.view(-1, 1, 1)
        out.copy_(torch.ops.aten.embedding_dense_backward(g, self.tokens, self.rows, -1, False).view(-1))

    def without(self, rows: Tensor) -> Record:
        return Tokens(self.tokens, self.g.masked_fill(rows.view(-1, 1, 1), 0.0), self.rows)


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Context, weight: Tensor, tokens: Tensor, note: Note) -> Tensor:
        ctx.note = note
        ctx.save_for_backward(tokens)
        return functional.embedding(tokens, weight)

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor) -> tuple[None, None, None]:
        ctx.note(ctx.saved_tensors[0], gradients[0])
        return None, None, None


def embedding_forward(layer: nn.Embedding, name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.Embedding`, noted while the tape is recording."""
    plain, looked_up = layer.forward, _looked_up(layer, name, tape)
    return lambda tokens: looked_up(tokens) if tape.recording else plain(tokens)


def bag_forward(layer: nn.EmbeddingBag, name: str, tape: Tape) -> Forward:
    """The forward pass of `nn.EmbeddingBag`, noted while the tape is recording: tokens looked up, then made one."""
    plain, looked_up = layer.forward, _looked_up(layer, name, tape)

    def forward(tokens: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        if not tape.recording:
            return plain(tokens, offsets, per_sample_weights)
        if tokens.ndim != 2:
            raise DataError("learning.tokens_in_rows", layer=name)
        found = looked_up(tokens)
        hidden = (tokens == (-1 if layer.padding_idx is None else layer.padding_idx)).unsqueeze(2)
        if layer.mode == "max":
            largest = found.masked_fill(hidden, -math.inf).max(dim=1).values
            return largest.masked_fill(hidden.all(dim=1), 0.0)
        if per_sample_weights is not None:
            found = found * per_sample_weights.unsqueeze(2)
        total = found.masked_fill(hidden, 0.0).sum(dim=1)
        return total if layer.mode == "sum" else total / (~hidden).sum(dim=1).clamp_min(1)

    return forward


def _looked_up(layer: nn.Embedding | nn.EmbeddingBag, name: str, tape: Tape) -> Callable[[Tensor], Tensor]:
    """Tokens to rows of the table of a layer, noted."""
    key = tape.key(layer.weight)

    def note(tokens: Tensor, g: Tensor) -> None:
        g = tape.rows_of(name, g, folded=True).reshape(tape.units, -1, layer.embedding_dim)
        flat = tokens.reshape(tape.units, -1)
        if layer.padding_idx is not None:
            g = g.masked_fill((flat == layer.padding_idx).unsqueeze(2), 0.0)
        tape.add(key, Tokens(flat, g, layer.num_embeddings))

    def look_up(tokens: Tensor) -> Tensor:
        rows = tape.units * tape.each
        if tokens.ndim == 1 and not tape.has_rows(name, tokens):  # positions, say: the same for all rows
            tokens = tokens.expand(rows, -1)
        return _Embedding.apply(layer.weight, tape.share(name, tokens), note)  # type: ignore[no-untyped-call,no-any-return]

    return look_up
