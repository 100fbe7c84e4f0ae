"""One SELECT out of a text: what the parser makes of it, and everything that is refused before it is read.

The grammar is DuckDB's, with the quotes and functions of other systems: MariaDB and BigQuery quote names by
`backticks`, SQL Server by [brackets], and where systems give the arguments of one function in another order, a unit
such as DAY says which of them wrote it. What nobody reads of a piece of SQL is refused, never passed over in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, SqlglotError

from mosha.core.errors import InvalidParameter, Refused
from mosha.tables.sql.spellings import check_readings, respell
from mosha.tables.sql.windows import is_over_results

__all__ = [
    "READ", "check_arguments", "check_select", "is_union", "open_results", "parse", "read_one", "read_statements",
    "read_tree",
]  # fmt: skip

_NOTHING: tuple[str, ...] = ()
_ONE, _BOTH, _LIST = ("this",), ("this", "expression"), ("this", "expressions")

READ: Mapping[type[exp.Expression], tuple[str, ...]] = {
    **dict.fromkeys(
        (exp.Neg, exp.Not, exp.Paren, exp.Abs, exp.Floor, exp.Ceil, exp.Lower, exp.Upper,  exp.Length,
         exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfWeekIso, exp.Hour, exp.Minute, exp.Sqrt, exp.Boolean,
         exp.DayOfYear, exp.WeekOfYear, exp.Date, exp.Sign, exp.Trunc),
        _ONE,
    ),
    **dict.fromkeys(
        (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or,
         exp.StartsWith, exp.Extract, exp.Nullif, exp.Left, exp.Contains, exp.EndsWith, exp.Mod, exp.Pow),
        _BOTH,
    ),
    **dict.fromkeys(
        (exp.Avg, exp.Sum, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Min, exp.Max,
         exp.Median, exp.CountIf),
        _ONE,
    ),
    **dict.fromkeys(
        (exp.CovarPop, exp.CovarSamp, exp.Corr, exp.PercentileCont, exp.PercentileDisc, exp.WithinGroup, exp.Filter),
        _BOTH,
    ),
    **dict.fromkeys((exp.Is, exp.Like, exp.ILike), (*_BOTH, "negate")),
    exp.DPipe: (*_BOTH, "safe"),
    exp.Quantile: ("this", "quantile"),
    exp.Count: (*_LIST, "big_int"),
    exp.DateDiff: (*_BOTH, "unit", "date_part_boundary", "big_int"),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc), ("this", "unit", "input_type_preserved")),
    exp.TimeToStr: ("this", "format"),
    exp.Interval: ("this", "unit"),
    exp.Literal: ("this", "is_string"),
    exp.Null: _NOTHING,
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Identifier: ("this", "quoted"),
    exp.Star: _NOTHING,
    exp.Var: _ONE,
    **dict.fromkeys((exp.Cast, exp.TryCast), ("this", "to", "safe")),
    exp.DataType: (*_LIST, "nested"),
    exp.DataTypeParam: _ONE,
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.In: (*_LIST, "query", "unnest"),
    exp.Between: ("this", "low", "high", "symmetric"),
    exp.Coalesce: (*_LIST, "is_nvl"),
    exp.Concat: ("expressions", "safe", "coalesce"),
    exp.Substring: ("this", "start", "length"),
    exp.Round: ("this", "decimals", "casts_non_integer_decimals"),
    exp.Anonymous: _LIST,
    **dict.fromkeys((exp.Least, exp.Greatest), (*_LIST, "ignore_nulls")),
    exp.Distinct: ("expressions",),
    **dict.fromkeys((exp.From, exp.Where, exp.Having, exp.Qualify), _ONE),
    exp.Alias: ("this", "alias"),
    exp.TableAlias: ("this", "columns"),
    exp.Exists: _ONE,
    exp.Union: ("this", "expression", "distinct"),
    exp.Table: ("this", "alias", "db", "catalog"),
    exp.Subquery: ("this", "alias"),
    exp.CTE: ("this", "alias", "materialized"),
    exp.With: ("expressions", "recursive"),
    exp.Join: ("this", "side", "kind", "on", "using", "method"),
    exp.Group: ("expressions", "all", "cube", "rollup", "grouping_sets", "totals"),
    exp.Order: ("expressions",),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",),
    exp.StrPosition: ("this", "substr"),
    exp.Replace: (*_BOTH, "replacement"),
    exp.Window: ("this", "partition_by", "order", "over", "spec", "alias"),
    **dict.fromkeys((exp.Ln, exp.Exp, exp.Cbrt, exp.Monthname, exp.Dayname, exp.LastDay), _ONE),
    **dict.fromkeys((exp.Log, exp.Right, exp.IntDiv, exp.NullSafeEQ, exp.NullSafeNEQ), _BOTH),
    exp.SplitPart: ("this", "delimiter", "part_index"),
    exp.Trim: (*_BOTH, "position"),
    exp.Pad: (*_BOTH, "fill_pattern", "is_left"),
    exp.RegexpLike: (*_BOTH, "flag"),
    exp.RegexpILike: (*_BOTH, "flag"),
    exp.SimilarTo: _BOTH,
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Pi), _NOTHING),
    **dict.fromkeys((exp.Ntile, exp.FirstValue, exp.LastValue), _ONE),
    **dict.fromkeys((exp.Lag, exp.Lead), ("this", "offset", "default")),
    exp.WindowSpec: ("kind", "start", "start_side", "end", "end_side"),
    exp.Offset: ("expression",),
}  # fmt: skip
"""The arguments that somebody reads, or refuses with a better word than could be said here."""


def check_arguments(node: Any) -> None:
    """Refuse a piece of SQL with an argument that nobody reads: its answer would be that of another question."""
    read = READ.get(type(node))
    if read is None:
        return
    for name, value in node.args.items():
        if name not in read and value not in (None, False, [], ""):
            said = name.rstrip("_").replace("_", " ").upper()
            raise Refused("tables.sql_option_unread", option=said, of=node.key.upper(), spent="nothing")


_UNITS = {"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}
_TEXTS = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/"""
_BRACKETS = re.compile(rf"({_TEXTS})|(?<![\w\])])\[([^\W\d][\w $]*)\]", re.DOTALL)


def _read_unit(node: Any) -> exp.Var | None:
    """The unit that an argument names, if it does."""
    named = isinstance(node, exp.Literal | exp.Column | exp.Var) and not node.args.get("table")
    word = node.name.upper().removesuffix("S") if named else ""
    return exp.Var(this=word) if word in _UNITS else None


def _read_difference(arguments: Sequence[Any]) -> exp.Expr:
    """DATEDIFF('day', a, b) and DATE_DIFF(b, a, DAY); DATEDIFF(b, a) counts days."""
    if len(arguments) == 2:
        later, earlier = arguments
        return exp.DateDiff(this=later, expression=earlier, unit=exp.Var(this="DAY"))
    if len(arguments) != 3:
        raise ParseError("DATEDIFF takes two dates and a unit")
    if (unit := _read_unit(arguments[2])) is not None and _read_unit(arguments[0]) is None:
        return exp.DateDiff(this=arguments[0], expression=arguments[1], unit=unit)
    said = arguments[0]
    unit = _read_unit(said) or exp.Var(this=said.name.upper() or "UNIT")
    return exp.DateDiff(this=arguments[2], expression=arguments[1], unit=unit)


def _read_decode(arguments: Sequence[Any]) -> exp.Expr:
    """DECODE(x, 1, 'a', 2, 'b', 'c') of Oracle: CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END."""
    if len(arguments) < 3:
        return exp.Anonymous(this="DECODE", expressions=list(arguments))
    value, *rest = arguments
    pairs = zip(rest[::2], rest[1::2], strict=False)
    default = rest[-1] if len(rest) % 2 else None
    whole = exp.Case(this=value, ifs=[exp.If(this=one, true=then) for one, then in pairs], default=default)
    return exp.Paren(this=whole)  # the parser counts the arguments of calls


def _read_timestamps(arguments: Sequence[Any]) -> exp.Expr:
    """TIMESTAMPDIFF(DAY, a, b) of MariaDB, TIMESTAMP_DIFF(b, a, DAY) of BigQuery: whole units, which others are."""
    found = _read_difference(arguments)
    return exp.TimestampDiff(this=found.this, expression=found.expression, unit=found.args["unit"])


_Parser: Any = DuckDB.Parser
_Functions = Mapping[str, Callable[..., Any]]


class _Grammar(DuckDB):
    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]

    class Parser(_Parser):  # type: ignore[misc]
        FUNCTIONS: ClassVar[_Functions] = {
            **_Parser.FUNCTIONS,
            **dict.fromkeys(("DATEDIFF", "DATE_DIFF"), _read_difference),
            **dict.fromkeys(("TIMESTAMPDIFF", "TIMESTAMP_DIFF"), _read_timestamps),
            "DECODE": _read_decode,
        }
        FUNCTION_PARSERS: ClassVar[_Functions] = {
            name: read for name, read in _Parser.FUNCTION_PARSERS.items() if name != "DECODE"
        }


def read_statements(text: str) -> list[exp.Expr | None]:
    """The statements of a text.

    >>> [str(one) for one in read_statements("SELECT COUNT(*) FROM [day visits] WHERE `age` > 3")]
    ['SELECT COUNT(*) FROM "day visits" WHERE "age" > 3']
    """
    check_readings(text)
    try:
        return list(sqlglot.parse(text, dialect=_Grammar))
    except ParseError:
        quoted = _BRACKETS.sub(lambda found: found[1] or f'"{found[2]}"', text)
        if quoted == text:
            raise
        return list(sqlglot.parse(quoted, dialect=_Grammar))


def read_one(text: str) -> exp.Expr:
    """The one statement of a text that was written here."""
    return sqlglot.parse_one(text, dialect=_Grammar)


_LONGEST = 100_000
_FIRST = {"SELECT", "WITH", "EXPLAIN"}
_KNOWN = {
    "expressions",
    "from_",
    "joins",
    "distinct",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "with_",
}
_INSTEAD = {
    "windows": "window functions look at other people's rows: aggregate with GROUP BY instead.",
    "qualify": "QUALIFY is not answered here: filter noisy results with HAVING.",
    "offset": "OFFSET is not answered in a subquery: choose rows with WHERE.",
    "sample": "TABLESAMPLE is not answered here, for the sample would not be priced: ask the whole table.",
    "laterals": "LATERAL is not answered here: join the tables instead.",
    "into": "INTO is not answered here: nothing is written anywhere.",
    "locks": "FOR UPDATE is not answered here: nothing is locked.",
}


def parse(text: object, *, results: bool = False) -> tuple[exp.Select, bool]:
    """The one SELECT of `text`, and whether EXPLAIN stood before it.

    With `results` a SELECT around a query that groups becomes that query, with more done to its results,
    and QUALIFY may stand in it.

    >>> parse("SELECT COUNT(*) FROM visits")[0].sql()
    'SELECT COUNT(*) FROM visits'
    """
    tree, most, explained = read_tree(text)
    select = check_select(open_results(tree) if results else tree, results=results)
    if most is not None and select.args.get("limit") is not None:
        raise Refused("tables.sql_unreadable", parameter="sql")
    return (select if most is None else select.limit(most, copy=False)), explained


def read_tree(text: object) -> tuple[exp.Expr, int | None, bool]:
    """The one statement of a text, the number of SELECT TOP n, and whether EXPLAIN stood before it."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidParameter("tables.sql_not_text", parameter="sql")
    if len(text) > _LONGEST:
        raise InvalidParameter("tables.sql_too_long", parameter="sql", most=_LONGEST)
    stripped = text.strip()
    explained = stripped[:8].upper() == "EXPLAIN "
    asked, most = _read_top(stripped[8:] if explained else stripped)
    try:
        statements = read_statements(asked)
    except (SqlglotError, RecursionError):
        if stripped.lstrip("( \n\t").split(maxsplit=1)[0].upper() not in _FIRST:
            raise InvalidParameter("tables.sql_not_select", parameter="sql") from None
        raise InvalidParameter("tables.sql_unreadable", parameter="sql") from None
    found = [respell(statement) for statement in statements if statement is not None]
    if len(found) != 1:
        raise Refused("tables.sql_one_statement")
    return found[0], most, explained


def _read_top(text: str) -> tuple[str, int | None]:
    """The text without SELECT TOP n, as some databases write LIMIT n."""
    found = re.match(r"(?i)(\s*SELECT\s+)TOP\s*(?:\s(\d{1,9})|\((\d{1,9})\))\s+", text)
    return (text, None) if found is None else (found[1] + text[found.end() :], int(found[2] or found[3]))


def check_select(node: object, *, results: bool = False) -> exp.Select:
    """A SELECT with nothing in it that the plan does not know; with `results`, QUALIFY is known."""
    if isinstance(node, exp.Subquery) and not node.args.get("pivots"):
        return check_select(node.this, results=results)
    if isinstance(node, exp.SetOperation):
        raise Refused("tables.sql_union")
    if not isinstance(node, exp.Select):
        if not isinstance(node, exp.DDL | exp.DML | exp.Command):  # a word that the parser takes for a name
            raise Refused("tables.sql_not_select", parameter="sql")
        raise Refused("tables.sql_only_select", statement=type(node).__name__.upper())
    for key, value in node.args.items():
        if value and key not in _KNOWN and not (results and key in {"qualify", "offset"}):
            raise Refused(_INSTEAD.get(key, f"{key.rstrip('_').upper()} is not answered here."))
    for part in node.walk():
        if isinstance(part, exp.Window) and not is_over_results(part, node):
            raise Refused(_INSTEAD["windows"])
        check_arguments(part)
    return node


def open_results(node: Any) -> Any:
    """SELECT around a query that groups, as one query: what it does is done to results, which are noisy already.

    Columns of the inner query become what they stand for. A condition on them becomes HAVING, or QUALIFY where there
    are windows in it. Whatever cannot be written so stays as it is.

    >>> sql = "SELECT d, n FROM (SELECT d, COUNT(*) AS n FROM visits GROUP BY d) AS x WHERE n > 5 ORDER BY n"
    >>> open_results(read_tree(sql)[0]).sql("duckdb")
    'SELECT d AS d, COUNT(*) AS n FROM visits GROUP BY d HAVING COUNT(*) > 5 ORDER BY n'
    """
    found = _find_inner(node)
    if found is None:
        return node
    title, inner, others = found
    inner = open_results(inner.copy())
    known = {item.alias_or_name.lower(): item.unalias() for item in inner.expressions}
    outer = node.copy()
    windows = [any(item.find(exp.Window) for item in select.expressions) for select in (inner, outer)]
    plain = all(inner.args.get(part) is None for part in ("distinct", "limit", "offset", "qualify")) and "" not in known
    if not plain or all(windows) or any(item.is_star for item in inner.expressions):
        return node
    items = []
    for item in outer.expressions:
        shown = list(known) if item.is_star else []
        items += [exp.alias_(exp.column(name), name, quoted=True) for name in shown] or [item]
    outer.set(
        "expressions",
        [exp.alias_(i.unalias(), i.alias_or_name, quoted=i.is_string) if i.alias_or_name else i for i in items],
    )
    return _merge_results(outer, inner, known, title, others, late=windows[0]) or node


def _find_inner(node: Any) -> tuple[str, exp.Select, list[exp.CTE]] | None:
    """The one query that a SELECT stands around, its name there, and the other named queries."""
    if not isinstance(node, exp.Select) or any(node.args.get(part) for part in ("joins", "group", "having", "qualify")):
        return None
    start, named = node.args.get("from_"), node.args.get("with_")
    ctes = list(named.expressions) if named else []
    place = start.this if start else None
    if isinstance(place, exp.Table) and not place.args.get("db"):
        used = [one for one in ctes if one.alias.lower() == place.name.lower()]
        again = [table for table in node.find_all(exp.Table) if table.name.lower() == place.name.lower()]
        inner = used[0].this if len(used) == 1 and len(again) == 1 else None
        ctes = [one for one in ctes if one not in used]
    else:
        inner = place.this if isinstance(place, exp.Subquery) else None
    if place is None or not isinstance(inner, exp.Select) or inner.find(exp.AggFunc) is None:
        return None
    late = [part for key in ("expressions", "where", "order") for part in _list_parts(node, key)]
    found = [part for each in late for part in each.walk(prune=lambda part: isinstance(part, exp.Window))]
    if any(isinstance(part, exp.AggFunc | exp.Select) for part in found) or node.args.get("distinct"):
        return None
    return place.alias_or_name.lower(), inner, ctes


def _list_parts(select: exp.Select, key: str) -> list[exp.Expr]:
    value = select.args.get(key)
    return list(value) if isinstance(value, list) else [value] if value is not None else []


def _merge_results(
    outer: exp.Select, inner: exp.Select, known: dict[str, exp.Expr], title: str, others: list[exp.CTE], *, late: bool
) -> exp.Select | None:
    """The inner query with the outer one's items, condition, order and limit; None where a column is not known."""
    shown = {item.alias.lower() for item in outer.expressions}
    for key in ("expressions", "where", "order"):
        for column in [c for part in _list_parts(outer, key) for c in part.find_all(exp.Column)]:
            name = column.name.lower()
            if key == "order" and not column.table and name in shown:
                continue
            if name not in known or (column.table and column.table.lower() != title):
                return None
            value = known[name].copy()
            column.replace(exp.Paren(this=value) if isinstance(value, exp.Binary | exp.Not) else value)
    inner.set("expressions", outer.expressions)
    condition = outer.args.get("where")
    if condition is not None:
        tests = [part.this for part in (inner.args.get("having"),) if part is not None and not late]
        joined = exp.and_(*tests, condition.this, copy=False)
        inner.set("qualify" if late else "having", (exp.Qualify if late else exp.Having)(this=joined))
    for key in ("order", "limit", "offset"):
        if outer.args.get(key) is not None:
            inner.set(key, outer.args[key])
    named = [*others, *(inner.args["with_"].expressions if inner.args.get("with_") else ())]
    inner.set("with_", exp.With(expressions=named) if named else None)
    return inner


def is_union(node: object) -> bool:
    """Whether a subquery puts rows one after the other: UNION ALL and nothing else."""
    if not isinstance(node, exp.Union):
        return False
    if node.args.get("distinct") or any(node.args.get(part) for part in ("order", "limit", "with_", "by_name")):
        raise Refused("tables.sql_union_all")
    return True
