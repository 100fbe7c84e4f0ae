"""Noise that is correlated over steps: the matrix mechanism with a banded Toeplitz encoder, on integers.

C is lower triangular and constant along diagonals: the first `bands` coefficients of (1 - x)^(-1/2), so that C C is the
matrix of prefix sums if nothing is cut off, or others that were given (`optimized_bands.py`). What is released is
C x + z for the sums x and fresh noise z; decoding gives C^-1 (C x + z) = x + C^-1 z, noise that later steps partly take
back. Proof: `correlated.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.core.number import positive_integer

__all__ = ["SCALE", "Coefficients", "Decoder", "column_norm", "encode_sums", "encoder", "squared_column"]

SCALE = 1 << 12
"""Coefficients are whole multiples of 1 / SCALE, so that C x is exact on integers."""

Coefficients = tuple[int, ...]
"""A column of C, in units of 1 / SCALE."""

Sums = NDArray[np.int64]
Floats = NDArray[np.float64]


@lru_cache(maxsize=64)
def encoder(bands: int) -> tuple[int, ...]:
    """The first coefficients of 1 / sqrt(1 - x), in units of 1 / SCALE.

    >>> encoder(4)
    (4096, 2048, 1536, 1280)
    """
    found, coefficient = [], Fraction(1)
    for j in range(positive_integer("bands", bands)):
        found.append(round(coefficient * SCALE))
        coefficient *= Fraction(2 * j + 1, 2 * j + 2)
    return tuple(found)


def _column(bands: int | Coefficients) -> Coefficients:
    """The coefficients, or those of the root for so many bands."""
    return encoder(bands) if isinstance(bands, int) else bands


def squared_column(bands: int | Coefficients) -> int:
    """The squared norm of a whole column of C, in units of 1 / SCALE**2: exact.

    >>> squared_column(1) == SCALE**2
    True
    """
    return sum(c * c for c in _column(bands))


def column_norm(bands: int | Coefficients) -> float:
    """The norm of a whole column of C; columns at the end of a run are cut off and shorter.

    >>> column_norm(1)
    1.0
    """
    return math.sqrt(squared_column(bands)) / SCALE


def encode_sums(sums: Sequence[Sums], bands: int | Coefficients) -> Sums:
    """SCALE C x in the latest step, given the exact sums of this step and of earlier ones, the latest first.

    >>> encode_sums([np.array([1]), np.array([2])], bands=2)
    array([8192])
    """
    total = np.zeros_like(sums[0])
    for coefficient, step in zip(_column(bands), sums, strict=False):
        total += coefficient * step
    return total


class Decoder:
    """Undoes the encoder, in order, from released numbers alone: x_t = (y_t - sum over j >= 1 of c_j x_(t-j)) / c_0.

    One band is no encoder: numbers pass as they are.

    >>> decoder = Decoder(bands=2)
    >>> decoder(np.array([8192])), decoder(np.array([4096]))
    (array([2.]), array([0.]))
    """

    def __init__(self, bands: int | Coefficients) -> None:
        column = _column(bands)
        self._encoder = column if len(column) > 1 else (1,)
        self._before: list[Floats] = []

    def __call__(self, released: NDArray[np.int64] | Floats) -> Floats:
        found = released.astype(np.float64)
        for coefficient, step in zip(self._encoder[1:], self._before, strict=False):
            found -= coefficient * step
        found /= self._encoder[0]
        self._before = [found, *self._before][: len(self._encoder) - 1]
        return found

    def state(self) -> list[Floats]:
        """What a checkpoint has to keep: public, like everything made of released numbers."""
        return [step.copy() for step in self._before]

    def restore(self, state: Sequence[Floats]) -> None:
        """Go on after the steps of a checkpoint."""
        self._before = [np.asarray(step, np.float64) for step in state]
