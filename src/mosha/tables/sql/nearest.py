"""The nearest query that is answered, for one that is refused: rewritten by a few rules, and checked like any other."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mosha.core.errors import MoshaError
from mosha.tables.sql.aggregate import AGGREGATES, is_aggregate

__all__ = ["nearest"]

Attempt = Callable[[exp.Select], MoshaError | None]
"""Checks a SELECT as any other: what is wrong with it, or None."""

_DROPPED = ("distinct", "windows", "qualify", "offset", "sample", "laterals", "into", "locks")
_MOST_RANGES = 8
_ANSWERED: Collection[Any] = AGGREGATES


def nearest(text: str, attempt: Attempt, person: str | None) -> str | None:
    """A query like `text` that is answered, or None where the rules find none.

    Args:
        text: the query that was refused.
        attempt: tells what is wrong with another one.
        person: the column that says whose a row is, on which protected tables are joined.
    """
    if not text.lstrip("( \n\t").upper().startswith(("SELECT", "WITH", "EXPLAIN")):
        return None
    for rewrite in (_rewritten, lambda select: _join_on_person(_rewritten(select), person)):
        try:
            statements = sqlglot.parse(re.sub(r"(?i)^\s*explain\s", "", text), dialect="duckdb")
        except (SqlglotError, RecursionError):
            return None
        select = _first(statements[0]) if len(statements) == 1 else None
        if select is not None and (found := _add_ranges(rewrite(select), attempt)):
            return found
    return None


def _add_ranges(select: exp.Select, attempt: Attempt) -> str | None:
    """The query where it is answered, after numbers without a range were given one."""
    for _ in range(_MOST_RANGES):
        problem = attempt(select)
        if problem is None:
            return _write_answered(select, attempt)
        node = getattr(problem, "node", None)
        if node is None:
            return None
        edges = [exp.Literal.number(edge) for edge in (0, 100)]
        node.replace(exp.Anonymous(this="CLAMP", expressions=[node.copy(), *edges]))
    return None


def _write_answered(select: exp.Select, attempt: Attempt) -> str | None:
    """The text of a query that is answered when it is read again."""
    for dialect in ("duckdb", ""):
        text = select.sql(dialect=dialect, comments=False)
        again = sqlglot.parse_one(text, dialect="duckdb")
        if isinstance(again, exp.Select) and attempt(again) is None:
            return text
    return None


def _join_on_person(select: exp.Select, person: str | None) -> exp.Select:
    """Joins on the person, who is the same in both tables."""
    for join in select.args.get("joins") or [] if person else []:
        join.replace(exp.Join(this=join.this.copy(), using=[exp.to_identifier(person)]))
    return select


def _first(node: object) -> exp.Select | None:
    """The first SELECT of a UNION; the SELECT that aggregates, where a subquery does."""
    if isinstance(node, exp.SetOperation | exp.Subquery):
        return _first(node.this)
    if not isinstance(node, exp.Select):
        return None
    inside = [inner for inner in node.find_all(exp.Select) if inner is not node]
    for inner in inside:
        if isinstance(inner.parent, exp.Subquery | exp.CTE) and (inner.args.get("group") or _aggregates(inner)):
            return inner.copy()
    return node


def _aggregates(select: exp.Select) -> list[exp.Expression]:
    return [part for item in select.expressions for part in item.walk(prune=is_aggregate) if is_aggregate(part)]


def _rewritten(select: exp.Select) -> exp.Select:
    keys = [key for window in list(select.find_all(exp.Window)) for key in window.args.get("partition_by") or []]
    for window in list(select.find_all(exp.Window)):
        window.replace(window.this)
    for table in select.find_all(exp.Table):
        table.set("sample", None)
    for inner in select.find_all(exp.Select):
        if inner is not select:
            inner.set("order", None)
            inner.set("limit", None)
    for node in list(select.find_all(exp.Least, exp.Greatest)):
        _complete_clamp(node)
    for node in list(select.find_all(exp.Anonymous)):
        if str(node.this).upper() == "CLAMP" and len(node.expressions) in {1, 2}:
            node.set("expressions", [node.expressions[0], exp.Literal.number(0), exp.Literal.number(100)])
    shown = bool(select.args.get("distinct"))
    for part in _DROPPED:
        select.set(part, None)
    _count_instead(select)
    _having(select)
    _group_columns(select, keys, shown=shown)
    return select


def _complete_clamp(node: Any) -> None:
    """LEAST(x, 30) alone is half of CLAMP(x, 0, 30)."""
    ends = node.expressions
    if isinstance(node.this, exp.Column) and len(ends) == 1 and isinstance(ends[0], exp.Literal):
        other = exp.Literal.number(0 if isinstance(node, exp.Least) else 100)
        edges = [other, ends[0].copy()] if isinstance(node, exp.Least) else [ends[0].copy(), other]
        if not isinstance(node.parent, exp.Least | exp.Greatest):
            node.replace(exp.Anonymous(this="CLAMP", expressions=[node.this.copy(), *edges]))


def _count_instead(select: exp.Select) -> None:
    """Aggregates that are not answered become counts; DISTINCT goes with COUNT alone."""
    for wrapped in list(select.find_all(exp.IgnoreNulls)):
        wrapped.replace(wrapped.this)
    for node in list(select.find_all(exp.AggFunc)):
        inner = node.this
        if type(node) not in _ANSWERED:
            of = exp.Distinct(expressions=[inner]) if isinstance(inner, exp.Column) else exp.Star()
            node.replace(exp.Count(this=of))
        elif isinstance(inner, exp.Distinct) and not isinstance(node, exp.Count):
            node.set("this", inner.expressions[0])


def _having(select: exp.Select) -> None:
    """Conditions on aggregates stand in HAVING; a FILTER on persons stands in WHERE."""
    where = select.args.get("where")
    parts = [] if where is None else list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    late = [part for part in parts if any(is_aggregate(inner) for inner in part.walk())]
    early = [part for part in parts if part not in late]
    for node in list(select.find_all(exp.Filter)):
        if isinstance(node.this, exp.Count) and isinstance(node.this.this, exp.Distinct):
            early.append(node.expression.this)
            node.replace(node.this)
    select.set("where", exp.Where(this=exp.and_(*early)) if early else None)
    if late and not any(part.find(exp.Select) for part in late):
        having = select.args.get("having")
        select.set("having", exp.Having(this=exp.and_(*late, *([having.this] if having else []))))


def _group_columns(select: exp.Select, keys: list[exp.Expression], *, shown: bool) -> None:
    """Columns beside aggregates are keys of GROUP BY; rows of people become their number."""
    group = select.args.get("group")
    listed = list(keys)
    for key in [] if group is None else group.expressions:
        listed += key.expressions if isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets) else [key]
    aggregates = _aggregates(select)
    plain = [item for item in select.expressions if not any(is_aggregate(part) for part in item.walk())]
    plain = [item for item in plain if item.find(exp.Column) and not item.find(exp.Star)]
    if not aggregates:
        kept = plain if listed or shown else []
        select.set("expressions", [*(item.copy() for item in kept), exp.Count(this=exp.Star())])
        plain = kept
    if not listed:
        listed = [exp.column(item.alias) if item.alias else item.copy() for item in plain]
    select.set("group", exp.Group(expressions=[key.copy() for key in listed]) if listed else None)
