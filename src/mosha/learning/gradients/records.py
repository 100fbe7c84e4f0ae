"""What one layer noted of one backward pass: enough for per-example norms and for one weighted sum of gradients.

A record stands for the gradients of one parameter, one for each unit of the batch, without forming them where that can
be helped. `a` are inputs of a layer and `g` gradients of its outputs, one row or one block of rows for each unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from mosha.learning.gradients.device import is_large, multiply
from mosha.learning.gradients.norms import Squares, between_rows, gram_norms_squared, row_norms_squared

__all__ = ["Direct", "Outer", "Record", "Sequence", "bytes_to_form", "silence", "weigh"]


class Record(Protocol):
    """The gradients of one parameter, for every unit of a batch."""

    def squared_norms(self) -> Squares:
        """The squared norm of each unit's gradient, in double precision: shape (units,)."""

    def per_unit(self) -> Tensor:
        """The gradients themselves: shape (units, *parameter)."""

    def weighted_sum(self, weights: Tensor, out: Tensor) -> None:
        """Write the sum over units of weight times gradient to `out`, flat; all in single precision."""

    def without(self, rows: Tensor) -> Record:
        """The same record with zeros where `rows` is true: a weight of zero does not silence a NaN."""


def weigh(values: Tensor, weights: Tensor, each: int = 1) -> Tensor:
    """What each unit has, `each` rows of it, times its weight; where a product is too large to be written down, zeros.

    Of g a^T one factor may be so small that the norm is within the clip however large the other is, and infinity times
    zero is NaN. All rows of the unit become zeros then: what is left of a sum is larger than the sum where its terms
    cancel.
    """
    found = values * (weights if each == 1 else weights.repeat_interleave(each)).view(-1, *[1] * (values.ndim - 1))
    if not bool(torch.isfinite(found.sum())):
        lost = ~torch.isfinite(found.reshape(len(weights), -1)).all(dim=1)
        found = silence(found, lost.repeat_interleave(each))
    return found


def silence(values: Tensor, rows: Tensor) -> Tensor:
    """The values with zeros where `rows` is true; they lie in memory as before, so that sums take the same order."""
    return values.clone().masked_fill_(rows.view(-1, *[1] * (values.ndim - 1)), 0.0)


def _multiply_into(out: Tensor, g: Tensor, a: Tensor) -> None:
    """The sum of all products of a row of g and a row of a: written where it is wanted."""
    found = out.view(g.shape[1], a.shape[1])
    if not is_large(g.t(), a.t()):
        torch.mm(g.t(), a, out=found)
    elif g.shape[1] < a.shape[1]:  # oneDNN is quicker with fewer rows than columns
        found.copy_(multiply(g.t(), a.t()))
    else:
        found.copy_(multiply(a.t(), g.t()).t())


class Direct:
    """Gradients that have been formed; `squares` gives their squared norms, where others ask for the same ones."""

    def __init__(self, gradients: Tensor, squares: Callable[[], Squares] | None = None) -> None:
        self._gradients, self._squares = gradients, squares

    def squared_norms(self) -> Squares:
        return row_norms_squared(self._gradients) if self._squares is None else self._squares()

    def per_unit(self) -> Tensor:
        return self._gradients

    def weighted_sum(self, weights: Tensor, out: Tensor) -> None:
        torch.mv(self._gradients.reshape(len(weights), -1).t(), weights, out=out)

    def without(self, rows: Tensor) -> Record:
        return Direct(silence(self._gradients, rows))


class Outer:
    """Gradients of rank one: g a^T for each unit. Their norm is |g| |a|, with no cancellation.

    `squares` give the squared norms of the rows of a and of g, where they are worked out together with others.
    """

    def __init__(self, a: Tensor, g: Tensor, *squares: Callable[[], Squares]) -> None:
        self._a, self._g, self._squares = a, g, squares

    def squared_norms(self) -> Squares:
        of_a, of_g = (s() for s in self._squares) if self._squares else map(row_norms_squared, (self._a, self._g))
        return np.multiply(of_a, of_g)

    def per_unit(self) -> Tensor:
        return self._g.unsqueeze(2) * self._a.unsqueeze(1)

    def weighted_sum(self, weights: Tensor, out: Tensor) -> None:
        _multiply_into(out, weigh(self._g, weights), self._a)

    def without(self, rows: Tensor) -> Record:
        return Outer(silence(self._a, rows), silence(self._g, rows))


class Sequence:
    """Gradients that are sums over positions and are not formed: sum over t of g_t a_t^T for each unit.

    Their norms come from Gram matrices; `between` gives that of g, where others ask for the same one.
    """

    def __init__(self, a: Tensor, g: Tensor, between: Callable[[], Tensor] | None = None) -> None:
        self.a, self.g, self._between = a, g, between

    def squared_norms(self) -> Squares:
        a, g = self.a, self.g
        return gram_norms_squared(self._grams, a, g, inputs=a.shape[2], outputs=g.shape[2])

    def _grams(self, a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        if self._between is None or g is not self.g:
            return between_rows(a), between_rows(g)
        return between_rows(a), self._between()

    def per_unit(self) -> Tensor:
        return torch.bmm(self.g.transpose(1, 2), self.a)

    def weighted_sum(self, weights: Tensor, out: Tensor) -> None:
        inputs, outputs = self.a.shape[2], self.g.shape[2]
        a, g = (weigh(self.a, weights), self.g) if inputs < outputs else (self.a, weigh(self.g, weights))
        _multiply_into(out, g.reshape(-1, outputs), a.reshape(-1, inputs))

    def without(self, rows: Tensor) -> Record:
        return Sequence(silence(self.a, rows), silence(self.g, rows))


def bytes_to_form(units: int, outputs: int, inputs: int) -> int:
    """What it takes to keep the gradients of a matrix for every unit."""
    return 4 * units * outputs * inputs
