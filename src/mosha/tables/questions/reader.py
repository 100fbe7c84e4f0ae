"""Questions as plain data: what JSON holds, and never code.

    {"question": "tables", "version": 1,
     "table": "visits",
     "steps": [{"where": condition}, {"compute": "year", "as": expression},
               {"join_public": {"table": "codes", "steps": []}, "on": [["code", "code"]], "at_most": 1, "how": "inner"},
               {"join": {"table": "stays", "steps": []}, "also": [["ward", "ward"]], "how": "left"}],
     "group_by": ["ward", {"name": "year", "of": expression}],
     "keys": [["cardiology", 2024], ["surgery", 2024]],
     "aggregates": [{"name": "stay", "kind": "mean", "column": "days", "between": [0, 30]}],
     "weights": {"stay": 2.0}, "top": 3, "sets": [["ward"], []]}

Expressions are written as `mosha.connect.language.plain_data` says. A column is its name, or an expression. `between`
and `keys` may be left out if the table's declaration has them; "between": "automatic" and "keys": "from_data" are paid
for. Tables are called by the names under which the reader knows them, and bring their unit and their account with them:
nothing in a question can change who is protected or who pays.

What is read is built by the verbs of the table, so that the same checks refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, Self, TypeVar, cast, get_args, runtime_checkable

from mosha.connect.language.expression import Column, Expression
from mosha.connect.language.plain_data import MOST_SHOWN, Reader
from mosha.connect.plan.relation import Relation
from mosha.core.errors import InvalidParameter
from mosha.core.number import positive, positive_integer, real
from mosha.core.options import JoinName, QuantileBars
from mosha.tables import aggregates as ask
from mosha.tables.aggregates import maximum, median, minimum, quantile
from mosha.tables.parts.additive import Aggregate
from mosha.tables.parts.bounded_number import AUTOMATIC
from mosha.tables.parts.key_values import from_plain

__all__ = ["ALONE", "FROM_DATA", "VERSION", "ProtectedTable", "Tables", "read_question", "read_sets"]

VERSION = 1
ALONE = "table"
"""What the only table of a question is called if nobody has named it."""
FROM_DATA = "from_data"

_ONE_COLUMN = {
    "sum": ask.sum, "distinct_sum": ask.distinct_sum,
    "mean": ask.mean, "variance": ask.variance, "standard_deviation": ask.standard_deviation,
}  # fmt: skip
_TWO_COLUMNS = {"covariance": ask.covariance, "correlation": ask.correlation}
_EXTREMES = {"median": median, "minimum": minimum, "maximum": maximum}
_STEPS = {
    "where": (["where"], []),
    "compute": (["compute", "as"], []),
    "join_public": (["join_public", "on"], ["at_most", "how"]),
    "join": (["join"], ["also", "how"]),
}
_COUNTS: dict[str, Callable[[str | Expression | None], Aggregate]] = {
    "count": ask.count, "distinct": ask.distinct, "persons": lambda _: ask.persons(),
}  # fmt: skip
_KINDS = [*_COUNTS, *_ONE_COLUMN, *_TWO_COLUMNS, "quantile", *_EXTREMES]

Keys = Sequence[tuple[object, ...]]
Asked_co = TypeVar("Asked_co", covariant=True)
Found = TypeVar("Found")


@runtime_checkable
class ProtectedTable(Protocol[Asked_co]):
    """What a question is built with: the verbs of `mosha.tables.Table`."""

    @property
    def relation(self) -> Relation:
        """The plan of its rows."""

    def where(self, predicate: Expression) -> Self:
        """The rows for which a condition is true."""

    def compute_column(self, name: str, expression: Expression) -> Self:
        """One more column."""

    def join(self, other: Self, *, also: Mapping[str, str] | None = None, how: JoinName = "inner") -> Self:
        """The rows of the same persons in another table."""

    def join_public(self, other: Relation, *, on: Mapping[str, str], at_most: int = 1, how: JoinName = "inner") -> Self:
        """The matching rows of a public table."""

    def ask(
        self,
        aggregates: Mapping[str, Aggregate],
        *,
        by: Mapping[str, Expression],
        keys: Keys | Mapping[str, Sequence[object]] | str | None,
        weights: Mapping[str, float],
        top: int | None,
    ) -> Asked_co:
        """The question itself."""


Tables = ProtectedTable[Asked_co] | Mapping[str, ProtectedTable[Asked_co] | Relation]


Rows = ProtectedTable[Asked_co] | Relation


def read_question(tables: Tables[Asked_co], data: object) -> Asked_co:
    """The question that plain data describe; anything else is refused by a typed error.

    Args:
        tables: one protected table (called "table"), or all that the question may name: protected and public ones.
        data: what `Question.to_dict` wrote, or somebody else.
    """
    known: Mapping[str, Rows[Asked_co]] = tables if isinstance(tables, Mapping) else {ALONE: tables}
    for name, table in known.items():
        if not isinstance(table, ProtectedTable | Relation):
            raise InvalidParameter("tables.not_a_table", parameter="tables", spent="nothing", table=str(name))
    return _QuestionReader(known).question(data)


def read_sets(data: object) -> tuple[object, tuple[tuple[str, ...], ...]]:
    """The groupings that plain data ask for, and the rest of the data."""
    if not isinstance(data, Mapping) or "sets" not in data:
        return data, ()
    reader, rest = Reader(), {name: value for name, value in data.items() if name != "sets"}
    sets = tuple(
        tuple(reader.text(name, "sets") for name in reader.items(kept, "sets"))
        for kept in reader.items(data["sets"], "sets")
    )
    return rest, sets


class _AggregateReader(Reader):
    """Reads what is asked of each group."""

    def _name_or_expression(self, data: object, place: str) -> str | Expression:
        return self.text(data, place) if isinstance(data, str) else self.expression(data, place)

    def _between(self, data: object, place: str) -> tuple[float, float] | str | None:
        if data is None or data == AUTOMATIC:
            return AUTOMATIC if data else None
        pair = self.items(data, place)
        if len(pair) != 2:
            self.refuse("tables.data_no_range", place)
        low, high = (real(place, edge) for edge in pair)
        return low, high

    def aggregate(self, data: object, place: str) -> tuple[str, Aggregate]:
        """An aggregate with its name."""
        self.count_part(place)
        if not isinstance(data, Mapping):
            self.refuse("connect.data_no_object", place, fields=["name", "kind"])
        kind = self.choice(data.get("kind"), f"{place}.kind", _KINDS)
        needs, may = _FIELDS.get(kind, (["column"], ["between"]))
        found = self.fields(data, place, needs=["name", "kind", *needs], may=may)
        return self.text(found["name"], f"{place}.name"), self._read_asked(kind, found, place)

    def _read_asked(self, kind: str, found: Mapping[str, object], place: str) -> Aggregate:
        if kind in _TWO_COLUMNS:
            return self._read_asked_of_two(kind, found, place)
        column = self._name_or_expression(found["column"], f"{place}.column") if "column" in found else None
        if kind in _COUNTS:
            return _COUNTS[kind](column)
        between = self._between(found.get("between"), f"{place}.between")
        if kind in _ONE_COLUMN:
            return _ONE_COLUMN[kind](column, between=between)
        bars = cast(
            "QuantileBars", self.choice(found.get("bars", "values"), f"{place}.bars", list(get_args(QuantileBars)))
        )
        if kind in _EXTREMES:
            return _EXTREMES[kind](column, between=between, bars=bars)
        return quantile(column, real(f"{place}.at", found["at"]), between=between, bars=bars)

    def _read_asked_of_two(self, kind: str, found: Mapping[str, object], place: str) -> Aggregate:
        columns = [
            self._name_or_expression(part, f"{place}.columns")
            for part in self.items(found["columns"], f"{place}.columns")
        ]
        ranges = self.items(found.get("between", (None, None)), f"{place}.between")
        return _TWO_COLUMNS[kind](columns, between=[self._between(pair, f"{place}.between") for pair in ranges])


_FIELDS: dict[str, tuple[list[str], list[str]]] = {
    "count": ([], ["column"]),
    "persons": ([], []),
    "distinct": (["column"], []),
    **dict.fromkeys(_TWO_COLUMNS, (["columns"], ["between"])),
    "quantile": (["column", "at"], ["between", "bars"]),
    **dict.fromkeys(_EXTREMES, (["column"], ["between", "bars"])),
}
"""The fields that each kind of aggregate needs, and those that it may have, beside its name."""


class _QuestionReader(_AggregateReader, Generic[Asked_co]):
    """Reads a question over some tables."""

    def __init__(self, tables: Mapping[str, Rows[Asked_co]]) -> None:
        super().__init__()
        self._tables = tables

    def question(self, data: object) -> Asked_co:
        """The whole question."""
        needs, may = ["question", "version", "table", "aggregates"], ["steps", "group_by", "keys", "weights", "top"]
        found = self.fields(data, "question", needs=needs, may=may)
        self.choice(found["question"], "question", ["tables"])
        if type(found["version"]) is not int or found["version"] != VERSION:
            self.refuse("tables.data_version", "version", version=VERSION)
        table = self._rows({name: found[name] for name in ("table", "steps") if name in found}, "", 0)
        if isinstance(table, Relation):
            self.refuse("tables.data_public_table", "table")
        by = self._read_named("group_by", found.get("group_by", ()), self._key)
        asked = self._read_named("aggregates", found["aggregates"], self.aggregate)
        keys = self._keys(found["keys"], table.relation, by) if "keys" in found else None
        top = positive_integer("top", found["top"]) if "top" in found else None
        return table.ask(asked, by=by, keys=keys, weights=self._weights(found.get("weights", {})), top=top)

    def _read_named(
        self, place: str, data: object, read: Callable[[object, str], tuple[str, Found]]
    ) -> dict[str, Found]:
        """The items of a list by their names, which differ."""
        named: dict[str, Found] = {}
        for i, item in enumerate(self.items(data, place)):
            name, value = read(item, f"{place}[{i}]")
            if name in named:
                self.refuse("tables.data_name_twice", f"{place}[{i}]")
            named[name] = value
        return named

    def _rows(self, data: object, place: str, depth: int) -> Rows[Asked_co]:
        """A table with its steps."""
        self.count_part(place, depth)
        found = self.fields(data, place or "question", needs=["table"], may=["steps"])
        place = place and f"{place}."
        name = self.text(found["table"], f"{place}table")
        if name not in self._tables:
            self.refuse(
                "tables.data_no_table", f"{place}table", table=name[:MOST_SHOWN], tables=list(map(str, self._tables))
            )
        table = self._tables[name]
        for i, step in enumerate(self.items(found.get("steps", ()), f"{place}steps")):
            table = self._step(table, step, f"{place}steps[{i}]", depth)
        return table

    def _step(self, table: Rows[Asked_co], data: object, place: str, depth: int) -> Rows[Asked_co]:
        self.count_part(place)
        kind = next((name for name in _STEPS if isinstance(data, Mapping) and name in data), None)
        if kind is None:
            self.refuse("connect.data_no_object", place, fields=list(_STEPS))
        found = self.fields(data, place, needs=_STEPS[kind][0], may=_STEPS[kind][1])
        if kind == "where":
            return table.where(self.expression(found["where"], f"{place}.where"))
        if kind == "compute":
            name, expression = self.text(found["compute"], place), self.expression(found["as"], f"{place}.as")
            if isinstance(table, Relation):
                return table.compute({name: expression})
            return table.compute_column(name, expression)
        other = self._rows(found[kind], f"{place}.{kind}", depth + 1)
        how = cast("JoinName", self.choice(found.get("how", "inner"), f"{place}.how", list(get_args(JoinName))))
        if kind == "join_public" and isinstance(other, Relation):
            at_most = positive_integer(f"{place}.at_most", found.get("at_most", 1))
            return table.join_public(other, on=self._pairs(found["on"], f"{place}.on"), at_most=at_most, how=how)
        if kind == "join_public" or isinstance(other, Relation) or isinstance(table, Relation):
            self.refuse("tables.data_other_join", place)
        return table.join(other, also=self._pairs(found.get("also", ()), f"{place}.also"), how=how)

    def _pairs(self, data: object, place: str) -> dict[str, str]:
        def read(pair: object, at: str) -> tuple[str, str]:
            both = self.items(pair, at)
            if len(both) != 2:
                self.refuse("connect.data_no_pair", at)
            return self.text(both[0], at), self.text(both[1], at)

        return self._read_named(place, data, read)

    def _key(self, data: object, place: str) -> tuple[str, Expression]:
        if isinstance(data, str):
            return data, Column(self.text(data, place))
        found = self.fields(data, place, needs=["name", "of"])
        return self.text(found["name"], f"{place}.name"), self.expression(found["of"], f"{place}.of")

    def _keys(
        self, data: object, relation: Relation, by: Mapping[str, Expression]
    ) -> Keys | Mapping[str, Sequence[object]] | str:
        if not by:
            self.refuse("tables.data_keys_without_groups", "keys")
        if data == FROM_DATA:
            return FROM_DATA
        if isinstance(data, Mapping):
            return self._some_keys(data, relation, by)
        rows = [self.items(row, f"keys[{i}]") for i, row in enumerate(self.items(data, "keys"))]
        return self.build("keys", lambda: [from_plain(row, relation, tuple(by.items())) for row in rows])

    def _some_keys(
        self, data: Mapping[object, object], relation: Relation, by: Mapping[str, Expression]
    ) -> dict[str, list[object]]:
        """The public values of some columns, by name."""
        found = self.fields(data, "keys", needs=[], may=list(by))
        return {name: self._values(values, name, relation, by[name]) for name, values in found.items()}

    def _values(self, data: object, name: str, relation: Relation, of: Expression) -> list[object]:
        place = f"keys.{name}"
        items = self.items(data, place)
        return self.build(place, lambda: [from_plain([item], relation, ((name, of),))[0] for item in items])

    def _weights(self, data: object) -> dict[str, float]:
        if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
            self.refuse("connect.data_no_object", "weights", fields=["weights"])
        return {name: positive(f"weights.{name[:MOST_SHOWN]}", weight) for name, weight in data.items()}
