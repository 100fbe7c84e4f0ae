"""Projective geometry response: a point of a projective space that is likely orthogonal to that of the value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.local.protocols.device import draw_below, flip_coin
from mosha.local.protocols.odds import Odds
from mosha.local.protocols.points import count_points
from mosha.local.protocols.protocol import Protocol
from mosha.local.protocols.randomizer import bytes_for, pack, unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Projective", "largest_space"]

_MOST_POINTS = 1 << 24  # points have at most three bytes
_BLOCK = 16384  # reports that are drawn at a time, so that they stay near the processor


@dataclass(frozen=True)
class Projective(Protocol):
    """Feldman, Nelson, Nguyen and Talwar 2022: the error of optimised unary in two to four bytes.

    Values and reports are points: non-zero vectors of t numbers modulo a prime q, the first non-zero one 1. There are
    K = (q^t - 1) / (q - 1) of them, and c = (q^(t-1) - 1) / (q - 1) are orthogonal to any one. A report supports the
    values it is orthogonal to.

    Guarantee:
        With odds a : b a point orthogonal to that of the value has probability a / Z, any other b / Z, Z = a c + b (K -
        c) for every value: no two values differ by more than a / b <= e^epsilon on any report. `projective.md` shows
        that the points drawn have exactly this law.

    Units:
        A report is the number of a point. Point number V - q^m + (q^m - 1) / (q - 1) has the vector whose base-q number
        is V, q^m <= V < 2 q^m. A space of more than `most_points` is never taken.

    >>> p = Projective(1000, 1.0)
    >>> p.settings, p.width, round(p.variance, 4)
    ({'prime': 3, 'coordinates': 7}, 2, 3.7611)
    """

    most_points: int = _MOST_POINTS
    name = "projective"

    def __post_init__(self) -> None:
        super().__post_init__()
        if _geometry(self.size, self.odds, self.most_points) is None:
            raise InvalidParameter("local.no_projective_space", parameter="size")

    @property
    def prime(self) -> int:
        return self._space[0]

    @property
    def coordinates(self) -> int:
        return self._space[1]

    @property
    def _space(self) -> tuple[int, int]:
        found = _geometry(self.size, self.odds, self.most_points)
        assert found is not None
        return found

    @property
    def points(self) -> int:
        return count_points(*self._space)

    @property
    def settings(self) -> dict[str, int]:
        return {"prime": self.prime, "coordinates": self.coordinates}

    @property
    def truth(self) -> Fraction:
        return _chances(*self._space, self.odds)[0]

    @property
    def lie(self) -> Fraction:
        return _chances(*self._space, self.odds)[1]

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        q, t = self._space
        line = count_points(q, t - 1), count_points(q, t - 2)
        with_truth = self.truth * Fraction(line[1], line[0])
        return with_truth, _pair_of_lies(q, t, self.odds)

    @property
    def width(self) -> int:
        return bytes_for(self.points)

    @property
    def cells(self) -> int:
        return self.points

    @property
    def largest_support(self) -> int:
        return min(self.size, count_points(self.prime, self.coordinates - 1))

    def draw(self, value: int, rng: Rng) -> bytes:
        q, t = self._space
        truth = self.truth
        point = _vector(value, q, t)
        pivot = next(place for place in range(t) if point[place])
        product = 0 if flip_coin(truth.numerator, truth.denominator, rng) else 1 + draw_below(q - 1, rng)
        while True:
            drawn = [draw_below(q, rng) for _ in range(t)]
            excess = sum(x * y for x, y in zip(point, drawn, strict=True)) - product
            drawn[pivot] = (drawn[pivot] - excess) % q
            if any(drawn):
                return _number(drawn, q).to_bytes(self.width, "little")

    def draw_many(self, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        import numpy as np

        from mosha.noise import bernoulli

        found = np.empty(len(values), np.int32)
        orthogonal = bernoulli(self.truth, len(values), rng=rng)
        for start in range(0, len(values), _BLOCK):
            part = slice(start, start + _BLOCK)
            found[part] = self._block(values[part], orthogonal[part], rng)
        return pack(found.astype(np.int64), self.width)

    def _block(self, values: NDArray[np.int64], orthogonal: NDArray[np.bool_], rng: Rng) -> NDArray[np.int32]:
        import numpy as np

        from mosha.noise import uniform

        q, t = self._space
        known = _table(q, t, self.size)
        digits = _uniform_digits(q, t, len(values), rng)
        excess = np.zeros(len(values), np.int32)
        for place in range(t):
            excess += known.digits[place].take(values) * digits[place]
        if q > 2:
            excess -= np.where(orthogonal, 0, 1 + uniform(q - 1, len(values), rng=rng)).astype(np.int32)
        else:
            excess -= ~orthogonal
        pivots = known.pivots.take(values)
        rows = np.arange(len(values))
        digits[pivots, rows] = (digits[pivots, rows] - excess) % q
        lead = digits[0].copy()
        for place in range(1, t):
            np.copyto(lead, digits[place], where=lead == 0)
        inverse = known.inverses.take(lead)
        found = np.zeros(len(values), np.int32)
        for place in range(t):
            found *= q
            found += (digits[place] * inverse) % q
        numbers: NDArray[np.int32] = known.numbers_of(found)
        again = np.flatnonzero(lead == 0)  # the zero vector, which is no point
        if again.size:
            numbers[again] = self._block(values[again], orthogonal[again], rng)
        return numbers

    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = unpack(reports) < self.points
        return found

    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        import numpy as np

        return np.bincount(unpack(reports), minlength=self.points)

    def count_into(self, counters: NDArray[np.int64], reports: NDArray[np.uint8]) -> None:
        """A few reports never touch all points."""
        import numpy as np

        if len(reports) < self.points >> 4:
            np.add.at(counters, unpack(reports), 1)
        else:
            super().count_into(counters, reports)

    def supports(self, counters: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums over hyperplanes by Fourier transforms of the points, not of all vectors (see `projective.md`)."""
        from mosha.local.protocols.hyperplanes import count_orthogonal

        return count_orthogonal(counters, *self._space, self.size)

    @property
    def decoding_bytes(self) -> int:
        return 40 * self.points + 64 * self.size


@dataclass(frozen=True)
class _Table:
    """The vectors of the values of a survey, digit by digit, and what is needed to number points."""

    digits: list[NDArray[np.int32]]
    pivots: NDArray[np.int64]
    inverses: NDArray[np.int32]
    starts: NDArray[np.int64]
    changes: NDArray[np.int64]

    def numbers_of(self, vectors: NDArray[np.int32]) -> NDArray[np.int32]:
        import numpy as np

        places = np.searchsorted(self.starts, vectors, side="right") - 1
        return (vectors + self.changes.take(places)).astype(np.int32)


@lru_cache(maxsize=4)
def _table(q: int, t: int, size: int) -> _Table:
    import numpy as np

    vectors = _vectors(q, t, size)
    digits = [(vectors // q ** (t - 1 - place) % q).astype(np.int32) for place in range(t)]
    powers = np.array([q**m for m in range(t)], np.int64)
    pivots = t - np.searchsorted(powers, vectors, side="right")
    inverses = np.array([0] + [pow(x, -1, q) for x in range(1, q)], np.int32)
    changes = (powers - 1) // (q - 1) - powers
    return _Table(digits, pivots, inverses, powers, changes)


def _vectors(q: int, t: int, size: int) -> NDArray[np.int64]:
    """The vectors of the first `size` points, in the order of their numbers."""
    import numpy as np

    parts, left = [], size
    for m in range(t):
        parts.append(np.arange(q**m, q**m + min(q**m, left), dtype=np.int64))
        left -= len(parts[-1])
    return np.concatenate(parts)


def _uniform_digits(q: int, t: int, count: int, rng: Rng) -> NDArray[np.int32]:
    """T independent numbers below q for each report, from one number below q^t."""
    import numpy as np

    from mosha.noise import uniform

    whole = uniform(q**t, count, rng=rng)
    if q**t <= 1 << 31:
        whole = whole.astype(np.int32)  # quicker; a larger number would wrap around, and its digits not be uniform
    digits = np.empty((t, count), np.int32)
    for place in range(t):
        rest = whole // q
        digits[place] = whole - rest * q
        whole = rest
    return digits


@lru_cache(maxsize=256)
def _chances(q: int, t: int, odds: Odds) -> tuple[Fraction, Fraction]:
    every, line, meet = count_points(q, t), count_points(q, t - 1), count_points(q, t - 2)
    total = odds.top * line + odds.bottom * (every - line)
    return Fraction(odds.top * line, total), Fraction(odds.top * meet + odds.bottom * (line - meet), total)


def _pair_of_lies(q: int, t: int, odds: Odds) -> Fraction:
    """Two values in general position with the true one."""
    every, line = count_points(q, t), count_points(q, t - 1)
    total = odds.top * line + odds.bottom * (every - line)
    meet, corner = count_points(q, t - 2), count_points(q, t - 3) if t > 3 else 0
    return Fraction(odds.top * corner + odds.bottom * (meet - corner), total)


@lru_cache(maxsize=256)
def _geometry(size: int, odds: Odds, most: int) -> tuple[int, int] | None:
    """The prime and the number of coordinates with the least variance that hold `size` points; None where none fit."""
    ratio = float(odds.ratio)
    found: list[tuple[Fraction, int, int]] = []
    for q in _primes(min(4 * math.ceil(ratio) + 4, 4096)):
        t = 2
        while count_points(q, t) < size:
            t += 1
        if count_points(q, t) <= min(most, _MOST_POINTS) and t >= 2:
            truth, lie = _chances(q, t, odds)
            found.append((lie * (1 - lie) / (truth - lie) ** 2, q, t))
    if not found:
        return None
    _, q, t = min(found)
    return q, t


def largest_space(most: int, odds: Odds) -> int | None:
    """The points of the space with the least variance that has at most `most` points, and more than an eighth of it."""
    found: list[tuple[Fraction, int]] = []
    for q in _primes(min(4 * math.ceil(float(odds.ratio)) + 4, math.isqrt(most))):
        t = 3
        while count_points(q, t + 1) <= most:
            t += 1
        if most < 8 * count_points(q, t) <= 8 * most:
            truth, lie = _chances(q, t, odds)
            found.append((lie * (1 - lie) / (truth - lie) ** 2, count_points(q, t)))
    return min(found)[1] if found else None


def _primes(most: int) -> list[int]:
    return [n for n in range(2, most + 1) if all(n % d for d in range(2, math.isqrt(n) + 1))]


def _vector(number: int, q: int, t: int) -> list[int]:
    """The digits of the point with this number."""
    m = 0
    while count_points(q, m + 1) <= number:
        m += 1
    whole = number - count_points(q, m) + q**m
    return [whole // q ** (t - 1 - place) % q for place in range(t)]


def _number(vector: list[int], q: int) -> int:
    """The number of the point on which this non-zero vector lies."""
    pivot = next(place for place, x in enumerate(vector) if x)
    inverse = pow(vector[pivot], -1, q)
    whole = 0
    for x in vector:
        whole = whole * q + x * inverse % q
    m = len(vector) - 1 - pivot
    return int(whole - q**m) + count_points(q, m)
