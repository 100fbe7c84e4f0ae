"""The SELECT that an analyst would type, answered with noise, error bars and a receipt."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlglot import exp

from mosha.connect.language.checking import type_of
from mosha.connect.language.expression import Column
from mosha.connect.language.schema import Type
from mosha.core.errors import DataError, InvalidParameter, MoshaError
from mosha.tables.aggregates import Aggregate
from mosha.tables.answer import Answer
from mosha.tables.question import Question
from mosha.tables.sql.aggregate import Context, aggregate, is_aggregate
from mosha.tables.sql.nearest import nearest
from mosha.tables.sql.output import TYPICAL, Interval, check, evaluate, rehearse
from mosha.tables.sql.parsing import check_select, parse
from mosha.tables.sql.scalar import Refused, constant, name_of, scalar
from mosha.tables.sql.scope import Scope, normalize_columns
from mosha.tables.sql.tables_in import read_from
from mosha.tables.table import FROM_DATA, Table, is_from_data

__all__ = ["Statement", "statement"]


@dataclass(frozen=True, eq=False)
class Statement:
    """A checked SELECT: the question it asks, and what is made of the answer."""

    question: Question
    keys: Mapping[str, str]
    names: Mapping[str, str]
    items: tuple[tuple[str, exp.Expression], ...]
    having: exp.Expression | None = None
    order: tuple[tuple[exp.Expression, bool, bool], ...] = ()
    limit: int | None = None
    explained: bool = field(default=False)

    def answer(self, raw: Answer) -> Answer:
        """The noisy table as SELECT shows it, after HAVING, ORDER BY and LIMIT."""
        rows = [self._find_known(row, None) for row in raw]
        kept = [i for i, row in enumerate(rows) if self.having is None or evaluate(self.having, row)[0]]
        for node, descending, nulls_first in reversed(self.order):
            found = {i: evaluate(node, rows[i])[0] for i in kept}
            known = sorted((i for i in kept if found[i] is not None), key=found.__getitem__, reverse=descending)
            missing = [i for i in kept if found[i] is None]
            kept = missing + known if nulls_first else known + missing
        kept = kept[: self.limit]
        columns = {name: [evaluate(node, rows[i])[0] for i in range(len(rows))] for name, node in self.items}
        shown = [name for name, node in self.items if name_of(node) in self.keys]
        return Answer(
            keys=tuple(shown),
            rows=tuple(tuple(columns[name][i] for name in shown) for i in range(len(rows))),
            columns={name: np.array(column, object) for name, column in columns.items() if name not in shown},
            receipt=raw.receipt,
            notes=raw.notes,
            errors=lambda level: self._errors(raw, shown, level),
            kept=tuple(kept),
            in_rows=tuple(name for name, node in self.items if self.names.get(name_of(node)) in raw.in_rows),
            whole=tuple(name for name, node in self.items if self.names.get(name_of(node)) in raw.whole),
        )

    def _find_known(self, row: Mapping[str, Any], bars: Mapping[str, Any] | None) -> dict[str, Interval]:
        """What each aggregate, key and alias is in one row, by its SQL text."""
        known: dict[str, Interval] = {text: (row[name],) * 3 for text, name in self.keys.items()}
        for text, name in self.names.items():
            bar = 0.0 if bars is None else bars[name]
            known[text] = (row[name], row[name] - bar, row[name] + bar)
        for name, node in self.items:
            quoted = name_of(exp.column(name))
            if quoted not in known and name_of(node) not in known:
                known[quoted] = evaluate(node, known)
            else:
                known.setdefault(quoted, known.get(name_of(node), (None, None, None)))
        return known

    def rehearse(self, kinds: Mapping[str, Type]) -> None:
        """Evaluate everything once on made-up values: what mixes types is told before anything is spent."""
        made_up = {name: TYPICAL[kind] for name, kind in kinds.items()} | dict.fromkeys(self.names.values(), 1.0)
        known: dict[str, Interval] = {
            text: (made_up[name],) * 3 for text, name in (*self.keys.items(), *self.names.items())
        }
        for _, node in self.items:
            rehearse(node, known)
        known = self._find_known(made_up, None)
        for node in (*([self.having] if self.having else []), *(node for node, *_ in self.order)):
            rehearse(node, known)

    def _errors(self, raw: Answer, shown: list[str], confidence: float) -> dict[str, Any]:
        """Half-widths; what is computed from k noisy numbers takes bars that miss a k-th as often."""
        found: dict[str, Any] = {}
        for name, node in self.items:
            if name in shown:
                continue
            used = {name_of(part) for part in node.walk() if name_of(part) in self.names}
            if name_of(node) not in self.names and any(self.names[text] in raw.in_rows for text in used):
                found[name] = np.full(len(raw), math.nan)  # a bar in rows says nothing about a computed value
                continue
            parts = max(1, len(used))
            table = raw.error(1 - (1 - confidence) / parts)
            bars = [{column: values[i] for column, values in table.items()} for i in range(len(raw))]
            ends = [evaluate(node, self._find_known(row, bar)) for row, bar in zip(raw, bars, strict=True)]
            found[name] = np.array([_half(interval) for interval in ends])
        return found


def _half(interval: Interval) -> float:
    value, low, high = interval
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(max(high - value, value - low))


def statement(
    sql: str,
    tables: Mapping[str, Any],
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, Any] | None = None,
    bars: str = "rows",
) -> Statement:
    """Check a SELECT and turn it into a question; nothing is read and nothing is spent."""

    def check_statement(select: exp.Select, *, explained: bool = False) -> Statement:
        return _statement(select, tables, ranges, keys, bars, explained=explained)

    def attempt(select: exp.Select) -> MoshaError | None:
        try:
            check_statement(check_select(select))
        except MoshaError as problem:
            return problem
        return None

    try:
        select, explained = parse(sql)
        return check_statement(select, explained=explained)
    except Refused as refusal:
        persons = [table.relation.person for table in tables.values() if isinstance(table, Table)]
        if instead := nearest(sql, attempt, next(iter(persons), None)):
            refusal.nearest = instead
        raise


def _statement(
    select: exp.Select,
    tables: Mapping[str, Any],
    ranges: Mapping[str, tuple[float, float]] | None,
    keys: Mapping[str, Any] | None,
    bars: str,
    *,
    explained: bool,
) -> Statement:
    scope = _read_rows(select, tables)
    _check_columns("ranges", ranges, _columns(scope) | set(scope.table.schema))
    context = Context(scope, scope.persons, {**scope.table.declared.ranges, **(ranges or {})}, bars)
    items = _items(select)
    groups = _groups(select, items, scope)
    named: dict[str, Aggregate] = {}
    names: dict[str, str] = {}
    wanted = [node for _, node in items] + [
        part for part in (select.args.get("having"), select.args.get("order")) if part
    ]
    for node in wanted:
        for part in node.walk(prune=is_aggregate):
            if is_aggregate(part) and name_of(part) not in names:
                alias = next((name for name, item in items if item is part), name_of(part).lower())
                if alias in named or alias in groups:
                    alias = f"aggregate {len(named) + 1}"
                names[name_of(part)] = alias
                named[alias] = aggregate(part, context)
    if not named:
        raise Refused("tables.sql_shows_rows")
    table = scope.table
    computed = {name: expression for name, (_, expression) in groups.items()}
    _check_columns("keys", keys, _columns(scope) | set(groups) | {text for text, _ in groups.values()})
    _check_grouped(keys or {}, groups)
    public = _public(select, groups, dict(keys or {}), scope)
    if public in (None, FROM_DATA):
        _check_shared(groups, scope)
    asked = table.group_by(keys=public, **computed) if computed else table
    order, having = select.args.get("order"), select.args.get("having")
    ordered = tuple(
        (_output(o.this, items), bool(o.args.get("desc")), bool(o.args.get("nulls_first")))
        for o in (order.expressions if order else ())
    )
    texts = {text for text, _ in groups.values()} | set(names)
    for _, node in items:
        check(node, texts)
    aliases = texts | {name_of(exp.column(name)) for name, _ in items}
    late = ([having.this] if having else []) + [node for node, *_ in ordered]
    for node in late:
        check(node, aliases)
    check_statement = Statement(
        question=asked.aggregate(**named),
        keys={text: name for name, (text, _) in groups.items()},
        names=names,
        items=tuple(items),
        having=having.this if having else None,
        order=ordered,
        limit=_limit(select),
        explained=explained,
    )
    check_statement.rehearse({name: type_of(expression, scope.schema) for name, expression in computed.items()})
    return check_statement


def _read_rows(select: exp.Select, tables: Mapping[str, Any]) -> Scope:
    """The rows of people that a query reads; its columns are written in one way afterwards."""
    scope = read_from(select, tables)
    if scope.base is None:
        raise Refused("tables.sql_public_alone", spent="nothing")
    late = [part for part in (select.args.get("having"), select.args.get("order")) if part is not None]
    if any(part.find(exp.Select) for part in late):
        raise Refused("tables.sql_subquery_place")
    normalize_columns(select, scope)
    return scope


def _items(select: exp.Select) -> list[tuple[str, exp.Expression]]:
    items: list[tuple[str, exp.Expression]] = []
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            raise Refused("tables.sql_star")
        inner = item.this if isinstance(item, exp.Alias) else item
        name = item.alias or (inner.name if isinstance(inner, exp.Column) else name_of(inner).lower())
        if name in dict(items):
            raise InvalidParameter("tables.sql_same_name", column=name)
        items.append((name, inner))
    return items


def _groups(select: exp.Select, items: list[tuple[str, exp.Expression]], scope: Scope) -> dict[str, tuple[str, Any]]:
    """The keys: name -> (SQL text, expression); GROUP BY takes expressions, positions and aliases."""
    group = select.args.get("group")
    if group is None:
        return {}
    grouping = (exp.Rollup, exp.Cube, exp.GroupingSets)
    options = any(value for key, value in group.args.items() if key != "expressions")
    if options or any(isinstance(node, grouping) for node in group.expressions):
        raise Refused("tables.sql_group_by")
    found: dict[str, tuple[str, Any]] = {}
    aliases = dict(items)
    columns = {name.lower() for name in _columns(scope)}
    for node in group.expressions:
        target = _position(node, items)
        if isinstance(target, exp.Column) and target.name in aliases and target.name.lower() not in columns:
            target = aliases[target.name]
        name = next((alias for alias, item in items if name_of(item) == name_of(target)), None)
        name = name or (target.name if isinstance(target, exp.Column) else name_of(target))
        if any(is_aggregate(part) for part in target.walk()):
            raise Refused("tables.sql_group_by_aggregate", text=name_of(target))
        found[name] = (name_of(target), scalar(target, scope))
    return found


def _check_shared(groups: Mapping[str, tuple[str, Any]], scope: Scope) -> None:
    """Refuse groups from the data that hold one person's rows each: none of them could ever be shown."""
    columns = [expression.name for _, expression in groups.values() if isinstance(expression, Column)]
    if scope.persons & set(columns) or scope.implies(columns):
        raise Refused("tables.groups_of_one_person", spent="nothing")


def _check_columns(what: str, given: Any, known: set[str]) -> None:
    """What is said about columns is said by name, about columns that are there."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidParameter("tables.sql_by_column", parameter=what)
    if unknown := [name for name in given or {} if name not in known]:
        raise DataError(
            "tables.sql_unknown_column",
            parameter=what,
            column=str(unknown[0]),
            columns=[repr(name) for name in sorted(known)],
        )


def _check_grouped(given: Mapping[str, Any], groups: Mapping[str, tuple[str, Any]]) -> None:
    """Keys are said of what the query groups by, and of nothing else."""
    for name in given:
        if not any(name in _list_names(key, text, expression) for key, (text, expression) in groups.items()):
            raise InvalidParameter("tables.sql_keys_without_group", parameter="keys", column=name, spent="nothing")


def _list_names(key: str, text: str, expression: Any) -> tuple[str, ...]:
    """What a key may be called: as SELECT names it, as GROUP BY writes it, as its column is called."""
    return (key, text, expression.name) if isinstance(expression, Column) else (key, text)


def _columns(scope: Scope) -> set[str]:
    return {name for columns in scope.names.values() for name in columns}


def _position(node: exp.Expression, items: list[tuple[str, exp.Expression]]) -> exp.Expression:
    """GROUP BY 1 and ORDER BY 2 name items of SELECT."""
    if isinstance(node, exp.Literal) and not node.is_string:
        place = constant(node)
        if not isinstance(place, int) or not 1 <= place <= len(items):
            raise InvalidParameter("tables.sql_column_number", number=str(node.this))
        return items[place - 1][1]
    return node


def _output(node: exp.Expression, items: list[tuple[str, exp.Expression]]) -> exp.Expression:
    """What ORDER BY names: first a column of the answer, by its place or its name, then any other."""
    if isinstance(node, exp.Column) and not node.table:
        return dict(items).get(node.name, node)
    return _position(node, items)


def _public(
    select: exp.Select, groups: Mapping[str, tuple[str, Any]], given: dict[str, Any], scope: Scope
) -> dict[str, list[Any]] | str | None:
    """Public keys of the columns that have them: as given, as WHERE lists them, as declared; others' come from data."""
    listed = _listed_in_where(select, scope)
    found: dict[str, list[Any]] = {}
    asked = False
    for name, (text, expression) in groups.items():
        declared = scope.table.declared.keys.get(expression.name) if isinstance(expression, Column) else None
        said = [given.get(called) for called in _list_names(name, text, expression)]
        for source in (*said, listed.get(repr(expression)), declared):
            if is_from_data(source):
                asked = True
                break
            if source is not None:
                if isinstance(source, str | bytes) or not isinstance(source, Iterable):
                    raise InvalidParameter("tables.keys_of_column", parameter="keys", column=name)
                found[name] = list(source)
                break
    return found or (FROM_DATA if asked else None)


def _listed_in_where(select: exp.Select, scope: Scope) -> dict[str, list[Any]]:
    where = select.args.get("where")
    if where is None:
        return {}
    parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    listed: dict[str, list[Any]] = {}
    for part in parts:
        if isinstance(part, exp.In) and part.expressions:
            listed[repr(scalar(part.this, scope))] = [constant(item) for item in part.expressions]
        elif isinstance(part, exp.EQ) and isinstance(part.expression, exp.Literal):
            listed[repr(scalar(part.this, scope))] = [constant(part.expression)]
    return listed


def _limit(select: exp.Select) -> int | None:
    limit = select.args.get("limit")
    if limit is None:
        return None
    if isinstance(limit, exp.Fetch):
        raise Refused("tables.sql_fetch", spent="nothing")
    rows = constant(limit.expression)
    if not isinstance(rows, int) or rows < 0:
        raise InvalidParameter("tables.sql_limit")
    return rows
