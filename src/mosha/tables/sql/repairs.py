"""What stands in a refused query, in the words of one that is answered: today, days of dates, MODE, ranges, schemas."""

from __future__ import annotations

from datetime import date

import sqlglot
from sqlglot import exp

__all__ = ["complete_clamp", "count_days", "fix_today", "leave_out_schemas", "list_most_common"]


def fix_today(select: exp.Select) -> None:
    """CURRENT_DATE and NOW() as the day that it is: a question says which day it is about."""
    calls = [node for node in select.find_all(exp.Anonymous) if str(node.this).upper() in {"NOW", "TODAY"}]
    for node in [*calls, *select.find_all(exp.CurrentDate, exp.CurrentTimestamp)]:
        today = exp.Literal.string(date.today().isoformat())  # noqa: DTZ011  (the day on the analyst's wall)
        node.replace(exp.Cast(this=today, to=exp.DataType.build("date")))


def count_days(day: exp.Expr) -> None:
    """A date as the number of days since this year began, ten years to both sides."""
    first = sqlglot.parse_one(f"DATE '{date.today().year}-01-01'")  # noqa: DTZ011
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
