"""The SELECT that an analyst would type, answered with noise, error bars and a receipt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sqlglot import exp

from mosha.connect.language.checking import type_of
from mosha.connect.language.schema import Type
from mosha.core.errors import DataError, InvalidParameter, MoshaError, SourceUnavailable, WrongUnit
from mosha.core.options import QuantileBars
from mosha.tables.aggregates import Aggregate, count
from mosha.tables.answer import Answer
from mosha.tables.functions.constants import write_once
from mosha.tables.functions.result_functions import sort_rows
from mosha.tables.question import Question
from mosha.tables.sql.aggregate import Context, aggregate, is_aggregate
from mosha.tables.sql.group_keys import (
    add_up,
    check_columns,
    check_grouped,
    check_sets,
    check_shared,
    divide_means,
    find_public,
    list_columns,
    list_distinct,
    read_keys,
    read_marks,
    split_sets,
)
from mosha.tables.sql.nearest import nearest
from mosha.tables.sql.output import (
    TYPICAL,
    Interval,
    add_numbers,
    check,
    count_limit,
    find_output,
    half_width,
    rehearse,
    settle,
    spread,
)
from mosha.tables.sql.parsing import check_select, parse
from mosha.tables.sql.scalar import Refused, name_of
from mosha.tables.sql.scope import Scope, normalize_columns
from mosha.tables.sql.tables_in import read_from
from mosha.tables.sql.windows import (
    ResultWindow,
    check_windows,
    find_windows,
    open_aliases,
    rehearse_windows,
    take_windows,
)
from mosha.tables.table import Table

__all__ = ["Statement", "add_nearest", "read_statement", "statement"]


@dataclass(frozen=True, eq=False)
class Statement:
    """A checked SELECT: the question it asks, and what is made of the answer.

    Made by `statement`: the `question`, the names of `keys` and the `names` of its columns, `items` that are computed
    from the answer, and what is done with it for nothing: `having`, `qualify`, `order`, `limit`, `offset`, `windows`,
    `distinct`; `sets` of grouping with `marks` that tell them apart, `explained`, `raw` and `kinds` say how it is
    written; `numbers` are those that were asked before it; `typical` is what each item may be like, once rehearsed.

    >>> import mosha
    >>> visits = mosha.protect({"days": [3, 5]}, unit=mosha.Row())
    >>> statement("SELECT COUNT(*) AS n FROM visits LIMIT 1", {"visits": visits}).limit
    1
    """

    question: Question
    keys: Mapping[str, str]
    names: Mapping[str, str]
    items: tuple[tuple[str, exp.Expression], ...]
    having: exp.Expression | None = None
    qualify: exp.Expression | None = None
    order: tuple[tuple[exp.Expression, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    windows: tuple[ResultWindow, ...] = ()
    distinct: bool = False
    sets: tuple[frozenset[str], ...] = ()
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    explained: bool = field(default=False)
    numbers: Mapping[str, Answer] = field(default_factory=dict)
    typical: dict[str, object] = field(default_factory=dict)

    def answer(self, raw: Answer) -> Answer:
        """The noisy table as SELECT shows it, after HAVING, ORDER BY and LIMIT."""
        with write_once(self._written):
            return self._show(raw)

    def _show(self, raw: Answer) -> Answer:
        raw = add_up(raw.exact, self.sets, self.question, self.marks) if self.sets else raw.exact
        raw = add_numbers(raw, {name: self.numbers[name] for name in self.names.values() if name in self.numbers})
        rows, kept = self._find_rows(raw, [None] * len(raw))
        kept = [i for i in kept if self.qualify is None or settle(self.qualify, rows[i])[0]]
        for node, descending, nulls_first in reversed(self.order):
            found = {i: settle(node, rows[i])[0] for i in kept}
            kept = sort_rows(kept, found.__getitem__, descending=descending, nulls_first=nulls_first)
        columns = {name: [settle(node, rows[i])[0] for i in range(len(rows))] for name, node in self.items}
        shown = [name for name, node in self.items if name_of(node) in self.keys]
        names = [(name, self.names.get(name_of(node))) for name, node in self.items]
        if self.distinct:
            kept = list({tuple(column[i] for column in columns.values()): i for i in reversed(kept)}.values())[::-1]
        kept = kept[self.offset :][: self.limit]
        return Answer(
            keys=tuple(shown),
            rows=tuple(tuple(columns[name][i] for name in shown) for i in range(len(rows))),
            columns={name: np.array(column, object) for name, column in columns.items() if name not in shown},
            receipt=raw.receipt,
            notes=raw.notes,
            errors=lambda level: self._find_errors(raw, shown, level),
            kept=tuple(kept),
            in_rows=tuple(name for name, own in names if own in raw.in_rows),
            whole=tuple(name for name, own in names if own in raw.whole),
            estimated=tuple(name for name, node in self.items if name not in shown and self._is_estimated(node, raw)),
        )

    def _is_estimated(self, node: exp.Expression, raw: Answer) -> bool:
        """Whether a bar holds an estimate beside the noise; a window may read all of them."""
        found = (self.windows or self.names.get(name_of(part)) in raw.estimated for part in node.walk())
        return bool(raw.estimated) and any(found)

    def _find_rows(
        self, raw: Answer, bars: Sequence[Mapping[str, object] | None]
    ) -> tuple[list[dict[str, Interval]], list[int]]:
        """What is known in each row, and the rows that HAVING leaves, which are what windows see."""
        blank = find_windows(self.windows, [{}], ())[0] if self.windows else {}
        rows = [self._find_known(row, bar, blank) for row, bar in zip(raw, bars, strict=True)]
        kept = [i for i, row in enumerate(rows) if self.having is None or settle(self.having, row)[0]]
        if self.windows:
            seen = find_windows(self.windows, rows, kept)
            rows = [self._find_known(row, bar, found) for row, bar, found in zip(raw, bars, seen, strict=True)]
        return rows, kept

    def _find_known(
        self, row: Mapping[str, Any], bars: Mapping[str, object] | None, windows: Mapping[str, Interval]
    ) -> dict[str, Interval]:
        """What each aggregate, key, window and alias is in one row, by its SQL text."""
        known: dict[str, Interval] = {text: (row[name],) * 3 for text, name in self.keys.items()}
        known |= windows
        for text, name in self.names.items():
            bar = 0.0 if bars is None else bars[name]
            known[text] = spread(row[name], bar)
        for quoted, (_, node) in zip(self._quoted, self.items, strict=True):
            if quoted not in known and name_of(node) not in known:
                known[quoted] = settle(node, known)
            else:
                known.setdefault(quoted, known.get(name_of(node), (None, None, None)))
        return known

    @cached_property
    def _written(self) -> dict[int, tuple[object, str]]:
        """The text of every node that was evaluated, so that no bar and no row writes one again."""
        return {}

    @cached_property
    def _quoted(self) -> tuple[str, ...]:
        """The names of items, as an expression writes them."""
        return tuple(name_of(exp.column(name)) for name, _ in self.items)

    def rehearse(self, kinds: Mapping[str, Type]) -> None:
        """Evaluate everything once on made-up values: what mixes types is told before anything is spent."""
        made_up = {name: TYPICAL[kind] for name, kind in kinds.items()} | dict.fromkeys(self.names.values(), 1.0)
        known: dict[str, Interval] = {text: (made_up[name],) * 3 for text, name in {**self.keys, **self.names}.items()}
        with write_once(self._written):
            windows = rehearse_windows(self.windows, known) if self.windows else {}
            known |= windows
            for name, node in self.items:
                rehearse(node, known)
                self.typical[name] = settle(node, known)[0]
            known = self._find_known(made_up, None, windows)
            late = [node for node in (self.having, self.qualify) if node is not None]
            for node in (*late, *(node for node, *_ in self.order)):
                rehearse(node, known)

    @cached_property
    def _reads(self) -> dict[str, tuple[bool, frozenset[str]]]:
        """For each item whether it reads a window, and the aggregates that it reads, by their text."""
        found: dict[str, tuple[bool, frozenset[str]]] = {}
        for name, node in self.items:
            texts = set(map(name_of, node.walk()))
            read = [window for window in self.windows if window.place in texts]
            inner = (part for window in read for each in window.list_parts() for part in each.walk())
            found[name] = bool(read), frozenset((texts | set(map(name_of, inner))) & set(self.names))
        return found

    def _find_errors(self, raw: Answer, shown: list[str], confidence: float) -> dict[str, Any]:
        with write_once(self._written):
            return self._errors(raw, shown, confidence)

    def _errors(self, raw: Answer, shown: list[str], confidence: float) -> dict[str, Any]:
        """Half-widths; what is computed from k noisy numbers takes bars that miss a k-th as often."""
        found: dict[str, Any] = {}
        for name, node in self.items:
            if name in shown:
                continue
            read, used = self._reads[name]
            if name_of(node) not in self.names and any(self.names[text] in raw.in_rows for text in used):
                found[name] = np.full(len(raw), math.nan)  # a bar in rows says nothing about a computed value
                continue
            parts = max(1, len(used)) * (len(raw) if read else 1)
            table = raw.error(1 - (1 - confidence) / parts)
            bars = [{column: values[i] for column, values in table.items()} for i in range(len(raw))]
            ends = [settle(node, row) for row in self._find_rows(raw, bars)[0]]
            found[name] = np.array([half_width(interval) for interval in ends])
        return found


def statement(
    sql: str,
    tables: Mapping[str, object],
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, object] | None = None,
    bars: QuantileBars = "values",
) -> Statement:
    """Check a SELECT and turn it into a question; nothing is read and nothing is spent.

    `sql`, `tables`, `ranges`, `keys` and `bars` are those of `mosha.query`.

    >>> import mosha
    >>> visits = mosha.protect({"days": [3, 5, 2]}, unit=mosha.Row())
    >>> list(statement("SELECT COUNT(*) AS n FROM visits", {"visits": visits}).question.aggregates)
    ['n']
    """
    try:
        select, explained = parse(sql, results=True)
        return read_statement(select, tables, ranges, keys, bars, explained=explained)
    except (Refused, DataError, WrongUnit) as refusal:
        add_nearest(refusal, sql, tables, ranges, keys)
        raise


def add_nearest(
    refusal: MoshaError,
    sql: str,
    tables: Mapping[str, object],
    ranges: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, object] | None = None,
) -> None:
    """Tell a refusal the nearest query that is answered, where there is one; keys that it lost need not be said."""

    def attempt(select: exp.Select) -> MoshaError | None:
        try:
            read_statement(check_select(select, results=True), tables, ranges, keys)
        except InvalidParameter as problem:
            if getattr(problem, "code", None) not in {"tables.sql_keys_without_group", "tables.sql_unknown_column"}:
                return problem
        except MoshaError as problem:
            return problem
        else:
            return None
        try:
            read_statement(check_select(select, results=True), tables)
        except MoshaError as problem:
            return problem
        return None

    persons = [table.relation.person for table in tables.values() if isinstance(table, Table)]
    elsewhere = refusal.parameter or isinstance(refusal, SourceUnavailable) or refusal.code == "connect.plan_too_large"
    if isinstance(refusal, Refused) or not elsewhere:
        refusal.nearest = nearest(sql, attempt, next(iter(persons), None)) or refusal.nearest


def read_statement(
    select: exp.Select,
    tables: Mapping[str, object],
    ranges: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, object] | None = None,
    bars: QuantileBars = "values",
    *,
    explained: bool = False,
    asked: Mapping[str, str] | None = None,
) -> Statement:
    """The question that a parsed SELECT asks, with what `statement` takes.

    `asked` are the columns of results that stand for numbers asked before it: {text: name}.
    """
    scope = _read_rows(select, tables)
    check_columns("ranges", ranges, list_columns(scope) | set(scope.table.schema))
    context = Context(scope, scope.persons, {**scope.table.declared.ranges, **(ranges or {})}, bars, said=scope.said)
    by, sets = split_sets(select.args.get("group"))
    if sets:
        divide_means(select)
    windows = take_windows(open_aliases(select, scope.find)) if select.find(exp.Window) else []
    items = _items(select)
    by = by or list_distinct(select, items)
    groups = read_keys(by, items, scope, {window.place for window in windows})
    called = dict(zip(map(name_of, by), groups, strict=False))
    named: dict[str, Aggregate] = {}
    marks: dict[str, tuple[str, ...]] = {}
    names: dict[str, str] = dict(asked or {})
    wanted = [node for _, node in items] + [
        part for part in map(select.args.get, ("having", "qualify", "order")) if part
    ]
    wanted += [part for window in windows for part in window.list_parts()]
    for node in wanted:
        for part in node.walk(prune=is_aggregate):
            if is_aggregate(part) and name_of(part) not in names:
                alias = next((name for name, item in items if item is part), name_of(part).lower())
                if alias in named or alias in groups or alias in marks:
                    alias = f"aggregate {len(names) + 1}"
                names[name_of(part)] = alias
                if isinstance(part, exp.Grouping):
                    marks[alias] = read_marks(part.expressions, sets, called)
                else:
                    named[alias] = aggregate(part, context)
    table = scope.table
    computed = {name: expression for name, (_, expression) in groups.items()}
    check_columns("keys", keys, list_columns(scope) | set(groups) | {text for text, _ in groups.values()})
    check_grouped(keys or {}, groups)
    public = find_public(select, groups, dict(keys or {}), scope)
    named = named or _count_groups(groups, public)
    listed = public if isinstance(public, dict) else {}
    check_shared({name: key for name, key in groups.items() if name not in listed}, scope)
    grouped = table.group_by(keys=public, **computed) if computed else table
    order, having, qualify = (select.args.get(part) for part in ("order", "having", "qualify"))
    ordered = tuple(
        (find_output(o.this, items), bool(o.args.get("desc")), bool(o.args.get("nulls_first")))
        for o in (order.expressions if order else ())
    )
    texts = {text for text, _ in groups.values()} | set(names)
    texts |= check_windows(windows, texts) if windows else set()
    for _, node in items:
        check(node, texts)
    aliases = texts | {name_of(exp.column(name)) for name, _ in items}
    late = [part.this for part in (having, qualify) if part] + [node for node, *_ in ordered]
    for node in late:
        check(node, aliases)
    question, shown = check_sets(grouped.aggregate(**named), sets, called)
    check_statement = Statement(
        question=question,
        sets=shown,
        marks=marks,
        keys={text: name for name, (text, _) in groups.items()},
        names=names,
        items=tuple(items),
        having=having.this if having else None,
        qualify=qualify.this if qualify else None,
        order=ordered,
        limit=count_limit(select),
        offset=count_limit(select, "offset") or 0,
        windows=tuple(windows),
        distinct=bool(select.args.get("distinct")),
        explained=explained,
    )
    check_statement.rehearse({name: type_of(expression, scope.schema) for name, expression in computed.items()})
    return check_statement


def _count_groups(groups: Mapping[str, object], public: object) -> dict[str, Aggregate]:
    """What SELECT DISTINCT and GROUP BY alone ask for: a group from the data is shown where its noisy count is large.

    Listed groups are shown whatever their counts are, so their names alone would say nothing.
    """
    if not groups or isinstance(public, dict):
        code = "tables.sql_distinct_rows" if groups else "tables.sql_shows_rows"
        raise Refused(code)
    return {"rows of the group": count()}


def _read_rows(select: exp.Select, tables: Mapping[str, object]) -> Scope:
    """The rows of people that a query reads; its columns are written in one way afterwards."""
    scope = read_from(select, tables, results=True)
    if scope.base is None:
        raise Refused("tables.sql_public_alone", spent="nothing")
    late = [part for part in map(select.args.get, ("having", "qualify", "order")) if part is not None]
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
        if not item.alias:  # the same once more, as some programs write, or a column of two tables
            name = next(title for title in (name, *(f"{name}_{i}" for i in range(1, 1000))) if title not in dict(items))
        if name in dict(items):
            raise InvalidParameter("tables.sql_same_name", column=name)
        items.append((name, inner))
    return items
