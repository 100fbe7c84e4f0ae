"""Other ways to write what this language knows, changed where a text is read: GROUP BY ALL, FETCH, names left out.

What one engine or one program writes and another does not means the same here, as long as it has one meaning.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from mosha.core.errors import Refused
from mosha.tables.sql.aggregate import is_aggregate

__all__ = ["respell"]


def respell(tree: Any) -> Any:
    """The same query in the words that are read.

    >>> import sqlglot
    >>> respell(sqlglot.parse_one("SELECT ward, COUNT(*) FROM visits GROUP BY ALL", dialect="duckdb")).sql()
    'SELECT ward, COUNT(*) FROM visits GROUP BY ward'
    """
    if not isinstance(tree, exp.Expression):
        return tree
    for node in list(tree.walk()):
        changed = _respell_value(node)
        if changed is not node:
            tree = changed if node is tree else tree
            node.replace(changed)
    for select in list(tree.find_all(exp.Select)):
        _name_windows(select)
        _group_by_all(select)
        _limit_fetch(select)
    for union in list(tree.find_all(exp.Union)):
        _borrow_names(union)
    taken = {table.alias_or_name.lower() for table in tree.find_all(exp.Table, exp.Subquery, exp.CTE)}
    for place, nested in enumerate(list(tree.find_all(exp.Subquery)), start=1):
        if isinstance(nested.parent, exp.From | exp.Join) and not nested.alias:
            name = next(title for title in _list_titles(place) if title not in taken)
            taken.add(name)
            nested.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    return tree


def _list_titles(place: int) -> Any:
    return (f"subquery number {place}" + "'" * marks for marks in range(1000))


def _respell_value(node: exp.Expr) -> exp.Expr:
    """A function, or a condition, in the words of the white list."""
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 2:
        return _respell_call(node, str(node.this).upper(), *node.expressions)
    if isinstance(node, exp.DateAdd | exp.DateSub) and isinstance(node.expression, exp.Interval):
        return _shift(exp.Add if isinstance(node, exp.DateAdd) else exp.Sub, node.this, node.expression)
    if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple):
        return _split_tuples(node) or node
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        listed = node.expression.this.unnest()
        if isinstance(listed, exp.Array) and listed.expressions:
            return exp.In(this=node.this.copy(), expressions=[item.copy() for item in listed.expressions])
    return _read_format(node)


def _respell_call(node: exp.Anonymous, name: str, first: exp.Expr, second: exp.Expr) -> exp.Expr:
    """A function that the parser does not know, of two arguments."""
    if name in {"DATE_PART", "DATEPART"} and isinstance(first, exp.Literal) and first.is_string:
        return exp.Extract(this=exp.Var(this=str(first.this).upper()), expression=second.copy())
    if name in {"DATE_ADD", "DATE_SUB"} and isinstance(second, exp.Interval):
        return _shift(exp.Add if name == "DATE_ADD" else exp.Sub, first, second)
    if name == "SUFFIX":
        return exp.EndsWith(this=first.copy(), expression=second.copy())
    return _read_format(node)


_OF_POSTGRESQL = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "DDD": "%j", "HH24": "%H", "MI": "%M"}
_OF_MARIADB = {"%Y": "%Y", "%m": "%m", "%d": "%d", "%H": "%H", "%i": "%M", "%j": "%j"}


def _read_format(node: exp.Expr) -> exp.Expr:
    """TO_CHAR of PostgreSQL and DATE_FORMAT of MariaDB as STRFTIME; what has other parts stays what it is.

    >>> import sqlglot
    >>> _read_format(sqlglot.parse_one("TO_CHAR(day, 'YYYY-MM')", dialect="duckdb")).sql("duckdb")
    "STRFTIME(day, '%Y-%m')"
    """
    if isinstance(node, exp.ToChar):
        day, pattern, known, pieces = node.this, node.args.get("format"), _OF_POSTGRESQL, r"[A-Za-z0-9]+|[^A-Za-z0-9]+"
    elif isinstance(node, exp.Anonymous) and str(node.this).upper() == "DATE_FORMAT" and len(node.expressions) == 2:
        (day, pattern), known, pieces = node.expressions, _OF_MARIADB, r"%.?|[^%]+"
    else:
        return node
    said = str(pattern.this) if isinstance(pattern, exp.Literal) and pattern.is_string else ""
    found = []
    for piece in re.findall(pieces, said):
        letters = piece.isalnum() if known is _OF_POSTGRESQL else piece.startswith("%")
        if (letters and piece not in known) or (not letters and ("%" in piece or '"' in piece)):
            raise Refused(
                "tables.sql_format", text=f"{day.sql('duckdb')}: '{said}'", parts=sorted(known), spent="nothing"
            )
        found.append(known.get(piece, piece))
    return exp.TimeToStr(this=day.copy(), format=exp.Literal.string("".join(found)))


def _shift(kind: type[exp.Binary], day: exp.Expr, interval: exp.Expr) -> exp.Expr:
    return exp.Paren(this=kind(this=day.copy(), expression=interval.copy()))


def _split_tuples(node: exp.In) -> exp.Expr | None:
    """(a, b) IN ((1, 2), (3, 4)) as a = 1 AND b = 2 OR a = 3 AND b = 4."""
    sides, rows = node.this.expressions, node.expressions
    if not rows or not all(isinstance(row, exp.Tuple) and len(row.expressions) == len(sides) for row in rows):
        return None
    tests = []
    for row in rows:
        pairs = zip(sides, row.expressions, strict=True)
        tests.append(exp.and_(*(exp.EQ(this=side.copy(), expression=value.copy()) for side, value in pairs)))
    return exp.Paren(this=exp.or_(*tests))


def _name_windows(select: exp.Select) -> None:
    """OVER w, and WINDOW w AS (...), as OVER (...)."""
    named = {str(each.this.name).lower(): each for each in select.args.get("windows") or [] if each.this is not None}
    left = set(named)
    for window in list(select.find_all(exp.Window)):
        alias = window.args.get("alias")
        if alias is None or window.find_ancestor(exp.Select) is not select or alias.name.lower() not in named:
            continue
        said = named[alias.name.lower()]
        if any(window.args.get(part) for part in ("partition_by", "order", "spec")) or said.args.get("alias"):
            continue
        for part in ("partition_by", "order", "spec"):
            value = said.args.get(part)
            window.set(part, [each.copy() for each in value] if isinstance(value, list) else value and value.copy())
        window.set("alias", None)
        left.discard(alias.name.lower())
    if named and not left:
        select.set("windows", None)


def _group_by_all(select: exp.Select) -> None:
    """GROUP BY ALL groups by everything in SELECT that does not aggregate, constants aside."""
    group = select.args.get("group")
    if group is None or not group.args.get("all") or group.expressions:
        return
    items = [item.unalias() for item in select.expressions]
    keys = [
        item.copy()
        for item in items
        if not any(is_aggregate(part) or isinstance(part, exp.Window) for part in item.walk()) and item.find(exp.Column)
    ]
    select.set("group", exp.Group(expressions=keys) if keys else None)


def _limit_fetch(select: exp.Select) -> None:
    """FETCH FIRST 3 ROWS ONLY is LIMIT 3."""
    fetch = select.args.get("limit")
    if not isinstance(fetch, exp.Fetch):
        return
    options = fetch.args.get("limit_options")
    if options is None or not (options.args.get("percent") or options.args.get("with_ties")):
        rows = fetch.args.get("count")
        select.set("limit", exp.Limit(expression=exp.Literal.number(1) if rows is None else rows.copy()))


def _borrow_names(union: exp.Union) -> None:
    """The parts of UNION ALL have the names of the first."""
    first: exp.Expr = union
    while isinstance(first, exp.Union | exp.Subquery):
        first = first.this
    other = union.expression.unnest()
    if not isinstance(first, exp.Select) or not isinstance(other, exp.Select):
        return
    if len(first.expressions) == len(other.expressions) and not (first.is_star or other.is_star):
        names = [item.alias_or_name for item in first.expressions]
        items = [
            item if isinstance(item, exp.Alias | exp.Column) or not name else exp.alias_(item, name, quoted=True)
            for item, name in zip(other.expressions, names, strict=True)
        ]
        other.set("expressions", items)
