"""Compiled work on a batch of rows that is forgotten again: where people stand, and what they had before.

Guarantee:
    `label - low` may wrap in 64 bits, and yet 0 <= place < size only where label = low + place: two labels never share
    a place.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mosha.connect.kernels.column_kernels import Array, Whole, missing_in
from mosha.connect.kernels.kernel import KNOWN

__all__ = [
    "add_totals",
    "count_places",
    "follow_known",
    "follow_rows",
    "follow_totals",
    "has_met_again",
    "places_in",
    "put_ranks",
]


@njit(cache=True)
def places_in(labels: Array, low: Whole, size: Whole, places: Array) -> bool:
    """Fill places with the distance of each label from `low`; false as soon as one is not below `size`."""
    for i in range(len(labels)):
        place = np.int64(labels[i]) - low
        if place < 0 or place >= size:
            return False
        places[i] = place
    return True


@njit(cache=True)
def count_places(places: Array, counts: Array) -> None:
    """One more for each row."""
    for i in range(len(places)):
        counts[places[i]] += 1


@njit(cache=True)
def add_totals(places: Array, values: Array, code: Whole, totals: Array) -> None:
    """Add |v| of each row to the total of its place, or 1 for each value that is known."""
    missing, known = missing_in(values), code <= KNOWN
    column = KNOWN - code if known else code
    for i in range(len(places)):
        value = np.int64(values[i, column])
        if value != missing:
            totals[places[i]] += np.int64(1) if known else abs(value)


@njit(cache=True)
def follow_totals(places: Array, values: Array, code: Whole, totals: Array, again: Array) -> None:
    """Add |v| of each row to what its place had again, which stays above its total once it has passed it.

    Totals are below 2**59, values below 2**62: no sum wraps around to the total that was counted before.
    """
    missing = missing_in(values)
    for i in range(len(places)):
        value, place = np.int64(values[i, code]), places[i]
        if value != missing and again[place] <= totals[place]:
            again[place] += abs(value)


@njit(cache=True)
def put_ranks(totals: Array, rank_of: Array, book: Array) -> None:
    """Begin the book of each place: the rank of its total, and how much of it was met again, which is nothing yet."""
    for place in range(len(totals)):
        book[place, 0], book[place, 1] = rank_of[totals[place]], 0


@njit(cache=True)
def follow_rows(places: Array, book: Array, ranks: Array) -> None:
    """Fill ranks, and enter that each row was met again."""
    for i in range(len(places)):
        place = places[i]
        ranks[i] = book[place, 0]
        book[place, 1] += 1


@njit(cache=True)
def follow_known(places: Array, column: Array, book: Array, ranks: Array) -> None:
    """The same where only rows count that have a value."""
    missing = missing_in(column)
    for i in range(len(places)):
        place = places[i]
        ranks[i] = book[place, 0]
        if column[i] != missing:
            book[place, 1] += 1


@njit(cache=True)
def has_met_again(book: Array, distinct: Array) -> bool:
    """Whether every place has what its rank says; the next reading then begins anew."""
    same = True
    for place in range(len(book)):
        same &= book[place, 1] == distinct[book[place, 0]]
        book[place, 1] = 0
    return same
