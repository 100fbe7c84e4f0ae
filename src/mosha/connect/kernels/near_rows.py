"""Rows near some ranks of their groups, and their cells: what `NearRanks` asks for, from columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mosha.connect.kernels.columns import Table
from mosha.connect.plan.aggregation import NearRanks
from mosha.connect.plan.bounding import NormBound, Unbounded
from mosha.connect.plan.source import Array, Totals

__all__ = ["NearRows", "find_near_rows", "size_coarse", "weigh_counts"]

COARSE_BITS, MOST_COARSE = 10, 2**22


@dataclass(frozen=True)
class NearRows:
    """What is left of a table when rows far from the ranks are dropped, so that its columns can be let go.

    `coarse` has the weight under each coarse cell of a group, `totals` that of the group, `words` a row each.
    """

    question: NearRanks
    coarse: Array
    totals: Array
    words: Array
    shift: int
    keys: Callable[[Array], tuple[Array, ...]]

    def count_cells(self) -> Totals:
        """The cells near the ranks; the words are used up."""
        from mosha.connect.kernels.rank_kernels import CELL_BITS, sum_runs  # noqa: PLC0415  (numba is an extra and takes time to load)

        self.words.sort()
        near = np.array(self.question.near, np.int64)
        places, rows, upto = sum_runs(self.words, self.coarse, self.totals, self.shift, near)
        edges = np.searchsorted(places, np.arange(len(self.totals) + 1) << CELL_BITS)
        present = np.flatnonzero(np.diff(edges))
        many = np.diff(edges)[present]
        keys = tuple(np.repeat(key, many) for key in self.keys(present))
        places &= (1 << CELL_BITS) - 1
        values = {"cell": places, "rows": rows, "upto": upto, "total": np.repeat(self.totals[present], many)}
        return Totals(self.question.key_schema, keys, values)


def find_near_rows(question: NearRanks, table: Table) -> NearRows | None:
    """The rows near the ranks; None where numbers would not fit their bits."""
    from mosha.connect.kernels.rank_kernels import near_rows  # noqa: PLC0415

    sizes = size_coarse(question, len(table.groups), table.group_count)
    if sizes is None:
        return None
    counts = table.counts if isinstance(question.bound, NormBound) else np.zeros(table.people, np.int32)
    rows, weights = (table.persons, table.groups, table.values[:, 0]), weigh_counts(question.bound, counts)
    coarse, totals, words = near_rows(rows, weights, sizes, np.array(question.near, np.int64))
    return NearRows(question, coarse, totals, words, sizes[2], table.keys)


def size_coarse(question: NearRanks, rows: int, groups: int) -> tuple[int, int, int] | None:
    """(groups, coarse cells of a group, shift from a cell to its coarse cell); None where numbers would not fit."""
    from mosha.connect.kernels.rank_kernels import CELL_BITS, WEIGHT_BITS  # noqa: PLC0415

    bound, most = question.bound, question.cell.high
    full = 1 << bound.fraction if isinstance(bound, NormBound) else 1
    near = np.array(question.near, object)
    widest = int(near.max()) + int(near[:, 1].max()) * full * rows
    too_wide = groups.bit_length() + CELL_BITS + WEIGHT_BITS > 62
    if widest >= 2**62 or full >> WEIGHT_BITS or most >> CELL_BITS or question.cell.low < 0 or too_wide:
        return None
    coarse_bits = max(0, min(COARSE_BITS, MOST_COARSE.bit_length() - groups.bit_length()))
    shift = max(0, most.bit_length() - coarse_bits)
    return groups, (most >> shift) + 1, shift


def weigh_counts(bound: NormBound | Unbounded, counts: Array) -> Array:
    """What each row counts of a person with so many, in 16 bits: the weights of many people stay in the cache."""
    if not isinstance(bound, NormBound):
        return np.ones(len(counts), np.uint16)
    (limit,) = bound.limits.values()
    full = limit << bound.fraction
    scaled = np.where(counts <= limit, 1 << bound.fraction, full // np.maximum(counts.astype(np.int64), 1))
    return scaled.astype(np.uint16)
