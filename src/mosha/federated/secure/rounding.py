"""Conditional rounding: to whole numbers at random, without bias, again and again until the result is short enough."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mosha.core.measurement import Rng

__all__ = ["longest_rounded", "round_within"]

_TRIES = 32


def longest_rounded(length: int, width: int) -> int:
    """The square of the length that a rounded vector may have, for a vector of `length` with `width` coordinates.

    Kairouz, Liu and Steinke (2021), proposition 22, with beta = exp(-1/2): rounding a vector of that length keeps it
    with probability at least 1 - exp(-1/2), so that a few tries do.

    >>> longest_rounded(100, 4) < 101**2 + 100
    True
    """
    root = math.sqrt(width)
    always = (length + root) ** 2
    likely = length**2 + width / 4 + (length + root / 2)
    return math.floor(min(always, likely))


def round_within(values: NDArray[np.float64], *, square: int, rng: Rng) -> NDArray[np.int64]:
    """Whole numbers next to `values`, whose squares sum to at most `square`, exactly.

    Guarantee:
        The sum of squares of the result is at most `square`, checked in 64-bit integers, for any input: after 32
        tries, or where something is no finite number, entries are cut towards zero, and where even that is too
        long the result is zero. Entries beyond 2**30 make it zero, so that no square overflows.
    """
    if not np.isfinite(values).all() or np.abs(values).max(initial=0.0) > 1 << 30:
        return np.zeros(len(values), np.int64)
    below = np.floor(values)
    share = values - below
    whole = below.astype(np.int64)
    for _ in range(_TRIES):
        coins = np.frombuffer(rng.bytes(4 * len(values)), "<u4")
        found = whole + (coins < share * 2.0**32)
        if _fits(found, square):
            return found
    found = np.trunc(values).astype(np.int64)
    return found if _fits(found, square) else np.zeros(len(values), np.int64)


def _fits(steps: NDArray[np.int64], square: int) -> bool:
    rough = float(np.dot(steps.astype(np.float64), steps.astype(np.float64)))
    return rough < 2.0**62 and int(np.dot(steps, steps)) <= square
