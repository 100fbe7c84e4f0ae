"""What one layer noted of one backward pass: enough for per-example norms and for one weighted sum of gradients.

A record stands for the gradients of one parameter, one for each unit of the batch, without forming them where that can
be helped. `a` are inputs of a layer and `g` gradients of its outputs, one row or one block of rows for each unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = [
    "Direct",
    "Outer",
    "Record",
    "RowNorms",
    "Sequence",
    "Squares",
    "bytes_to_form",
    "gram_is_cheaper",
    "row_norms_squared",
    "silenced",
    "weighted",
]

Squares = NDArray[np.float64]

LONGEST_SUM = 4096
"""Squares are summed in pieces no longer than this in single precision, and the pieces in double precision."""

SMALLEST = 2.0**-48
"""A norm below it is computed again in double precision: squares in single precision may have vanished."""

VANISHING = 2.0**-126
"""What a product in single precision may lose by being too small to be written down, at most."""

CANCELLATION = 2.0**-10
"""A squared norm from a Gram matrix counts at least so much of the square of the sum of the norms of its terms."""


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


def row_norms_squared(values: Tensor) -> Squares:
    """The squared norm of each row in double precision, by sums of at most LONGEST_SUM squares in single precision."""
    flat = values.reshape(values.shape[0], -1)
    width = flat.shape[1]
    if width > LONGEST_SUM:
        fewest = -(-width // LONGEST_SUM)
        pieces = next((p for p in range(fewest, max(257, fewest + 1)) if width % p == 0), 0)
        if pieces == 0:
            cut = width - width % LONGEST_SUM  # the first part divides into pieces of LONGEST_SUM
            return row_norms_squared(flat[:, :cut]) + row_norms_squared(flat[:, cut:])
        flat = flat.reshape(values.shape[0], pieces, width // pieces)
    norms = torch.linalg.vector_norm(flat, dim=-1).numpy().astype(np.float64)
    if norms.size and not norms.min() >= SMALLEST:  # also where one is not a number
        small = norms < SMALLEST
        rows = torch.from_numpy(small if small.ndim == 1 else small.any(axis=1))
        norms[rows.numpy()] = torch.linalg.vector_norm(flat[rows].double(), dim=-1).numpy()
    norms *= norms
    return norms if norms.ndim == 1 else np.asarray(norms.sum(axis=1))


class RowNorms:
    """Squared norms of rows of several matrices of one batch, worked out together when the first are asked for.

    >>> norms = RowNorms()
    >>> first, second = norms.of(torch.tensor([[3.0, 4.0]])), norms.of(torch.zeros(1, 5))
    >>> first().tolist(), second().tolist()
    ([25.0], [0.0])
    """

    def __init__(self) -> None:
        self._rows: list[Tensor] = []
        self._found: list[Squares] = []

    def of(self, values: Tensor) -> Callable[[], Squares]:
        """What will give the squared norms of the rows of `values`."""
        place = len(self._found) + len(self._rows)
        self._rows.append(values)

        def squares() -> Squares:
            if place >= len(self._found):
                self._found += _row_norms_squared(self._rows)
                self._rows = []  # what is not needed any more may go
            return self._found[place]

        return squares


def _row_norms_squared(matrices: list[Tensor]) -> list[Squares]:
    """The same as `row_norms_squared` of each: with fewer small operations where nothing is long or small."""
    if max(values.shape[1] for values in matrices) <= LONGEST_SUM:
        norms = np.empty((len(matrices), len(matrices[0])))
        for found, values in zip(norms, matrices, strict=True):
            found[:] = torch.linalg.vector_norm(values, dim=-1).numpy()
        if norms.size and norms.min() >= SMALLEST:
            norms *= norms
            return list(norms)
    return [row_norms_squared(values) for values in matrices]


def weighted(g: Tensor, weights: Tensor, each: int = 1) -> Tensor:
    """The g of each unit, `each` rows of it, times its weight; where a product is too large to be written down, zeros.

    Inputs may be so small that the norm of g a^T is within the clip however large g is, and infinity times zero is NaN.
    All rows of the unit become zeros then: what is left of a sum is larger than the sum where its terms cancel.
    """
    found = g * (weights if each == 1 else weights.repeat_interleave(each)).view(-1, *[1] * (g.ndim - 1))
    if not bool(torch.isfinite(found.sum())):
        lost = ~torch.isfinite(found.reshape(len(weights), -1)).all(dim=1)
        found = silenced(found, lost.repeat_interleave(each))
    return found


def silenced(values: Tensor, rows: Tensor) -> Tensor:
    """The values with zeros where `rows` is true."""
    return values.masked_fill(rows.view(-1, *[1] * (values.ndim - 1)), 0.0)


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
        return Direct(silenced(self._gradients, rows))


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
        torch.mm(weighted(self._g, weights).t(), self._a, out=out.view(self._g.shape[1], self._a.shape[1]))

    def without(self, rows: Tensor) -> Record:
        return Outer(silenced(self._a, rows), silenced(self._g, rows))


class Sequence:
    """Gradients that are sums over positions and are not formed: sum over t of g_t a_t^T for each unit.

    Their norm is that of Gram matrices, |sum_t g_t a_t^T|^2 = sum over t, s of (a_t . a_s)(g_t . g_s).
    """

    def __init__(self, a: Tensor, g: Tensor) -> None:
        self._a, self._g = a, g

    def squared_norms(self) -> Squares:
        found, lost = _gram(self._a, self._g)
        small = found * 2.0**-14 < lost
        if bool(small.any()):
            found[small] = _gram(self._a[small].double(), self._g[small].double())[0]
        return found.numpy()

    def per_unit(self) -> Tensor:
        return torch.bmm(self._g.transpose(1, 2), self._a)

    def weighted_sum(self, weights: Tensor, out: Tensor) -> None:
        g, a = weighted(self._g, weights), self._a
        torch.mm(g.reshape(-1, g.shape[2]).t(), a.reshape(-1, a.shape[2]), out=out.view(g.shape[2], a.shape[2]))

    def without(self, rows: Tensor) -> Record:
        return Sequence(silenced(self._a, rows), silenced(self._g, rows))


def _gram(a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Squared norms by Gram matrices, and what products that are too small for single precision may have taken away."""
    between_a, between_g = torch.bmm(a, a.transpose(1, 2)), torch.bmm(g, g.transpose(1, 2))
    of_a, of_g = (torch.diagonal(b, dim1=1, dim2=2).double().clamp_min(0) for b in (between_a, between_g))
    length = (of_a * of_g).sqrt().sum(dim=1)
    lost = VANISHING * a.shape[1] ** 2 * (a.shape[2] * of_g.amax(dim=1) + g.shape[2] * of_a.amax(dim=1) + 1)
    found = between_a.mul_(between_g).sum(dim=2).double().sum(dim=1)
    return torch.maximum(found, CANCELLATION * length.square()), lost


def bytes_to_form(units: int, outputs: int, inputs: int) -> int:
    """What it takes to keep the gradients of a matrix for every unit."""
    return 4 * units * outputs * inputs


FORMED_TRAFFIC = 24
"""Assumed: writing, norming and summing a formed entry costs as much as this many multiply-adds of a product."""


def gram_is_cheaper(positions: int, outputs: int, inputs: int, *, traffic: int = FORMED_TRAFFIC) -> bool:
    """Whether Gram matrices are taken to cost less than forming, even though forming replaces the final sum.

    A model of the cost and not a measurement: forming costs `positions * outputs * inputs`, which the sum would have
    cost as well, and the traffic of keeping the result, put at `traffic` multiplications for each entry. It
    decides about time and memory; both ways give the same sums, up to what A2 in `rounding.md` says.
    """
    gram = positions**2 * (outputs + inputs)
    return gram < traffic * outputs * inputs or positions == 1
