"""How far a mean, its sum and its count stray: tails of the noise that is uniform in a box of random size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from mosha.core.number import strict_probability
from mosha.exact.sum_and_count import SumAndCount

__all__ = ["FINE", "MeanError", "box_tail", "box_width"]

FINE = 1 << 20
"""The count is released in so many steps a row, and the box has so many shells within the sensitivity."""


@dataclass(frozen=True)
class MeanError:
    """The error bars of a mean, its sum and its count.

    Guarantee:
        Let a and b be the noise on sum S and count N, and x the true mean from the middle. From what was released
        follows S~ - x N~ = a - x b. Its size stays below t(|x|), the quantile of |a - x b|, with the confidence asked
        for; so the x with |S~ - x N~| <= t(|x|) cover the truth (Fieller's argument), and replacing t(|x|) by t at
        the end of an interval that holds x only widens it: the rounds below narrow it from the whole range.
    """

    parts: SumAndCount
    widths: tuple[int, int]
    epsilon: float

    def __call__(self, confidence: float, answer: dict[str, float] | None = None) -> dict[str, float]:
        strict_probability("confidence", confidence)
        low, high = self.parts.between
        total = self._quantile(self.parts.middle, confidence)
        count = self._quantile(None, confidence)
        if answer is None:
            return {"mean": high - low, "sum": total, "count": count}
        return {"mean": self._mean(answer, confidence), "sum": total, "count": count}

    def _quantile(self, factor: float | None, confidence: float) -> float:
        """Of |noise on the sum + factor * noise on the count|, or of the noise on the count alone."""
        on_sum = 0.0 if factor is None else self.widths[0] * self.parts.grid
        on_count = self.widths[1] * (1.0 if factor is None else abs(factor))
        large, small = max(on_sum, on_count), min(on_sum, on_count)
        if large == 0.0:
            return 0.0
        if self.widths[1] == 0:
            return large / self.epsilon * -math.log1p(-confidence) * (1 + 2.0**-20)
        shells = FINE / self.epsilon
        return large / self.epsilon * box_width(small / large, confidence) * (1 + 8 / shells)

    def _mean(self, answer: dict[str, float], confidence: float) -> float:
        low, high = self.parts.between
        half, count = high / 2 - low / 2, answer["count"]
        if count <= 0:
            return high - low
        centre = (answer["sum"] - self.parts.middle * count) / count
        left, right = -half, half
        for _ in range(6):
            reach = self._quantile(max(abs(left), abs(right)), confidence) / count
            left, right = max(-half, min(half, centre - reach)), min(half, max(-half, centre + reach))
        point = answer["mean"] - self.parts.middle
        return max(right - point, point - left) + self.parts.grid


def box_tail(ratio: float, width: float) -> float:
    """P(r |U + ratio V| > width): r Gamma of shape 3, U and V uniform on [-1, 1], 0 <= ratio <= 1.

    Guarantee:
        |U + p V| exceeds s with probability 1 - s for s <= 1 - p, (1 + p - s)^2 / (4 p) up to s = 1 + p, 0 beyond.
        Put s = width / r and integrate against r^2 e^-r / 2; the second part is shifted to start at zero.

    >>> round(box_tail(0.0, 3.0), 6), round(box_tail(1.0, 3.0), 6)
    (0.124468, 0.22313)
    """
    flat = 0.0
    if ratio < 1:
        c = width / (1 - ratio)
        flat = math.exp(-c) * (c * c + 2 * c + 2 - width * (c + 1)) / 2
    if ratio == 0:
        return flat
    start = width / (1 + ratio)
    length = width / (1 - ratio) - start if ratio < 1 else math.inf
    return flat + (1 + ratio) ** 2 / (8 * ratio) * math.exp(-start) * _lower_gamma(length)


def _lower_gamma(x: float) -> float:
    """The integral of v^2 e^-v from 0 to x."""
    if x > 700:
        return 2.0
    if x > 0.5:
        return 2 - math.exp(-x) * (x * x + 2 * x + 2)
    return math.fsum((-1) ** k * x ** (k + 3) / ((k + 3) * math.factorial(k)) for k in range(14))


@lru_cache(maxsize=1024)
def box_width(ratio: float, confidence: float) -> float:
    """The least t with P(r |U + ratio V| > t) <= 1 - confidence, rounded up.

    >>> round(box_width(0.0, 0.95), 4)
    4.113
    """
    missed = 1 - strict_probability("confidence", confidence)
    low, high = 0.0, 2.0 * (8 - math.log(missed))
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if box_tail(ratio, middle) > missed else (low, middle)
    return high * (1 + 2.0**-40)
