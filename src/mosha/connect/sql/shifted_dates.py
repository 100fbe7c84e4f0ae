"""Dates some days or months later, in SQL: NULL where the day would leave the years 1 to 9999."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from sqlglot import exp

from mosha.connect.language.schema import Type
from mosha.connect.sql.dialect import Node, binary, choose
from mosha.connect.sql.layers import Layers, Typed

if TYPE_CHECKING:
    from mosha.connect.language.expression import Call

__all__ = ["find_reach", "shift_date_sql"]


def shift_date_sql(scope: Layers, expression: Call, arguments: list[Typed], result: Type) -> Node:
    """The shift behind a guard: later days are shifted to later ones, so those that stay in range are an interval."""
    amount, unit = expression.options
    reach = find_reach(amount, unit)
    if reach is None:
        return scope.dialect.literal(None, result)
    moments = (datetime.combine(day, clock) for day, clock in zip(reach, (time.min, time.max), strict=True))
    first, last = reach if result is Type.DATE else moments

    def shift(value: Node) -> Node:
        low, high = (scope.dialect.literal(end, result) for end in (first, last))
        inside = binary(exp.And, binary(exp.GTE, value, low), binary(exp.LTE, value.copy(), high))
        return choose((inside, scope.dialect.shift_date(value.copy(), amount, unit, result)))

    return scope.let(arguments[0].node, shift)


def find_reach(amount: int, unit: str) -> tuple[date, date] | None:
    """The first and the last day whose shift is in the years 1 to 9999; None where there is none.

    >>> find_reach(1, "month")
    (datetime.date(1, 1, 1), datetime.date(9999, 11, 30))
    """
    try:
        if unit == "day":
            shift = timedelta(days=amount)
            return (date.min - shift, date.max) if amount < 0 else (date.min, date.max - shift)
        first, last = (12 * day.year + day.month - 1 - amount for day in (date.min, date.max))
        low = date.min if amount >= 0 else _first_day(first)
        return low, date.max if amount <= 0 else _first_day(last + 1) - timedelta(days=1)
    except (OverflowError, ValueError):
        return None


def _first_day(month: int) -> date:
    return date(month // 12, month % 12 + 1, 1)
