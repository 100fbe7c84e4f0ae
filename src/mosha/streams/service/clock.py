"""From time stamps to steps: a public clock decides when a step is over, never the data.

Guarantee:
    Which step a row belongs to depends on its own time stamp and public numbers; a row that comes after its step was
    closed, or has no readable time, is dropped, which concerns nobody else. Steps are closed by `close_until`, whose
    time comes from a clock or a schedule: were it the largest time stamp seen, one row could close everybody's step.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import non_negative, positive

__all__ = ["Clock", "seconds", "timestamp"]

_UNITS = {"sec": 1, "min": 60, "m": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400, "w": 604800, "week": 604800}


def seconds(text: str | float) -> float:
    """A duration in seconds.

    >>> seconds("15min"), seconds("1h"), seconds("2 days"), seconds("30s"), seconds(90)
    (900.0, 3600.0, 172800.0, 30.0, 90.0)
    """
    if not isinstance(text, str):
        return positive("a duration", text)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text)
    unit = "" if found is None else found[2].removesuffix("s") or "sec"
    if found is None or unit not in _UNITS:
        raise InvalidParameter("streams.not_a_duration", text=text)
    return positive("a duration", float(found[1]) * _UNITS[unit])


def timestamp(value: Any) -> float:
    """A time in seconds since 1970, UTC where no zone is given: a number, an ISO text or a datetime; NaN for no time.

    >>> timestamp("1970-01-02 00:00:01"), timestamp(5), timestamp("never")
    (86401.0, 5.0, nan)
    """
    try:
        if isinstance(value, str):
            try:
                return float(value)
            except ValueError:
                value = dt.datetime.fromisoformat(value.strip())
        if isinstance(value, dt.datetime):
            zoned = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
            return zoned.timestamp()
        if hasattr(value, "dtype") and value.dtype.kind == "M":
            return float(value.astype("datetime64[us]").astype("int64")) / 1e6
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


@explain_wrong_calls
class Clock:
    """Rows with time stamps into batches of one step each, with rows that come late by no more than `lateness`.

    Steps begin at `start` and take `every` so long ("5min", or seconds); `column` holds the time of a row.

    >>> clock = Clock(start=0, every="1min", column="t", lateness="1min")
    >>> clock.add([{"t": 5, "id": "a"}, {"t": 70, "id": "b"}])
    >>> [batch["id"] for batch in clock.close_until(60 + 60)]
    [['a']]
    >>> clock.add([{"t": 10, "id": "too late"}, {"t": 61, "id": "late"}])
    >>> [batch["id"] for batch in clock.close_until(3 * 60)]
    [['b', 'late']]
    """

    def __init__(self, *, start: object, every: str | float, column: str, lateness: str | float = 0.0) -> None:
        self.every, self.column = seconds(every), column
        self.start = timestamp(start)
        if not math.isfinite(self.start):
            raise InvalidParameter("streams.start_not_a_time", parameter="start")
        self.lateness = seconds(lateness) if isinstance(lateness, str) else non_negative("lateness", lateness)
        self.closed = 0
        self._waiting: dict[int, list[dict[str, Any]]] = {}
        self._columns: dict[str, None] = dict.fromkeys([column])

    def declare(self, columns: Iterable[str]) -> None:
        """Say which `columns` rows have: batches have them all, also where nobody came."""
        self._columns |= dict.fromkeys(columns)

    def step_of(self, time: object) -> int:
        """The step (0 is the first) that `time` lies in; negative before the start, -1 for no time at all."""
        number = (timestamp(time) - self.start) / self.every
        return math.floor(number) if abs(number) < 2.0**60 else -1

    def add(self, rows: object) -> None:
        """Take `rows` (dicts), or columns by name; each waits for its step. A row without a time is left out, alone.

        Columns by name or a data frame that lack the clock's column are a DataError, as their header is public. Of
        single rows nothing is told: where none has the column, all are left out, so spell it as the rows do.
        """
        for row in _rows(rows, self.column):
            step = self.step_of(row.get(self.column))
            if step < self.closed:
                continue
            waiting = self._waiting.setdefault(step, [])
            waiting.append(dict(row))
            self._columns |= dict.fromkeys(row)

    def empty(self) -> dict[str, list[Any]]:
        """The batch of a step in which nothing happened."""
        return {name: [] for name in self._columns}

    def close_until(self, now: object) -> list[dict[str, list[Any]]]:
        """The batches of all steps that ended `lateness` or more before `now`, empty ones included."""
        number = (timestamp(now) - self.lateness - self.start) / self.every
        if not abs(number) < 2.0**60:
            raise InvalidParameter("streams.now_not_a_time", parameter="now")
        due = math.floor(number)
        return [self.close_next() for _ in range(self.closed, max(self.closed, due))]

    def close_next(self) -> dict[str, list[Any]]:
        """The batch of the next step, whatever the time."""
        rows = self._waiting.pop(self.closed, [])
        self.closed += 1
        return {name: [row.get(name) for row in rows] for name in self._columns}


def _rows(rows: Any, column: str) -> Iterable[Mapping[str, Any]]:
    if isinstance(rows, Mapping):
        _check_header(rows, column)
        try:
            columns = [list(values) for values in rows.values()]
            return [dict(zip(rows, values, strict=True)) for values in zip(*columns, strict=True)]
        except (TypeError, ValueError):
            raise DataError("streams.clock_columns_differ") from None
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        _check_header(rows.columns, column)
        try:
            return list(rows.to_dict(orient="records"))
        except TypeError:
            return list(rows.to_dicts())
    try:
        listed = list(rows)
    except TypeError:
        listed = [rows]
    if not all(isinstance(row, Mapping) for row in listed):
        raise DataError("streams.not_clock_rows")
    return listed


def _check_header(names: Iterable[object], column: str) -> None:
    if column not in list(names):
        raise DataError("streams.no_time_column", column=column)
