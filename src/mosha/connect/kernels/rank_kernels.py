"""Compiled search for the cells near some ranks: counted in coarse cells first, then row by row where it matters.

Guarantee:
    The cells are those of `NearRanks`, with the same integers as the SQL plan. Coarse cells hold whole runs of cells,
    so their running totals are those of the cells at their ends: a cell that is near lies in a coarse cell that is
    near, because ranks only grow. Rows of near coarse cells are summed one by one, and their cells are judged again.
    Sums stay below 2**62 by the checks in `compiled_path`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mosha.connect.kernels.column_kernels import Array

__all__ = ["WEIGHT_BITS", "add_coarse", "judge_coarse", "near_rows", "rows_in", "sum_runs"]

WEIGHT_BITS = 13
CELL_BITS = 21


@njit(cache=True)
def _is_near(below: object, upto: object, total: object, near: Array) -> Any:
    for j in range(len(near)):
        top, bottom, reach = near[j, 0], near[j, 1], near[j, 2]
        if bottom * upto >= top * total - reach and bottom * below <= top * total + reach:
            return True
    return False


@njit(cache=True)
def add_coarse(rows: Any, weights: Array, shift: object, coarse: Array) -> None:
    """Add the weight of rows = (who, groups, cells) to their coarse cells; weights[who[i]] is that of row i."""
    who, groups, cells = rows
    for i in range(len(groups)):
        coarse[groups[i], cells[i] >> shift] += weights[who[i]]


@njit(cache=True)
def judge_coarse(coarse: Array, near: Array) -> Any:
    """(totals of groups, which coarse cells are near); `coarse` becomes the running totals under each."""
    count, width = coarse.shape
    totals, wanted = np.zeros(count, np.int64), np.zeros((count, width), np.bool_)
    for g in range(count):
        total = np.int64(0)
        for c in range(width):
            total += coarse[g, c]
        totals[g] = total
        below = np.int64(0)
        for c in range(width):
            here = coarse[g, c]
            wanted[g, c] = here > 0 and _is_near(below, below + here, total, near)
            coarse[g, c] = below
            below += here
    return totals, wanted


@njit(cache=True)
def rows_in(rows: Any, weights: Array, shift: object, wanted: Array) -> Array:
    """The rows of wanted coarse cells as words: group, cell and weight, in bits from the highest."""
    who, groups, cells = rows
    found = 0
    for i in range(len(groups)):
        found += wanted[groups[i], cells[i] >> shift]
    words, filled = np.empty(found, np.int64), 0
    for i in range(len(groups)):
        if wanted[groups[i], cells[i] >> shift]:
            cell = (np.int64(groups[i]) << CELL_BITS) | np.int64(cells[i])
            words[filled] = (cell << WEIGHT_BITS) | np.int64(weights[who[i]])
            filled += 1
    return words


@njit(cache=True)
def near_rows(rows: Any, weights: Array, sizes: Any, near: Array) -> Any:
    """(coarse, totals, words): running totals under each coarse cell, those of groups, and the rows that may be near.

    sizes = (groups, coarse cells of a group, shift from a cell to its coarse cell).
    """
    count, width, shift = sizes
    coarse = np.zeros((count, width), np.int64)
    add_coarse(rows, weights, shift, coarse)
    totals, wanted = judge_coarse(coarse, near)
    return coarse, totals, rows_in(rows, weights, shift, wanted)


@njit(cache=True)
def sum_runs(words: Array, coarse: Array, totals: Array, shift: object, near: Array) -> Any:
    """(places, rows, upto) of the near cells of sorted words: group and cell, the weight there, and that up to there.

    Places are written over the words, which are not needed twice: what is found is behind what is read.
    """
    rows, sums = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
    filled, i, before, upto = 0, 0, np.int64(-1), np.int64(0)
    low = (np.int64(1) << WEIGHT_BITS) - 1
    while i < len(words):
        place, weight = words[i] >> WEIGHT_BITS, np.int64(0)
        while i < len(words) and words[i] >> WEIGHT_BITS == place:
            weight += words[i] & low
            i += 1
        group, cell = place >> CELL_BITS, place & ((np.int64(1) << CELL_BITS) - 1)
        if place >> shift != before:
            before, upto = place >> shift, coarse[group, cell >> shift]
        upto += weight
        if weight > 0 and _is_near(upto - weight, upto, totals[group], near):
            words[filled], rows[filled], sums[filled] = place, weight, upto
            filled += 1
    return words[:filled], rows[:filled], sums[:filled]
