"""How far a sum of Laplace noises strays: its exact law, in place of bounds that are nearly twice as wide."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_NOISES", "find_width", "miss_probability"]

MOST_NOISES = 4096
"""Sums of more noises are nearly normal; their bars are bounds."""

_MORE = 1 + 2.0**-30
"""More than the rounding of floats."""


@lru_cache(maxsize=64)
def _weigh_terms(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logarithms of m!, and for each m < count the chance that count - 1 - m failures come before `count` coins."""
    upto = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 2 * count)))])
    failures = np.arange(count)
    chances = np.exp(upto[count - 1 + failures] - upto[failures] - upto[count - 1] - (count + failures) * math.log(2))
    return upto[:count], np.cumsum(chances)[::-1]


def miss_probability(count: int, width: float) -> float:
    """The probability that a sum of `count` Laplace noises of scale 1 strays farther than `width`.

    Guarantee:
        The sum is G - H for independent Gamma variables of shape n. P(G > w + H) = E sum over i < n of
        exp(-w - H) (w + H)**i / i!; by the binomial theorem and E[H**l exp(-H)] = (n + l - 1)! / (n - 1)! / 2**(n + l)
        it is the sum over m < n of exp(-w) w**m / m! times B(n - 1 - m), where B(j) is the sum over l <= j of
        C(n + l - 1, l) / 2**(n + l). All terms are positive; both sides are twice that.

    >>> round(miss_probability(1, math.log(20)), 12), round(miss_probability(7, 0.0), 12)
    (0.05, 1.0)
    """
    if width <= 0:
        return 1.0
    factorials, weights = _weigh_terms(count)
    powers = np.arange(count) * math.log(width) - factorials - width
    return min(1.0, 2 * float(np.exp(powers) @ weights))


@lru_cache(maxsize=4096)
def find_width(count: int, scale: float, missed: float) -> int:
    """A whole w with P(|sum of `count` discrete Laplace noises of this scale| > w) <= missed.

    Guarantee:
        Discrete Laplace noise D is the difference of the whole parts of two exponential variables, whose fractions are
        independent of them: D and an independent symmetric variable N make Laplace noise. A sum of D is symmetric and
        falls away from 0, so a window of 2 w + 1 whole numbers holds it most often around 0, wherever N moves it:
        P(|D| > w) <= P(|D + N| > w) for whole w. The continuous quantile, rounded up, serves.

    >>> find_width(1, 10.0, 0.05), find_width(4, 10.0, 0.05), find_width(100, 10.0, 0.05)
    (30, 57, 278)
    """
    low, high = 0.0, 4.0 * (count + 8 - math.log(missed))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if miss_probability(count, middle) > missed else (low, middle)
    return math.ceil(high * scale * _MORE)
