"""Compiled work on whole columns: labels as codes, doubles as grid points, rows in blocks of persons.

Values are integers of one type. The least integer of that type stands for a number that is missing: no value is so far
from zero (`columns` sees to it).

Guarantee:
    `grid_into` gives the integers of `expression.grid` as SQL does: what is not between ±2**500 is missing, the rest is
    clamped, and value * 2**exponent + 1/2 is the same two roundings of a double (fused or not: the product is exact).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = [
    "block_starts",
    "codes_of",
    "copied_into",
    "counts_of",
    "enter_labels",
    "find_labels",
    "grid_into",
    "into_blocks",
    "missing_in",
]

Array = np.ndarray[Any, Any]
Whole = int | np.int64
BLOCK = 12  # persons are sorted in blocks of 2**12, which fit the cache
LARGEST_REAL = 2.0**500


@njit(cache=True)
def missing_in(values: Array) -> Any:
    """What stands for a missing number in these values."""
    return np.int64(-(2**31)) if values.itemsize == 4 else np.int64(-(2**63))


@njit(cache=True)
def copied_into(target: Array, start: Whole, labels: Array, low: object, high: object) -> Any:
    """Copy labels into target[start:]; false as soon as one of them lies outside of [low, high]."""
    for i in range(len(labels)):
        label = labels[i]
        if label < low or label > high:
            return False
        target[start + i] = label
    return True


@njit(cache=True)
def grid_into(values: Array, place: Whole, start: Whole, numbers: Array, between: Any, scale: Any, ends: Any) -> None:
    """Fill a column of values from `start` on with grid points; ends = (least, most, center)."""
    low, high = between
    least, most, center = ends
    missing = missing_in(values)
    for i in range(len(numbers)):
        number = numbers[i]
        if low <= number <= high:
            point = np.int64(np.floor(number * scale + 0.5)) - center
        elif high < number < LARGEST_REAL:
            point = most
        elif -LARGEST_REAL < number < low:
            point = least
        else:
            point = missing
        values[start + i, place] = point


@njit(cache=True)
def counts_of(codes: Array, size: Whole) -> Array:
    """How often each code occurs."""
    counts = np.zeros(size, np.int32)
    for i in range(len(codes)):
        counts[codes[i]] += 1
    return counts


@njit(cache=True)
def _slot(label: Whole, mask: Whole) -> Any:
    """Where a label starts to look for its place (the mixer of splitmix64)."""
    mixed = np.uint64(label)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((mixed ^ (mixed >> np.uint64(31))) & np.uint64(mask))


@njit(cache=True)
def _grow_table(unique: Array, found: Whole, size: Whole) -> Any:
    """A larger table with the same labels."""
    table, larger = np.full(size, -1, np.int32), np.empty(size, np.int64)
    for code in range(found):
        larger[code] = unique[code]
        place = _slot(unique[code], size - 1)
        while table[place] >= 0:
            place = (place + 1) & (size - 1)
        table[place] = code
    return table, larger


@njit(cache=True)
def enter_labels(labels: Array, known: Any, codes: Array) -> Any:
    """Fill codes with dense codes in the order of first appearance; known = (table, labels in that order, how many).

    What is known afterwards comes back: the arrays grow, and are those that were given while they suffice.
    """
    table, unique, found = known
    size = len(table)
    for i in range(len(labels)):
        label = labels[i]
        place = _slot(label, size - 1)
        while table[place] >= 0 and unique[table[place]] != label:
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place] = found
            unique[found] = label
            found += 1
        codes[i] = table[place]
        if 2 * found > size:
            size *= 4
            table, unique = _grow_table(unique, found, size)
    return table, unique, found


@njit(cache=True)
def find_labels(labels: Array, known: Any, codes: Array) -> bool:
    """Fill codes with those that `enter_labels` gave; false as soon as a label has none."""
    table, unique, _ = known
    size = len(table)
    for i in range(len(labels)):
        place = _slot(labels[i], size - 1)
        while table[place] >= 0 and unique[table[place]] != labels[i]:
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            return False
        codes[i] = table[place]
    return True


@njit(cache=True)
def codes_of(labels: Array) -> Any:
    """Dense codes in the order of first appearance, and the labels in that order; labels are compared exactly."""
    codes = np.empty(len(labels), np.int32)
    known = (np.full(1 << 16, -1, np.int32), np.empty(1 << 16, np.int64), 0)
    _, unique, found = enter_labels(labels, known, codes)
    return codes, unique[:found].copy()


@njit(cache=True)
def block_starts(persons: Array, people: Whole) -> Array:
    """Where the rows of each block of persons begin, and where the last one ends."""
    starts = np.zeros((people >> BLOCK) + 2, np.int64)
    for i in range(len(persons)):
        starts[(persons[i] >> BLOCK) + 1] += 1
    for block in range(len(starts) - 1):
        starts[block + 1] += starts[block]
    return starts


@njit(cache=True)
def into_blocks(persons: Array, groups: Array, values: Array, people: Whole) -> Any:
    """(starts, records): records (person, group, values) in blocks of persons, in a block in the order of the rows."""
    width, starts = values.shape[1], block_starts(persons, people)
    place = starts.copy()
    records = np.empty((len(persons), width + 2), values.dtype)
    for i in range(len(persons)):
        block = persons[i] >> BLOCK
        k = place[block]
        place[block] = k + 1
        records[k, 0] = persons[i]
        records[k, 1] = groups[i]
        for j in range(width):
            records[k, j + 2] = values[i, j]
    return starts, records
