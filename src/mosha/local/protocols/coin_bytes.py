"""Eight independent coins of one rational bias at a time, as the bits of a byte."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from mosha.core.measurement import Rng
from mosha.local.protocols.randomizer import compiled_loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CoinBytes", "coin_bytes"]

_BLOCK = 1 << 17  # bytes drawn at a time, so that they stay near the processor
_UNSURE = 256


class CoinBytes:
    """Bytes whose eight bits are independent and each 1 with probability exactly `chance`.

    Guarantee:
        The 256 bytes own intervals of [0, 1), one after the other, as long as their probabilities. A uniform U is
        revealed bit by bit until what is known of it lies in one interval. 16 bits know it but for at most 255 of the
        65536 cells, which hold an end of an interval; then 64 bits are compared with the ends, rounded down; where
        they equal one, U is revealed 64 bits at a time against the rational end. So the answer is that of U itself.

    >>> from mosha.noise import secure
    >>> CoinBytes(Fraction(1)).draw(2, secure()).tolist()
    [255, 255]
    """

    def __init__(self, chance: Fraction) -> None:
        ones = [value.bit_count() for value in range(256)]
        each = [chance**count * (1 - chance) ** (8 - count) for count in range(9)]
        self._ends: list[Fraction] = []
        total = Fraction(0)
        for count in ones:
            total += each[count]
            self._ends.append(total)
        self._short = np.array([int(end * 65536) for end in self._ends], np.int64)
        self._long = np.array([min(int(end * (1 << 64)), (1 << 64) - 1) for end in self._ends], np.uint64)
        self._table = np.minimum(np.searchsorted(self._short, np.arange(65536), side="right"), 255).astype(np.uint16)
        unsure = [int(end * 65536) for end in self._ends if (end * 65536).denominator > 1]
        self._table[unsure] = _UNSURE
        self._rare = 255 if 2 * chance < 1 else 0  # stands for "unsure" too, and is looked up a second time
        self._quick = np.where(self._table == _UNSURE, self._rare, self._table).astype(np.uint8)

    def draw(self, count: int, rng: Rng) -> NDArray[np.uint8]:
        """`count` bytes."""
        drawn = np.empty(count, np.uint8)
        places, known = [np.empty(0, np.int64)], [np.empty(0, np.uint16)]
        for start in range(0, count, _BLOCK):
            part = drawn[start : start + _BLOCK]
            words = np.frombuffer(rng.bytes(2 * len(part)), "<u2")
            again = self._look_up(words, part)
            places.append(again + start)
            known.append(words[again])
        unsure = np.concatenate(places)
        if unsure.size:
            drawn[unsure] = self._settle(np.concatenate(known), rng)
        return drawn

    def _look_up(self, words: NDArray[np.uint16], found: NDArray[np.uint8]) -> NDArray[np.int64]:
        """`found` becomes the byte of each word; the places where 16 bits do not tell it."""
        compiled = compiled_loops(len(words))
        if compiled is None:
            self._quick.take(words, out=found, mode="clip")  # never clipped: 65536 entries
            rare = np.flatnonzero(found == self._rare)
            return np.asarray(rare[self._table[words[rare]] == _UNSURE])
        places = np.empty(len(words), np.int64)
        count: int = compiled.look_up_words(words, self._quick, self._rare, self._table, _UNSURE, found, places)
        return places[:count]

    def _settle(self, known: NDArray[np.uint16], rng: Rng) -> NDArray[np.uint8]:
        rest = np.frombuffer(rng.bytes(8 * len(known)), "<u8") >> np.uint64(16)
        points = (known.astype(np.uint64) << np.uint64(48)) | rest
        found = np.searchsorted(self._long, points, side="right")
        tied = np.flatnonzero((found > 0) & (self._long[np.maximum(found, 1) - 1] == points))
        for i in tied:
            found[i] = self._draw_exactly(int(points[i]), rng)
        return np.minimum(found, 255).astype(np.uint8)

    def _draw_exactly(self, known: int, rng: Rng) -> int:
        """The byte that U belongs to, where its first 64 bits are `known`."""
        bits = 64
        while True:
            low, high = Fraction(known, 1 << bits), Fraction(known + 1, 1 << bits)
            start = next(i for i, end in enumerate(self._ends) if low < end)
            if high <= self._ends[start]:
                return start
            known = (known << 64) | int.from_bytes(rng.bytes(8), "little")
            bits += 64


@lru_cache(maxsize=32)
def coin_bytes(chance: Fraction) -> CoinBytes:
    return CoinBytes(chance)
