"""Parts of dates, their differences and their texts, made of functions that every engine has.

Each is put together from expressions that are total, so it is total too, and means the same on every engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Call, Expression, Operator, lit
from mosha.core.errors import Refused
from mosha.tables.functions.constants import constant, name_of

__all__ = [
    "MOST_WRITTEN", "PARTS", "find_difference", "find_last_day", "name_day", "name_month", "write_date",
]  # fmt: skip

Part = Callable[[Expression], Expression]


def _shift(day: Expression, days: int) -> Expression:
    return Call(Operator.SHIFT_DATE, (day,), (days, "day"))


def _count_days(day: Expression) -> Expression:
    """The day of the year, the first being 1."""
    return day.days_since(day.truncate("year")) + 1


def _find_week(day: Expression) -> Expression:
    """The week of the year as ISO counts it: a week from Monday belongs to the year of its Thursday."""
    thursday = _shift(day.truncate("week"), 3)
    return (thursday.days_since(thursday.truncate("year")) / 7).floor() + 1


def _find_weekday(day: Expression) -> Expression:
    """The day of the week, Sunday being 0."""
    number = day.weekday()
    return Case(((number == 7, lit(0)),), number)


PARTS: Mapping[str, Part] = {
    "YEAR": lambda day: day.year(),
    "QUARTER": lambda day: day.quarter(),
    "MONTH": lambda day: day.month(),
    "DAY": lambda day: day.day(),
    "HOUR": lambda day: day.hour(),
    "MINUTE": lambda day: day.minute(),
    "ISODOW": lambda day: day.weekday(),
    **dict.fromkeys(("DOW", "DAYOFWEEK"), _find_weekday),
    **dict.fromkeys(("DOY", "DAYOFYEAR"), _count_days),
    "WEEK": _find_week,
}  # fmt: skip
"""What EXTRACT takes of a date or a timestamp."""

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def name_month(day: Expression) -> Expression:
    """The month in English, as most engines write it."""
    return Case(tuple((day.month() == place, lit(name)) for place, name in enumerate(MONTHS, 1)), None)


def name_day(day: Expression) -> Expression:
    """The day of the week in English."""
    return Case(tuple((day.weekday() == place, lit(name)) for place, name in enumerate(DAYS, 1)), None)


def find_last_day(day: Expression) -> Expression:
    """The last day of the month; December has 31, so that the last month of all has one too."""
    first = day.cast("date").truncate("month")
    return Case(
        ((first.month() == 12, _shift(first, 30)),), _shift(Call(Operator.SHIFT_DATE, (first,), (1, "month")), -1)
    )


_MONTHS: Mapping[str, tuple[int, Part | None]] = {
    "MONTH": (12, lambda day: day.month()), "QUARTER": (4, lambda day: day.quarter()), "YEAR": (1, None),
}  # fmt: skip
_CLOCK: Mapping[str, tuple[int, Part]] = {
    "HOUR": (24, lambda moment: moment.hour()),
    "MINUTE": (24 * 60, lambda moment: moment.hour() * 60 + moment.minute()),
}


def find_difference(later: Expression, earlier: Expression, unit: str) -> Expression | None:
    """How many first moments of the unit lie between two dates, as days count midnights; None for another unit.

    Engines disagree about weeks: some count Mondays, some count sevens of days.
    """
    unit = unit.upper().removesuffix("S")
    if unit == "DAY":
        return later.days_since(earlier)
    if unit in _CLOCK:
        size, read = _CLOCK[unit]
        return later.days_since(earlier) * size + read(later) - read(earlier)
    if unit not in _MONTHS:
        return None
    number, part = _MONTHS[unit]
    years = later.year() - earlier.year()
    return years if part is None else years * number + part(later) - part(earlier)


def _pad(part: Part, digits: int = 2) -> Part:
    """A whole number as text, with zeros before it."""

    def write(day: Expression) -> Expression:
        number = part(day)
        short = [(number < 10**place, lit("0" * (digits - place))) for place in range(1, digits)]
        return Case(tuple(short), lit("")).concat(number.cast("text"))

    return write


_WRITTEN: Mapping[str, Part] = {
    "%Y": _pad(PARTS["YEAR"], 4), "%m": _pad(PARTS["MONTH"]), "%d": _pad(PARTS["DAY"]), "%H": _pad(PARTS["HOUR"]),
    "%M": _pad(PARTS["MINUTE"]), "%j": _pad(PARTS["DOY"], 3),
}  # fmt: skip
MOST_WRITTEN = 12  # pieces of a format


def write_date(node: exp.Expr, read: Callable[[Any], Expression]) -> Expression:
    """STRFTIME(day, '%Y-%m'): the pieces of the format one after the other."""
    day, pattern = node.this, node.args["format"]
    if isinstance(day, exp.Literal) and not isinstance(pattern, exp.Literal):  # as SQLite writes them
        day, pattern = pattern, day
    said = constant(pattern)
    pieces = re.findall(r"%.?|[^%]+", said) if isinstance(said, str) else []
    if not 0 < len(pieces) <= MOST_WRITTEN or any(one[0] == "%" and one not in _WRITTEN for one in pieces):
        raise Refused("tables.sql_format", text=name_of(node), parts=sorted(_WRITTEN), spent="nothing")
    value = read(day)
    parts = [_WRITTEN[one](value) if one in _WRITTEN else lit(one) for one in pieces]
    return parts[0].concat(*parts[1:])
