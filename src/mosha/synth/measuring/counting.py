"""Exact marginals of a protected table, in one pass: cells are counted by the engine, each unit's part bounded there.

The engine groups the rows by the cells of all columns at once; marginals of any columns are sums of these groups. Where
a unit is a person, the rows of one person share one weight (order 1 of `connect/sql/bounding.md`), which is the reach.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.connect.engines.source import answer, answer_in_batches
from mosha.connect.language.expression import Expression, lit
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Bound, NormBound, Unbounded
from mosha.connect.plan.person_steps import Summary, SummaryColumn
from mosha.connect.plan.relation import Relation
from mosha.connect.plan.source import Totals
from mosha.core.errors import InvalidParameter
from mosha.core.errors import Unbounded as UnboundedError
from mosha.core.unit import Neighbors, Person, Row, Unit
from mosha.synth.measuring.columns import CodedColumn

__all__ = [
    "ROWS_PER_PERSON",
    "Counted",
    "PairCounts",
    "count_cells",
    "count_pairs",
    "count_rows_per_person",
    "counting_question",
    "grain_of",
    "reach_of",
]

FRACTION = 14
"""A person's weight is counted in parts of 2**-14, so that many rows may share it."""

ROWS_PER_PERSON = "rows_per_person"
MOST_PAIR_CELLS, AT_ONCE = 1 << 22, 1 << 18
"""Tables of pairs have at most so many cells in all; so many groups of rows are added up at once."""

_WIDEST = 1 << 60
Wholes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows by their cells, as private as the data: `cells[c]` holds the cell of each group in column c."""

    sizes: tuple[int, ...]
    cells: tuple[Wholes, ...]
    weights: Wholes

    def marginal(self, columns: tuple[int, ...]) -> Wholes:
        """The exact marginal of some columns."""
        if not columns:
            return np.asarray(self.weights.sum(dtype=np.int64))
        return self.table([self.cells[c] for c in columns], tuple(self.sizes[c] for c in columns))

    def table(self, cells: Sequence[Wholes], sizes: tuple[int, ...]) -> Wholes:
        """The exact table of columns whose cells were merged: `cells` holds those of each group of rows."""
        places = np.zeros(len(self.weights), np.int64)
        for numbers, size in zip(cells, sizes, strict=True):
            places = places * size + numbers
        return _sums(places, self.weights, int(np.prod(sizes))).reshape(sizes)


@dataclass(frozen=True, eq=False)
class PairCounts:
    """The exact tables of all columns and pairs of them, as private as the data: no row is held any more."""

    total: int
    singles: tuple[Wholes, ...]
    pairs: Mapping[tuple[int, int], Wholes]

    def marginal(self, columns: tuple[int, ...]) -> Wholes:
        """The exact marginal of at most two columns."""
        if not columns:
            return np.asarray(self.total, np.int64)
        if len(columns) == 1:
            return self.singles[columns[0]]
        first, second = columns
        return self.pairs[first, second] if first < second else self.pairs[second, first].T


def _sums(places: Wholes, weights: Wholes, size: int) -> Wholes:
    """Sums of whole numbers by place: doubles hold them exactly below 2**53, else they are added as integers."""
    if int(weights.sum(dtype=object)) < 1 << 53 if len(weights) else True:
        return np.asarray(np.bincount(places, weights, minlength=size), np.int64)
    found = np.zeros(size, np.int64)
    np.add.at(found, places, weights)
    return found


def reach_of(unit: Unit, relation: Relation) -> tuple[int, Bound]:
    """The most that one unit counts for, in units of the counts, and the rule that sees to it.

    Guarantee:
        Row: `stability.per_row * at_most` rows change, each of weight 1. Person: the rows of one person have weights
        whose sum is at most 2**FRACTION (`bounding.md`, order 1, rows). Either doubles where a unit is
        replaced by another.
    """
    twice = 2 if unit.neighbors is Neighbors.REPLACE_ONE else 1
    if isinstance(unit, Row):
        changed = relation.stability.per_row
        if changed is None:
            raise UnboundedError("synth.unbounded_join")
        return changed * unit.at_most * twice, Unbounded()
    if not isinstance(unit, Person):
        raise InvalidParameter("synth.wrong_unit", unit=unit.noun)
    if relation.person is None:
        changed = relation.stability.per_person
        if changed is None:
            raise UnboundedError("synth.unbounded_join")
        return changed * twice, Unbounded()
    return twice << FRACTION, NormBound(1, {"rows": 1}, FRACTION)


def count_rows_per_person(relation: Relation) -> Relation:
    """The same rows, each with the number of rows of its person.

    Guarantee:
        The number is a summary of one person's rows and meets that person's rows alone (`Summary`, `PersonJoin`): all
        that a person adds is still that person's rows, whose weights sum to at most the reach (`reach_of`).
    """
    if relation.person is None:
        raise InvalidParameter("synth.rows_per_person_of_rows", parameter=ROWS_PER_PERSON, spent="nothing")
    counted = Summary(relation, (relation.person,), {ROWS_PER_PERSON: SummaryColumn("count")})
    return relation.join_person(counted)


def grain_of(unit: Unit, relation: Relation) -> int:
    """How many units of the counts one row (or one whole person) is."""
    return 1 << FRACTION if isinstance(unit, Person) and relation.person is not None else 1


def _pack_columns(columns: Sequence[CodedColumn]) -> list[list[int]]:
    """The columns in runs whose cells together are numbered below 2**60."""
    runs: list[list[int]] = []
    size = _WIDEST
    for place, column in enumerate(columns):
        if size * column.size >= _WIDEST or len(runs[-1]) >= 6:
            runs.append([])
            size = 1
        runs[-1].append(place)
        size *= column.size
    return runs


def counting_question(relation: Relation, unit: Unit, columns: Sequence[CodedColumn]) -> Aggregation:
    """What the engine is asked: rows by the cells of all columns, several cells numbered as one."""
    _, bound = reach_of(unit, relation)
    for column in columns:
        if not column.missing:
            relation = relation.where(~column.code.is_null())
    keys: dict[str, Expression] = {}
    for number, run in enumerate(_pack_columns(columns)):
        packed: Expression = columns[run[0]].code
        for place in run[1:]:
            packed = packed * lit(columns[place].size) + columns[place].code
        keys[f"cells_{number}"] = packed
    return Aggregation(relation, tuple(keys.items()), (("rows", Rows()),), bound=bound)


def count_cells(relation: Relation, unit: Unit, columns: Sequence[CodedColumn]) -> Counted:
    """The rows of a table by their cells: one statement, one pass."""
    cells, weights = _read_cells(answer(counting_question(relation, unit, columns)), columns)
    return Counted(tuple(column.size for column in columns), cells, weights)


def _read_cells(totals: Totals, columns: Sequence[CodedColumn]) -> tuple[tuple[Wholes, ...], Wholes]:
    """The cell of each group in every column, and its weight."""
    weights = np.asarray(totals["rows"], np.int64)
    cells: dict[int, Wholes] = {}
    for run, key in zip(_pack_columns(columns), totals.keys, strict=True):
        rest = np.asarray(key, np.int64) if len(weights) else np.zeros(0, np.int64)
        for place in reversed(run[1:]):
            rest, cells[place] = np.divmod(rest, columns[place].size)
        cells[run[0]] = rest
    return tuple(cells[place] for place in range(len(columns))), weights


def count_pairs(relation: Relation, unit: Unit, columns: Sequence[CodedColumn]) -> Counted | PairCounts:
    """All that pairs of columns say, by one statement: its groups are added up as they come and forgotten.

    Where the tables of all pairs would be larger than `MOST_PAIR_CELLS`, the groups are kept instead.
    """
    sizes = [column.size for column in columns]
    if (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2 > MOST_PAIR_CELLS:
        return count_cells(relation, unit, columns)
    singles = tuple(np.zeros(size, np.int64) for size in sizes)
    pairs = {(a, b): np.zeros((sizes[a], sizes[b]), np.int64) for a, b in itertools.combinations(range(len(sizes)), 2)}
    held: list[tuple[tuple[Wholes, ...], Wholes]] = []

    def add_up() -> None:
        weights = np.concatenate([weights for _, weights in held])
        cells = [np.concatenate([cells[place] for cells, _ in held]) for place in range(len(sizes))]
        held.clear()
        for place, size in enumerate(sizes):
            singles[place][:] += _sums(cells[place], weights, size)
        for (a, b), table in pairs.items():
            table[:] += _sums(cells[a] * sizes[b] + cells[b], weights, sizes[a] * sizes[b]).reshape(table.shape)

    def use(totals: Totals) -> None:
        held.append(_read_cells(totals, columns))
        if sum(len(weights) for _, weights in held) >= AT_ONCE:
            add_up()

    answer_in_batches(counting_question(relation, unit, columns), use)
    if held:
        add_up()
    return PairCounts(int(singles[0].sum()), singles, pairs)
