"""Compiled truncation over rows in blocks of persons: the choice that the SQL plan makes, from the same hashes.

Guarantee:
    Groups and rows are taken in ascending order of the first 32 bits of the hashes that the engine computed. Where two
    of these are equal and the choice between them could matter, the kernel stops with a flag and the SQL plan decides
    (by all 64 bits, and then by the columns themselves). Rows equal in group and values are interchangeable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mosha.connect.kernels.column_kernels import BLOCK, Array, Whole, missing_in
from mosha.connect.kernels.kernel import COUNT, KNOWN, PERSON

__all__ = ["truncate"]

NO_LIMIT = -1
TIE, NEEDS_ROW_HASHES, BUSY = 1, 2, 3
FEW = 32  # so many groups are looked for one by one


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
def _by_hash(records: Array, chosen: Array, column: Whole, keys: Array) -> None:
    """Sort the chosen records by the 32 bits in a column; afterwards keys[k] >> 32 are the bits of chosen[k]."""
    first = chosen.min()
    for k in range(len(chosen)):
        bits, offset = np.uint32(records[chosen[k], column]), np.uint32(chosen[k] - first)
        keys[k] = (np.uint64(bits) << np.uint64(32)) | np.uint64(offset)
    _shell_sort(keys[: len(chosen)])
    for k in range(len(chosen)):
        chosen[k] = first + np.int64(np.uint32(keys[k] & np.uint64(0xFFFFFFFF)))


@njit(cache=True)
def _smallest(records: Array, chosen: Array, limit: Whole, hashes: Any, keys: Array) -> Any:
    """Move the `limit` records with the smallest hashes to the front; true for a tie at the border of unlike ones."""
    _, by_row, width = hashes
    _by_hash(records, chosen, by_row, keys)
    border, outside = keys[limit - 1] >> np.uint64(32), chosen[limit]
    if keys[limit] >> np.uint64(32) == border:
        for k in range(len(chosen)):
            if keys[k] >> np.uint64(32) == border:
                for j in range(1, width):
                    if records[chosen[k], j] != records[outside, j]:
                        return True
    return False


@njit(cache=True)
def _cut(records: Array, chosen: Array, limit: Whole, hashes: Any, keys: Array) -> Any:
    """(how many of these records stay, flag): they are moved to the front."""
    by_row = hashes[1]
    if limit == NO_LIMIT or len(chosen) <= limit:
        return len(chosen), 0
    if by_row == NO_LIMIT:
        return 0, NEEDS_ROW_HASHES
    if by_row >= 0 and _smallest(records, chosen, limit, hashes, keys):
        return 0, TIE
    return limit, 0


@njit(cache=True)
def _keep_records(records: Array, order: Array, limits: Any, hashes: Any, keys: Array) -> Any:
    """(how many records stay, flag): they are moved to the front. Groups are cut first, then the rows in each."""
    at_most, most_groups, per_group = limits
    by_group, total = hashes[0], len(order)
    _by_hash(records, order, by_group if most_groups != NO_LIMIT else 1, keys)
    count, start, rank = 0, 0, 0
    while start < total and (most_groups == NO_LIMIT or rank < most_groups):
        group, stop = records[order[start], 1], start + 1
        while stop < total and records[order[stop], 1] == group:
            stop += 1
        after = records[order[min(stop, total - 1)], by_group]
        if most_groups != NO_LIMIT and stop < total and after == records[order[start], by_group]:
            return 0, TIE
        size, flag = _cut(records, order[start:stop], per_group, hashes, keys)
        if flag:
            return 0, flag
        for k in range(size):
            order[count + k] = order[start + k]
        count, start, rank = count + size, stop, rank + 1
    return _cut(records, order[:count], at_most, hashes, keys)


@njit(cache=True)
def _enter_hash(best: Array, groups: Array, counts: Array, found: Whole, most: Whole) -> Any:
    """Make room for best[most] among the smallest hashes, which stay in order; how many there are now."""
    bits, group, place = best[most], groups[most], min(found, most - 1)
    while place > 0 and best[place - 1] > bits:
        best[place], groups[place], counts[place] = best[place - 1], groups[place - 1], counts[place - 1]
        place -= 1
    best[place], groups[place], counts[place] = bits, group, 1
    return min(found + 1, most)


@njit(cache=True)
def _few_groups(records: Array, order: Array, span: Any, limits: Any, by_group: Any, scratch: Any) -> Any:
    """As `_kept`, for a few groups and no limit on all rows, in two passes; the flag BUSY leaves the person to it.

    The smallest hashes so far are kept in order. A group that once was not among them never is again, so the counts
    of those that remain are complete.
    """
    first, last = span
    _, most, per_group = limits
    best, groups, counts = scratch
    found = 0
    for k in range(first, last):
        bits, group = np.uint32(records[order[k], by_group]), records[order[k], 1]
        if found == most and bits > best[found - 1]:
            continue
        place = 0
        while place < found and best[place] != bits:
            place += 1
        if place < found:
            if groups[place] != group:
                return 0, TIE
            counts[place] += 1
        else:
            best[most], groups[most] = bits, group
            found = _enter_hash(best, groups, counts, found, most)
    for place in range(found):
        if per_group != NO_LIMIT and counts[place] > per_group:
            return 0, BUSY
    kept = first
    for k in range(first, last):
        if np.uint32(records[order[k], by_group]) <= best[found - 1]:
            order[kept] = order[k]
            kept += 1
    return kept - first, 0


@njit(cache=True)
def _add(records: Array, order: Array, code: Whole, seen: Array, sums: Array) -> None:
    """Add one value of the records that stay, person after person: each counts once in a group."""
    missing, column = missing_in(records), 2 + (KNOWN - code if code <= KNOWN else max(code, 0))
    for k in range(len(order)):
        i = order[k]
        group = records[i, 1]
        if code == PERSON:
            if seen[group] != records[i, 0]:
                seen[group] = records[i, 0]
                sums[group] += 1
        elif code == COUNT:
            sums[group] += 1
        elif records[i, column] != missing:
            sums[group] += np.int64(records[i, column]) if code >= 0 else np.int64(1)


@njit(cache=True)
def _sorted_block(records: Array, start: Whole, stop: Whole, order: Array, place: Array) -> None:
    """The records of a block by person: place[p] to place[p + 1] in `order` are those of the block's person p."""
    first = (np.int64(records[start, 0]) >> BLOCK) << BLOCK
    place[:] = 0
    for i in range(start, stop):
        place[records[i, 0] - first + 2] += 1
    for person in range(1 << BLOCK):
        place[person + 1] += place[person]
    for i in range(start, stop):
        person = records[i, 0] - first + 1
        order[place[person]] = i
        place[person] += 1


@njit(cache=True)
def _cut_block(records: Array, order: Array, place: Array, limits: Any, hashes: Any, scratch: Any) -> Any:
    """(how many records of a block stay, flag): they are moved to the front of `order`, person after person."""
    at_most, most_groups, per_group = limits
    keys, small = scratch
    quick = np.int64(1) << 62
    for limit in (at_most, most_groups, per_group):
        quick = min(quick, limit) if limit != NO_LIMIT else quick
    few = at_most == NO_LIMIT and 1 <= most_groups <= FEW
    stay = 0
    for person in range(1 << BLOCK):
        first, last = place[person], place[person + 1]
        kept = last - first
        if kept > quick:
            flag = BUSY
            if few:
                kept, flag = _few_groups(records, order, (first, last), limits, hashes[0], small)
            if flag == BUSY:
                kept, flag = _keep_records(records, order[first:last], limits, hashes, keys)
            if flag:
                return 0, flag
        for k in range(kept):
            order[stay + k] = order[first + k]
        stay += kept
    return stay, 0


@njit(cache=True)
def truncate(starts: Array, records: Array, codes: Array, limits: object, hashes: object, count: Whole) -> Any:
    """(a line of sums for each value, how many rows of each group stay, flag), from the blocks of `into_blocks`.

    limits = (rows, groups, rows in each group), -1 for none. hashes = (column of the group's hash, column of the row's
    hash, width): -1 for a hash that was not fetched, -2 where rows of a group are all alike. `width` columns of a
    record (its person, group and values) tell whether two of one person are alike.
    """
    sums, present, seen = (
        np.zeros((len(codes), count), np.int64),
        np.zeros(count, np.int64),
        np.full((len(codes), count), -1),
    )
    largest = np.int64(0)
    for block in range(len(starts) - 1):
        largest = max(largest, starts[block + 1] - starts[block])
    order, keys, place = np.empty(largest, np.int64), np.empty(largest, np.uint64), np.empty((1 << BLOCK) + 2, np.int64)
    small = (np.empty(FEW + 1, np.uint32), np.empty(FEW + 1, np.int64), np.empty(FEW + 1, np.int64))
    for block in range(len(starts) - 1):
        if starts[block] == starts[block + 1]:
            continue
        _sorted_block(records, starts[block], starts[block + 1], order, place)
        stay, flag = _cut_block(records, order, place, limits, hashes, (keys, small))
        if flag:
            return sums, present, flag
        _add(records, order[:stay], COUNT, present, present)
        for j in range(len(codes)):
            _add(records, order[:stay], codes[j], seen[j], sums[j])
    return sums, present, 0
