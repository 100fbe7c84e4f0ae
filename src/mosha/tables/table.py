"""A protected table: verbs that build a question, and no way to see a row."""

from __future__ import annotations

import importlib
import itertools
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mosha.connect.language.checking import type_of
from mosha.connect.language.expression import Column, Expression, as_expression, col
from mosha.connect.language.schema import Schema
from mosha.connect.plan.relation import Relation
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, WrongUnit
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.core.options import JoinName
from mosha.core.showing import Card, Shown
from mosha.core.unit import Person, Unit
from mosha.tables.declaration import Declaration
from mosha.tables.frame_verbs import FrameVerbs, read_condition
from mosha.tables.links import Links
from mosha.tables.parts.additive import Aggregate
from mosha.tables.parts.bounded_number import declared_range_key
from mosha.tables.parts.key_values import interval, intervals
from mosha.tables.parts.shown_groups import MOST_KEYS
from mosha.tables.picking import add_suffix, drop_columns, rename_columns, rename_declared, select_columns
from mosha.tables.question import Question
from mosha.tables.showing import make_grouped_card, make_table_card
from mosha.tables.verbs import Asks

__all__ = ["FROM_DATA", "Grouped", "Table", "is_from_data"]

FROM_DATA = "from_data"
"""In place of a list of keys: the groups come from the data, whatever is declared, and cost a delta."""


@explain_wrong_calls
@dataclass(frozen=True, eq=False, repr=False)
class Table(Shown, FrameVerbs):
    """Private rows behind frosted glass: `where`, `compute`, `join`, `group_by`, then ask.

    Made by `mosha.protect`: `relation` is where rows come from, `unit` whose presence is hidden, `account` who pays;
    `declared` are public types, ranges and keys of columns, `links` the keys between tables of a database.

    >>> import mosha
    >>> visits = mosha.protect({"ward": ["a", "b"], "days": [3, 5]}, unit=mosha.Row())
    >>> long = visits.where(mosha.col("days") > 4)
    >>> long.count().forecast(epsilon=1)["count"].round(2).tolist()
    [3.0]
    """

    relation: Relation
    unit: Unit
    account: Account | None = None
    declared: Declaration = field(default_factory=Declaration)
    links: Links = field(default_factory=Links)

    def __repr__(self) -> str:
        """Public words alone: the columns and who is protected, never a number of rows."""
        return f"Table({_show_columns(self.schema)}, unit={self.unit.summarize()})"

    def make_card(self) -> Card:
        return make_table_card(self)

    @property
    def schema(self) -> Schema:
        """The public list of columns and their types."""
        return self.relation.schema

    def where(self, predicate: Expression | str) -> Table:
        """The rows for which `predicate` is true: an expression, or a condition in SQL such as "days > 3"."""
        if isinstance(predicate, str):
            return replace(self, relation=read_condition(self, predicate))
        if not isinstance(predicate, Expression):
            raise InvalidParameter("tables.where_needs_expression", parameter="predicate")
        return replace(self, relation=self.relation.where(predicate))

    def compute(self, /, **columns: object) -> Table:
        """More `columns`, each computed from those before it."""
        return replace(self, relation=self.relation.compute(columns), declared=self.declared.without(columns))

    def compute_column(self, name: str, expression: Expression) -> Table:
        """One more column, the value of `expression`, whose `name` may be anything."""
        return replace(self, relation=self.relation.compute({name: expression}), declared=self.declared.without([name]))

    def select(self, *columns: str) -> Table:
        """These `columns` alone; the one that says whose a row is always stays."""
        return self._pick(select_columns(self.relation, columns))

    def drop(self, *columns: str) -> Table:
        """All columns but these `columns`."""
        return self._pick(drop_columns(self.relation, columns))

    def rename(self, names: Mapping[str, str]) -> Table:
        """The same table, some columns under other `names`: {"mdvis": "visits"}."""
        return self._pick(rename_columns(self.relation, names), names)

    def _pick(self, relation: Relation, names: Mapping[str, str] | None = None) -> Table:
        return replace(self, relation=relation, declared=rename_declared(self.declared, names or {}, relation.schema))

    def join_public(
        self,
        other: Relation,
        *,
        on: str | Mapping[str, str],
        at_most: int | None = 1,
        how: JoinName = "inner",
        suffix: str | None = None,
    ) -> Table:
        """Each row beside at most `at_most` matching rows of a public table; None for all of them, by person.

        `suffix` is put behind names of the public table that this one has too.

        `other` comes from `public_table`; `on` is the column they share, or {column here: column there}; `how` is
        "inner" or "left".
        """
        joined = [on] if isinstance(on, str) else list(on.values())
        right = add_suffix(self.relation, other, joined, suffix)
        return replace(self, relation=self.relation.join_public(right, on, at_most=at_most, how=how))

    def join(
        self,
        other: Table | Relation,
        *,
        also: Mapping[str, str] | None = None,
        how: JoinName = "inner",
        suffix: str | None = None,
        on: str | Sequence[str] | None = None,
    ) -> Table:
        """The rows of the same persons in another protected table, or the one row of a public one; the unit stays.

        Args:
            other: the other table; a public one takes its columns from `on`, as `join_public` does.
            also: columns that have to be equal as well, {left: right}.
            how: "inner" or "left".
            suffix: is put behind names of the other table that this one has too.
            on: columns that both tables have, as other libraries say it; persons are always joined.
        """
        listed = [on] if isinstance(on, str) else list(on or [])
        if isinstance(other, Relation):
            return self._join_public_on({name: name for name in listed} | dict(also or {}), other, how, suffix)
        also = {name: name for name in listed if name != self.relation.person} | dict(also or {})
        if not isinstance(other, Table):
            raise InvalidParameter("tables.join_raw_data", parameter="other", spent="nothing")
        if not other.unit.protects_same(self.unit) or not isinstance(self.unit, Person):
            raise WrongUnit("tables.join_other_person")
        if other.account is not self.account:
            raise InvalidParameter("tables.join_two_accounts", spent="nothing")
        right = add_suffix(self.relation, other.relation, (also or {}).values(), suffix)
        renamed = {old: f"{old}{suffix}" for old in other.schema if old not in right.schema}
        joined = self.relation.join_person(right, also=also, how=how)
        known = rename_declared(other.declared, renamed, right.schema)
        return replace(self, relation=joined, declared=self.declared.beside(known))

    def _join_public_on(self, on: Mapping[str, str], other: Relation, how: JoinName, suffix: str | None) -> Table:
        if not on:
            raise InvalidParameter("tables.join_public_needs_on", parameter="on", spent="nothing")
        return self.join_public(other, on=on, how=how, suffix=suffix)

    def group_by(self, *columns: object, keys: object = None, **computed: object) -> Grouped:
        """One answer for each of `keys`, a public list; groups without rows appear too.

        Args:
            columns: names of columns, or expressions with a name (`year=col("day").year()`).
            keys: values for one column, tuples for several, or lists by the name of their column (all combinations).
                Left out, they are those that the table's declaration lists; where it lists none, or with
                keys="from_data", groups come from the data, which costs a delta. So do the keys of columns without a
                list, where others have one: `keys={"month": range(1, 13)}`.
            computed: named expressions.
        """
        named: dict[str, Expression] = {}
        for column in columns:
            if not isinstance(column, str):
                raise InvalidParameter("tables.computed_key_name")
            named[column] = col(column)
        named |= {name: as_expression(expression) for name, expression in computed.items()}
        if not named:
            raise InvalidParameter("tables.no_group_column")
        return self._group(named, keys)

    def _group(self, named: Mapping[str, Expression], keys: object) -> Grouped:
        for expression in named.values():
            type_of(expression, self.schema)
        if keys is None:
            known = {name: self.declared.keys.get(e.name) for name, e in named.items() if isinstance(e, Column)}
            keys = known if len(known) == len(named) and None not in known.values() else None
        if isinstance(keys, Mapping):
            keys = {name: values for name, values in keys.items() if not is_from_data(values)}
            if set(keys) < set(named):
                return Grouped(self, tuple(named.items()), None, _list_some_keys(keys, tuple(named)))
        return Grouped(self, tuple(named.items()), _list_keys(keys, tuple(named)))

    def ask(
        self,
        aggregates: Mapping[str, Aggregate],
        *,
        by: Mapping[str, Expression] | None = None,
        keys: object = None,
        weights: Mapping[str, float] | None = None,
        top: int | None = None,
    ) -> Question:
        """The question that the other verbs build step by step, in one call.

        Args:
            aggregates: what is asked, by name.
            by: the keys of the groups, by name.
            keys: as for `group_by`.
            weights: as for `Question.weigh`.
            top: only the groups with the largest counts, this many.
        """
        grouped = self._group(by, keys) if by else Grouped(self, (), None)
        return Question(
            relation=self.relation, unit=self.unit, account=self.account, keys=grouped.keys, only=grouped.only,
            listed=grouped.listed, aggregates=_fill_ranges(aggregates, self.declared), best=top,
            weights=dict(weights or {}),
        )  # fmt: skip

    def histogram(self, edges: Mapping[str, Sequence[float]]) -> Question:
        """Rows in each interval between `edges` of a column, or in each cell of two: `{"age": [0, 18, 65, 120]}`.

        The edges are public; a row outside of them counts nowhere.
        """
        if not isinstance(edges, Mapping) or not 1 <= len(edges) <= 2:
            raise InvalidParameter("tables.histogram_edges", parameter="edges")
        keys = {name: interval(name, marks) for name, marks in edges.items()}
        listed = {name: intervals(marks) for name, marks in edges.items()}
        return self.group_by(keys=listed, **keys).count()

    def top(self, column: str, *, k: int, candidates: Iterable[object] | None = None) -> Question:
        """The k most frequent values of a column, with their counts, most frequent first.

        Args:
            column: whose values.
            k: how many.
            candidates: a public list of values; without one, values come from the data, which costs a delta.
        """
        grouped = self.group_by(column, keys=candidates)
        return replace(grouped.count(), best=positive_integer("k", k))

    def marginals(self, *, ways: int = 2, **options: object) -> Any:
        """All marginals of `ways` columns in one question, with the least noise and exact error bars.

        Args:
            ways: how many columns a marginal has.
            options: see `mosha.synth.ask_marginals`: columns, sets, weights, queries, goal, keys, between, bins,
                hierarchy, nulls.
        """
        return _load_synth().ask_marginals(self, ways=ways, **options)

    def synthesize(self, **options: object) -> Any:
        """A whole synthetic table: rows that look like the private ones, and belong to nobody.

        Args:
            options: see `mosha.synth.ask_synthesis`: keys, between, columns, derived, never, hierarchy, rows, bins,
                nulls, method, target. What the declaration says need not be said again.
        """
        return _load_synth().ask_synthesis(self, **options)

    def aggregate(self, /, **named: Aggregate) -> Question:
        return self.ask(named)


@explain_wrong_calls
@dataclass(frozen=True, eq=False, repr=False)
class Grouped(Shown, Asks):
    """A protected `table` in groups by `keys`: those listed in `only`, or found in the data (None).

    `listed` are the values of single keys that are public where those of others are not.

    >>> import mosha
    >>> visits = mosha.protect({"ward": ["a", "b"]}, unit=mosha.Row())
    >>> visits.group_by("ward", keys=["a", "b"]).count().forecast(epsilon=1)["count"].round(2).tolist()
    [3.0, 3.0]
    """

    table: Table
    keys: tuple[tuple[str, Expression], ...]
    only: tuple[tuple[Any, ...], ...] | None
    listed: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def __repr__(self) -> str:
        listed = "from data" if self.only is None else f"{len(self.only)} listed"
        return f"{self.table!r} in groups by {', '.join(name for name, _ in self.keys)} ({listed})"

    def make_card(self) -> Card:
        return make_grouped_card(self)

    def aggregate(self, /, **named: Aggregate) -> Question:
        table = self.table
        return Question(
            relation=table.relation, unit=table.unit, account=table.account,
            keys=self.keys, only=self.only, listed=self.listed, aggregates=_fill_ranges(named, table.declared),
        )  # fmt: skip


def _load_synth() -> Any:
    """The folder that stands above this one and makes these questions: loaded by name, when one is asked for."""
    return importlib.import_module("mosha.synth")


MOST_COLUMNS = 8


def _show_columns(schema: Schema) -> str:
    """The first columns with their types."""
    named = [f"{name} {kind}" for name, kind in schema.items()]
    rest = len(named) - MOST_COLUMNS
    return ", ".join(named) if rest <= 0 else f"{', '.join(named[:MOST_COLUMNS])} and {rest} more columns"


def _fill_ranges(named: Mapping[str, Aggregate], said: Declaration) -> dict[str, Aggregate]:
    """Aggregates that name no range take the one that is declared for their column."""
    ranges = {declared_range_key(col(name)): between for name, between in said.ranges.items()}
    return {name: a.fill_ranges(ranges) if isinstance(a, Aggregate) else a for name, a in named.items()}


def is_from_data(keys: object) -> bool:
    """Whether the groups are to come from the data."""
    if isinstance(keys, str) and keys == "from data":
        warnings.warn('keys="from data" is spelled keys="from_data" now.', DeprecationWarning, stacklevel=5)
        return True
    return isinstance(keys, str) and keys == FROM_DATA


def _combinations(lists: list[list[object]]) -> Iterable[Any]:
    if (many := math.prod(map(len, lists))) > MOST_KEYS:
        raise InvalidParameter("tables.too_many_groups", parameter="keys", groups=many, most=MOST_KEYS, spent="nothing")
    return itertools.product(*lists)


def _list_keys(keys: object, names: tuple[str, ...]) -> tuple[tuple[Any, ...], ...] | None:
    """Public keys as tuples, in the order they were given, without repetition."""
    if keys is None or is_from_data(keys):
        return None
    if isinstance(keys, Mapping):
        if set(keys) != set(names):
            raise InvalidParameter("tables.keys_by_name", parameter="keys", columns=list(names))
        for name in names:
            if isinstance(keys[name], str | bytes) or not isinstance(keys[name], Iterable):
                raise InvalidParameter("tables.keys_of_column", parameter="keys", column=name)
        combined: Iterable[Any] = _combinations([list(keys[name]) for name in names])
    elif isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InvalidParameter("tables.keys_shape", parameter="keys")
    else:
        combined = list(keys)
    try:
        found = dict.fromkeys([tuple(key) if isinstance(key, (tuple, list)) else (key,) for key in combined])
    except TypeError:
        raise InvalidParameter("tables.key_shape", parameter="keys") from None
    if not found:
        raise InvalidParameter("tables.no_keys", parameter="keys")
    if set(map(len, found)) != {len(names)}:
        raise InvalidParameter("tables.key_length", parameter="keys", values=len(names), columns=list(names))
    return tuple(found)


def _list_some_keys(keys: Mapping[str, object], names: tuple[str, ...]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The public values of the columns that have some."""
    listed = {name: _list_keys({name: keys[name]}, (name,)) or () for name in names if name in keys}
    _combinations([list(rows) for rows in listed.values()])
    return tuple((name, tuple(value for (value,) in rows)) for name, rows in listed.items())
