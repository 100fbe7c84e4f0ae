"""Squared norms of gradients in double precision, from their entries or from Gram matrices of what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = [
    "CANCELLATION",
    "VANISHING",
    "RowNorms",
    "Squares",
    "between_rows",
    "gram_is_cheaper",
    "gram_norms_squared",
    "row_norms_squared",
]

Squares = NDArray[np.float64]

LONGEST_SUM = 4096
"""Squares are summed in pieces no longer than this in single precision, and the pieces in double precision."""

LONGEST_PRODUCT = 256
"""Inner products are worked out in pieces no longer than this."""

SMALLEST = 2.0**-48
"""A norm below it is computed again in double precision: squares in single precision may have vanished."""

VANISHING = 2.0**-126
"""What a product in single precision may lose by being too small to be written down, at most."""

CANCELLATION = 2.0**-10
"""A squared norm from a Gram matrix counts at least so much of the square of the sum of the norms of its terms."""


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
    norms = torch.linalg.vector_norm(flat, dim=-1).cpu().numpy().astype(np.float64)
    if norms.size and not norms.min() >= SMALLEST:  # also where one is not a number
        small = norms < SMALLEST
        rows = torch.from_numpy(small if small.ndim == 1 else small.any(axis=1))
        norms[rows.numpy()] = torch.linalg.vector_norm(flat[rows].double(), dim=-1).cpu().numpy()
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
            found[:] = torch.linalg.vector_norm(values, dim=-1).cpu().numpy()
        if norms.size and norms.min() >= SMALLEST:
            norms *= norms
            return list(norms)
    return [row_norms_squared(values) for values in matrices]


def between_rows(a: Tensor) -> Tensor:
    """Inner products between the rows of each unit: shape (units, rows, rows).

    Where all entries are alike, what single precision rounds away in a long sum is alike, too, and adds up: so
    products are worked out for LONGEST_PRODUCT entries at a time, and those for LONGEST_SUM added up in double.
    """
    width = a.shape[2]
    if width <= LONGEST_PRODUCT or a.dtype == torch.float64:
        return torch.bmm(a, a.transpose(1, 2))
    if width > LONGEST_SUM:
        parts = (between_rows(a[:, :, n : n + LONGEST_SUM]).double() for n in range(0, width, LONGEST_SUM))
        *_, total = accumulate(parts)
        return total.to(a.dtype)
    found = between_rows(a[:, :, :LONGEST_PRODUCT])
    for start in range(LONGEST_PRODUCT, width, LONGEST_PRODUCT):
        piece = a[:, :, start : start + LONGEST_PRODUCT]
        found.baddbmm_(piece, piece.transpose(1, 2))
    return found


def gram_norms_squared(
    grams: Callable[..., tuple[Tensor, Tensor]], *seen: Tensor, inputs: int, outputs: int
) -> Squares:
    """The squared norm of sum_t g_t a_t^T for each unit, from inner products: sum over t, s of (a_t . a_s)(g_t . g_s).

    `grams` gives the two matrices of them for what was seen, whose first axis is units; a and g are as wide as there
    are `inputs` and `outputs`. Where products that are too small for single precision could matter, once more in
    double precision.

    >>> a, g = torch.ones(1, 2, 3), torch.ones(1, 2, 5)
    >>> gram_norms_squared(lambda a, g: (between_rows(a), between_rows(g)), a, g, inputs=3, outputs=5).tolist()
    [60.0]
    """
    found, lost = _from_grams(*grams(*seen), inputs, outputs)
    small = found * 2.0**-14 < lost
    if bool(small.any()):
        wide = (v[small].double() if v.is_floating_point() else v[small] for v in seen)
        found[small] = _from_grams(*grams(*wide), inputs, outputs)[0]
    return found.cpu().numpy()


def _from_grams(between_a: Tensor, between_g: Tensor, inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
    """Squared norms, and what products that are too small for single precision may have taken away."""
    of_a, of_g = (torch.diagonal(b, dim1=1, dim2=2).double().clamp_min(0) for b in (between_a, between_g))
    length = (of_a * of_g).sqrt().sum(dim=1)
    pairs = VANISHING * between_a.shape[1] ** 2
    lost = pairs * (inputs * of_g.amax(dim=1) + outputs * of_a.amax(dim=1) + 1)
    found = between_a.mul_(between_g).sum(dim=2).double().sum(dim=1)
    return torch.maximum(found, CANCELLATION * length.square()), lost


FORMED_TRAFFIC = 28
"""Assumed: writing, norming and summing a formed entry costs as much as this many multiply-adds of a product."""


def gram_is_cheaper(positions: int, outputs: int, inputs: int) -> bool:
    """Whether Gram matrices are taken to cost less than forming, even though forming replaces the final sum.

    A model of the cost and not a measurement: forming costs `positions * outputs * inputs`, which the sum would have
    cost as well, and the traffic of keeping the result. It decides about time and memory; both ways give the same
    sums, up to what A2 in `rounding.md` says.
    """
    return positions**2 * (outputs + inputs) < FORMED_TRAFFIC * outputs * inputs or positions == 1
