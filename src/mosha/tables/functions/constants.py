"""Public constants in SQL: numbers, texts, dates, and the types that a cast may name.

Dates are read as analysts write them: texts beside dates, INTERVAL in constants, differences of two dates.
"""

from __future__ import annotations

import calendar
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp

from mosha.connect.language.checking import is_loose, type_of
from mosha.connect.language.expression import Call, Expression, Literal, Operator, lit
from mosha.connect.language.schema import LARGEST_INTEGER, Schema, Type
from mosha.core.errors import Refused

__all__ = [
    "constant",
    "find_type",
    "fold_numbers",
    "name_of",
    "read_moment",
    "read_texts",
    "shift_column",
    "shift_moment",
    "write_once",
]

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
    """Constants in the type of what stands beside them: day >= '2024-01-01', days > '7', urgent = 1."""
    kinds = [type_of(value, schema) for value in values if not isinstance(value, Literal)]
    if any(is_loose(value, schema) for value in values):
        return values
    if kinds and all(kind is Type.BOOLEAN or kind.numeric for kind in kinds):
        return [_read_number(value, kinds[0]) if isinstance(value, Literal) else value for value in values]
    wanted = next((kind for kind in kinds if kind.temporal), None)
    if wanted is None:
        return values
    return [
        lit(_read_any(value.value, wanted))
        if isinstance(value, Literal) and value.type is Type.TEXT and value.value is not None
        else value
        for value in values
    ]


def _read_number(said: Literal, kind: Type) -> Expression:
    """'7' beside a number is 7, and 1 beside a condition is TRUE; whatever else is said stays what it is."""
    value = said.value
    if kind is Type.BOOLEAN:
        return lit(bool(value)) if value in (0, 1) and not isinstance(value, bool) else said
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,15}(\.\d{1,15})?", value.strip()):
        return lit(_number(value.strip()))
    return said


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


LONGEST_NUMBER = 20  # characters, for sums that stay exact

_TYPES = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT", "INT128"), Type.INTEGER),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL", "REAL"), Type.REAL),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), Type.TEXT),
    "BOOLEAN": Type.BOOLEAN,
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
    "TIMESTAMPNTZ": Type.TIMESTAMP,
    "TIMESTAMPTZ": Type.INSTANT,
}


_written: ContextVar[dict[int, tuple[object, str]] | None] = ContextVar("_written", default=None)


def name_of(node: Any) -> str:
    """What to call a piece of SQL in a message."""
    written = _written.get()
    if written is None:
        return str(node.sql(dialect="duckdb"))
    if id(node) not in written:
        written[id(node)] = (node, str(node.sql(dialect="duckdb")))  # a node that is kept keeps its number
    return written[id(node)][1]


@contextmanager
def write_once(memory: dict[int, tuple[object, str]]) -> Iterator[None]:
    """Write every piece of SQL once, while many results are worked out and nobody changes what was read.

    Args:
        memory: what was written so far; whoever keeps it spares it the next time.
    """
    token = _written.set(memory)
    try:
        yield
    finally:
        _written.reset(token)


def constant(node: exp.Expression) -> Any:
    """A public constant: a number, text, boolean, date, timestamp or NULL."""
    match node:
        case exp.Paren() | exp.Neg():
            inner = constant(node.this)
            return -inner if isinstance(node, exp.Neg) else inner
        case exp.Null() | exp.Boolean():
            return None if isinstance(node, exp.Null) else bool(node.this)
        case exp.Literal():
            return str(node.this) if node.is_string else _number(str(node.this))
        case exp.Cast() if isinstance(node.this, exp.Literal) and node.this.is_string:
            return read_moment(str(node.this.this), find_type(node))
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
            sign = 1 if isinstance(node, exp.Add) else -1
            moment = constant(node.this)
            moment = _read_any(moment, Type.TIMESTAMP) if isinstance(moment, str) else moment
            return shift_moment(moment, node.expression, sign, name_of(node))
    if (folded := fold_numbers(node)) is not None:
        return folded
    raise Refused("tables.sql_constant", text=name_of(node))


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def find_type(node: exp.Expression) -> Type:
    kind = _TYPES.get(node.args["to"].this.name)
    if kind is None:
        raise Refused("tables.sql_no_type", text=name_of(node), types=[str(kind) for kind in Type])
    return kind


_FOLDED: Mapping[type[exp.Expression], Callable[[Decimal, Decimal], Decimal]] = {
    exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul,
}  # fmt: skip


def fold_numbers(node: exp.Expression) -> int | float | None:
    """A sum, difference or product of written numbers, in decimals as SQL means it: 0.06 + 0.01 is 0.07."""
    found = _fold(node) if type(node) in _FOLDED else None
    if found is None or abs(found) >= LARGEST_INTEGER:
        return None
    return int(found) if found == found.to_integral_value() and "." not in name_of(node) else float(found)


def _fold(node: exp.Expression) -> Decimal | None:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return Decimal(str(node.this)) if len(str(node.this)) <= LONGEST_NUMBER else None
    if type(node) not in _FOLDED:
        return None
    sides = _fold(node.this), _fold(node.expression)
    return None if sides[0] is None or sides[1] is None else _FOLDED[type(node)](sides[0], sides[1])
