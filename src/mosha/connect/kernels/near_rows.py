"""Rows near some ranks of their groups, and their cells: what `NearRanks` asks for, from columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mosha.connect.kernels.columns import Table
from mosha.connect.plan.aggregation import NearRanks
from mosha.connect.plan.bounding import NormBound, Unbounded
from mosha.connect.plan.source import Array, Totals

__all__ = ["NearRows", "find_near_rows"]

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
        groups = places >> CELL_BITS
        present, many = np.unique(groups, return_counts=True)  # which ascend
        keys = tuple(np.repeat(key, many) for key in self.keys(present))
        places &= (1 << CELL_BITS) - 1
        values = {"cell": places, "rows": rows, "upto": upto, "total": self.totals[groups]}
        return Totals(self.question.key_schema, keys, values)


def find_near_rows(question: NearRanks, table: Table) -> NearRows | None:
    """The rows near the ranks; None where numbers would not fit their bits."""
    from mosha.connect.kernels.rank_kernels import CELL_BITS, WEIGHT_BITS, near_rows  # noqa: PLC0415

    bound, most = question.bound, question.cell.high
    full = 1 << bound.fraction if isinstance(bound, NormBound) else 1
    near = np.array(question.near, object)
    widest = int(near.max()) + int(near[:, 1].max()) * full * len(table.groups)
    too_wide = table.group_count.bit_length() + CELL_BITS + WEIGHT_BITS > 62
    if widest >= 2**62 or full >> WEIGHT_BITS or most >> CELL_BITS or question.cell.low < 0 or too_wide:
        return None
    coarse_bits = max(0, min(COARSE_BITS, MOST_COARSE.bit_length() - table.group_count.bit_length()))
    shift = max(0, most.bit_length() - coarse_bits)
    sizes = (table.group_count, (most >> shift) + 1, shift)
    rows, weights = (table.persons, table.groups, table.values[:, 0]), _weigh_people(bound, table)
    coarse, totals, words = near_rows(rows, weights, sizes, near.astype(np.int64))
    return NearRows(question, coarse, totals, words, shift, table.keys)


def _weigh_people(bound: NormBound | Unbounded, table: Table) -> Array:
    """What each row of a person counts, in 16 bits, so that the weights of many people stay in the cache."""
    if not isinstance(bound, NormBound):
        return np.ones(table.people, np.uint16)
    (limit,) = bound.limits.values()
    full = limit << bound.fraction
    scaled = np.where(table.counts <= limit, 1 << bound.fraction, full // np.maximum(table.counts.astype(np.int64), 1))
    return scaled.astype(np.uint16)
