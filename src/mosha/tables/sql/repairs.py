"""What stands in a refused query, in the words of one that is answered: today, days of dates, MODE, slips in names."""

from __future__ import annotations

from datetime import date
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mosha.core.errors import MoshaError, Refused
from mosha.tables.sql.aggregate import is_aggregate
from mosha.tables.sql.parsing import read_one
from mosha.tables.sql.spellings import respell

__all__ = [
    "complete_clamp", "count_days", "fix_differences", "fix_today", "join_matches", "leave_out_schemas",
    "list_most_common", "mend_slip", "split_values",
]  # fmt: skip


def fix_today(select: exp.Select) -> None:
    """CURRENT_DATE and NOW() as the day that it is: a question says which day it is about."""
    calls = [node for node in select.find_all(exp.Anonymous) if str(node.this).upper() in {"NOW", "TODAY", "GETDATE"}]
    for node in [*calls, *select.find_all(exp.CurrentDate, exp.CurrentTimestamp)]:
        today = exp.Literal.string(date.today().isoformat())  # noqa: DTZ011  (the day on the analyst's wall)
        node.replace(exp.Cast(this=today, to=exp.DataType.build("date")))


def count_days(day: exp.Expr) -> None:
    """A date as the number of days since this year began, ten years to both sides."""
    first = read_one(f"DATE '{date.today().year}-01-01'")  # noqa: DTZ011
    days = exp.DateDiff(this=day.copy(), expression=first, unit=exp.Var(this="DAY"))
    edges = [exp.Neg(this=exp.Literal.number(3660)), exp.Literal.number(3660)]
    day.replace(exp.Anonymous(this="CLAMP", expressions=[days, *edges]))


def list_most_common(select: exp.Select) -> None:
    """MODE(x) as the group with the largest noisy count."""
    for mode in list(select.find_all(exp.Mode)):
        within = mode.parent if isinstance(mode.parent, exp.WithinGroup) else mode
        of = mode.this if mode.this is not None else within.expression.expressions[0].this
        item = within.parent if isinstance(within.parent, exp.Alias) else within
        group = select.args.get("group") or exp.Group(expressions=[])
        if item.parent is select and isinstance(of, exp.Column) and len(list(select.find_all(exp.Mode))) == 1:
            item.replace(of.copy())
            select.append("expressions", exp.alias_(exp.Count(this=exp.Star()), "n"))
            select.set("group", exp.Group(expressions=[*group.expressions, of.copy()]))
            if not group.expressions:
                select.set("limit", exp.Limit(expression=exp.Literal.number(1)))
            select.set("order", exp.Order(expressions=[exp.Ordered(this=exp.column("n"), desc=True)]))


def complete_clamp(node: exp.Expr) -> None:
    """LEAST(x, 30) alone is half of CLAMP(x, 0, 30)."""
    ends = node.expressions
    if isinstance(node.this, exp.Column) and len(ends) == 1 and isinstance(ends[0], exp.Literal):
        other = exp.Literal.number(0 if isinstance(node, exp.Least) else 100)
        edges = [other, ends[0].copy()] if isinstance(node, exp.Least) else [ends[0].copy(), other]
        if not isinstance(node.parent, exp.Least | exp.Greatest):
            node.replace(exp.Anonymous(this="CLAMP", expressions=[node.this.copy(), *edges]))


def leave_out_schemas(select: exp.Select) -> exp.Select:
    for table in select.find_all(exp.Table):
        table.set("db", None)
        table.set("catalog", None)
    return select


def fix_differences(select: exp.Select) -> None:
    """EXTRACT(EPOCH FROM b - a), and TIMESTAMPDIFF, as DATEDIFF; a single value of a subquery as the greatest one."""
    for said in list(select.find_all(exp.TimestampDiff)):
        said.replace(exp.DateDiff(this=said.this.copy(), expression=said.expression.copy(), unit=said.args["unit"]))
    for node in list(select.find_all(exp.Extract)):
        inner, unit = node.expression.unnest(), node.this.name.upper()
        if isinstance(inner, exp.Sub) and unit in {"EPOCH", "DAY", "HOUR", "MINUTE"}:
            days = exp.DateDiff(this=inner.this.copy(), expression=inner.expression.copy())
            days.set("unit", exp.Var(this="MINUTE" if unit == "EPOCH" else unit))
            node.replace(exp.Mul(this=days, expression=exp.Literal.number(60)) if unit == "EPOCH" else days)
    for nested in list(select.find_all(exp.Subquery)):
        value = nested.this.expressions[0].unalias() if isinstance(nested.this, exp.Select) else None
        placed = isinstance(nested.parent, exp.Binary | exp.Paren | exp.Alias | exp.Func | exp.Neg | exp.Between)
        if isinstance(value, exp.Column) and len(nested.this.expressions) == 1 and placed:
            nested.this.set("expressions", [exp.Max(this=value.copy())])


def mend_slip(select: exp.Select, problem: MoshaError) -> bool:
    """A misspelled name as the nearest one that is there, a - b of two moments in days; false for other problems."""
    public = problem.public
    if problem.code == "connect.operator_needs" and public.get("operator") == "subtract":
        moments = [node for node in select.find_all(exp.Sub) if isinstance(node.expression, exp.Column)]
        for node in moments:
            days = exp.DateDiff(this=node.this.copy(), expression=node.expression.copy(), unit=exp.Var(this="DAY"))
            node.replace(days)
        return bool(moments)
    what = "column" if problem.code in {"connect.no_column", "connect.misspelled_column"} else None
    what = "table" if problem.code == "tables.sql_no_table" else what
    if what is None:
        return False
    wrong, known = str(public[what]), [name.strip("'") for name in public[f"{what}s"]]  # type: ignore[attr-defined]
    close = get_close_matches(wrong.lower(), [name.lower() for name in known], 1, 0.75)
    right = next((name for name in known if [name.lower()] == close), None)
    if right is None or right == wrong:
        return False
    for part in select.find_all(exp.Column if what == "column" else exp.Table):
        if part.name == wrong:
            part.this.replace(exp.to_identifier(right))
    return True


def join_matches(select: exp.Select) -> exp.Select | None:
    """EXISTS (SELECT 1 FROM b WHERE ...) as JOIN b ON ..., which takes any comparison; None where there is none."""
    where = select.args.get("where")
    parts = [] if where is None else list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    found = [part for part in parts if isinstance(part, exp.Exists) and _is_plain(part.this)]
    for part in found:
        inner = part.this
        select.append("joins", exp.Join(this=inner.args["from_"].this.copy(), on=inner.args["where"].this.copy()))
    left = [part.copy() for part in parts if not any(part is one for one in found)]
    select.set("where", exp.Where(this=exp.and_(*left)) if left else None)
    return select if found else None


def _is_plain(inner: exp.Expr) -> bool:
    """Whether a subquery is one table and a condition."""
    others = ("joins", "group", "having", "limit", "with_")
    return isinstance(inner, exp.Select) and "where" in inner.args and not any(inner.args.get(part) for part in others)


def split_values(text: str) -> list[exp.Select]:
    """SELECT (SELECT ...), (SELECT ...) without FROM, each as a query of its own; none for another query."""
    try:
        select = respell(read_one(text))
    except (SqlglotError, RecursionError, Refused):
        return []
    if not isinstance(select, exp.Select) or select.args.get("from_") or select.args.get("with_"):
        return []
    found: list[exp.Select] = []
    for item in select.expressions:
        for nested in item.find_all(exp.Subquery):
            inner = nested.this
            if not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
                return []
            value = inner.expressions[0].unalias()
            if not any(map(is_aggregate, value.walk())) or inner.args.get("group"):
                return []
            said = exp.Literal.string(item.alias or f"value {len(found) + 1}")
            inner = inner.copy()
            inner.set("expressions", [exp.alias_(said, "name"), exp.alias_(value.copy(), "value")])
            found.append(inner)
    return found
