"""The passes of the envelope over large arrays, compiled by numba, where it is installed: the same samples, sooner.

Constants and tables are arguments: one that is changed elsewhere must not survive in numba's cache. A table is the
first point of the column of each slot, the mask of the low bits of a word that name the place in it, and the number of
sure slots. Indices are unsigned where their sign is not plain: numba would look whether they count from the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["add_at", "add_sure", "judge"]


@njit(cache=True)
def add_sure(
    drawn: NDArray[np.uint32],
    table: tuple[NDArray[np.int32], int, int],
    values: NDArray[np.int64],
    floats: NDArray[np.float32] | None,
    first: int,
    unsure: tuple[NDArray[np.int64], NDArray[np.uint32]],
    count: int,
) -> int:
    """Add the points of sure slots to the values; where there are floats, to them, cut towards zero.

    The places of unsure slots, counted from `first` on, and their words are noted behind the `count` that are; returns
    how many there are then.
    """
    start, mask, sure = table
    places, words = unsure
    low, least_unsure = np.uint32(mask), np.uint32(sure << 16)
    for i in range(drawn.size):
        word = drawn[i]
        value = values[i] if floats is None else np.int64(floats[i])
        if word < least_unsure:
            value += np.int64(start[word >> np.uint32(16)] | np.int32(word & low))
        else:
            places[np.uint64(count)] = first + i
            words[np.uint64(count)] = word
            count += 1
        values[i] = value
    return count


@njit(cache=True)
def judge(
    unsure: tuple[NDArray[np.int64], NDArray[np.uint32]],
    known: NDArray[np.uint64],
    table: tuple[NDArray[np.int32], int, int],
    law: tuple[float, bool, float, NDArray[np.float64]],
    tails: tuple[int, int],
    margin: float,
    series: tuple[float, float, float, float, NDArray[np.float64], NDArray[np.float64]],
    values: NDArray[np.int64],
    refused: NDArray[np.int64],
    unclear: NDArray[np.int64],
) -> tuple[int, int]:
    """Add the points of unsure slots that surely lie under the curve.

    Notes the places of those that surely do not, and the numbers of those about which floats may be wrong; returns how
    many there are of both. The exponential is that of `exponential.exp_negative`, operation by operation; scaling by an
    entry of `powers`, 2**-k for k <= 1010, rounds nothing, because no product is smaller than 2**-1011.
    """
    places, words = unsure
    start, mask, sure = table
    low = np.uint32(mask)
    rate, squared, height, level = law
    largest, per_ln2, ln2_high, ln2_low, coefficients, powers = series
    block = 256  # what is computed step by step together: a compiler can do several at a time
    rest, power, value = np.empty(block), np.empty(block), np.empty(block)
    refusals = doubts = 0
    for first in range(0, places.size, block):
        size = min(block, places.size - first)
        for i in range(size):
            word = words[np.uint64(first + i)]
            magnitude = np.float64(abs(np.int64(start[word >> np.uint32(16)] | np.int32(word & low))))
            clipped = min(magnitude * magnitude * rate if squared else magnitude * rate, largest)
            k = np.rint(clipped * per_ln2)
            r = clipped - k * ln2_high
            rest[i] = r - k * ln2_low
            power[i] = powers[np.uint64(k)]
            value[i] = coefficients[0]
        for j in range(1, coefficients.size):
            coefficient = coefficients[j]
            for i in range(size):
                value[i] = value[i] * rest[i] + coefficient
        for i in range(size):
            word, place = words[np.uint64(first + i)], places[np.uint64(first + i)]
            slot = np.int64(word >> np.uint32(16))
            uniform = np.float64(known[np.uint64(first + i)] >> np.uint64(11)) * 2.0**-53
            gap = height * (value[i] * power[i]) - level[np.uint64(slot - sure)] - uniform
            if abs(gap) < margin or tails[0] <= slot < tails[1]:
                unclear[doubts] = first + i
                doubts += 1
                continue
            point = np.int64(start[word >> np.uint32(16)] | np.int32(word & low))
            values[np.uint64(place)] += point * (gap > 0)
            refused[np.uint64(refusals)] = place
            refusals += gap <= 0
    return refusals, doubts


@njit(cache=True)
def add_at(values: NDArray[np.int64], places: NDArray[np.int64], more: NDArray[np.int64]) -> None:
    """Add each of `more` to the value at its place."""
    for i in range(places.size):
        values[np.uint64(places[i])] += more[i]
