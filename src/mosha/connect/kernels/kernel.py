"""Compiled norm bounding over columns: the same integers as the SQL plan, in a fraction of its time.

Rows come as columns: `persons` and `groups` hold dense codes, `values` integers (see `kernel_columns`). A value of a
question is a code: a column, COUNT (1 in every row), PERSON (1 for each group of a person), or `KNOWN - c` (1 where
column c is not missing). Order 1 needs no sorting: a pass for each person's total, a pass for the weighted sums.
Order 2 works on pairs of person and group, made from rows sorted by person.

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

from mosha.connect.kernels.column_kernels import BLOCK, Array, Whole, into_blocks, missing_in

__all__ = [
    "add_row_norms",
    "add_to_cells",
    "by_person",
    "group_norms",
    "group_totals",
    "pairs_in_cells",
    "pairs_of",
    "row_norms",
    "row_totals",
    "weigh_totals",
]

COUNT, PERSON, KNOWN = -1, -2, -3


@njit(cache=True)
def entry_of(values: Array, i: Whole, code: Whole, missing: Whole) -> Any:
    """What row i has for a value of a question; `missing` is `missing_in` of the values."""
    if code == COUNT:
        return np.int64(1)
    if code <= KNOWN:
        return np.int64(0) if values[i, KNOWN - code] == missing else np.int64(1)
    value = np.int64(values[i, code])
    return np.int64(0) if value == missing else value


@njit(cache=True)
def _scale_value(value: Any, factor: Whole, divisor: Whole, ratio: float) -> Any:
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
def row_totals(persons: Array, values: Array, code: Whole, people: Whole) -> Array:
    """Each person's sum of |v| over rows; zero for nobody's rows."""
    totals, missing = np.zeros(people, np.int64), missing_in(values)
    known, column = code <= KNOWN, KNOWN - code if code <= KNOWN else code
    for i in range(len(persons)):
        value = np.int64(values[i, column])
        if value != missing:
            totals[persons[i]] += np.int64(1) if known else abs(value)
    return totals


@njit(cache=True)
def _count_rows(ranks: Array, groups: Array, weights: Array, sums: Array) -> None:
    for i in range(len(ranks)):
        sums[groups[i]] += weights[ranks[i]]


@njit(cache=True)
def _counted_known(ranks: Array, groups: Array, known: Array, weights: Array, sums: Array) -> None:
    missing = missing_in(known)
    for i in range(len(ranks)):
        if known[i] != missing:
            sums[groups[i]] += weights[ranks[i]]


@njit(cache=True)
def _sum_values(ranks: Array, groups: Array, column: Array, scales: Any, sums: Array) -> None:
    """Values or their shares; scales = (totals, ratios, limit, fraction), totals and ratios by rank."""
    totals, ratios, limit, fraction = scales
    factor, missing = limit << fraction, missing_in(column)
    for i in range(len(ranks)):
        value, rank = np.int64(column[i]), ranks[i]
        if value == missing:
            continue
        if totals[rank] <= limit:
            sums[groups[i]] += value << fraction
        else:
            sums[groups[i]] += _scale_value(value, factor, totals[rank], ratios[rank])


@njit(cache=True)
def weigh_totals(totals: Array, limit: Whole, fraction: Whole) -> Any:
    """(weights, ratios): what a row of a person with each of these totals counts, and limit / total as a double."""
    factor = limit << fraction
    weights, ratios = np.empty(len(totals), np.int64), np.empty(len(totals), np.float64)
    for rank in range(len(totals)):
        total = np.int64(totals[rank])
        weights[rank] = np.int64(1) << fraction if total <= limit else factor // total
        ratios[rank] = np.float64(factor) / np.float64(max(total, np.int64(1)))
    return weights, ratios


@njit(cache=True)
def add_row_norms(rows: Any, codes: Array, weighed: Any, scale: Any, sums: Array) -> None:
    """Add the bounded values of some rows to sums, a line for each of `codes`, which share a leader.

    rows = (ranks, groups, values); weighed = (totals, weights, ratios): totals[ranks[i]] is the leader's total of the
    person of row i; scale = (its limit, fraction). One pass for each value: a loop without choices is several times as
    fast.
    """
    ranks, groups, values = rows
    totals, weights, ratios = weighed
    limit, fraction = scale
    for j in range(len(codes)):
        if codes[j] == COUNT:
            _count_rows(ranks, groups, weights, sums[j])
        elif codes[j] <= KNOWN:
            _counted_known(ranks, groups, values[:, KNOWN - codes[j]], weights, sums[j])
        else:
            _sum_values(ranks, groups, values[:, codes[j]], (totals, ratios, limit, fraction), sums[j])


@njit(cache=True)
def row_norms(rows: Any, codes: Array, totals: Array, limit: Whole, sizes: Any) -> Any:
    """Order 1, values that share a leader: a line of sums for each; sizes = (number of groups, fraction)."""
    count, fraction = sizes
    weights, ratios = weigh_totals(totals, limit, fraction)
    sums = np.zeros((len(codes), count), np.int64)
    add_row_norms(rows, codes, (totals, weights, ratios), (limit, fraction), sums)
    return sums


@njit(cache=True)
def by_person(persons: Array, groups: Array, values: Array, people: Whole) -> Any:
    """(offsets, rows): the rows of person p are rows[offsets[p]:offsets[p + 1]], each (group, values)."""
    starts, records = into_blocks(persons, groups, values, people)
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
def _root(square: float, wrapped: Whole) -> Any:
    """The least integer whose square is not below N: `square` is N as a double, `wrapped` is N modulo 2**64."""
    root = np.int64(np.sqrt(square))
    while np.int64(root * root - wrapped) < 0:
        root += 1
    while root > 0 and np.int64((root - 1) * (root - 1) - wrapped) >= 0:
        root -= 1
    return root


@njit(cache=True)
def pairs_of(offsets: Array, rows: Array, pairs: Array, codes: Array, count: Whole) -> Any:
    """The offsets of persons in `pairs`, which is filled: for each person and group (group, sums of `codes`)."""
    starts, where, found = np.empty(len(offsets), np.int64), np.full(count, -1, np.int64), 0
    values, missing = rows[:, 1:], missing_in(rows)
    for person in range(len(offsets) - 1):
        starts[person] = found
        for i in range(offsets[person], offsets[person + 1]):
            place = where[rows[i, 0]]
            if place < starts[person]:
                place = found
                where[rows[i, 0]] = place
                pairs[place, 0] = rows[i, 0]
                for j in range(len(codes)):
                    pairs[place, j + 1] = 0
                found += 1
            for j in range(len(codes)):
                pairs[place, j + 1] += entry_of(values, i, codes[j], missing)
    starts[len(offsets) - 1] = found
    return starts


@njit(cache=True)
def _add_values(places: Array, column: Array, sums: Array) -> None:
    missing = missing_in(column)
    for i in range(len(places)):
        if places[i] >= 0 and column[i] != missing:
            sums[places[i]] += column[i]


@njit(cache=True)
def _add_known(places: Array, column: Array, sums: Array) -> None:
    missing = missing_in(column)
    for i in range(len(places)):
        if places[i] >= 0 and column[i] != missing:
            sums[places[i]] += 1


@njit(cache=True)
def add_to_cells(persons: Array, groups: Array, values: Array, codes: Array, cells: Array, count: Whole) -> None:
    """Count each row in the cell of its person and group, and add its values of `codes` there.

    A line of `cells` is the number of rows of a cell, then its sums, of which COUNT has none; the cell of person p and
    group g is p * count + g. Rows of a negative person, or of a group outside of 0 to `count` - 1, are left out. One
    pass for each value, as in `row_norms`.
    """
    places = np.empty(len(persons), np.int64)
    for i in range(len(persons)):
        inside = persons[i] >= 0 and 0 <= groups[i] < count
        places[i] = np.int64(persons[i]) * count + np.int64(groups[i]) if inside else -1
    for i in range(len(places)):
        if places[i] >= 0:
            cells[places[i], 0] += 1
    column = 0
    for code in codes:
        if code == COUNT:
            continue
        column += 1
        if code <= KNOWN:
            _add_known(places, values[: len(places), KNOWN - code], cells[:, column])
        else:
            _add_values(places, values[: len(places), code], cells[:, column])


@njit(cache=True)
def pairs_in_cells(cells: Array, pairs: Array, codes: Array, count: Whole) -> Array:
    """What `pairs_of` gives, from cells."""
    people, found = len(cells) // count, 0
    starts, columns, used = np.empty(people + 1, np.int64), np.zeros(len(codes), np.int64), 0
    for j in range(len(codes)):
        if codes[j] != COUNT:
            used += 1
            columns[j] = used
    for person in range(people):
        starts[person] = found
        for group in range(count):
            cell = person * count + group
            if cells[cell, 0] > 0:
                pairs[found, 0] = group
                for j in range(len(codes)):
                    pairs[found, j + 1] = cells[cell, columns[j]]
                found += 1
    starts[people] = found
    return starts


@njit(cache=True)
def _entry(pairs: Array, i: Whole, column: Whole) -> Any:
    """A person's value in a group, moved into ±2**43."""
    if column == PERSON:
        return np.int64(1)
    limit = np.int64(1) << 43
    return min(max(np.int64(pairs[i, column + 1]), -limit), limit)


@njit(cache=True)
def _norm(span: tuple[Whole, Whole], pairs: Array, column: Whole, order: Whole) -> Any:
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
def group_norms(starts: Array, pairs: Array, plan: Array, order: Whole, sizes: Any) -> Any:
    """Order 2, and persons: plan[j] = (column, leader, the leader's limit); the flag tells of a norm too large."""
    count, fraction = sizes
    kinds = len(plan)
    sums, norms = np.zeros((count, kinds), np.int64), np.empty(kinds, np.int64)
    for person in range(len(starts) - 1):
        first, last = starts[person], starts[person + 1]
        for j in range(kinds):
            if plan[j, 1] != j:  # a follower's own norm decides nothing
                continue
            norms[j] = _norm((first, last), pairs, plan[j, 0], order)
            if norms[j] < 0:
                return sums, True
        for j in range(kinds):
            norm, limit = norms[plan[j, 1]], plan[j, 2]
            factor = limit << fraction
            ratio = np.float64(factor) / np.float64(max(norm, 1))
            for i in range(first, last):
                value = _entry(pairs, i, plan[j, 0])
                part = value << fraction if norm <= limit else _scale_value(value, factor, norm, ratio)
                sums[pairs[i, 0], j] += part
    return sums, False


@njit(cache=True)
def group_totals(starts: Array, pairs: Array, column: Whole, order: Whole) -> Array:
    """Each person's norm over groups, rounded up; -1 for nobody's rows, -2 where it is too large for this kernel."""
    norms = np.full(len(starts) - 1, -1, np.int64)
    for person in range(len(starts) - 1):
        if starts[person + 1] > starts[person]:
            norms[person] = _norm((starts[person], starts[person + 1]), pairs, column, order)
    return norms
