"""The nearest query that is answered, for one that is refused: rewritten by a few rules, and checked like any other."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mosha.core.errors import MoshaError, Refused
from mosha.tables.functions.constants import name_of
from mosha.tables.sql.aggregate import AGGREGATES, is_aggregate
from mosha.tables.sql.parsing import read_one, read_statements
from mosha.tables.sql.repairs import (
    complete_clamp,
    count_days,
    fix_differences,
    fix_today,
    join_matches,
    leave_out_schemas,
    list_most_common,
    mend_slip,
    split_values,
)
from mosha.tables.sql.spellings import respell
from mosha.tables.sql.windows import is_over_results

__all__ = ["nearest"]

Attempt = Callable[[exp.Select], MoshaError | None]
"""Checks a SELECT as any other: what is wrong with it, or None."""

_DROPPED = ("distinct", "windows", "qualify", "sample", "laterals", "into", "locks")
_MOST_REPAIRS = 12
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
    asked = re.sub(r"(?i)^\s*explain\s", "", text)
    rewrites: list[Callable[[exp.Select], exp.Select | None]] = [
        _rewritten,
        lambda select: _join_plainly(_rewritten(select)),
        lambda select: _join_on_person(_rewritten(select), person),
        lambda select: leave_out_schemas(_rewritten(select)),
        lambda select: _join_plainly(_rewritten(select), joins="left out"),
        lambda select: join_matches(_rewritten(select)),
    ]
    if (values := split_values(asked)) and all(attempt(value.copy()) is None for value in values):
        return " UNION ALL ".join(value.sql(dialect="duckdb") for value in values)
    for choose in (lambda node: node if isinstance(node, exp.Select) else None, _first):
        for rewrite in rewrites:
            try:
                statements = [respell(part) for part in read_statements(asked)]
            except (SqlglotError, RecursionError, Refused):
                return None
            select = choose(statements[0]) if len(statements) == 1 else None
            changed = None if select is None else rewrite(select)
            if changed is not None and (found := _settle(changed, attempt)):
                return found
    return _leave_out(asked, attempt, person)


def _leave_out(text: str, attempt: Attempt, person: str | None) -> str | None:
    """The query without the parts that are in the way: one of them where that is enough, or one kind after another."""
    parsed = respell(read_one(text))
    whole = parsed if isinstance(parsed, exp.Select) else _first(parsed)
    if whole is None:
        return None
    inside = [_split_subquery(inner) for inner in whole.find_all(exp.Select) if inner is not whole]
    starts = [_rewritten(start.copy()) for start in (whole, *inside)]
    said = [str(attempt(start.copy())) for start in starts]
    for candidates in (_leave_out_one, partial(_leave_out_kinds, person=person)):
        for start, why in zip(starts, said, strict=True):
            for candidate in candidates(start, why):
                if found := _settle(candidate, attempt):
                    return found
    return None


def _leave_out_one(select: exp.Select, why: str) -> Iterator[exp.Select]:
    """The query, and then without one of its parts: those first that the refusal names."""
    yield select.copy()
    for list_parts in (_list_nested, _list_items, _list_late, _list_tests):
        named = [_is_named(part, why) for part in list_parts(select)]
        for place in sorted(range(len(named)), key=named.__getitem__, reverse=True):
            alone = select.copy()
            _remove(alone, list_parts(alone)[place])
            yield alone


def _is_named(part: exp.Expr, why: str) -> bool:
    """Whether a refusal writes out some call of a part."""
    return any(name_of(inner) in why for inner in part.find_all(exp.Func, exp.Subquery, exp.Binary))


def _leave_out_kinds(select: exp.Select, why: str, *, person: str | None) -> Iterator[exp.Select]:
    """The query with fewer and fewer kinds of parts; the rows of its first table are counted in the end."""
    del why
    for list_parts in (_list_nested, _list_late, _list_items, _list_tests, _list_joins):
        for _ in list_parts(select):
            _remove(select, list_parts(select)[-1])
        if list_parts is _list_joins:
            select.set("where", None)
            leave_out_schemas(select)
        yield select.copy()
        yield _join_on_person(select.copy(), person)


def _split_subquery(inner: exp.Select) -> exp.Select:
    """A subquery as a query of its own: what it compares with the query around it becomes its groups."""
    alone = inner.copy()
    own = {table.alias_or_name.lower() for table in alone.find_all(exp.Table)}
    keys, kept = [], []
    for part in _list_conditions(alone):
        sides = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
        if sides and all(isinstance(side, exp.Column) for side in sides):
            keys.append(next((side for side in sides if side.table.lower() in own), part.this))
        else:
            kept.append(part.copy())
    alone.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
    if keys and not alone.args.get("group"):
        alone.set("expressions", [*(key.copy() for key in keys), *alone.expressions])
        alone.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return alone


def _list_conditions(select: exp.Select) -> list[exp.Expr]:
    where = select.args.get("where")
    return [] if where is None else list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]


def _list_nested(select: exp.Select) -> list[exp.Expr]:
    """The conditions that hold a subquery."""
    return [part for part in _list_conditions(select) if part.find(exp.Select)]


def _list_tests(select: exp.Select) -> list[exp.Expr]:
    """The conditions that say nothing of how tables are joined."""
    parts = _list_conditions(select)
    return [part for part in parts if not (isinstance(part, exp.EQ) and isinstance(part.expression, exp.Column))]


def _list_late(select: exp.Select) -> list[exp.Expr]:
    return [part for name in ("having", "order", "limit") if (part := select.args.get(name)) is not None]


def _list_items(select: exp.Select) -> list[exp.Expr]:
    return list(select.expressions)


def _list_joins(select: exp.Select) -> list[exp.Expr]:
    return list(select.args.get("joins") or [])


def _remove(select: exp.Select, part: exp.Expr) -> None:
    """Leave a part of a query out; what is left without an item counts rows."""
    if part.arg_key == "expressions" and part.parent is select:
        if len(select.expressions) == 1:
            part.replace(exp.Count(this=exp.Star()))
            select.set("group", None)
        else:
            _leave_out_key(select, part)
        return
    conditions = _list_conditions(select)
    if any(part is condition for condition in conditions):
        kept = [condition.copy() for condition in conditions if condition is not part]
        select.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
    else:
        part.pop()


def _leave_out_key(select: exp.Select, item: exp.Expr) -> None:
    """Leave an item out, and the key and the order that it stands for."""
    texts = {(item.this if isinstance(item, exp.Alias) else item).sql(), item.alias_or_name}
    item.pop()
    for name in ("group", "order"):
        listed = select.args.get(name)
        kept = [] if listed is None else [key for key in listed.expressions if _text(key) not in texts]
        if listed is not None and len(kept) < len(listed.expressions):
            listed.set("expressions", kept)
            if not kept:
                select.set(name, None)


def _text(key: exp.Expr) -> str:
    return str((key.this if isinstance(key, exp.Ordered) else key).sql())


def _settle(select: exp.Select, attempt: Attempt) -> str | None:
    """The query where it is answered, after numbers without a range got one and keys of one person were left out."""
    for _ in range(_MOST_REPAIRS):
        unread = select.copy()  # who reads a query takes its windows out
        problem = attempt(select)
        if problem is None:
            return _write_answered(unread, attempt)
        node, private = getattr(problem, "node", None), getattr(problem, "private_keys", ())
        if (key := getattr(problem, "join", None)) is not None and _join_on_key(select, *key):
            continue
        if node is not None:
            edges = [exp.Literal.number(edge) for edge in (0, 100)]
            node.replace(exp.Anonymous(this="CLAMP", expressions=[node.copy(), *edges]))
        elif (day := getattr(problem, "day", None)) is not None:
            count_days(day)
        elif private:
            _leave_out_private(select, set(private))
        elif mend_slip(select, problem):
            continue
        elif getattr(problem, "code", None) == "tables.too_many_sums":
            _halve_items(select)
        else:
            return None
    return None


def _halve_items(select: exp.Select) -> None:
    """The query with the first half of its aggregates."""
    items = [item for item in select.expressions if any(map(is_aggregate, item.walk()))]
    for item in items[(len(items) + 1) // 2 :]:
        item.pop()


def _leave_out_private(select: exp.Select, private: set[str]) -> None:
    """The query without keys that are one person's, by their texts."""
    for item in list(select.expressions):
        inner = item.this if isinstance(item, exp.Alias) else item
        if _text(inner) in private and len(select.expressions) > 1:
            item.pop()
        elif _text(inner) in private:
            item.replace(exp.Count(this=exp.Star()))
    for name in ("group", "order"):
        listed = select.args.get(name)
        kept = [] if listed is None else [key for key in listed.expressions if _text(key) not in private]
        if listed is not None:
            listed.set("expressions", kept)
            if not kept:
                select.set(name, None)


def _join_plainly(select: exp.Select, joins: str = "") -> exp.Select:
    """Outer joins that cannot lead as inner ones; or the query without joins that say nothing of what is equal."""
    for join in list(select.args.get("joins") or []):
        if not joins:
            for option in ("side", "kind", "method"):
                join.set(option, None)
        elif not join.args.get("on") and not join.args.get("using"):
            join.pop()
    return select


def _write_answered(select: exp.Select, attempt: Attempt) -> str | None:
    """The text of a query that is answered when it is read again."""
    for dialect in ("duckdb", ""):
        text = select.sql(dialect=dialect, comments=False)
        again = read_one(text)
        if isinstance(again, exp.Select) and attempt(again) is None:
            return text
    return None


def _join_on_person(select: exp.Select, person: str | None) -> exp.Select:
    """Joins on the person, who is the same in both tables."""
    for join in select.args.get("joins") or [] if person else []:
        join.replace(exp.Join(this=join.this.copy(), using=[exp.to_identifier(person)]))
    return select


def _join_on_key(select: exp.Select, alias: str, key: str) -> bool:
    """Join a table on a key that implies the person in place of what was said; false where this was done before."""
    for join in select.args.get("joins") or []:
        on = join.args.get("on")
        if join.this.alias_or_name == alias and (on is None or on.sql() != key):
            join.replace(exp.Join(this=join.this.copy(), on=read_one(key)))
            return True
    return False


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


def _aggregates(select: exp.Select) -> list[exp.Expr]:
    return [part for item in select.expressions for part in item.walk(prune=is_aggregate) if is_aggregate(part)]


def _rewritten(select: exp.Select) -> exp.Select:
    fix_today(select)
    fix_differences(select)
    windows = [window for window in select.find_all(exp.Window) if not _is_of_results(window, select)]
    keys = [key for window in windows for key in window.args.get("partition_by") or []]
    for window in windows:
        window.replace(window.this)
    for table in select.find_all(exp.Table):
        table.set("sample", None)
    for inner in select.find_all(exp.Select):
        if inner is not select:
            inner.set("order", None)
            inner.set("limit", None)
            inner.set("offset", None)
    for node in list(select.find_all(exp.Least, exp.Greatest)):
        complete_clamp(node)
    for moment in list(select.find_all(exp.DayOfWeek, exp.Week)):
        unit = exp.Var(this="DOW") if isinstance(moment, exp.DayOfWeek) else exp.Var(this="WEEK")
        moment.replace(exp.Extract(this=unit, expression=moment.this.copy()))
    for node in list(select.find_all(exp.Anonymous)):
        if str(node.this).upper() == "CLAMP" and len(node.expressions) in {1, 2}:
            node.set("expressions", [node.expressions[0], exp.Literal.number(0), exp.Literal.number(100)])
    shown = bool(select.args.get("distinct"))
    for part in _DROPPED:
        select.set(part, None)
    list_most_common(select)
    _count_instead(select)
    _having(select)
    _group_columns(select, keys, shown=shown)
    return select


def _is_of_results(window: exp.Window, select: exp.Select) -> bool:
    """Whether a window sums up aggregates of the query itself, such as AVG(SUM(x)) OVER (...)."""
    argument = window.this.this
    return (
        isinstance(argument, exp.Expr) and any(map(is_aggregate, argument.walk())) and is_over_results(window, select)
    )


def _count_instead(select: exp.Select) -> None:
    """Aggregates that are not answered become counts; DISTINCT goes with COUNT and SUM alone."""
    for wrapped in list(select.find_all(exp.IgnoreNulls)):
        wrapped.replace(wrapped.this)
    for node in list(select.find_all(exp.AggFunc)):
        inner = node.this
        if type(node) not in _ANSWERED:
            of = exp.Distinct(expressions=[inner]) if isinstance(inner, exp.Column) else exp.Star()
            node.replace(exp.Count(this=of))
        elif isinstance(inner, exp.Distinct) and not isinstance(node, exp.Count | exp.Sum):
            node.set("this", inner.expressions[0])


def _having(select: exp.Select) -> None:
    """Conditions on aggregates stand in HAVING; a FILTER on persons stands in WHERE."""
    where = select.args.get("where")
    parts = [] if where is None else list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    own = [list(part.walk(prune=lambda inner: isinstance(inner, exp.Select))) for part in parts]
    late = [part for part, inside in zip(parts, own, strict=True) if any(map(is_aggregate, inside))]
    early = [part for part in parts if part not in late]
    for node in list(select.find_all(exp.Filter)):
        if isinstance(node.this, exp.Count) and isinstance(node.this.this, exp.Distinct):
            early.append(node.expression.this)
            node.replace(node.this)
    select.set("where", exp.Where(this=exp.and_(*early)) if early else None)
    if late and not any(part.find(exp.Select) for part in late):
        having = select.args.get("having")
        select.set("having", exp.Having(this=exp.and_(*late, *([having.this] if having else []))))


def _group_columns(select: exp.Select, keys: list[exp.Expr], *, shown: bool) -> None:
    """Columns beside aggregates are keys of GROUP BY; rows of people become their number."""
    group = select.args.get("group")
    listed = list(keys)
    for key in [] if group is None else group.expressions:
        for part in _list_leaves(key):
            listed += [part] if part not in listed else []
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


def _list_leaves(key: exp.Expr) -> list[exp.Expr]:
    """The keys that stand in ROLLUP, CUBE and GROUPING SETS."""
    if not isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        return [key.this if isinstance(key, exp.Paren) else key]
    return [leaf for part in key.expressions for leaf in _list_leaves(part)]
