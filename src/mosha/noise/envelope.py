"""The sampler behind Laplace and Gaussian noise: uniform points under an envelope of 65536 equal slots.

A 16-bit word names a slot, and nearly always the slot alone settles the answer, so a sample
costs one table look-up. `envelope.md` proves that the distribution is the named one.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from mosha.noise.comparison import falls_below
from mosha.noise.exponential import exp_negative
from mosha.noise.words import word, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mosha.core.randomness import Rng
    from mosha.noise.words import Words

__all__ = ["Envelope", "Law"]

_SLOTS: Final = 1 << 16
_TAIL_SLOTS: Final = 2
_CHUNK: Final = 1 << 16  # words, table and answers of one chunk stay in the cache
_BLOCK: Final = 1 << 20  # what is judged together: large enough to hide what a NumPy call costs
_FEW: Final = 16  # up to so many, one by one is quicker than an array
_SLACK: Final = 2.0**-40  # relative; float weights are off by less than 2**-43
_MARGIN: Final = 2.0**-24  # absolute, in slots; the float threshold is off by less than 2**-26
_COLUMN_BITS: Final = 8  # weights fall by exp(-4) over 2**7 to 2**8 columns
_LN2_ABOVE: Final = Fraction(6931472, 10**7)
_LARGEST: Final = 1 << 62


class Law(Protocol):
    """A symmetric weight exp(-t(|x|)) on the integers, falling and log-concave on each side of zero."""

    def exponent(self, magnitude: int) -> Fraction:
        """The exact t(magnitude)."""

    def exponents(self, magnitudes: NDArray[np.float64]) -> NDArray[np.float64]:
        """All t(magnitude) as floats: off by less than 2**-50 relative where t <= 700, above 699 elsewhere."""

    def reach(self, exponent: float) -> float:
        """About the magnitude at which t reaches `exponent`."""

    def decay(self, start: int) -> Fraction:
        """A number d > 0 with t(start + k) >= t(start) + k / d for all k >= 0 (start >= 1)."""


class Envelope:
    """A table for one law, after which samples are cheap.

    Guarantee:
        Samples are independent and follow the law exactly, conditioned on |x| < 2**62 (`envelope.md`).

    Units:
        `shift`: a column is 2**shift neighbouring integers. `height`: slots in a full column.
    """

    def __init__(self, law: Law) -> None:
        self._law = law
        self.shift = max(0, int(law.reach(4.0)).bit_length() - _COLUMN_BITS)
        columns = self._columns_before_tail()
        self._tail_start = columns << self.shift
        near, far, codes = _spans(columns, 1 << self.shift)
        weights = exp_negative(law.exponents(np.concatenate([near, far, [float(self._tail_start)]])))
        upper = weights[: len(near)] * (1 + _SLACK)
        lower = weights[len(near) : -1] * (1 - _SLACK)
        self.height = int((_SLOTS - _TAIL_SLOTS - len(codes)) / math.fsum(upper))
        slots = np.ceil(self.height * upper).astype(np.int64)
        sure = np.floor(self.height * lower).astype(np.int64)
        self._lay_out(codes, slots, sure)
        self._tail_shift = math.ceil(law.decay(self._tail_start) * _LN2_ABOVE - 1).bit_length()
        self._tail_amplitude = self.height * Fraction(2) ** (self._tail_shift + 1 - self.shift)
        fits = self._tail_amplitude * Fraction(float(weights[-1]) * (1 + _SLACK)) <= 1
        if not fits or self._tail + _TAIL_SLOTS > _SLOTS:
            raise ArithmeticError("the tails do not fit into their slots: this law needs other columns.")
        self._word = np.dtype("<u2" if self.shift == 0 else "<u4" if self.shift <= 16 else "<u8")

    def _columns_before_tail(self) -> int:
        """So many columns that what lies beyond fits into one slot a side (an estimate, checked by the caller)."""
        law, width = self._law, float(1 << self.shift)
        starts = width * np.arange(1, int(law.reach(44.0) / width) + 3, dtype=np.float64)
        weights = exp_negative(law.exponents(starts))
        height = _SLOTS / (1 + 2 * math.fsum(weights))
        decay = float(law.decay(max(1, int(law.reach(4.0)))))
        block = max(1.0, 2 * math.log(2) * decay)
        return int(np.argmax(height * 2 * block / width * weights <= 0.99)) + 1

    def _lay_out(self, codes: NDArray[np.int64], slots: NDArray[np.int64], sure: NDArray[np.int64]) -> None:
        """Sure slots first, then those that need a test, then the two tails; what is left draws again."""
        unsure = slots - sure
        self.sure = int(sure.sum())
        self._tail = self.sure + int(unsure.sum())
        self._column = np.zeros(_SLOTS, np.int16)
        self._column[: self.sure] = np.repeat(codes, sure)
        self._column[self.sure : self._tail] = np.repeat(codes, unsure)
        self._level = np.full(_SLOTS - self.sure, np.inf)
        ramp = np.arange(self._tail - self.sure) - np.repeat(np.cumsum(unsure) - unsure, unsure)
        self._level[: len(ramp)] = np.repeat(sure, unsure) + ramp

    def one(self, rng: Rng) -> int:
        """One sample."""
        size = self._word.itemsize
        while True:
            drawn = word(rng, size)
            slot = drawn >> (8 * size - 16)
            x = (int(self._column[slot]) << self.shift) | (drawn & ((1 << self.shift) - 1))
            if slot < self.sure:
                return x
            if slot < self._tail:
                level = int(self._level[slot - self.sure])
                if self._accepts(x, level, word(rng), rng):
                    return x
            elif slot < self._tail + _TAIL_SLOTS:
                beyond = self._beyond(slot - self._tail, rng)
                if beyond is not None:
                    return beyond

    def many(self, count: int, rng: Rng) -> NDArray[np.int64]:
        """`count` independent samples."""
        if count <= _FEW:
            return np.array([self.one(rng) for _ in range(count)], np.int64)
        samples = np.empty(count, np.int64)
        for start in range(0, count, _BLOCK):
            self._fill(samples[start : start + _BLOCK], rng)
        return samples

    def _fill(self, samples: NDArray[np.int64], rng: Rng) -> None:
        """Fill `samples`: what was refused is drawn again, until nothing is."""
        refused = self._attempt(samples, rng)
        while refused.size > _FEW:
            fresh = np.empty(refused.size, np.int64)
            still = self._attempt(fresh, rng)
            samples[refused] = fresh
            refused = refused[still]
        for i in refused:
            samples[i] = self.one(rng)

    def _attempt(self, samples: NDArray[np.int64], rng: Rng) -> NDArray[np.intp]:
        """Fill `samples` once; the positions returned were refused and hold nothing of meaning."""
        places, slots = [], []
        for start in range(0, len(samples), _CHUNK):
            drawn = self._propose(samples[start : start + _CHUNK], rng)
            unsure = np.flatnonzero(drawn >= self.sure)
            slots.append(drawn[unsure].astype(np.int64))
            unsure += start
            places.append(unsure)
        where = np.concatenate(places)
        if not where.size:
            return where
        return where[~self._judge(samples, where, np.concatenate(slots), rng)]

    def _propose(self, chunk: NDArray[np.int64], rng: Rng) -> Words:
        """Write a uniform point of a random slot's column into `chunk`; return the slots."""
        drawn = words(rng, len(chunk), self._word)
        if self.shift == 0:
            chunk[:] = self._column.take(drawn, mode="clip")
            return drawn
        slots: Words = np.right_shift(drawn, 8 * self._word.itemsize - 16)
        index = slots.view(np.int64) if slots.itemsize == 8 else slots
        np.left_shift(self._column.take(index, mode="clip"), self.shift, out=chunk, dtype=np.int64)
        chunk |= (drawn & ((1 << self.shift) - 1)).astype(np.int64, copy=False)
        return slots

    def _judge(
        self, samples: NDArray[np.int64], where: NDArray[np.intp], slots: NDArray[np.int64], rng: Rng
    ) -> NDArray[np.bool_]:
        """Which of the proposals at `where` lie under the curve; a tail slot is replaced by its sample."""
        drawn = words(rng, len(where))
        uniform = (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53
        magnitudes = np.abs(samples[where]).astype(np.float64)
        level = self._level[slots - self.sure]
        gap = self.height * exp_negative(self._law.exponents(magnitudes)) - level
        gap -= uniform
        accepted: NDArray[np.bool_] = gap > 0
        for i in np.flatnonzero(np.abs(gap) < _MARGIN):
            accepted[i] = self._accepts(int(samples[where[i]]), int(level[i]), int(drawn[i]), rng)
        for i in np.flatnonzero((slots >= self._tail) & (slots < self._tail + _TAIL_SLOTS)):
            beyond = self._beyond(int(slots[i]) - self._tail, rng)
            accepted[i] = beyond is not None
            samples[where[i]] = 0 if beyond is None else beyond
        return accepted

    def _accepts(self, x: int, level: int, known: int, rng: Rng) -> bool:
        """The exact test: is the point at height level + U under the curve at x?"""
        exponent = self._law.exponent(abs(x))
        return falls_below(rng, amplitude=Fraction(self.height), exponent=exponent, whole=level, known=known, bits=64)

    def _beyond(self, negative: int, rng: Rng) -> int | None:
        """A point of one tail, or None for a refusal: blocks whose envelope halves from one to the next."""
        block = 0
        while (ones := _trailing_ones(word(rng))) == 64:
            block += 64
        block += ones
        low = word(rng) & ((1 << self._tail_shift) - 1)
        distance = self._tail_start + (block << self._tail_shift) + low
        magnitude = distance + negative
        if magnitude >= _LARGEST:
            return None
        amplitude = self._tail_amplitude * (1 << block)
        exponent = self._law.exponent(magnitude)
        if not falls_below(rng, amplitude=amplitude, exponent=exponent, known=word(rng), bits=64):
            return None
        return -magnitude if negative else magnitude


def _trailing_ones(drawn: int) -> int:
    return (~drawn & (drawn + 1)).bit_length() - 1


def _spans(columns: int, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Least and greatest magnitude in each column, and its number: x // width, for x on both sides of zero."""
    starts = np.arange(columns) * float(width)
    near = np.concatenate([starts, starts + 1])
    far = np.concatenate([starts + (width - 1), starts + width])
    number = np.arange(columns)
    return near, far, np.concatenate([number, ~number])
