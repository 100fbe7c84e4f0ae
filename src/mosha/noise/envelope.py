"""The sampler behind Laplace and Gaussian noise: uniform points under an envelope of 65536 equal slots.

A 16-bit word names a slot, and nearly always the slot alone settles the answer, so a sample
costs one table look-up. `envelope.md` proves that the distribution is the named one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from mosha.noise.exponential import (
    COEFFICIENTS,
    LARGEST_EXPONENT,
    LN2_HIGH,
    LN2_LOW,
    PER_LN2,
    exp_negative,
    falls_below,
)
from mosha.noise.generators.secure_random import SecureRandom, word, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mosha.core.measurement import Rng
    from mosha.noise.generators.secure_random import Words

__all__ = ["Envelope", "Law"]

_SLOTS: Final = 1 << 16
_TAIL_SLOTS: Final = 2
_CHUNK: Final = 1 << 16  # words, table and answers of one chunk stay in the cache
_BLOCK: Final = 1 << 20  # what is judged together: large enough to hide what a NumPy call costs
_FEW: Final = 16  # up to so many, one by one is quicker than an array
_SLACK: Final = 2.0**-40  # relative; float weights are off by less than 2**-43
_MARGIN: Final = 2.0**-24  # absolute, in slots; the float threshold is off by less than 2**-26
_SMALL_EXPONENT: Final = 44.0  # up to it, float weights are off by less than 2**-43 relative
_COLUMN_BITS: Final = 8  # weights fall by exp(-4) over 2**7 to 2**8 columns
_LN2_ABOVE: Final = Fraction(6931472, 10**7)
_LARGEST: Final = 1 << 62
_POWERS: Final = 2.0 ** -np.arange(LARGEST_EXPONENT * PER_LN2 + 1)
_SERIES: Final = (LARGEST_EXPONENT, PER_LN2, LN2_HIGH, LN2_LOW, np.array(COEFFICIENTS), _POWERS)


class Law(Protocol):
    """A symmetric weight exp(-t(|x|)) on the integers, falling and log-concave on each side of zero.

    `rate` and `squared` say what `exponents` computes: m * m * rate if `squared`, else m * rate.
    """

    rate: float
    squared: bool

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
        `shift`: a column is 2**shift neighboring integers. `height`: slots in a full column.
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
        self._start: NDArray[np.int32] | None = None
        if self.shift <= 16:
            self._start = np.left_shift(self._column, self.shift, dtype=np.int32)
        self._level = np.full(_SLOTS - self.sure, np.inf)
        ramp = np.arange(self._tail - self.sure) - np.repeat(np.cumsum(unsure) - unsure, unsure)
        self._level[: len(ramp)] = np.repeat(sure, unsure) + ramp

    def draw_one(self, rng: Rng) -> int:
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
                beyond = self._draw_beyond(slot - self._tail, rng)
                if beyond is not None:
                    return beyond

    def draw_many(self, count: int, rng: Rng, *, compiled: bool = False) -> NDArray[np.int64]:
        """`count` independent samples; `compiled` needs numba."""
        if count <= _FEW:
            return np.array([self.draw_one(rng) for _ in range(count)], np.int64)
        samples = np.zeros(count, np.int64)
        self.add_to(samples, rng, compiled=compiled)
        return samples

    def add_to(self, values: NDArray[np.int64], rng: Rng, *, compiled: bool = False) -> None:
        """Add an independent sample to each of the values, in place; `compiled` needs numba."""
        write = self._write_compiled if compiled and self._word.itemsize == 4 else self._write
        for start in range(0, len(values), _BLOCK):
            write(values[start : start + _BLOCK], None, rng)

    def scale_with(self, values: NDArray[np.float32], factor: float, rng: Rng, *, compiled: bool = False) -> None:
        """Cut the values towards zero, add an independent sample to each, and multiply by the factor, in place."""
        write = self._write_compiled if compiled and self._word.itemsize == 4 else self._write
        for start in range(0, len(values), _BLOCK):
            write(values[start : start + _BLOCK], np.float32(factor), rng)

    def _write(self, values: Any, factor: np.float32 | None, rng: Rng) -> None:
        """What the slot alone settles is added at once; the rest is judged, and what is refused drawn again."""
        wholes = values if factor is None else values.astype(np.int64)
        places, left = [], []
        for start in range(0, len(wholes), _CHUNK):
            chunk = wholes[start : start + _CHUNK]
            drawn = words(rng, len(chunk), self._word)
            unsure = self._add_sure(chunk, drawn)
            places.append(unsure + start)
            left.append(drawn[unsure])
        where, drawn = np.concatenate(places), np.concatenate(left)
        if where.size:
            slots = np.right_shift(drawn, 8 * self._word.itemsize - 16).astype(np.int64)
            points = self._points(drawn, slots).astype(np.int64, copy=False)
            accepted = self._judge(points, slots, rng)
            wholes[where[accepted]] += points[accepted]
            refused = where[~accepted]
            wholes[refused] += self.draw_many(refused.size, rng)
        if factor is not None:
            np.multiply(wholes.astype(np.float32), factor, out=values)

    def _write_compiled(self, values: Any, factor: np.float32 | None, rng: Rng) -> None:
        """The same samples from the same words, in compiled passes."""
        from mosha.noise.compiled import add_at, add_sure, put, scale_sure  # noqa: PLC0415  (takes time to load)

        table, chunk = (self._column, self.shift, self.sure), min(len(values), _CHUNK)
        room = min(len(values), chunk + len(values) * (_SLOTS - self.sure) * 5 // (_SLOTS * 4))
        unsure, count = (np.empty(room, np.int64), np.empty(room, np.uint32), np.empty(room, np.int64)), 0
        piece = rng.pieces(4 * chunk) if isinstance(rng, SecureRandom) else rng.bytes
        for start in range(0, len(values), chunk):
            part = values[start : start + chunk]
            drawn = np.frombuffer(piece(4 * len(part)), self._word)
            if count + len(drawn) > len(unsure[0]):  # more unsure slots than a quarter above what was expected
                unsure = tuple(np.resize(noted, 2 * len(values)) for noted in unsure)  # type: ignore[assignment]
            if factor is None:
                count = add_sure(drawn, table, part, start, unsure, count)
            else:
                count = scale_sure(drawn, table, part, factor, start, unsure, count)
        if count:
            places, left, wholes = unsure[0][:count], unsure[1][:count], unsure[2][:count]
            refused = self._judge_compiled(wholes, left, rng)
            add_at(wholes, refused, self.draw_many(len(refused), rng, compiled=True))
            put(values, places, wholes, factor)

    def _judge_compiled(self, wholes: NDArray[np.int64], drawn: NDArray[np.uint32], rng: Rng) -> NDArray[np.int64]:
        """Add the points of unsure slots that lie under the curve; returns the numbers of the others, in order."""
        from mosha.noise.compiled import judge  # noqa: PLC0415

        known = words(rng, len(drawn))
        refused, unclear = np.empty(len(drawn), np.int64), np.empty(len(drawn), np.int64)
        table, law = (
            (self._column, self.shift, self.sure),
            (self._law.rate, self._law.squared, float(self.height), self._level),
        )
        tails = self._tail, self._tail + _TAIL_SLOTS
        refusals, doubts = judge(drawn, known, table, law, tails, _MARGIN, _SERIES, wholes, refused, unclear)
        refused, unclear = refused[:refusals], unclear[:doubts]
        if not doubts:
            return refused
        slots = np.right_shift(drawn[unclear], 16).astype(np.int64)
        points = self._points(drawn[unclear], slots).astype(np.int64)
        accepted, points = self._settle(points, slots, known[unclear], rng)
        wholes[unclear[accepted]] += points[accepted]
        more = unclear[~accepted]
        return np.insert(refused, np.searchsorted(refused, more), more)

    def _points(self, drawn: Words, slots: NDArray[np.int64] | Words) -> NDArray[np.signedinteger[Any]]:
        """The point of each word: the place that its low bits name, in the column of its slot."""
        if self.shift == 0:  # a column is one integer
            return self._column.take(slots, mode="clip")
        low = drawn & ((1 << self.shift) - 1)
        if self._start is not None:  # 32 bits hold it all
            return self._start.take(slots, mode="clip") | low.astype(np.int32)
        points = np.left_shift(self._column.take(slots.view(np.int64), mode="clip"), self.shift, dtype=np.int64)
        points |= low.view(np.int64)
        return points

    def _add_sure(self, values: NDArray[np.int64], drawn: Words) -> NDArray[np.intp]:
        """Add the points of sure slots; returns the places of all others, where nothing was added."""
        slots: Words = np.right_shift(drawn, 8 * self._word.itemsize - 16)
        points = self._points(drawn, slots)
        unsure = np.flatnonzero(slots >= self.sure)
        points[unsure] = 0
        values += points
        return unsure

    def _judge(self, points: NDArray[np.int64], slots: NDArray[np.int64], rng: Rng) -> NDArray[np.bool_]:
        """Which of the points of unsure slots lie under the curve; that of a tail slot is replaced by its sample."""
        known = words(rng, len(points))
        gap = self.height * exp_negative(self._law.exponents(np.abs(points).astype(np.float64)))
        gap -= self._level[slots - self.sure]
        gap -= (known >> np.uint64(11)).astype(np.float64) * 2.0**-53
        accepted: NDArray[np.bool_] = gap > 0
        in_tail = (slots >= self._tail) & (slots < self._tail + _TAIL_SLOTS)
        unclear = np.flatnonzero((np.abs(gap) < _MARGIN) | in_tail)
        if unclear.size:
            accepted[unclear], points[unclear] = self._settle(points[unclear], slots[unclear], known[unclear], rng)
        return accepted

    def _settle(
        self, points: NDArray[np.int64], slots: NDArray[np.int64], known: Words, rng: Rng
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """What floats cannot tell: exactly, whether the points are accepted; that of a tail slot is found here."""
        accepted = np.zeros(len(points), np.bool_)
        for i in np.flatnonzero(slots < self._tail):
            level = int(self._level[slots[i] - self.sure])
            accepted[i] = self._accepts(int(points[i]), level, int(known[i]), rng)
        tails = np.flatnonzero(slots >= self._tail)
        if tails.size:
            found = self._draw_all_beyond((slots[tails] - self._tail).tolist(), rng)
            accepted[tails] = [beyond is not None for beyond in found]
            points[tails] = [beyond or 0 for beyond in found]
        return accepted, points

    def _accepts(self, x: int, level: int, known: int, rng: Rng) -> bool:
        """The exact test: is the point at height level + U under the curve at x?"""
        exponent = self._law.exponent(abs(x))
        return falls_below(rng, amplitude=Fraction(self.height), exponent=exponent, whole=level, known=known, bits=64)

    def _draw_beyond(self, negative: int, rng: Rng) -> int | None:
        """A point of one tail, or None for a refusal: blocks whose envelope halves from one to the next."""
        block, magnitude = self._far_point(negative, _draw_words(rng))
        if magnitude >= _LARGEST or not self._reaches(block, magnitude, word(rng), rng):
            return None
        return -magnitude if negative else magnitude

    def _draw_all_beyond(self, negative: list[int], rng: Rng) -> list[int | None]:
        """The same for several tail slots at once: floats decide wherever they surely can."""
        drawn = chain(words(rng, 3 * len(negative)).tolist(), _draw_words(rng))  # three for each, nearly always
        points = [(*self._far_point(one, drawn), next(drawn)) for one in negative]
        exponents = self._law.exponents(np.array([float(magnitude) for _, magnitude, _ in points]))
        weights = exp_negative(exponents)
        found: list[int | None] = []
        for one, (block, magnitude, known), exponent, weight in zip(
            negative, points, exponents.tolist(), weights.tolist(), strict=True
        ):
            gap = 0.0
            if exponent <= _SMALL_EXPONENT:
                gap = math.ldexp(self.height * weight, self._tail_shift + 1 - self.shift + block) - known * 2.0**-64
            accepted = gap > 0 if abs(gap) > _MARGIN else self._reaches(block, magnitude, known, rng)
            found.append((-magnitude if one else magnitude) if accepted and magnitude < _LARGEST else None)
        return found

    def _far_point(self, negative: int, drawn: Iterator[int]) -> tuple[int, int]:
        """A block of a tail, halving from one to the next, and the magnitude of a uniform point in it."""
        block = 0
        while (ones := _trailing_ones(next(drawn))) == 64:
            block += 64
        block += ones
        low = next(drawn) & ((1 << self._tail_shift) - 1)
        return block, self._tail_start + (block << self._tail_shift) + low + negative

    def _reaches(self, block: int, magnitude: int, known: int, rng: Rng) -> bool:
        """The exact test of a point in a tail."""
        amplitude = self._tail_amplitude * (1 << block)
        exponent = self._law.exponent(magnitude)
        return falls_below(rng, amplitude=amplitude, exponent=exponent, known=known, bits=64)


def _draw_words(rng: Rng) -> Iterator[int]:
    while True:
        yield word(rng)


def _trailing_ones(drawn: int) -> int:
    return (~drawn & (drawn + 1)).bit_length() - 1


def _spans(columns: int, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Least and greatest magnitude in each column, and its number: x // width, for x on both sides of zero."""
    starts = np.arange(columns) * float(width)
    near = np.concatenate([starts, starts + 1])
    far = np.concatenate([starts + (width - 1), starts + width])
    number = np.arange(columns)
    return near, far, np.concatenate([number, ~number])
