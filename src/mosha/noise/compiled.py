"""The passes of the envelope over large arrays, compiled by numba, where it is installed: the same samples, sooner.

Constants and tables are arguments: one that is changed elsewhere must not survive in numba's cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["add_accepted", "add_sure", "gaps", "points_of"]


@njit(cache=True)
def add_sure(
    drawn: NDArray[np.uint32],
    start: NDArray[np.int32],
    sure: int,
    mask: int,
    values: NDArray[np.int64],
    unsure: NDArray[np.int64],
) -> int:
    """Add the points of sure slots to the values; note the places of all others, and return how many they are."""
    count = 0
    for i in range(drawn.size):
        slot = drawn[i] >> np.uint32(16)
        if slot < sure:
            values[i] += np.int64(start[slot]) | np.int64(drawn[i] & np.uint32(mask))
        else:
            unsure[count] = i
            count += 1
    return count


@njit(cache=True)
def points_of(
    drawn: NDArray[np.uint32],
    start: NDArray[np.int32],
    mask: int,
    points: NDArray[np.int64],
    magnitudes: NDArray[np.float64],
) -> None:
    """The point that each word names, and how far from zero it is."""
    for i in range(drawn.size):
        point = np.int64(start[drawn[i] >> np.uint32(16)]) | np.int64(drawn[i] & np.uint32(mask))
        points[i] = point
        magnitudes[i] = np.float64(abs(point))


@njit(cache=True)
def gaps(
    exponents: NDArray[np.float64],
    known: NDArray[np.uint64],
    level: NDArray[np.float64],
    height: float,
    series: tuple[float, float, float, float],
    coefficients: NDArray[np.float64],
    powers: NDArray[np.float64],
) -> None:
    """Each exponent t by height exp(-t) - level - U: the operations of `exponential.exp_negative`, in the same order.

    Scaling by an entry of `powers`, 2**-k for k <= 1010, rounds nothing: no product here is smaller than 2**-1011.
    """
    largest, per_ln2, ln2_high, ln2_low = series
    for i in range(exponents.size):
        clipped = min(exponents[i], largest)
        k = np.rint(clipped * per_ln2)
        r = clipped - k * ln2_high
        r -= k * ln2_low
        value = coefficients[0]
        for j in range(1, coefficients.size):
            value *= r
            value += coefficients[j]
        uniform = np.float64(known[i] >> np.uint64(11)) * 2.0**-53
        exponents[i] = height * (value * powers[int(k)]) - level[i] - uniform


@njit(cache=True)
def add_accepted(
    accepted: NDArray[np.bool_],
    points: NDArray[np.int64],
    places: NDArray[np.int64],
    values: NDArray[np.int64],
) -> int:
    """Add accepted points at their places; the places of all others move to the front: returns how many they are."""
    refused = 0
    for i in range(accepted.size):
        place = places[i]
        values[place] += points[i] * accepted[i]
        places[refused] = place
        refused += not accepted[i]
    return refused
