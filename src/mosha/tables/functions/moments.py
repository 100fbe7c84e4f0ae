"""Dates as analysts write them: texts beside dates, INTERVAL in constants, differences of two dates."""

from __future__ import annotations

import calendar
from datetime import date, datetime, timedelta
from typing import Any

from sqlglot import exp

from mosha.connect.language.checking import is_loose, type_of
from mosha.connect.language.expression import Call, Expression, Literal, Operator, lit
from mosha.connect.language.schema import Schema, Type
from mosha.core.errors import Refused

__all__ = ["read_moment", "read_texts", "shift_column", "shift_moment"]

_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}


def read_moment(text: str, kind: Type) -> Any:
    """The date or the timestamp that a text says; the text itself for other types."""
    try:
        if kind is Type.DATE:
            return date.fromisoformat(text)
        if kind in {Type.TIMESTAMP, Type.INSTANT}:
            return datetime.fromisoformat(text)
    except ValueError:
        raise Refused("tables.sql_not_a_date", text=text, kind=str(kind)) from None
    return text


def read_texts(values: list[Expression], schema: Schema) -> list[Expression]:
    """Constants of text beside a date or a timestamp, read as one: day >= '2024-01-01'."""
    kinds = [type_of(value, schema) for value in values if not isinstance(value, Literal)]
    wanted = next((kind for kind in kinds if kind.temporal), None)
    if wanted is None or any(is_loose(value, schema) for value in values):
        return values
    return [
        lit(_read_any(value.value, wanted))
        if isinstance(value, Literal) and value.type is Type.TEXT and value.value is not None
        else value
        for value in values
    ]


def _read_any(text: str, kind: Type) -> Any:
    """A date may stand beside a timestamp."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return read_moment(text, kind)


def shift_moment(moment: object, interval: exp.Interval, sign: int, text: str) -> Any:
    """A constant date or timestamp some time later or earlier; the last day of a month stays within the month."""
    amount, unit = _read_interval(interval, text)
    try:
        if unit in _MONTHS and isinstance(moment, date):
            return _add_months(moment, sign * amount * _MONTHS[unit])
        if unit in _DAYS and isinstance(moment, date):
            return moment + timedelta(days=sign * amount * _DAYS[unit])
        if unit in _SECONDS and isinstance(moment, datetime):
            return moment + timedelta(seconds=sign * amount * _SECONDS[unit])
    except (OverflowError, ValueError):
        pass
    raise Refused("tables.sql_interval", text=text, spent="nothing")


def shift_column(value: Expression, interval: exp.Interval, sign: int, text: str) -> Expression:
    """The dates of a column some days or months later or earlier."""
    amount, unit = _read_interval(interval, text)
    for name, units in (("day", _DAYS), ("month", _MONTHS)):
        if unit in units:
            return Call(Operator.SHIFT_DATE, (value,), (sign * amount * units[unit], name))
    raise Refused("tables.sql_interval", text=text, spent="nothing")


def _read_interval(interval: exp.Interval, text: str) -> tuple[int, str]:
    number, unit = interval.this, interval.args.get("unit")
    said = str(number.this) if isinstance(number, exp.Literal) else ""
    if unit is None and " " in said:
        said, _, name = said.partition(" ")
    else:
        name = "" if unit is None else unit.name
    name = name.strip().upper().removesuffix("S")
    if not said.lstrip("-").isdigit() or name not in {**_DAYS, **_MONTHS, **_SECONDS} or len(said) > 9:
        raise Refused("tables.sql_interval", text=text, spent="nothing")
    return int(said), name


def _add_months(moment: date, months: int) -> date:
    whole = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(whole, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, calendar.monthrange(year, month + 1)[1]))
