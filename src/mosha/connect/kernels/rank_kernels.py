"""Compiled search for the cells near some ranks: counted in coarse cells first, then row by row where it matters.

A row that may be near is a word of 32 bits: where its cell lies in the coarse one, and its weight. Words stand group by
group, coarse cell by coarse cell, for it is known how many rows each has.

Guarantee:
    The cells are those of `NearRanks`, with the same integers as the SQL plan. Coarse cells hold whole runs of cells,
    so their running totals are those of the cells at their ends: a cell that is near lies in a coarse cell that is
    near, because ranks only grow. Rows of near coarse cells are summed one by one, and their cells are judged again.
    Sums stay below 2**62 by the checks in `near_rows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mosha.connect.kernels.column_kernels import Array, Whole

__all__ = ["CELL_BITS", "WEIGHT_BITS", "count_cells", "judge_coarse", "lay_out", "list_cells", "put_rows"]

WEIGHT_BITS = 13
CELL_BITS = 21
HALF, LOW = 32, 2**32 - 1


@njit(cache=True)
def _is_near(below: Whole, upto: Whole, total: Whole, near: Array) -> Any:
    for j in range(len(near)):
        top, bottom, reach = near[j, 0], near[j, 1], near[j, 2]
        if bottom * upto >= top * total - reach and bottom * below <= top * total + reach:
            return True
    return False


@njit(cache=True)
def count_cells(rows: Any, weights: Array, shift: Whole, lines: Array) -> None:
    """Add rows = (who, groups, cells) to the lines of their coarse cells: their weight, weights[who[i]], and one more.

    What a row needs of its coarse cell stands together: memory is slow where rows jump about in it.
    """
    who, groups, cells = rows
    for i in range(len(groups)):
        group, coarse = groups[i], cells[i] >> shift
        lines[group, coarse, 0] += weights[who[i]]
        lines[group, coarse, 1] += 1


@njit(cache=True)
def judge_coarse(lines: Array, near: Array) -> Any:
    """(totals of groups, which coarse cells are near); the weights of lines become the running totals under each."""
    count, width, _ = lines.shape
    totals, wanted = np.zeros(count, np.int64), np.zeros((count, width), np.bool_)
    for g in range(count):
        total = np.int64(0)
        for c in range(width):
            total += lines[g, c, 0]
        totals[g] = total
        below = np.int64(0)
        for c in range(width):
            here = lines[g, c, 0]
            wanted[g, c] = here > 0 and _is_near(below, below + here, total, near)
            lines[g, c, 0] = below
            below += here
    return totals, wanted


@njit(cache=True)
def lay_out(lines: Array, wanted: Array, starts: Array) -> None:
    """Make room for the words of wanted coarse cells: `starts` is where those of each begin.

    A line is then a weight, which is nothing again, and where the next word goes (32 bits) and where the room ends
    (32 bits), or -1 where words are not wanted.
    """
    count, width, _ = lines.shape
    place = np.int64(0)
    for g in range(count):
        for c in range(width):
            starts[g * width + c] = place
            rows = lines[g, c, 1]
            lines[g, c, 0], lines[g, c, 1] = 0, -1
            if wanted[g, c]:
                lines[g, c, 1] = (place << HALF) | (place + rows)
                place += rows
    starts[count * width] = place


@njit(cache=True)
def put_rows(rows: Any, weights: Array, shift: Whole, lines: Array, words: Array) -> bool:
    """Add the weight of rows to their coarse cells, and put them where there is room; false where it is too little."""
    who, groups, cells = rows
    low = (np.int64(1) << shift) - 1
    for i in range(len(groups)):
        group, cell, weight = groups[i], np.int64(cells[i]), np.int64(weights[who[i]])
        coarse = cell >> shift
        lines[group, coarse, 0] += weight
        room = lines[group, coarse, 1]
        if room < 0:
            continue
        place = room >> HALF
        if place == room & LOW:
            return False
        words[place] = ((cell & low) << WEIGHT_BITS) | weight
        lines[group, coarse, 1] = room + (np.int64(1) << HALF)
    return True


@njit(cache=True)
def _sort_words(words: Array) -> None:
    """Sort in place (Ciura's gaps): a coarse cell has few rows, and this compiles in no time."""
    for gap in (2_144_353, 424_096, 83_876, 16_589, 3_281, 701, 301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, len(words)):
            word, place = words[i], i
            while place >= gap and words[place - gap] > word:
                words[place] = words[place - gap]
                place -= gap
            words[place] = word


@njit(cache=True)
def _sum_words(words: Array, sums: Array, places: Array, rows: Array, shift: Whole) -> Any:
    """How many cells the words of a coarse cell fill: their places in it and their weights, ascending."""
    filled, low = 0, (1 << WEIGHT_BITS) - 1
    if len(words) >> shift:  # more rows than cells: cells are looked up
        sums[:] = 0
        for i in range(len(words)):
            sums[words[i] >> WEIGHT_BITS] += words[i] & low
        for place in range(len(sums)):
            if sums[place]:
                places[filled], rows[filled] = place, sums[place]
                filled += 1
        return filled
    _sort_words(words)
    i = 0
    while i < len(words):
        place, weight = words[i] >> WEIGHT_BITS, np.int64(0)
        while i < len(words) and words[i] >> WEIGHT_BITS == place:
            weight += words[i] & low
            i += 1
        if weight:
            places[filled], rows[filled] = place, weight
            filled += 1
    return filled


@njit(cache=True)
def list_cells(span: Any, words: Array, starts: Array, lines: Array, totals: Array, given: Any) -> Any:
    """(edges, cells, rows, upto) of the near cells of groups span[0] to before span[1]; edges are those of groups.

    The words of these groups are used up. given = (shift, near).
    """
    shift, near = given
    first, last = span
    width = lines.shape[1]
    most = starts[last * width] - starts[first * width]
    cells, rows, sums = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    bins, edges, filled = np.empty(1 << shift, np.int64), np.zeros(last - first + 1, np.int64), 0
    for g in range(first, last):
        for c in range(width):
            begin, end = np.int64(starts[g * width + c]), lines[g, c, 1] >> HALF
            if end <= begin:
                continue
            found = _sum_words(words[begin:end], bins, cells[filled:], rows[filled:], shift)
            upto, kept = lines[g, c, 0], filled
            for k in range(filled, filled + found):
                cell, weight = cells[k] | (c << shift), rows[k]
                upto += weight
                if _is_near(upto - weight, upto, totals[g], near):
                    cells[kept], rows[kept], sums[kept] = cell, weight, upto
                    kept += 1
            filled = kept
        edges[g - first + 1] = filled
    return edges, cells[:filled], rows[:filled], sums[:filled]
