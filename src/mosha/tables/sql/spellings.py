"""Other ways to write what this language knows, changed where a text is read: GROUP BY ALL, FETCH, SEMI JOIN.

What one engine or one program writes and another does not means the same here, as long as it has one meaning: DATEADD
of SQL Server, DATE_ADD of MariaDB, SAFE_DIVIDE of BigQuery, APPROX_PERCENTILE of Trino. DAYOFWEEK counts from another
day in every system, and stays what it is. A text is read in a time that grows with it, and with no error but those
that are written for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.duckdb import DuckDB

from mosha.core.errors import InvalidParameter, MoshaError, Refused
from mosha.tables.sql.aggregate import is_aggregate

__all__ = ["check_readings", "reading", "respell"]

_OPEN, _CLOSED = {TokenType.L_PAREN, TokenType.L_BRACKET}, {TokenType.R_PAREN, TokenType.R_BRACKET}
_TYPES = DuckDB.Parser.TYPE_TOKENS
_MOST_READINGS = 4  # of each word, where a text is long


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
        _open_from(select)
        _match_rows(select)
        _name_windows(select)
        _group_by_all(select)
        _group_with(select)
        _limit_fetch(select)
    for union in list(tree.find_all(exp.Union)):
        _borrow_names(union)
    taken = {table.alias_or_name.lower() for table in tree.find_all(exp.Table, exp.Subquery, exp.CTE)}
    for place, nested in enumerate(list(tree.find_all(exp.Subquery)), start=1):
        if isinstance(nested.parent, exp.From | exp.Join) and not nested.alias:
            name = next(title for title in _list_titles(place) if title not in taken)
            taken.add(name)
            nested.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        _open_parentheses(nested)
    return tree


def _list_titles(place: int) -> Any:
    return (f"subquery number {place}" + "'" * marks for marks in range(1000))


def _respell_value(node: exp.Expr) -> exp.Expr:
    """A function, or a condition, in the words of the white list."""
    if isinstance(node, exp.Anonymous) and 1 <= len(node.expressions) <= 3:
        return _respell_call(node, str(node.this).upper(), *node.expressions)
    if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple):
        return _split_tuples(node) or node
    if isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.expression, exp.Any | exp.All):
        return _read_any(node)
    if isinstance(node, exp.Array) and not isinstance(node.parent, exp.Any) and len(node.expressions) == 1:
        return _read_bracket(node)
    if isinstance(node, exp.Binary) and isinstance(node.expression, exp.Interval):
        return _compare_moments(node)
    return _respell_function(node)


def _read_any(node: exp.Expr) -> exp.Expr:
    """The test x = ANY (...) is x IN (...), and x <> ALL (...) is x NOT IN (...)."""
    if isinstance(node.expression, exp.All) != isinstance(node, exp.NEQ):
        return node
    listed = node.expression.this.unnest()
    if isinstance(listed, exp.Select):
        found = exp.In(this=node.this.copy(), query=exp.Subquery(this=listed.copy()))
    elif isinstance(listed, exp.Array | exp.Tuple) and listed.expressions:
        found = exp.In(this=node.this.copy(), expressions=[item.copy() for item in listed.expressions])
    else:
        return node
    return exp.Not(this=found) if isinstance(node, exp.NEQ) else found


Change = Callable[..., exp.Expr | None]
_ISO = {"YYYY-MM-DD", "yyyy-MM-dd", "%Y-%m-%d", "%F"}


def _respell_function(node: exp.Expr) -> exp.Expr:
    """A function that the parser knows.

    >>> import sqlglot
    >>> _respell_function(sqlglot.parse_one("APPROX_QUANTILE(x, 0.5)", dialect="duckdb")).sql("duckdb")
    'QUANTILE_CONT(x, 0.5)'
    """
    match node:
        case exp.DateAdd() | exp.DateSub() if isinstance(node.expression, exp.Interval):
            return _shift(exp.Add if isinstance(node, exp.DateAdd) else exp.Sub, node.this, node.expression)
        case exp.StrToDate():
            return _read_day(node.this, node.args.get("format")) or node
        case exp.WidthBucket() | exp.SafeDivide():
            return _find_bucket(node) if isinstance(node, exp.WidthBucket) else _divide(node)
        case exp.ApproxDistinct() if not node.args.get("accuracy"):
            return exp.Count(this=exp.Distinct(expressions=[node.this.copy()]), big_int=True)
        case exp.ApproxQuantile() if not any(node.args.get(name) for name in ("accuracy", "weight", "error_tolerance")):
            return _find_quantile(node.this, node.args["quantile"])
    return _read_format(node)


def _respell_call(node: exp.Anonymous, name: str, *arguments: exp.Expr) -> exp.Expr:
    """A function that the parser does not know.

    >>> import sqlglot
    >>> call = sqlglot.parse_one("DATEADD(month, 6, day)", dialect="duckdb")
    >>> _respell_call(call, "DATEADD", *call.expressions).sql("duckdb")
    "(day + INTERVAL '6' MONTH)"
    """
    change = _CALLS.get((name, len(arguments)))
    found = None if change is None else change(*arguments)
    return _read_format(node) if found is None else found


def _compare_moments(node: exp.Binary) -> exp.Expr:
    """The difference a - b > INTERVAL '7 days' is a > b + INTERVAL '7 days'."""
    difference, unit = node.this.unnest(), node.expression.args.get("unit")
    if not isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE) or not isinstance(difference, exp.Sub):
        return node
    if unit is None or unit.name.upper() not in {"DAY", "DAYS", "WEEK", "WEEKS"}:  # a month has as many days as it has
        return node
    later = exp.Paren(this=exp.Add(this=difference.expression.copy(), expression=node.expression.copy()))
    return type(node)(this=difference.this.copy(), expression=later)


def _shift(kind: type[exp.Binary], day: exp.Expr, interval: exp.Expr) -> exp.Expr:
    return exp.Paren(this=kind(this=day.copy(), expression=interval.copy()))


def _find_quantile(value: exp.Expr, share: exp.Expr) -> exp.Expr:
    """What an approximation approximates."""
    return exp.PercentileCont(this=value.copy(), expression=share.copy())


def _divide(node: exp.SafeDivide) -> exp.Expr:
    return exp.Paren(this=exp.Div(this=node.this.copy(), expression=node.expression.copy()))


def _find_bucket(node: exp.WidthBucket) -> exp.Expr:
    """WIDTH_BUCKET(x, low, high, n): 1 to n for what lies between the ends, 0 below them and n + 1 above."""
    value, low, high, n = (str(node.args[name]) for name in ("this", "min_value", "max_value", "num_buckets"))
    inside = f"CAST(FLOOR(({value} - ({low})) * ({n}) / (({high}) - ({low}))) AS BIGINT) + 1"
    text = f"CASE WHEN {value} < ({low}) THEN 0 WHEN {value} >= ({high}) THEN ({n}) + 1 ELSE {inside} END"
    return exp.Paren(this=exp.maybe_parse(text))


def _read_day(text: exp.Expr, pattern: exp.Expr | None) -> exp.Expr | None:
    """TO_DATE(x, 'YYYY-MM-DD') is CAST(x AS DATE); other orders of its parts are not read."""
    if isinstance(pattern, exp.Literal) and str(pattern.this) in _ISO:
        return exp.Cast(this=text.copy(), to=exp.DataType.build("date"))
    return None


def _add(unit: exp.Expr, number: exp.Expr, day: exp.Expr) -> exp.Expr | None:
    """DATEADD(month, -6, day)."""
    sign, size = ("-", number.this) if isinstance(number, exp.Neg) else ("", number)
    if not isinstance(size, exp.Literal) or not unit.name:
        return None
    interval = exp.Interval(this=exp.Literal.string(f"{sign}{size.this}"), unit=exp.Var(this=unit.name.upper()))
    return _shift(exp.Add, day, interval)


def _shift_call(kind: type[exp.Binary]) -> Change:
    return lambda day, by: _shift(kind, day, by) if isinstance(by, exp.Interval) else None


def _extract(unit: exp.Expr, day: exp.Expr) -> exp.Expr | None:
    named = isinstance(unit, exp.Literal | exp.Column) and not unit.args.get("table")
    return exp.Extract(this=exp.Var(this=unit.name.upper()), expression=day.copy()) if named else None


_CALLS: Mapping[tuple[str, int], Change] = {
    ("DATEADD", 3): _add,
    ("VAR", 1): lambda value: exp.Variance(this=value.copy()),
    **dict.fromkeys((("DATE_PART", 2), ("DATEPART", 2)), _extract),
    ("DATE_ADD", 2): _shift_call(exp.Add),
    ("DATE_SUB", 2): _shift_call(exp.Sub),
    ("TO_DATE", 2): _read_day,
    ("PARSE_DATE", 2): lambda pattern, text: _read_day(text, pattern),
    ("ISNULL", 2): lambda value, other: exp.Coalesce(this=value.copy(), expressions=[other.copy()]),
    ("SUFFIX", 2): lambda text, end: exp.EndsWith(this=text.copy(), expression=end.copy()),
    ("REGEXP_CONTAINS", 2): lambda text, part: exp.RegexpLike(this=text.copy(), expression=part.copy()),
    **dict.fromkeys((("APPROX_PERCENTILE", 2), ("PERCENTILE_APPROX", 2)), _find_quantile),
}


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


def _read_bracket(node: exp.Array) -> exp.Expr:
    """[ward] is a column in brackets, as SQL Server writes it; a list stands after ANY alone."""
    (inner,) = node.expressions
    alone = isinstance(inner, exp.Column) and not isinstance(node.parent, exp.Paren | exp.Any)
    return exp.column(inner.name, table=inner.table or None, quoted=True) if alone else node


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


def _group_with(select: exp.Select) -> None:
    """GROUP BY a, b WITH ROLLUP is GROUP BY ROLLUP (a, b)."""
    group = select.args.get("group")
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        said = group.args.get(name) if group is not None else None
        if group is not None and said and not any(part.expressions for part in said):
            sets = kind(expressions=[key.copy() for key in group.expressions])
            select.set("group", exp.Group(expressions=[sets]))


def _open_from(select: exp.Select) -> None:
    """FROM ((a JOIN b ON ...) JOIN c ON ...) without the parentheses, which change nothing there."""
    start = select.args.get("from_")
    while start is not None and isinstance(start.this, exp.Subquery) and not start.this.alias:
        outer = start.this
        inner = outer.this
        if not isinstance(inner, exp.Table | exp.Subquery):
            return
        joins = [*(inner.args.get("joins") or []), *(outer.args.get("joins") or []), *(select.args.get("joins") or [])]
        inner.set("joins", None)
        start.set("this", inner)
        select.set("joins", joins)


def _match_rows(select: exp.Select) -> None:
    """The join a SEMI JOIN b ON ... is a WHERE EXISTS (SELECT 1 FROM b WHERE ...), and ANTI JOIN is NOT EXISTS."""
    start = select.args.get("from_")
    left: list[exp.Join] = []
    for join in select.args.get("joins") or []:
        kind, names = str(join.args.get("kind") or "").upper(), join.args.get("using") or []
        if start is None or kind not in {"SEMI", "ANTI"} or (left and names) or not (names or join.args.get("on")):
            left.append(join)
            continue
        sides = join.this.alias_or_name, start.this.alias_or_name
        pairs = [[exp.column(name.name, side) for side in sides] for name in names]
        same = [exp.EQ(this=one, expression=other) for one, other in pairs]
        inner = exp.select("1").from_(join.this.copy()).where(join.args.get("on") or exp.and_(*same))
        there: exp.Expr = exp.Exists(this=inner)
        select.where(there if kind == "SEMI" else exp.Not(this=there), copy=False)
    if len(left) < len(select.args.get("joins") or []):
        select.set("joins", left)


def _open_parentheses(node: exp.Subquery) -> None:
    """FROM (a JOIN b USING (k)) AS c is FROM (SELECT * FROM a JOIN b USING (k)) AS c."""
    table = node.this
    if isinstance(table, exp.Table) and table.args.get("joins"):
        select = exp.Select(expressions=[exp.Star()])
        joins = [join.pop() for join in table.args["joins"]]
        table.set("joins", None)
        select.set("from_", exp.From(this=table.copy()))
        select.set("joins", joins)
        node.set("this", select)


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


def check_readings(text: str) -> None:
    """Refuse a text that the parser would read again and again.

    Behind the name of a type it reads what is in parentheses as sizes first, and then once more as arguments (three
    times before an index), so that DATE(DATE(DATE(...))) would take twice as long with every DATE. Counted ahead.
    """
    tokens = sqlglot.tokenize(text, dialect="duckdb")
    depths, readings = [0], 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.token_type in _OPEN:
            depths.append(depths[-1] + (before is not None and before.token_type in _TYPES))
        elif token.token_type in _CLOSED and len(depths) > 1:
            depths.pop()
        readings += 3 ** min(depths[-1], 20)
    if readings > _MOST_READINGS * (len(tokens) + 5000):
        raise InvalidParameter("tables.sql_unreadable", parameter="sql")


@contextmanager
def reading() -> Iterator[None]:
    """While a text is read, and nothing else: whatever error the parser has for what nobody writes is a refusal."""
    try:
        yield
    except MoshaError:
        raise
    except (RecursionError, LookupError, TypeError, ValueError, AttributeError, AssertionError) as fault:
        raise InvalidParameter("tables.sql_unreadable", parameter="sql") from fault
