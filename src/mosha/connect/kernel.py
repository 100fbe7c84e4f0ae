"""Compiled norm bounding over columns: the same integers as the SQL plan, in a fraction of its time.

Rows come as columns: `persons` and `groups` hold dense codes, `values` one column of integers for each value that is
not a plain count; all three have one integer type. Sorted by person, `offsets[p]` to `offsets[p + 1]` are the rows of
person p.

Guarantee:
    The results equal those of `norms` where a function returns without a flag. Sums stay below 2**63 by the checks in
    `compiled`. A quotient v * b // t below 2**52 with t < 2**59 is exact although v * b may leave 64 bits: the double
    estimate q of it is off by less than 4 (three roundings of 2**-53 of a number below 2**52, and a truncation), so the
    remainder v * b - q * t lies within 4 t, below 2**61, and is exact in wrapping arithmetic; it corrects q.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["by_person", "codes_of", "group_norms", "group_totals", "pairs_of", "row_norms", "row_totals"]

Array = np.ndarray[Any, Any]
COUNT = -1  # in place of a column: a plain count, 1 in every row
PERSON = -2  # in place of a column: 1 for each group of a person
BLOCK = 12  # persons are sorted in blocks of 2**12, which fit the cache


@njit(cache=True)
def _slot(label: Any, mask: Any) -> Any:
    """Where a label starts to look for its place (the mixer of splitmix64)."""
    mixed = np.uint64(label)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((mixed ^ (mixed >> np.uint64(31))) & np.uint64(mask))


@njit(cache=True)
def _grown(unique: Array, found: Any, size: Any) -> Any:
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
def codes_of(labels: Array) -> Any:
    """Dense codes in the order of first appearance, and the labels in that order; labels are compared exactly."""
    size, found = 1 << 16, 0
    table, unique = np.full(size, -1, np.int32), np.empty(size, np.int64)
    codes = np.empty(len(labels), np.int32)
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
            table, unique = _grown(unique, found, size)
    return codes, unique[:found].copy()


@njit(cache=True)
def _into_blocks(persons: Array, groups: Array, values: Array, people: Any) -> Any:
    """Records (person, group, values) in blocks of persons; within a block in the order of the rows."""
    width = values.shape[1]
    starts = np.zeros((people >> BLOCK) + 2, np.int64)
    for i in range(len(persons)):
        starts[(persons[i] >> BLOCK) + 1] += 1
    for block in range(len(starts) - 1):
        starts[block + 1] += starts[block]
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


@njit(cache=True)
def by_person(persons: Array, groups: Array, values: Array, people: Any) -> Any:
    """(offsets, rows): rows sorted by person, each (group, values)."""
    starts, records = _into_blocks(persons, groups, values, people)
    width, size = values.shape[1], 1 << BLOCK
    offsets = np.empty(people + 1, np.int64)
    rows = np.empty((len(persons), width + 1), values.dtype)
    place = np.empty(size + 1, np.int64)
    for block in range(len(starts) - 1):
        first, start, stop = block << BLOCK, starts[block], starts[block + 1]
        place[:] = 0
        for i in range(start, stop):
            place[records[i, 0] - first + 1] += 1
        place[0] = start
        for person in range(size):
            place[person + 1] += place[person]
        for person in range(min(size, people - first)):
            offsets[first + person] = place[person]
        for i in range(start, stop):
            person = records[i, 0] - first
            k = place[person]
            place[person] = k + 1
            for j in range(width + 1):
                rows[k, j] = records[i, j + 1]
    offsets[people] = len(persons)
    return offsets, rows


@njit(cache=True)
def _scaled(value: Any, factor: Any, divisor: Any, ratio: Any) -> Any:
    """The product of value and factor divided by divisor, towards zero; `ratio` is factor / divisor as a double."""
    size = abs(np.int64(value))
    quotient = np.int64(np.float64(size) * ratio)
    remainder = size * factor - quotient * divisor  # may wrap on the way; the true remainder is small
    while remainder < 0:
        quotient -= 1
        remainder += divisor
    while remainder >= divisor:
        quotient += 1
        remainder -= divisor
    return quotient if value >= 0 else -quotient


@njit(cache=True)
def _row_total(span: Any, rows: Array, column: Any) -> Any:
    """The sum of |v| over a person's rows, or their number."""
    if column == COUNT:
        return span[1] - span[0]
    total = np.int64(0)
    for i in range(span[0], span[1]):
        total += abs(np.int64(rows[i, column + 1]))
    return total


@njit(cache=True)
def row_norms(offsets: Array, rows: Array, plan: Array, sizes: Any) -> Any:
    """Order 1: plan[j] = (column, leader, the leader's limit); sizes = (number of groups, fraction)."""
    count, fraction = sizes
    kinds = len(plan)
    sums, totals = np.zeros((count, kinds), np.int64), np.empty(kinds, np.int64)
    for person in range(len(offsets) - 1):
        first, last = offsets[person], offsets[person + 1]
        for j in range(kinds):
            totals[j] = _row_total((first, last), rows, plan[j, 0])
        for j in range(kinds):
            column, total, limit = plan[j, 0], totals[plan[j, 1]], plan[j, 2]
            factor = limit << fraction
            ratio = np.float64(factor) / np.float64(max(total, 1))
            weight = np.int64(1) << fraction if total <= limit else factor // total
            if column == COUNT:
                for i in range(first, last):
                    sums[rows[i, 0], j] += weight
            elif total <= limit:
                for i in range(first, last):
                    sums[rows[i, 0], j] += np.int64(rows[i, column + 1]) << fraction
            else:
                for i in range(first, last):
                    sums[rows[i, 0], j] += _scaled(rows[i, column + 1], factor, total, ratio)
    return sums


@njit(cache=True)
def row_totals(offsets: Array, rows: Array, column: Any) -> Array:
    """Each person's norm of order 1 over rows; -1 for nobody's rows."""
    totals = np.full(len(offsets) - 1, -1, np.int64)
    for person in range(len(offsets) - 1):
        if offsets[person + 1] > offsets[person]:
            totals[person] = _row_total((offsets[person], offsets[person + 1]), rows, column)
    return totals


@njit(cache=True)
def _root(square: Any, wrapped: Any) -> Any:
    """The least integer whose square is not below N: `square` is N as a double, `wrapped` is N modulo 2**64."""
    root = np.int64(np.sqrt(square))
    while np.int64(root * root - wrapped) < 0:
        root += 1
    while root > 0 and np.int64((root - 1) * (root - 1) - wrapped) >= 0:
        root -= 1
    return root


@njit(cache=True)
def pairs_of(offsets: Array, rows: Array, pairs: Array, count: Any) -> Any:
    """The offsets of persons in `pairs`, which is filled: for each person and group (group, number of rows, sums)."""
    starts, where, found = np.empty(len(offsets), np.int64), np.full(count, -1, np.int64), 0
    for person in range(len(offsets) - 1):
        starts[person] = found
        for i in range(offsets[person], offsets[person + 1]):
            place = where[rows[i, 0]]
            if place < starts[person]:
                place = found
                where[rows[i, 0]] = place
                pairs[place, 0] = rows[i, 0]
                for j in range(1, pairs.shape[1]):
                    pairs[place, j] = 0
                found += 1
            pairs[place, 1] += 1
            for j in range(1, rows.shape[1]):
                pairs[place, j + 1] += rows[i, j]
    starts[len(offsets) - 1] = found
    return starts


@njit(cache=True)
def _entry(pairs: Array, i: Any, column: Any) -> Any:
    """A person's value in a group, moved into ±2**43."""
    if column == PERSON:
        return np.int64(1)
    limit = np.int64(1) << 43
    return min(max(np.int64(pairs[i, column + 2]), -limit), limit)


@njit(cache=True)
def _norm(span: Any, pairs: Array, column: Any, order: Any) -> Any:
    """The norm over a person's groups, rounded up; -2 where it is too large for this kernel."""
    square, wrapped = 0.0, np.int64(0)
    for i in range(span[0], span[1]):
        value = _entry(pairs, i, column)
        if order == 1:
            wrapped += abs(value)
        else:
            square += np.float64(value) * np.float64(value)
            wrapped += value * value
    if order == 1:
        return wrapped
    return np.int64(-2) if square >= 2.0**100 else _root(square, wrapped)


@njit(cache=True)
def group_norms(starts: Array, pairs: Array, plan: Array, order: Any, sizes: Any) -> Any:
    """Order 2, and persons: plan[j] = (column, leader, the leader's limit); the flag tells of a norm too large."""
    count, fraction = sizes
    kinds = len(plan)
    sums, norms = np.zeros((count, kinds), np.int64), np.empty(kinds, np.int64)
    for person in range(len(starts) - 1):
        first, last = starts[person], starts[person + 1]
        for j in range(kinds):
            norms[j] = _norm((first, last), pairs, plan[j, 0], order)
            if norms[j] < 0:
                return sums, True
        for j in range(kinds):
            norm, limit = norms[plan[j, 1]], plan[j, 2]
            factor = limit << fraction
            ratio = np.float64(factor) / np.float64(max(norm, 1))
            for i in range(first, last):
                value = _entry(pairs, i, plan[j, 0])
                part = value << fraction if norm <= limit else _scaled(value, factor, norm, ratio)
                sums[pairs[i, 0], j] += part
    return sums, False


@njit(cache=True)
def group_totals(starts: Array, pairs: Array, column: Any, order: Any) -> Array:
    """Each person's norm over groups, rounded up; -1 for nobody's rows, -2 where it is too large for this kernel."""
    norms = np.full(len(starts) - 1, -1, np.int64)
    for person in range(len(starts) - 1):
        if starts[person + 1] > starts[person]:
            norms[person] = _norm((starts[person], starts[person + 1]), pairs, column, order)
    return norms
