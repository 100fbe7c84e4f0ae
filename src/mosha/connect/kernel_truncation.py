"""Compiled truncation over rows sorted by person: the choice that the SQL plan makes, from the same hashes.

Guarantee:
    Groups and rows are taken in ascending order of the first 32 bits of the hashes that the engine computed. Where two
    of these are equal and the choice between them could matter, the kernel stops with a flag and the SQL plan decides
    (by all 64 bits, and then by the columns themselves). Rows equal in group and values are interchangeable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["truncate"]

Array = np.ndarray[Any, Any]
COUNT = -1
NO_LIMIT = -1
TIE, NEEDS_ROW_HASHES = 1, 2


@njit(cache=True)
def _shell_sort(keys: Array) -> None:
    """Sort in place (Ciura's gaps): persons have few rows, and this compiles in no time."""
    for gap in (54_821_017, 10_842_123, 2_144_353, 424_096, 83_876, 16_589, 3_281, 701, 301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, len(keys)):
            key, place = keys[i], i
            while place >= gap and keys[place - gap] > key:
                keys[place] = keys[place - gap]
                place -= gap
            keys[place] = key


@njit(cache=True)
def _by_hash(rows: Array, chosen: Array, column: Any, keys: Array) -> None:
    """Sort the chosen rows by the 32 bits in a column; afterwards keys[k] >> 32 are the bits of chosen[k]."""
    first = chosen[0]
    for k in range(len(chosen)):
        bits, offset = np.uint32(rows[chosen[k], column]), np.uint32(chosen[k] - first)
        keys[k] = (np.uint64(bits) << np.uint64(32)) | np.uint64(offset)
    _shell_sort(keys[: len(chosen)])
    for k in range(len(chosen)):
        chosen[k] = first + np.int64(np.int32(np.uint32(keys[k] & np.uint64(0xFFFFFFFF))))


@njit(cache=True)
def _smallest(rows: Array, chosen: Array, limit: Any, hashes: Any, keys: Array) -> Any:
    """Move the `limit` rows with the smallest hashes to the front; true for a tie at the border between unlike rows."""
    _, by_row, width = hashes
    _by_hash(rows, chosen, by_row, keys)
    border, outside = keys[limit - 1] >> np.uint64(32), chosen[limit]
    if keys[limit] >> np.uint64(32) == border:
        for k in range(len(chosen)):
            if keys[k] >> np.uint64(32) == border:
                for j in range(width):
                    if rows[chosen[k], j] != rows[outside, j]:
                        return True
    return False


@njit(cache=True)
def _cut(rows: Array, chosen: Array, limit: Any, hashes: Any, keys: Array) -> Any:
    """(how many of these rows stay, flag): they are moved to the front."""
    by_row = hashes[1]
    if limit == NO_LIMIT or len(chosen) <= limit:
        return len(chosen), 0
    if by_row == NO_LIMIT:
        return 0, NEEDS_ROW_HASHES
    if by_row >= 0 and _smallest(rows, chosen, limit, hashes, keys):
        return 0, TIE
    return limit, 0


@njit(cache=True)
def _kept(span: Any, rows: Array, limits: Any, hashes: Any, scratch: Any) -> Any:
    """(how many rows stay, flag): they are moved to the front. Groups are cut first, then the rows in each."""
    at_most, most_groups, per_group = limits
    order, keys = scratch
    by_group, total = hashes[0], span[1] - span[0]
    _by_hash(rows, order[:total], by_group if most_groups != NO_LIMIT else 0, keys)
    count, start, rank = 0, 0, 0
    while start < total and (most_groups == NO_LIMIT or rank < most_groups):
        group, stop = rows[order[start], 0], start + 1
        while stop < total and rows[order[stop], 0] == group:
            stop += 1
        if most_groups != NO_LIMIT and stop < total and rows[order[stop], by_group] == rows[order[start], by_group]:
            return 0, TIE
        size, flag = _cut(rows, order[start:stop], per_group, hashes, keys)
        if flag:
            return 0, flag
        for k in range(size):
            order[count + k] = order[start + k]
        count, start, rank = count + size, stop, rank + 1
    return _cut(rows, order[:count], at_most, hashes, keys)


@njit(cache=True)
def _add(rows: Array, order: Array, columns: Array, sums: Array, flags: Any) -> None:
    """Add the rows that stay; a person counts once in a group."""
    present, seen = flags
    for k in range(len(order)):
        group = rows[order[k], 0]
        present[group] = True
        for j in range(len(columns)):
            if columns[j] >= 0:
                sums[group, j] += rows[order[k], columns[j] + 1]
            elif columns[j] == COUNT or not seen[group]:
                sums[group, j] += 1
        seen[group] = True
    for k in range(len(order)):
        seen[rows[order[k], 0]] = False


@njit(cache=True)
def truncate(offsets: Array, rows: Array, columns: Array, limits: Any, hashes: Any, count: Any) -> Any:
    """(sums of what stays, which groups have any, flag); columns[j] is a value's column, -1 a count, -2 persons.

    limits = (rows, groups, rows in each group), -1 for none. hashes = (column of the group's hash, column of the row's
    hash, width): -1 for a hash that was not fetched, -2 where rows of a group are all alike. `width` columns of a row
    (its group and values) tell whether two rows are alike.
    """
    sums, present, seen = (
        np.zeros((count, len(columns)), np.int64),
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
    )
    quick = np.int64(1) << 62
    for limit in limits:
        quick = min(quick, limit) if limit != NO_LIMIT else quick
    most = np.int64(0)
    for person in range(len(offsets) - 1):
        most = max(most, offsets[person + 1] - offsets[person])
    order, keys = np.empty(most, np.int64), np.empty(most, np.uint64)
    for person in range(len(offsets) - 1):
        first, last = offsets[person], offsets[person + 1]
        kept, flag = last - first, 0
        for k in range(kept):
            order[k] = first + k
        if kept > quick:
            kept, flag = _kept((first, last), rows, limits, hashes, (order, keys))
        if flag:
            return sums, present, flag
        _add(rows, order[:kept], columns, sums, (present, seen))
    return sums, present, 0
