"""Periods: once, or every day, week, month, quarter or year; each has a label, a first day and an end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal, get_args

from mosha.core.errors import InvalidParameter

__all__ = ["Every", "Period", "find_period"]

Every = Literal["once", "day", "week", "month", "quarter", "year"]


@dataclass(frozen=True)
class Period:
    """A stretch of days, called `label`: from `start` to the day before `end`.

    >>> Period("January", date(2026, 1, 1), date(2026, 2, 1)).label
    'January'
    """

    label: str
    start: date
    end: date


def find_period(every: Every, on: date | str | None = None) -> Period:
    """The period of the kind `every` in which the day `on` lies (today, where none is given).

    >>> find_period("quarter", "2026-05-17")
    Period(label='2026-Q2', start=datetime.date(2026, 4, 1), end=datetime.date(2026, 7, 1))
    >>> find_period("year", "2026").label
    '2026'
    """
    if every not in get_args(Every):
        raise InvalidParameter("core.unknown_option", parameter="period", options=list(get_args(Every)))
    day = _read_day(on)
    if every == "once":
        return Period("once", date(1900, 1, 1), date(2200, 1, 1))
    if every == "day":
        return Period(day.isoformat(), day, day + timedelta(days=1))
    if every == "week":
        start = day - timedelta(days=day.weekday())
        year, week, _ = day.isocalendar()
        return Period(f"{year}-W{week:02d}", start, start + timedelta(days=7))
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    first = (day.month - 1) // months * months + 1
    start, after = date(day.year, first, 1), first + months
    end = date(day.year + (after > 12), after - 12 if after > 12 else after, 1)
    label = {"month": f"{start:%Y-%m}", "quarter": f"{day.year}-Q{(day.month - 1) // 3 + 1}"}.get(every, str(day.year))
    return Period(label, start, end)


def _read_day(on: date | str | None) -> date:
    if on is None:
        return datetime.now(UTC).date()
    if isinstance(on, datetime):
        return on.date()
    if isinstance(on, date):
        return on
    text = str(on)
    try:
        if "-Q" in text:
            year, _, quarter = text.partition("-Q")
            return date(int(year), 3 * int(quarter) - 2, 1)
        if "-W" in text:
            year, _, week = text.partition("-W")
            return date.fromisocalendar(int(year), int(week), 1)
        return date.fromisoformat(text + "-01-01"[(len(text) - 4) if len(text) <= 7 else 6 :])
    except ValueError:
        raise InvalidParameter("reports.not_a_period", parameter="period", given=text) from None
