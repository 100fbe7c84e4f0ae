"""Exact marginals of a protected table, in one pass: cells are counted by the engine, each unit's part bounded there.

The engine groups the rows by the cells of all columns at once; marginals of any columns are sums of these groups. Where
a unit is a person, the rows of one person share one weight (order 1 of `connect/sql/bounding.md`), which is the reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.connect.engines.source import answer
from mosha.connect.language.expression import Expression, lit
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Bound, NormBound, Unbounded
from mosha.connect.plan.person_steps import Summary, SummaryColumn
from mosha.connect.plan.relation import Relation
from mosha.core.errors import InvalidParameter
from mosha.core.errors import Unbounded as UnboundedError
from mosha.core.unit import Neighbors, Person, Row, Unit
from mosha.synth.measuring.columns import CodedColumn

__all__ = ["ROWS_PER_PERSON", "Counted", "count_cells", "count_rows_per_person", "counting_question", "reach_of"]

FRACTION = 14
"""A person's weight is counted in parts of 2**-14, so that many rows may share it."""

ROWS_PER_PERSON = "rows_per_person"
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
    twice = 2 if unit.neighbours is Neighbors.REPLACE_ONE else 1
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
    totals = answer(counting_question(relation, unit, columns))
    weights = np.asarray(totals["rows"], np.int64)
    cells: dict[int, Wholes] = {}
    for run, key in zip(_pack_columns(columns), totals.keys, strict=True):
        rest = np.asarray(key, np.int64) if len(weights) else np.zeros(0, np.int64)
        for place in reversed(run[1:]):
            rest, cells[place] = np.divmod(rest, columns[place].size)
        cells[run[0]] = rest
    ordered = tuple(cells[place] for place in range(len(columns)))
    return Counted(tuple(column.size for column in columns), ordered, weights)
