"""The passes of the envelope over large arrays, compiled by numba, where it is installed: the same samples, sooner.

Constants and tables are arguments: one that is changed elsewhere must not survive in numba's cache. A table is the
column of each slot, the bits of a word that name the place in it, and the number of sure slots. Indices are unsigned
where their sign is not plain: numba would look whether they count from the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["add_at", "add_sure", "judge", "put", "scale_sure"]


@njit(cache=True)
def add_sure(
    drawn: NDArray[np.uint32],
    table: tuple[NDArray[np.int16], int, int],
    values: NDArray[np.int64],
    first: int,
    unsure: tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.int64]],
    count: int,
) -> int:
    """Add the points of sure slots to the values.

    The places of unsure slots, counted from `first` on, their words and values are noted behind the `count` that are;
    returns how many there are then.
    """
    columns, shift, sure = table
    places, words, wholes = unsure
    low, least_unsure = np.uint32((1 << shift) - 1), np.uint32(sure << 16)
    for i in range(drawn.size):
        word = drawn[i]
        if word < least_unsure:
            values[i] += np.int64((np.int32(columns[word >> np.uint32(16)]) << np.int32(shift)) | np.int32(word & low))
        else:
            places[np.uint64(count)] = first + i
            words[np.uint64(count)] = word
            wholes[np.uint64(count)] = values[i]
            count += 1
    return count


@njit(cache=True)
def scale_sure(
    drawn: NDArray[np.uint32],
    table: tuple[NDArray[np.int16], int, int],
    values: NDArray[np.float32],
    factor: np.float32,
    first: int,
    unsure: tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.int64]],
    count: int,
) -> int:
    """The same for values that are cut towards zero first, and multiplied by the factor afterwards.

    Both are below 2**52, so that doubles hold their sum exactly. What is written to the places of unsure slots is of no
    use. Points are found one by one and added several at a time, as a compiler does where a loop is simple.
    """
    columns, shift, sure = table
    places, words, wholes = unsure
    low, least_unsure = np.uint32((1 << shift) - 1), np.uint32(sure << 16)
    block = 256
    points = np.empty(block, np.int32)
    for begin in range(0, drawn.size, block):
        part, within = drawn[begin : begin + block], values[begin : begin + block]
        for i in range(part.size):
            word = part[i]
            if word >= least_unsure:
                places[np.uint64(count)] = first + begin + i
                words[np.uint64(count)] = word
                wholes[np.uint64(count)] = np.int64(within[i])
                count += 1
            points[i] = (np.int32(columns[word >> np.uint32(16)]) << np.int32(shift)) | np.int32(word & low)
        for i in range(part.size):
            within[i] = np.float32(np.trunc(np.float64(within[i])) + np.float64(points[i])) * factor
    return count


@njit(cache=True)
def judge(
    words: NDArray[np.uint32],
    known: NDArray[np.uint64],
    table: tuple[NDArray[np.int16], int, int],
    law: tuple[float, bool, float, NDArray[np.float64]],
    tails: tuple[int, int],
    margin: float,
    series: tuple[float, float, float, float, NDArray[np.float64], NDArray[np.float64]],
    wholes: NDArray[np.int64],
    refused: NDArray[np.int64],
    unclear: NDArray[np.int64],
) -> tuple[int, int]:
    """Add the points of unsure slots that surely lie under the curve to their whole numbers.

    Notes the numbers of those that surely do not, and of those about which floats may be wrong; returns how many there
    are of both. The exponential is that of `exponential.exp_negative`, operation by operation; scaling by an
    entry of `powers`, 2**-k for k <= 1010, rounds nothing, because no product is smaller than 2**-1011.
    """
    columns, shift, sure = table
    low = np.uint32((1 << shift) - 1)
    rate, squared, height, level = law
    largest, per_ln2, ln2_high, ln2_low, coefficients, powers = series
    block = 256  # what is computed step by step together: a compiler can do several at a time
    rest, power, value = np.empty(block), np.empty(block), np.empty(block)
    refusals = doubts = 0
    for first in range(0, words.size, block):
        size = min(block, words.size - first)
        for i in range(size):
            word = words[np.uint64(first + i)]
            point = (np.int32(columns[word >> np.uint32(16)]) << np.int32(shift)) | np.int32(word & low)
            magnitude = np.float64(abs(np.int64(point)))
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
            word = words[np.uint64(first + i)]
            slot = np.int64(word >> np.uint32(16))
            uniform = np.float64(known[np.uint64(first + i)] >> np.uint64(11)) * 2.0**-53
            gap = height * (value[i] * power[i]) - level[np.uint64(slot - sure)] - uniform
            if abs(gap) < margin or tails[0] <= slot < tails[1]:
                unclear[doubts] = first + i
                doubts += 1
                continue
            point = (np.int32(columns[word >> np.uint32(16)]) << np.int32(shift)) | np.int32(word & low)
            wholes[np.uint64(first + i)] += np.int64(point) * (gap > 0)
            refused[np.uint64(refusals)] = first + i
            refusals += gap <= 0
    return refusals, doubts


@njit(cache=True)
def add_at(values: NDArray[np.int64], places: NDArray[np.int64], more: NDArray[np.int64]) -> None:
    """Add each of `more` to the value at its place."""
    for i in range(places.size):
        values[np.uint64(places[i])] += more[i]


@njit(cache=True)
def put(
    values: NDArray[np.int64] | NDArray[np.float32],
    places: NDArray[np.int64],
    wholes: NDArray[np.int64],
    factor: np.float32 | None,
) -> None:
    """Write each whole number to its place; times the factor, where there is one."""
    for i in range(places.size):
        if factor is None:
            values[np.uint64(places[i])] = wholes[i]
        else:
            values[np.uint64(places[i])] = np.float32(wholes[i]) * factor
