"""One form for values that mean the same, whoever wrote them how.

A table may hold 7, 7.0, np.float32(7) and Decimal("7.0"), or one instant in two time zones. Python calls some of these
equal and some not, and shows each in its own way. Whatever tells values apart (a key that is shown, a person whose rows
are bounded, a hash that decides between them) works on the form alone: else the row that came first, or the way one row
is written, would change what happens to everybody else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

__all__ = ["canonical_form"]

_DEPTH = 16
_LARGEST = 1 << 1024  # the first whole number beyond all floats
_DIGITS = 400  # a decimal number with more digits before the point is beyond all floats, one with more after it is none


def canonical_form(value: object) -> Any:
    """A value in its one form, of a built-in type; None for what is missing or of a type that has no form.

    Guarantee:
        A function of the value alone that never fails, and never asks a subclass how it shows, hashes or compares
        itself. Of the types that have a form, values that are equal (==) have the same one, but for True, which is
        not 1. Two forms are the same if and only if their `repr` is.

    Whole numbers are int, other numbers the nearest float (beyond all floats: infinite); text is str; a time is naive
    or in UTC, to the microsecond; a naive midnight is its date; a tuple has the forms of its parts.

    >>> from decimal import Decimal
    >>> values = (7.0, np.float32(7), Decimal("7.0"), True, (1.0, np.str_("a")), float("nan"))
    >>> [canonical_form(value) for value in values]
    [7, 7, 7, True, (1, 'a'), None]
    """
    return _form(value, _DEPTH)


def _form(value: Any, depth: int) -> Any:
    try:
        kind = type(value)
        if kind is str or kind is bool or (kind is int and -_LARGEST < value < _LARGEST):
            return value
        if isinstance(value, tuple):
            parts = [_form(part, depth - 1) for part in tuple.__iter__(value)] if depth else [None]
            return None if None in parts else tuple(parts)
        plain = _to_builtin(value)
        return next((form(plain) for kinds, form in _FORMS if isinstance(plain, kinds)), None)
    except Exception:  # noqa: BLE001  (a value that cannot be read has no form, and must not be heard)
        return None


def _to_builtin(value: Any) -> object:
    """A scalar of NumPy or Arrow as one of Python."""
    if isinstance(value, np.datetime64):
        since_1970 = int(value.astype("M8[Y]").astype(np.int64))  # years: this cast alone cannot wrap around
        return value.astype("M8[us]").item() if -1970 < since_1970 < 8030 else None
    if isinstance(value, np.timedelta64):
        return value.astype("m8[us]").item()
    if isinstance(value, np.longdouble):
        return Fraction(*value.as_integer_ratio()) if np.isfinite(value) else float(value)
    if isinstance(value, np.generic):
        return value.item()
    return value.as_py() if hasattr(type(value), "as_py") else value


def _float(value: float) -> Any:
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else value


def _number(top: int, bottom: int) -> Any:
    if abs(top) >= _LARGEST * bottom:
        return math.inf if top > 0 else -math.inf
    return top // bottom if top % bottom == 0 else _float(top / bottom)


def _decimal(value: Decimal) -> Any:
    if not Decimal.is_finite(value):
        return _float(math.nan if Decimal.is_nan(value) else math.copysign(math.inf, -1 if value.is_signed() else 1))
    size = Decimal.adjusted(value)
    if Decimal.is_zero(value) or size < -_DIGITS:
        return 0
    if size > _DIGITS:
        return -math.inf if Decimal.is_signed(value) else math.inf
    return _number(*Decimal.as_integer_ratio(value))


def _datetime(value: datetime) -> datetime | date:
    day, hours = (value.year, value.month, value.day), (value.hour, value.minute, value.second, value.microsecond)
    if value.utcoffset() is not None:
        return datetime(*day, *hours, tzinfo=value.tzinfo, fold=value.fold).astimezone(UTC).replace(fold=0)
    return datetime(*day, *hours) if any(hours) else date(*day)  # noqa: DTZ001  (it was naive)


def _time(value: time) -> time:
    offset, hours = value.utcoffset(), (value.hour, value.minute, value.second, value.microsecond)
    if offset is None:
        return time(*hours)
    return (datetime(2000, 1, 2, *hours, tzinfo=UTC) - offset).timetz()


_FORMS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (  # the first that fits: a bool is an int, a datetime a date
    (bool, bool),
    (int, lambda value: _number(int.__int__(value), 1)),
    (float, lambda value: _float(float.__float__(value))),
    (Decimal, _decimal),
    (Fraction, lambda value: _number(value.numerator, value.denominator)),
    (str, str.__str__),
    ((bytes, bytearray, memoryview), lambda value: b"".join([value])),
    (UUID, lambda value: UUID(int=value.int)),
    (timedelta, lambda value: timedelta(value.days, value.seconds, value.microseconds)),
    (datetime, _datetime),
    (date, lambda value: date(value.year, value.month, value.day)),
    (time, _time),
)
