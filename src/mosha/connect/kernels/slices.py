"""Slices of persons: what is too large for the memory is answered in parts, one after the other.

Guarantee:
    A slice holds all rows of the persons whose names have a certain hash, so it bounds them as the whole table would;
    the answer is a sum over persons in exact integers, so the slices add up to the same integers (`bounding.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mosha.connect.kernels.columns import values_of
from mosha.connect.plan.aggregation import Aggregation, Norms, Question
from mosha.connect.plan.bounding import NormBound, Truncate
from mosha.connect.plan.totals import Array, Totals, integers
from mosha.core.errors import DataError

__all__ = ["OutOfMemory", "in_slices", "slices_for"]

MOST_SLICES = 1024
SPILLED = 8  # so many times its memory an engine is trusted to spill


class OutOfMemory(DataError):
    """An engine had too little memory; nobody outside of the engine sees this."""


def slices_for(question: Question, rows: int | None, memory: int) -> int:
    """With how many slices to begin: a power of two, by the sizes of table and memory alone."""
    if not _sums_over_persons(question) or rows is None:
        return 1
    size = rows * 8 * (4 + 3 * len(values_of(question)))
    count = 1
    while count < MOST_SLICES and size > SPILLED * memory * count:
        count *= 2
    return count


def in_slices(question: Question, count: int, answer: Callable[[Question], Totals]) -> Totals:
    """The answer from `count` slices; from twice as many whenever the memory is too small for one of them."""
    while True:
        try:
            return (
                answer(question)
                if count == 1
                else _add_parts(answer(question.take_slice(i, count)) for i in range(count))
            )
        except OutOfMemory:
            if count >= MOST_SLICES or not _sums_over_persons(question):
                raise
        count *= 2


def _sums_over_persons(question: Question) -> bool:
    """Whether the answer is a sum over persons. A count of distinct values is none: persons share values."""
    bounded = isinstance(question, Aggregation) and isinstance(question.bound, (NormBound, Truncate))
    return bounded or isinstance(question, Norms)


def _add_parts(parts: Iterator[Totals]) -> Totals:
    """The sums of all parts, group by group, in the order in which groups first appear."""
    first = next(parts)
    place: dict[tuple[Any, ...], int] = {}
    keys: list[list[Array]] = [[] for _ in first.keys]
    sums: dict[str, list[int]] = {name: [] for name in first.values}
    part: Totals | None = first
    while part is not None:
        rows = list(part.rows())
        fresh = [row for row, (key, _) in enumerate(rows) if key not in place]
        for row in fresh:
            place[rows[row][0]] = len(place)
        for column, found in zip(keys, part.keys, strict=True):
            column.append(found[fresh])
        for at, column_sums in enumerate(sums.values()):
            column_sums.extend([0] * len(fresh))
            for key, values in rows:
                column_sums[place[key]] += values[at]
        part = next(parts, None)
    columns = tuple(np.concatenate(column) for column in keys)
    return Totals(first.schema, columns, {name: integers(column) for name, column in sums.items()})
