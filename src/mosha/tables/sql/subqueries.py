"""Subqueries beside values: EXISTS, IN (SELECT ...) and (SELECT aggregate ...), as joins with a summary.

Guarantee:
    Each becomes a left join with a summary that has one row for each key, so no row is added or lost. A summary of
    people's rows has the person among its keys and is joined on the person: what it says of a row of p, it says from
    p's rows. The comparison must imply the person, so that this is what SQL means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from mosha.connect.language.expression import lit
from mosha.tables.sql.aggregate import is_aggregate
from mosha.tables.sql.joining import join_scopes
from mosha.tables.sql.parsing import check_select
from mosha.tables.sql.scalar import Refused, list_conditions, name_of
from mosha.tables.sql.scope import Scope
from mosha.tables.sql.summaries import make_summary

__all__ = ["Reader", "attach_subqueries"]


@dataclass(frozen=True)
class Reader:
    """Reads the rows of FROM and WHERE (`rows`), all that a subquery says (`whole`), the tables of FROM (`tables`)."""

    rows: Callable[[exp.Select], Scope]
    whole: Callable[[exp.Expression], Scope]
    tables: Callable[[exp.Select], list[Scope]]


_SWAPPED: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.EQ: exp.EQ, exp.NEQ: exp.NEQ, exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Inner:
    """A subquery without the conditions that look outside, and these: equal columns, and one other comparison."""

    rows: Scope
    pairs: tuple[tuple[exp.Expression, exp.Expression], ...]
    other: tuple[type[exp.Expression], exp.Expression, exp.Expression] | None


def attach_subqueries(
    scope: Scope, conditions: list[exp.Expression], select: exp.Select, read: Reader
) -> tuple[Scope, list[exp.Expression]]:
    """The scope with a column for every subquery, and the conditions with these columns in their place."""
    parts = [exp.Paren(this=condition.copy()) for condition in conditions]
    shown = [item for item in (*select.expressions, select.args.get("group")) if item is not None]
    for holder in (*parts, *shown):
        for node in list(holder.find_all(exp.Exists, exp.In, exp.Subquery)):
            if node.find_ancestor(exp.Select) not in {None, select} or not _is_subquery(node):
                continue
            scope, instead = _attach(scope, node, read)
            node.replace(instead)
    return scope, [part.this for part in parts]


def _is_subquery(node: exp.Expression) -> bool:
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return not (isinstance(node, exp.Subquery) and isinstance(node.parent, exp.In | exp.From | exp.Join | exp.Exists))


def _attach(scope: Scope, node: exp.Expression, read: Reader) -> tuple[Scope, exp.Expression]:
    if isinstance(node, exp.Exists):
        return _match(scope, _read_inner(scope, node.this, read, ()), name_of(node))
    if isinstance(node, exp.In):
        query = node.args["query"]
        select = check_select(query.this if isinstance(query, exp.Subquery) else query)
        if len(select.expressions) != 1:
            raise Refused("tables.sql_in_list", text=name_of(node))
        joined, found = _match(scope, _read_list(scope, select, node.this, read), name_of(node))
        unknown = exp.If(this=exp.Is(this=node.this.copy(), expression=exp.Null()), true=exp.Null())
        return joined, exp.Case(ifs=[unknown], default=found)
    select = check_select(node.this)
    items = [item.this if isinstance(item, exp.Alias) else item for item in select.expressions]
    if len(items) != 1 or not any(is_aggregate(part) for part in items[0].walk()) or select.args.get("group"):
        raise Refused("tables.sql_subquery_place")
    return _read_value(scope, select, items[0], read)


def _read_inner(
    scope: Scope, node: exp.Expression, read: Reader, more: tuple[tuple[exp.Expression, exp.Expression], ...]
) -> _Inner:
    """The rows of a subquery, apart from what it compares with the query around it."""
    select = check_select(node.this if isinstance(node, exp.Subquery) else node).copy()
    where = select.args.get("where")
    own: list[exp.Expression] = []
    pairs: list[tuple[exp.Expression, exp.Expression]] = list(more)
    others: list[tuple[type[exp.Expression], exp.Expression, exp.Expression]] = []
    bare = select.copy()
    for part in ("where", "group", "having", "order"):
        bare.set(part, None)
    bare.set("expressions", [])
    inside = read.tables(bare)
    for condition in list_conditions(where.this if where is not None else None):
        compared = _look_outside(condition, inside, scope)
        if compared is None:
            own.append(condition)
        elif compared[0] is exp.EQ:
            pairs.append(compared[1:])
        else:
            others.append(compared)
    if len(others) > 1:
        raise Refused("tables.sql_subquery_compares", text=name_of(select), spent="nothing")
    bare.set("where", exp.Where(this=exp.and_(*own, copy=True)) if own else None)
    return _Inner(read.rows(bare), tuple(pairs), others[0] if others else None)


def _look_outside(
    node: exp.Expression, inside: list[Scope], outside: Scope
) -> tuple[type[exp.Expression], exp.Expression, exp.Expression] | None:
    """(comparison, inner side, outer side) of a condition that names columns of the query around it.

    Sides that must be equal are columns; other comparisons are of any two values, b.day > a.day + INTERVAL 7 DAY.
    """
    foreign = [
        column
        for column in node.find_all(exp.Column)
        if all(table.find(column) is None for table in inside) and outside.find(column) is not None
    ]
    if not foreign or any(isinstance(part, exp.Select) for part in node.walk()):
        return None
    sides = (node.this, node.expression) if type(node) in _SWAPPED else ()
    outer = [[any(column is one for one in foreign) for column in side.find_all(exp.Column)] for side in sides]
    plain = all(isinstance(side, exp.Column) for side in sides)
    if outer and (plain or not isinstance(node, exp.EQ)):
        if all(outer[1]) and outer[0] and not any(outer[0]):
            return type(node), node.this, node.expression
        if all(outer[0]) and outer[1] and not any(outer[1]):
            return _SWAPPED[type(node)], node.expression, node.this
    raise Refused("tables.sql_subquery_compares", text=name_of(node), spent="nothing")


def _read_list(scope: Scope, select: exp.Select, value: exp.Expression, read: Reader) -> _Inner:
    """X IN (SELECT y ...): the rows of the list, which x must equal."""
    item = select.expressions[0]
    inner = item.this if isinstance(item, exp.Alias) else item
    if not isinstance(value, exp.Column):
        raise Refused("tables.sql_in_list", text=name_of(value))
    if select.args.get("group") or select.args.get("having"):
        named = select.copy()
        named.set("expressions", [exp.alias_(inner.copy(), "the list", quoted=True)])
        return _Inner(read.whole(named), ((exp.column("the list", quoted=True), value),), None)
    if not isinstance(inner, exp.Column):
        raise Refused("tables.sql_in_list", text=name_of(select))
    return _read_inner(scope, select, read, ((inner, value),))


def _match(scope: Scope, inner: _Inner, text: str) -> tuple[Scope, exp.Expression]:
    """Whether the subquery has a row for this one, as a condition over a column that is joined."""
    rows = inner.rows
    shown: list[exp.Expression] = [exp.Count(this=exp.Star())]
    if inner.other is not None:
        shown += [exp.Min(this=inner.other[1]), exp.Max(this=inner.other[1])]
    joined, found = _join_summary(scope, rows, inner.pairs, shown, text)
    there = exp.Not(this=exp.Is(this=found[name_of(shown[0])], expression=exp.Null()))
    if inner.other is None:
        return joined, exp.Paren(this=there)
    kind, _, outer = inner.other
    least, greatest = (found[name_of(part)] for part in shown[1:])
    ends: dict[type[exp.Expression], tuple[exp.Expression, ...]]
    ends = {exp.NEQ: (least, greatest), exp.LT: (least,), exp.LTE: (least,), exp.GT: (greatest,), exp.GTE: (greatest,)}
    tests = [kind(this=end.copy(), expression=outer.copy()) for end in ends[kind]]
    known = exp.or_(*tests, copy=False)
    return joined, exp.Paren(this=exp.Coalesce(this=known, expressions=[exp.Boolean(this=False)]))


def _read_value(scope: Scope, select: exp.Select, item: exp.Expression, read: Reader) -> tuple[Scope, exp.Expression]:
    """(SELECT aggregate FROM ... WHERE key = outer.key) as an expression over columns that are joined."""
    inner = _read_inner(scope, select, read, ())
    if inner.other is not None:
        raise Refused("tables.sql_subquery_compares", text=name_of(select), spent="nothing")
    joined, found = _join_summary(scope, inner.rows, inner.pairs, [item], name_of(select))
    value = item.copy()
    for part in list(value.walk(prune=is_aggregate)):
        if not is_aggregate(part):
            continue
        instead: exp.Expression = found[name_of(part)]
        if isinstance(part, exp.Count):
            instead = exp.Coalesce(this=instead, expressions=[exp.Literal.number(0)])
        if part is value:
            return joined, instead
        part.replace(instead)
    return joined, exp.Paren(this=value)


def _join_summary(
    scope: Scope,
    rows: Scope,
    pairs: tuple[tuple[exp.Expression, exp.Expression], ...],
    shown: list[exp.Expression],
    text: str,
) -> tuple[Scope, dict[str, exp.Expression]]:
    """The scope beside a summary of a subquery's rows, and the columns of its aggregates, by their SQL text."""
    if rows.base is not None and not pairs:
        raise Refused("tables.sql_subquery_of_people", text=text, spent="nothing")
    if not pairs:  # one row for all
        rows = rows.compute({"one row": lit(1)})
        rows = replace(rows, names={**rows.names, "one row": {"one row": "one row"}})
        name = f"one row of {len(scope.schema)}"
        scope = scope.compute({name: lit(1)})
        scope = replace(scope, names={**scope.names, name: {name: name}})
        pairs = ((exp.column("one row", quoted=True), exp.column(name, quoted=True)),)
    keys: list[exp.Expression] = [inner for inner, _ in pairs]
    summary, names, found = make_summary(rows, keys, shown)
    alias = f"subquery {len(scope.names) + 1}"
    outer = [scope(column) for _, column in pairs if isinstance(column, exp.Column)]
    summary = replace(summary, names={alias: {name: name for name in summary.schema}})
    joined = join_scopes(
        scope, summary, dict(zip(outer, names, strict=True)), "left", keep_left=frozenset(), alias=alias
    )
    place = joined.names[alias]
    visible = {**scope.names, alias: {f"{alias} {name}": place[name] for name in found.values()}}
    columns = {text: exp.column(f"{alias} {name}", quoted=True) for text, name in found.items()}
    return replace(joined, names=visible), dict(columns)
