"""The same sums of a protected table: one statement of exact whole numbers where the rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from mosha.connect.engines.local_source import LocalSource
from mosha.connect.engines.source import answer
from mosha.connect.language.cases import Case, when
from mosha.connect.language.expression import Expression, col, lit, null
from mosha.connect.language.schema import Type
from mosha.connect.language.value import Clamped, Product, Rows, Value
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Truncate, Unbounded
from mosha.connect.plan.relation import Relation, rebase
from mosha.connect.plan.source import Source
from mosha.core.errors import InvalidParameter
from mosha.core.errors import Unbounded as UnboundedError
from mosha.core.fingerprint import fingerprint_plan
from mosha.core.unit import Person, Row, Unit
from mosha.exact.grid import LARGEST_STEPS
from mosha.exact.statistic import Sensitivity, Steps
from mosha.models.ranges import RADIUS
from mosha.models.sums.moments import MomentSums
from mosha.models.sums.row_sums import RowSums, make_sensitivity
from mosha.noise import secure
from mosha.tables import Table
from mosha.tables.parts.part import public_rows

__all__ = ["TableSums", "choose_columns", "is_remote", "table_cells", "table_moments"]

EXPONENT = RADIUS.bit_length() - 1


@dataclass(frozen=True, eq=False, repr=False)
class TableSums:
    """`RowSums` of a protected table: `values` are summed by the engine, in each of the public `groups`.

    Guarantee:
        Every row adds the vector that `sums` bounds (the same integers: `Clamped`, `Product`, `Rows`), after the engine
        has kept at most `at_most` rows of a person (`Truncate`), or with at most `stability` rows changed by one row
        of the table. So `RowSums.sensitivity` holds with that number of rows.
    """

    sums: RowSums
    relation: Relation
    protected: Unit
    values: tuple[tuple[str, Value], ...]
    key: Expression | None = None
    groups: tuple[object, ...] = ()
    grid: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if self.key is None:
            return
        different = public_rows(self.relation, (("class", self.key),), [(group,) for group in self.groups])
        if len(different) != len(self.groups):
            raise InvalidParameter("models.classes_are_equal", parameter="classes", spent="nothing")

    def __repr__(self) -> str:
        """What the question is known by under a key: every public field, and no text that may be shortened."""
        asked = fingerprint_plan(self.relation, self.protected, self.values, self.key, self.groups)
        return f"TableSums({self.sums!r}, {asked})"

    @property
    def labels(self) -> tuple[int, ...]:
        return self.sums.labels

    @property
    def rows(self) -> int:
        """How many rows one unit can own or change."""
        unit, by_person = self.protected, isinstance(self.protected, Person)
        if isinstance(unit, Person) and self.relation.person is not None:
            if unit.at_most is None:
                raise UnboundedError("models.rows_of_a_person", parameter="at_most", column=unit.column)
            return unit.at_most
        if not isinstance(unit, Row | Person):
            raise InvalidParameter("models.unit_of_table", parameter="unit", noun=unit.noun)
        stability = self.relation.stability
        changed = stability.per_person if by_person else stability.per_row
        if changed is None:
            raise UnboundedError("models.join_without_bound")
        return changed * (unit.at_most if isinstance(unit, Row) else 1)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        return make_sensitivity(self.sums, self.rows, unit)

    def question(self, relation: Relation) -> Aggregation:
        """What the engine is asked; the key of the choice of a person's rows is drawn anew each time."""
        by_person = isinstance(self.protected, Person) and relation.person is not None
        bound = Truncate(secure().bytes(32), rows=self.rows) if by_person else Unbounded()
        keys = () if self.key is None else (("class", self.key),)
        only = None if self.key is None else tuple((group,) for group in self.groups)
        return Aggregation(relation, keys, self.values, bound=bound, only=only)

    def evaluate(self, data: object, unit: Unit) -> Steps:
        """Of this table, or of a source in its place."""
        del unit
        relation = rebase(self.relation, data) if isinstance(data, Source) else self.relation
        totals = answer(self.question(relation))
        columns = [[int(entry) for entry in totals[name].tolist()] for name, _ in self.values]
        rows = list(zip(*columns, strict=True)) or [(0,) * len(columns)] * max(1, len(self.groups))
        if isinstance(self.sums, MomentSums):
            rows = [_weigh_moments(self.sums, row) for row in rows]
        return np.array([_hold(entry) for row in rows for entry in row], np.int64)

    def look(self) -> None:
        """Let the engine analyze what will run."""
        self.evaluate(None, self.protected)


def _hold(entry: int) -> int:
    return min(max(entry, -LARGEST_STEPS), LARGEST_STEPS)


def _weigh_moments(sums: MomentSums, row: tuple[int, ...]) -> tuple[int, ...]:
    """As `MomentSums` does it, in Python's integers: a table may have more rows than 64 bits have room for."""
    p, count = sums.features, row[0]
    middles = [count * (RADIUS**2 // 2) if i == j else 0 for i, j in zip(*sums.upper, strict=True)]
    seconds = (entry - middle for entry, middle in zip(row[1 + p :], middles, strict=True))
    return (count * RADIUS**2, *(entry * RADIUS for entry in row[1 : 1 + p]), *seconds)


def is_remote(relation: Relation) -> bool:
    """Whether a table lives on a server, which can go away between payment and answer."""
    return any(not isinstance(source, LocalSource) for source in relation.sources)


def choose_columns(table: Table, columns: Sequence[str] | None, target: object = None) -> tuple[str, ...]:
    """The named columns, or all columns of numbers but the target and whose the rows are."""
    left_out = {target, table.relation.person}
    numbers = (name for name, kind in table.schema.items() if kind.numeric and name not in left_out)
    found = tuple(numbers) if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    if not found:
        raise InvalidParameter("models.no_columns", parameter="columns", spent="nothing")
    return found


def table_moments(table: Table, sums: MomentSums, columns: Sequence[str], label: str | None = None) -> TableSums:
    """Moments of columns; rows with a missing number, or of no listed class, count nowhere."""
    relation = table.relation
    clamped = {}
    for name, middle, half in zip(columns, sums.ranges.middles, sums.ranges.halves, strict=True):
        scaled = (col(name).cast("real") - lit(float(middle))) / lit(float(half))
        clamped[name] = Clamped(scaled, (-1.0, 1.0), exponent=EXPONENT)
        relation = relation.where(~col(name).is_null())
    values: list[tuple[str, Value]] = [("rows", Rows())]
    listed = list(clamped.values())
    values += [(f"first_{place}", value) for place, value in enumerate(listed)]
    for i, j in zip(*sums.upper, strict=True):
        values.append((f"second_{i}_{j}", Product(listed[i], listed[j])))
    key = None if label is None else col(label)
    return TableSums(sums, relation, table.unit, tuple(values), key, sums.classes or ())


def table_cells(
    table: Table, sums: RowSums, cells: Mapping[str, Sequence[object]], label: str | None, groups: tuple[object, ...]
) -> TableSums:
    """Counts of the listed values of some columns, in each class; a value that is not listed counts nowhere.

    Guarantee:
        A row has one number in each column of cells, that of the first listed value which equals its own, so it counts
        in one cell of each, whichever values an engine finds equal (2**53 and 2**53 + 1 are, beside a REAL).
    """
    relation, values = table.relation, cast("list[tuple[str, Value]]", [])
    for place, (name, listed) in enumerate(cells.items()):
        cell = _name_freely(f"cell of {name}", relation)
        relation = relation.compute({cell: _number_values(col(name), listed)})
        for number in range(len(listed)):
            one = when(col(cell) == number, 1).else_(0)
            values.append((f"cell_{place}_{number}", Clamped(one.cast("real"), (0.0, 1.0), exponent=0)))
    key = None if label is None else col(label)
    return TableSums(sums, relation, table.unit, tuple(values), key, groups)


def _number_values(column: Expression, listed: Sequence[object]) -> Expression:
    """The place of the first listed value that equals the column's; NULL where none does."""
    case: Case | None = None
    for number, value in enumerate(listed):
        case = when(column == value, number) if case is None else case.when(column == value, number)
    assert case is not None
    return case.else_(null(Type.INTEGER))


def _name_freely(name: str, relation: Relation) -> str:
    """A name that no column has."""
    while name in relation.schema:
        name += "'"
    return name
