"""One SELECT out of a text: what the parser makes of it, and everything that is refused before it is read."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mosha.core.errors import InvalidParameter
from mosha.tables.sql.arguments import check_arguments
from mosha.tables.sql.scalar import Refused
from mosha.tables.sql.windows import is_over_results

__all__ = ["check_select", "is_union", "parse"]

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
    "offset": "OFFSET is not answered here: read the rows you need from the answer.",
    "sample": "TABLESAMPLE is not answered here, for the sample would not be priced: ask the whole table.",
    "laterals": "LATERAL is not answered here: join the tables instead.",
    "into": "INTO is not answered here: nothing is written anywhere.",
    "locks": "FOR UPDATE is not answered here: nothing is locked.",
}


def parse(text: object) -> tuple[exp.Select, bool]:
    """The one SELECT of `text`, and whether EXPLAIN stood before it.

    >>> parse("SELECT COUNT(*) FROM visits")[0].sql()
    'SELECT COUNT(*) FROM visits'
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidParameter("tables.sql_not_text", parameter="sql")
    if len(text) > _LONGEST:
        raise InvalidParameter("tables.sql_too_long", parameter="sql", most=_LONGEST)
    stripped = text.strip()
    explained = stripped[:8].upper() == "EXPLAIN "
    asked, most = _read_top(stripped[8:] if explained else stripped)
    try:
        statements = sqlglot.parse(asked, dialect="duckdb")
    except (SqlglotError, RecursionError):
        if stripped.lstrip("( \n\t").split(maxsplit=1)[0].upper() not in _FIRST:
            raise InvalidParameter("tables.sql_not_select", parameter="sql") from None
        raise InvalidParameter("tables.sql_unreadable", parameter="sql") from None
    found = [statement for statement in statements if statement is not None]
    if len(found) != 1:
        raise Refused("tables.sql_one_statement")
    for node in list(found[0].find_all(exp.Anonymous)):
        if str(node.this).upper() == "VAR" and len(node.expressions) == 1:
            node.replace(exp.Variance(this=node.expressions[0]))
    for nested in list(found[0].find_all(exp.Subquery)):
        _open_parentheses(nested)
    select = check_select(found[0])
    if most is not None and select.args.get("limit") is not None:
        raise Refused("tables.sql_unreadable", parameter="sql")
    return (select if most is None else select.limit(most, copy=False)), explained


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


def _read_top(text: str) -> tuple[str, int | None]:
    """The text without SELECT TOP n, as some databases write LIMIT n."""
    found = re.match(r"(?i)(\s*SELECT\s+)TOP\s+(\d{1,9})\s+", text)
    return (text, None) if found is None else (found[1] + text[found.end() :], int(found[2]))


def check_select(node: object) -> exp.Select:
    """A SELECT with nothing in it that the plan does not know."""
    if isinstance(node, exp.Subquery) and not node.args.get("pivots"):
        return check_select(node.this)
    if isinstance(node, exp.SetOperation):
        raise Refused("tables.sql_union")
    if not isinstance(node, exp.Select):
        if not isinstance(node, exp.DDL | exp.DML | exp.Command):  # a word that the parser takes for a name
            raise Refused("tables.sql_not_select", parameter="sql")
        raise Refused("tables.sql_only_select", statement=type(node).__name__.upper())
    for key, value in node.args.items():
        if value and key not in _KNOWN:
            raise Refused(_INSTEAD.get(key, f"{key.rstrip('_').upper()} is not answered here."))
    for part in node.walk():
        if isinstance(part, exp.Window) and not is_over_results(part, node):
            raise Refused(_INSTEAD["windows"])
        check_arguments(part)
    return node


def is_union(node: object) -> bool:
    """Whether a subquery puts rows one after the other: UNION ALL and nothing else."""
    if not isinstance(node, exp.Union):
        return False
    if node.args.get("distinct") or any(node.args.get(part) for part in ("order", "limit", "with_", "by_name")):
        raise Refused("tables.sql_union_all")
    return True
