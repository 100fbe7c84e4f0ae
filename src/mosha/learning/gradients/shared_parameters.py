"""A matrix that is used more than once: by an embedding and by the last layer, or by several layers that share it."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

from mosha.learning.gradients.embedding import Tokens
from mosha.learning.gradients.norms import Squares, between_rows, gram_norms_squared
from mosha.learning.gradients.records import Direct, Record, Sequence, silence

__all__ = ["Tied", "add_records"]


def add_records(records: list[Record]) -> Record:
    """The sum of all gradients as one record, which is formed only where tokens and positions would take more."""
    if len(records) == 1:
        return records[0]
    tokens = [r for r in records if isinstance(r, Tokens)]
    sequences = [r for r in records if isinstance(r, Sequence)]
    if len(tokens) == len(records):
        return Tokens(
            _join_positions([r.tokens for r in tokens]), _join_positions([r.g for r in tokens]), tokens[0].rows
        )
    if sequences and len(tokens) + len(sequences) == len(records):
        found = Tied.of(tokens, sequences)
        if found.is_smaller:
            return found
    *_, total = accumulate(r.per_unit() for r in records)
    return Direct(total)


class Tied:
    """The sum over t of g_t a_t^T for each unit, as of `Sequence`, where the g_t of a token has a single one.

    Of these only the place is kept, with what the token's row of the matrix gets as a_t. The inner product of two g_t
    is one for equal tokens, and for a token and a position the entry of g at its place.
    """

    def __init__(self, places: Tensor, a: Tensor, g: Tensor) -> None:
        self._places, self._a, self._g = places, a, g

    @classmethod
    def of(cls, tokens: list[Tokens], sequences: list[Sequence]) -> Tied:
        g = _join_positions([r.g for r in sequences])
        a = _join_positions([*(r.g for r in tokens), *(r.a for r in sequences)])
        return cls(_join_positions([r.tokens for r in tokens] or [g.new_empty(len(g), 0, dtype=torch.long)]), a, g)

    @property
    def is_smaller(self) -> bool:
        """Whether two Gram matrices take less memory than a gradient that was formed."""
        return 2 * self._a.shape[1] ** 2 <= self._a.shape[2] * self._g.shape[2]

    def squared_norms(self) -> Squares:
        a, g = self._a, self._g
        return gram_norms_squared(self._grams, a, g, self._places, inputs=a.shape[2], outputs=g.shape[2])

    @staticmethod
    def _grams(a: Tensor, g: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        same = (places.unsqueeze(2) == places.unsqueeze(1)).to(g.dtype)
        across = g.gather(2, places.unsqueeze(1).expand(-1, g.shape[1], -1))
        positions = torch.cat([across, between_rows(g)], dim=2)
        tokens = torch.cat([same, across.transpose(1, 2)], dim=2)
        return between_rows(a), torch.cat([tokens, positions], dim=1)

    def per_unit(self) -> Tensor:
        count = self._places.shape[1]
        formed = torch.bmm(self._g.transpose(1, 2), self._a[:, count:])
        for unit, places in enumerate(self._places):
            formed[unit].index_add_(0, places, self._a[unit, :count])
        return formed

    def weighted_sum(self, weights: Tensor, out: Tensor) -> None:
        """A unit some of whose g is too large to be written down contributes zero, and so do its tokens."""
        count, scale = self._places.shape[1], weights.view(-1, 1, 1)
        a, g = self._a, self._g * scale
        lost = ~torch.isfinite(g.sum(dim=(1, 2)))
        if bool(lost.any()):
            a, g = silence(a, lost), silence(g, lost)
        matrix = out.view(g.shape[2], a.shape[2])
        torch.mm(g.flatten(0, 1).t(), a[:, count:].flatten(0, 1), out=matrix)
        matrix.index_add_(0, self._places.flatten(), (a[:, :count] * scale).flatten(0, 1))

    def without(self, rows: Tensor) -> Record:
        return Tied(self._places, silence(self._a, rows), silence(self._g, rows))


def _join_positions(parts: list[Tensor]) -> Tensor:
    """Side by side in the axis of positions; a single one as it is."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
