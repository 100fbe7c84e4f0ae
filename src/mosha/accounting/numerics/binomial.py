"""Binomial probabilities by ratios: no factorial, no overflow, a known relative error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["binomial"]

Array = NDArray[np.float64]
REACH = 42.0  # standard deviations; what is beyond has a probability below 1e-300


def binomial(count: int, log_odds: float) -> tuple[Array, Array, float]:
    """Numbers of successes among `count`, their probabilities, and a relative error that covers each of them.

    Guarantee:
        The probability of j+1 is that of j times (count - j) / (j + 1) times the odds. Starting from the most likely
        number outward, the relative error of a weight grows by at most four roundings a step; that of their sum, in
        whatever order it is taken, by one more for each of them; and a probability is the quotient of both. Together
        that is below sixteen roundings of 2^-53 for each number.

    >>> numbers, probabilities, error = binomial(2, 0.0)
    >>> probabilities.tolist(), error < 1e-14
    ([0.25, 0.5, 0.25], True)
    """
    odds = math.exp(log_odds)
    chance = odds / (1 + odds)
    spread = math.sqrt(count * chance / (1 + odds))
    mode = min(count, int((count + 1) * chance))
    low = max(0, math.floor(mode - REACH * spread - 1000))
    high = min(count, math.ceil(mode + REACH * spread + 1000))
    numbers = np.arange(low, high + 1, dtype=np.float64)
    before, after = numbers[1 : mode - low + 1][::-1], numbers[mode - low : -1]
    right = np.cumprod((count - after) / (after + 1) * odds)
    left = np.cumprod(before / (count - before + 1) / odds)
    weights = np.concatenate((left[::-1], [1.0], right))
    return numbers, weights / weights.sum(), 2.0**-49 * (len(numbers) + 1)
