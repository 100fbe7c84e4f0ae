"""Rows of a protected table, for models that go over them several times: read once, inside the step that was paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mosha.connect.engines.source import answer
from mosha.connect.language.expression import col
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Truncate, Unbounded
from mosha.connect.plan.relation import Relation
from mosha.core.errors import InvalidParameter
from mosha.core.fingerprint import fingerprint_plan
from mosha.core.measurement import Measurement, Rng
from mosha.core.unit import Person, Row, Unit
from mosha.exact.bounding import rows_per_unit
from mosha.models.sums.row_sums import Examples
from mosha.noise import secure
from mosha.tables import Table

__all__ = ["TableRows", "rows_of_table"]


@dataclass(frozen=True)
class TableRows:
    """Different rows of some columns and how many there are of each, as the engine counts them.

    Guarantee:
        Rows with a missing number are left out, each by itself; of a person the engine keeps `rows_per_unit` at most
        (`Truncate`), so that what a person adds to the rows that are read, or takes away, is no more than that many.
        A `Row` changes as many rows as it promises: where a join makes more of them, the table is refused.
    """

    relation: Relation
    protected: Unit
    features: tuple[str, ...]
    targets: tuple[str, ...]

    def __post_init__(self) -> None:
        unit, relation = self.protected, self.relation
        if not isinstance(unit, Row | Person):
            raise InvalidParameter("models.unit_of_table", parameter="unit", noun=unit.noun)
        owned = isinstance(unit, Person) and relation.person is not None
        if not owned and (isinstance(unit, Person) or relation.stability.per_row != 1):
            raise InvalidParameter("models.joined_rows", parameter="X", spent="nothing")
        rows_per_unit(unit)  # refuses a person without a bound

    def question(self) -> Aggregation:
        """What the engine is asked; the key of the choice of a person's rows is drawn anew each time."""
        relation, keys = self.relation, []
        for name in self.features:
            relation = relation.where(~col(name).is_null())
            keys.append((f"feature_{name}", col(name).cast("real")))
        keys += [(f"target_{name}", col(name)) for name in self.targets]
        by_person = isinstance(self.protected, Person)
        bound = Truncate(secure().bytes(32), rows=rows_per_unit(self.protected)) if by_person else Unbounded()
        return Aggregation(relation, tuple(keys), (("rows", Rows()),), bound=bound)

    def look(self) -> None:
        """Let the engine analyze what will run."""
        answer(self.question())

    def read(self) -> Examples:
        """Features, targets and whose they are: every row its own, for persons are bounded already."""
        totals = answer(self.question())
        counts = totals["rows"].astype(np.int64)
        columns = [np.repeat(column, counts) for column in totals.keys]
        owners, width = np.arange(int(counts.sum())), len(self.features)
        features = np.column_stack([np.asarray(column, np.float64) for column in columns[:width]])
        targets = columns[width:]
        if len(targets) == 2:
            return features, np.column_stack([np.asarray(column, np.float64) for column in targets]), owners
        return features, targets[0] if targets else None, owners

    def ask_by(self, measurement: Measurement) -> Measurement:
        """The measurement with these rows as its data, whatever is handed in."""
        inner = measurement.step

        def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
            del data
            found: tuple[object, object] = inner(state, self.read(), ask, rng)
            return found

        return replace(measurement, step=step, question=f"{measurement.question} {fingerprint_plan(self)}")


def rows_of_table(table: Table, features: Sequence[str], targets: Sequence[str]) -> TableRows:
    """The rows that a model of these columns reads."""
    return TableRows(table.relation, table.unit, tuple(features), tuple(targets))
