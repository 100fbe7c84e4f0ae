"""A random rotation that everybody knows: it spreads an update evenly over its coordinates before it is rounded."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.core.number import positive_integer
from mosha.federated.secure.keys import add_mask

__all__ = ["Rotation"]

_BLOCK = 4096
Floats = NDArray[np.float64]


@lru_cache(maxsize=16)
def _hadamard(size: int) -> Floats:
    """The symmetric orthogonal matrix of Hadamard, for a power of two."""
    matrix: Floats = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    matrix /= np.sqrt(size)
    return matrix


class Rotation:
    """Random signs, then Hadamard's rotation in blocks of at most 4096; `label` (16 bytes, public) decides the signs.

    No guarantee rests on it: lengths are bounded after it, on integers. It makes rounding errors even, and sums that
    leave the ring of integers unlikely.

    >>> turn = Rotation(5, b"round-0123456789")
    >>> np.allclose(turn.back(turn(np.arange(5.0))), np.arange(5.0))
    True
    """

    def __init__(self, coordinates: int, label: bytes) -> None:
        self.coordinates = positive_integer("coordinates", coordinates)
        size = min(_BLOCK, 1 << (self.coordinates - 1).bit_length())
        left = 1 << (size.bit_length() // 2)
        self._sides = left, size // left
        self.width = -(-self.coordinates // size) * size
        words = np.zeros(-(-self.width // 32), np.uint32)
        add_mask(words, label.ljust(32, b"\0")[:32])
        bits = np.unpackbits(words.view(np.uint8))[: self.width]
        self._signs = 1.0 - 2.0 * bits

    def __call__(self, vector: NDArray[np.float64] | NDArray[np.float32]) -> Floats:
        padded = np.zeros(self.width)
        padded[: self.coordinates] = vector
        return self._turn(padded * self._signs)

    def back(self, rotated: Floats) -> Floats:
        """The vector that was rotated."""
        return (self._turn(np.asarray(rotated, np.float64)) * self._signs)[: self.coordinates]

    def _turn(self, values: Floats) -> Floats:
        left, right = self._sides
        blocks = values.reshape(-1, left, right)
        turned: Floats = (_hadamard(left) @ blocks @ _hadamard(right)).reshape(-1)
        return turned
