"""Rows near some ranks of their groups, and their cells: what `NearRanks` asks for, from columns or from batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mosha.connect.kernels.columns import Table
from mosha.connect.plan.aggregation import NearRanks
from mosha.connect.plan.bounding import NormBound, Unbounded
from mosha.connect.plan.source import Array, Totals

__all__ = ["NearRows", "Ranks", "find_near_rows", "plan_ranks", "weigh_counts"]

COARSE_BITS, MOST_COARSE = 8, 2**21
AT_ONCE = 2**18
"""About so many rows have their cells found together."""


@dataclass(frozen=True)
class Ranks:
    """How rows are counted in coarse cells: `groups` times `width` of them, each of 2**shift cells."""

    near: Array
    groups: int
    width: int
    shift: int

    def begin(self) -> Array:
        """A line for each coarse cell: the weight of its rows and their number, which are nothing yet."""
        return np.zeros((self.groups, self.width, 2), np.int64)

    def lay_out(self, lines: Array, wanted: Array) -> tuple[Array, Array]:
        """(starts, words): room for the rows of wanted coarse cells, which the lines then tell."""
        from mosha.connect.kernels.rank_kernels import lay_out  # noqa: PLC0415  (numba is an extra and takes time to load)

        starts = np.empty(self.groups * self.width + 1, np.int32)
        lay_out(lines, wanted, starts)
        return starts, np.empty(starts[-1], np.uint32)


@dataclass(frozen=True)
class NearRows:
    """What is left of a table when rows far from the ranks are dropped, so that its columns can be let go.

    `lines` has the weight under each coarse cell of a group and where its words end, `starts` where they begin;
    `totals` has the weight of each group.
    """

    question: NearRanks
    ranks: Ranks
    lines: Array
    totals: Array
    starts: Array
    words: Array
    keys: Callable[[Array], tuple[Array, ...]]

    def list_blocks(self) -> Iterator[Totals]:
        """The cells near the ranks, some groups at a time; the words are used up."""
        begins = self.starts[:: self.ranks.width].astype(np.int64)
        cuts = np.searchsorted(begins, np.arange(AT_ONCE, int(begins[-1]), AT_ONCE)).tolist()
        edges = sorted({0, *cuts, self.ranks.groups})
        for first, last in itertools.pairwise(edges):
            yield self._list_cells(first, last)

    def join(self) -> Totals:
        """All of them."""
        blocks = list(self.list_blocks())
        keys = tuple(np.concatenate(columns) for columns in zip(*(block.keys for block in blocks), strict=True))
        values = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0].values}
        return Totals(blocks[0].schema, keys, values)

    def _list_cells(self, first: int, last: int) -> Totals:
        from mosha.connect.kernels.rank_kernels import list_cells  # noqa: PLC0415

        given = (self.ranks.shift, self.ranks.near)
        edges, cells, rows, upto = list_cells((first, last), self.words, self.starts, self.lines, self.totals, given)
        sizes = np.diff(edges)
        present = np.flatnonzero(sizes)
        many = sizes[present]
        keys = tuple(np.repeat(key, many) for key in self.keys(first + present))
        values = {"cell": cells, "rows": rows, "upto": upto, "total": np.repeat(self.totals[first + present], many)}
        return Totals(self.question.key_schema, keys, values)


def find_near_rows(question: NearRanks, table: Table) -> NearRows | None:
    """The rows near the ranks; None where numbers would not fit their bits."""
    from mosha.connect.kernels.rank_kernels import count_cells, judge_coarse, put_rows  # noqa: PLC0415

    ranks = plan_ranks(question, len(table.groups), table.group_count)
    if ranks is None:
        return None
    people = table.counts if isinstance(question.bound, NormBound) else np.zeros(table.people, np.int32)
    rows, weights = (table.persons, table.groups, table.values[:, 0]), weigh_counts(question.bound, people)
    lines = ranks.begin()
    count_cells(rows, weights, ranks.shift, lines)
    _, wanted = judge_coarse(lines, ranks.near)
    starts, words = ranks.lay_out(lines, wanted)
    put_rows(rows, weights, ranks.shift, lines, words)
    totals, _ = judge_coarse(lines, ranks.near)
    return NearRows(question, ranks, lines, totals, starts, words, table.keys)


def plan_ranks(question: NearRanks, rows: int, groups: int) -> Ranks | None:
    """How rows are counted; None where numbers would not fit."""
    from mosha.connect.kernels.rank_kernels import CELL_BITS, WEIGHT_BITS  # noqa: PLC0415

    bound, most = question.bound, question.cell.high
    full = 1 << bound.fraction if isinstance(bound, NormBound) else 1
    near = np.array(question.near, object)
    widest = int(near.max()) + int(near[:, 1].max()) * full * rows
    if widest >= 2**62 or full >> WEIGHT_BITS or most >> CELL_BITS or question.cell.low < 0 or rows >= 2**31:
        return None
    coarse_bits = max(0, min(COARSE_BITS, MOST_COARSE.bit_length() - groups.bit_length()))
    shift = min(max(0, most.bit_length() - coarse_bits), 32 - WEIGHT_BITS)
    return Ranks(near.astype(np.int64), groups, (most >> shift) + 1, shift)


def weigh_counts(bound: NormBound | Unbounded, counts: Array) -> Array:
    """What each row counts of a person with so many, in 16 bits: the weights of many people stay in the cache."""
    if not isinstance(bound, NormBound):
        return np.ones(len(counts), np.uint16)
    (limit,) = bound.limits.values()
    full = limit << bound.fraction
    scaled = np.where(counts <= limit, 1 << bound.fraction, full // np.maximum(counts.astype(np.int64), 1))
    return scaled.astype(np.uint16)
