"""Questions about public tables alone: answered exactly, for nothing, without an account.

Guarantee:
    Every table that is read is public (`Stability(0, 0)`), and so is every step above it: no person's row is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from mosha.connect.engines.source import answer as ask_engine
from mosha.connect.engines.source import explain as write_statements
from mosha.connect.engines.source import stop_at
from mosha.connect.language.expression import col
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Unbounded
from mosha.connect.plan.person_steps import NOT_CHANGED
from mosha.connect.plan.relation import Relation
from mosha.core.errors import InvalidParameter
from mosha.core.event import compose
from mosha.core.language import say
from mosha.core.release import Receipt
from mosha.core.unit import Row
from mosha.tables.answer import Answer
from mosha.tables.sql.aggregate import is_aggregate
from mosha.tables.sql.output import count_limit, find_position
from mosha.tables.sql.parsing import parse
from mosha.tables.sql.scalar import Refused, name_of
from mosha.tables.sql.subqueries import attach_subqueries
from mosha.tables.sql.summaries import is_summary, summarize
from mosha.tables.sql.tables_in import make_reader, project, read_from, reads_public_alone

__all__ = ["PublicStatement", "read_public_statement"]


class _FreeReceipt(Receipt):
    """Nothing was paid, for nobody was asked about."""

    def __str__(self) -> str:
        return say("tables.public_receipt")

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>"


@dataclass(frozen=True, eq=False)
class PublicStatement:
    """A SELECT about public tables: its rows, and how they are shown.

    Fields:
        relation: the rows of the answer.
        columns: {name in the answer: name in the plan}.
        computed: the columns that aggregate.
        order: (name in the plan, descending, missing values first) of each part of ORDER BY.
        explained: whether EXPLAIN stood before it.
    """

    relation: Relation
    columns: Mapping[str, str]
    computed: frozenset[str] = frozenset()
    order: tuple[tuple[str, bool, bool], ...] = ()
    limit: int | None = None
    explained: bool = False

    def answer(self, *, deadline: float | None = None) -> Answer:
        """The rows, exactly, in their order."""
        names = list(dict.fromkeys([*self.columns.values(), *(name for name, _, _ in self.order)]))
        with stop_at(deadline):
            found = ask_engine(self._list_rows(names))
        rows = [row for row, (count,) in found.rows() for _ in range(int(count))]
        rows.sort(key=lambda row: tuple((value is not None, value) for value in row))  # the same order on every engine
        for name, descending, nulls_first in reversed(self.order):
            place = names.index(name)
            known = [row for row in rows if row[place] is not None]
            known.sort(key=lambda row: row[place], reverse=descending)
            missing = [row for row in rows if row[place] is None]
            rows = missing + known if nulls_first else known + missing
        return self._show(names, rows[: self.limit])

    def _list_rows(self, names: Sequence[str]) -> Aggregation:
        keys = tuple((f"k{place}", col(name)) for place, name in enumerate(names))
        return Aggregation(self.relation, keys, (("n", Rows()),), bound=Unbounded())

    def _show(self, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Answer:
        shown = {title: [row[names.index(name)] for row in rows] for title, name in self.columns.items()}
        keys = tuple(title for title in shown if title not in self.computed)
        numbers = {title: np.array(shown[title], object) for title in shown if title in self.computed}
        return Answer(
            keys=keys,
            rows=tuple(tuple(shown[title][place] for title in keys) for place in range(len(rows))),
            columns=numbers,
            receipt=_make_receipt(),
            notes=(say("tables.public_answer", "en"),),
            errors=lambda _: {title: np.zeros(len(rows)) for title in numbers},
            public=True,
            all_digits=True,
        )

    def explain(self, *, statements: bool = False) -> str:
        """That nothing is hidden and nothing paid; with `statements` also the SQL that runs."""
        said = say("tables.public_answer")
        return f"-- {said}\n{write_statements(self._list_rows(list(self.columns.values())))}" if statements else said


def _make_receipt() -> Receipt:
    return _FreeReceipt(
        account="", entry="", unit=Row(), event=compose(()), measure="epsilon", cost=0.0, spent=0.0, limit=0.0
    )


def read_public_statement(sql: str, tables: Mapping[str, object]) -> PublicStatement | None:
    """The SELECT, where all of its tables are public; None where one of them is not, or where it cannot be read."""
    try:
        select, explained = parse(sql)
    except InvalidParameter:
        return None
    if not reads_public_alone(select, tables):
        return None
    limit = count_limit(select)
    order = _name_items(select)
    scope = read_from(select, tables)
    computed: set[str] = set()
    if is_summary(select):
        computed = {item.alias for item in select.expressions if any(map(is_aggregate, item.walk()))}
        reader = make_reader(tables)
        scope = summarize(select, scope, lambda outer, parts: attach_subqueries(outer, parts, select, reader))
    else:
        scope = project(select, scope)
    if scope.relation.stability != NOT_CHANGED:
        raise InvalidParameter("tables.sql_not_a_table", table=name_of(select), spent="nothing")
    visible = scope.visible()
    hidden = {title for title, _, _ in order if title.startswith(_HIDDEN)}
    return PublicStatement(
        scope.relation,
        {title: name for title, name in visible.items() if title not in hidden},
        frozenset(computed - hidden),
        tuple((visible[title], descending, first) for title, descending, first in order),
        limit,
        explained,
    )


_HIDDEN = "order of the rows "


def _name_items(select: exp.Select) -> list[tuple[str, bool, bool]]:
    """Name every item, and add one for each part of ORDER BY that SELECT does not show: (name, descending, ...)."""
    items: list[exp.Expr] = []
    for item in select.expressions:
        star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
        items.append(item if star or item.alias else exp.alias_(item, _name_item(item), quoted=True))
    names = [item.alias for item in items if item.alias]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidParameter("tables.sql_same_name", column=twice)
    known = [(item.alias, item.this) for item in items if item.alias]
    order = select.args.get("order")
    found: list[tuple[str, bool, bool]] = []
    for part in order.expressions if order else ():
        node = find_position(part.this, known)
        title = next((name for name, item in known if item is node or name_of(item) == name_of(node)), None)
        if title is None and isinstance(node, exp.Column) and not node.table and node.name in names:
            title = node.name
        if title is None:
            if select.args.get("distinct"):
                raise Refused("tables.sql_distinct", text=name_of(node))
            title = f"{_HIDDEN}{len(found) + 1}"
            items.append(exp.alias_(node.copy(), title, quoted=True))
        found.append((title, bool(part.args.get("desc")), bool(part.args.get("nulls_first"))))
    select.set("expressions", items)
    return found


def _name_item(item: exp.Expr) -> str:
    return item.name if isinstance(item, exp.Column) else name_of(item).lower()
