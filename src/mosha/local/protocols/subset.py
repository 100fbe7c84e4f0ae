"""Subset selection: a set of values that likely holds the true one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from mosha.core.measurement import Rng
from mosha.local.protocols.device import draw_subset, flip_coin
from mosha.local.protocols.odds import Odds
from mosha.local.protocols.protocol import Protocol
from mosha.local.protocols.randomizer import compiled_loops, draw_in_blocks
from mosha.local.protocols.unary import bit_counts, padding_clear

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SubsetSelection"]


@dataclass(frozen=True)
class SubsetSelection(Protocol):
    """One set of w of the k values: each that holds the true value is e^epsilon times as likely as each that does not.

    A set is sent as a bitmap. As a list its order could tell which element came first.

    Guarantee:
        A set with the value has probability a / Z, one without it b / Z, Z = a C(k-1, w-1) + b C(k-1, w) for every
        value: no two values differ by more than a / b <= e^epsilon on any set. The value is in the set with
        probability a w / (a w + b (k - w)), exactly; the rest is a uniform set of the other values.

    Units:
        A report is a bitmap, bit i of byte j for value 8 j + i, with exactly w bits.

    >>> SubsetSelection(100, 1.0).settings, round(SubsetSelection(100, 1.0).variance, 4)
    ({'chosen': 27}, 3.5896)
    """

    name = "subset-selection"

    @property
    def subset_size(self) -> int:
        """w: the whole number beside k / (e^epsilon + 1) with the least variance."""
        return _best_size(self.size, self.odds)

    @property
    def settings(self) -> dict[str, int]:
        return {"chosen": self.subset_size}

    @property
    def truth(self) -> Fraction:
        return _chances(self.size, self.subset_size, self.odds)[0]

    @property
    def lie(self) -> Fraction:
        return _chances(self.size, self.subset_size, self.odds)[1]

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        truth, w, others = self.truth, self.subset_size, self.size - 1
        with_truth = truth * Fraction(w - 1, others)
        if others < 2:
            return with_truth, Fraction(0)
        ways = others * (others - 1)
        return with_truth, (truth * (w - 1) * (w - 2) + (1 - truth) * w * (w - 1)) / ways

    @property
    def width(self) -> int:
        return (self.size + 7) // 8

    @property
    def cells(self) -> int:
        return self.size

    @property
    def largest_support(self) -> int:
        return self.subset_size

    def draw(self, value: int, rng: Rng) -> bytes:
        truth = self.truth
        held = flip_coin(truth.numerator, truth.denominator, rng)
        found = 1 << value if held else 0
        for other in draw_subset(self.subset_size - held, self.size - 1, rng):
            found |= 1 << (other + (other >= value))
        return found.to_bytes(self.width, "little")

    def draw_many(self, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        """A random set of others first; then others at random are taken in or out until the number is right.

        The first set is told by coins in which all others are alike, so that given its size it is uniform. A uniform
        set with a uniform element more, or less, is uniform again.
        """
        compiled = compiled_loops(len(values) * self.width)
        if compiled is None:
            return draw_in_blocks(self._draw_block, values, self.width, rng, each=2 * self.width)
        return draw_in_blocks(partial(self._draw_quickly, compiled), values, self.width, rng, each=16 * self._words)

    @property
    def _words(self) -> int:
        """Words of 64 bits that hold one set."""
        return (self.size + 63) // 64

    def _draw_quickly(self, compiled: Any, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        import numpy as np

        from mosha.noise import bernoulli

        held = bernoulli(self.truth, len(values), rng=rng)
        missing = self.subset_size - held.astype(np.int64)
        shape = len(values), self._words
        sets = np.zeros(shape, np.uint64)
        if 6 * self.subset_size > self.size:  # else it takes fewer steps from the empty set
            coins = np.frombuffer(rng.bytes(16 * sets.size), "<u8").reshape(2, *shape)
            compiled.split_values(coins[0], coins[1], values, self.size, sets, missing)
        bits, row = 16 if self.size <= 1 << 12 else 32, 0
        while row < len(values):
            words = min(2 * int(np.abs(missing[row:]).sum()) + 256, 1 << 16)
            pool = np.frombuffer(rng.bytes(words * bits // 8), f"<u{bits // 8}")
            row = compiled.even_out(sets, values, held, missing, self.size - 1, pool, bits, row)
        whole = sets.astype("<u8", copy=False)
        bitmaps = np.ndarray(len(values), f"V{self.width}", whole, strides=whole.strides[:1])  # without the last zeros
        return bitmaps.copy().view(np.uint8).reshape(len(values), self.width)

    def _draw_block(self, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        import numpy as np

        from mosha.local.protocols.coin_bytes import coin_bytes
        from mosha.noise import bernoulli

        held = bernoulli(self.truth, len(values), rng=rng)
        chance = Fraction(round(256 * (self.subset_size - self.truth) / (self.size - 1)), 256)
        rows = coin_bytes(chance).draw(len(values) * self.width, rng).reshape(len(values), self.width)
        if self.size % 8:
            rows[:, -1] &= np.uint8((1 << self.size % 8) - 1)
        flat = rows.reshape(-1)
        places = np.arange(0, flat.size, self.width) + (values >> 3)
        bits = np.left_shift(1, values & 7).astype(np.uint8)
        flat[places] &= ~bits
        ones = _ones()[rows].sum(axis=1, dtype=np.int64)
        self._adjust(flat, values, (self.subset_size - held) - ones, rng)
        flat[places] |= bits * held
        return rows

    def _adjust(self, flat: NDArray[np.uint8], values: NDArray[np.int64], missing: NDArray[np.int64], rng: Rng) -> None:
        import numpy as np

        from mosha.noise import uniform

        rows = np.flatnonzero(missing)
        missing, values = missing[rows], values[rows]
        while rows.size:
            others = uniform(self.size - 1, len(rows), rng=rng)
            others += others >= values
            places, shifts = rows * self.width + (others >> 3), others & 7
            fits = (((flat[places] >> shifts.astype(np.uint8)) & 1 == 0) == (missing > 0)) & (missing != 0)
            flat[places] ^= (fits << shifts).astype(np.uint8)
            missing = missing - np.sign(missing) * fits
            left = np.flatnonzero(missing)
            if 4 * left.size < 3 * rows.size:
                rows, missing, values = rows[left], missing[left], values[left]
            elif not left.size:
                break

    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        import numpy as np

        right = _ones()[reports].sum(axis=1, dtype=np.int64) == self.subset_size
        return np.asarray(right & padding_clear(reports, self.size))

    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        return bit_counts(reports)[: self.size]

    def supports(self, counters: NDArray[np.int64]) -> NDArray[np.int64]:
        return counters


@lru_cache(maxsize=1)
def _ones() -> NDArray[np.uint8]:
    import numpy as np

    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    return np.asarray(bits.sum(axis=1), np.uint8)


@lru_cache(maxsize=256)
def _chances(size: int, chosen: int, odds: Odds) -> tuple[Fraction, Fraction]:
    """The probabilities that a set of so many holds the true value, and another one."""
    held = odds.top * chosen
    truth = Fraction(held, held + odds.bottom * (size - chosen))
    return truth, (chosen - truth) / (size - 1)


@lru_cache(maxsize=256)
def _best_size(size: int, odds: Odds) -> int:
    around = size / (float(odds.ratio) + 1)
    candidates = {min(size - 1, max(1, near)) for near in (math.floor(around), math.ceil(around))}

    def variance(chosen: int) -> Fraction:
        truth, lie = _chances(size, chosen, odds)
        return lie * (1 - lie) / (truth - lie) ** 2

    return min(sorted(candidates), key=variance)
