"""The values that name groups: dates and intervals that can be listed, and how a book keeps selected ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from mosha.connect.language.cases import Case, when
from mosha.connect.language.checking import type_of
from mosha.connect.language.expression import Expression, as_expression, col, null
from mosha.connect.language.schema import Type
from mosha.connect.plan.relation import Relation
from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import real
from mosha.core.options import DateStep

__all__ = ["as_engines_do", "date_range", "from_plain", "in_utc", "interval", "intervals", "to_plain"]

STEPS = ("day", "week", "month", "quarter", "year")


def in_utc(rows: Iterable[tuple[object, ...]], kinds: Sequence[Type]) -> tuple[tuple[Any, ...], ...]:
    """Keys that come from an engine, which knows moments as wall clocks of UTC, as moments in that zone."""
    if Type.INSTANT not in kinds:
        return tuple(rows)
    return tuple(tuple(_moment(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in rows)


def _moment(value: Any, kind: Type) -> Any:
    return value.replace(tzinfo=UTC) if kind is Type.INSTANT and value is not None else value


def as_engines_do(row: tuple[object, ...]) -> tuple[Any, ...]:
    """A key as an engine gives it: `in_utc` backwards."""
    return tuple(value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in row)


def to_plain(row: Sequence[object]) -> list[Any]:
    """A key as numbers and text, which every book keeps as they are."""
    return [part.isoformat() if isinstance(part, date) else part for part in row]


def from_plain(row: Sequence[object], relation: Relation, keys: Sequence[tuple[str, Expression]]) -> tuple[Any, ...]:
    """The key that `to_plain` wrote down."""
    kinds = [type_of(expression, relation.schema) for _, expression in keys]
    return tuple(_read_part(part, kind) for part, kind in zip(row, kinds, strict=True))


def _read_part(part: Any, kind: Type) -> Any:
    if part is None or not kind.temporal:
        return part
    return date.fromisoformat(part) if kind is Type.DATE else datetime.fromisoformat(part)


def _edges(edges: Sequence[float]) -> list[float]:
    try:
        found = [real("an edge", edge) for edge in edges]
    except TypeError:
        found = []
    if len(found) < 2 or any(a >= b for a, b in itertools.pairwise(found)):
        raise InvalidParameter("tables.edges", parameter="edges")
    return found


@explain_wrong_calls
def intervals(edges: Sequence[float]) -> list[str]:
    """The names of the intervals between `edges`; the last one holds both of its ends.

    >>> intervals([0, 18, 65])
    ['[0, 18)', '[18, 65]']
    """
    marks = _edges(edges)
    pairs = list(itertools.pairwise(marks))
    return [f"[{a:.12g}, {b:.12g}{']' if i == len(pairs) - 1 else ')'}" for i, (a, b) in enumerate(pairs)]


@explain_wrong_calls
def interval(column: object, edges: Sequence[float]) -> Expression:
    """The name of the interval between `edges` in which `column` lies; NULL outside: a key for `group_by`.

    >>> interval("age", [0, 18])
    (case when ("age" < 0.0) then null:text when ("age" <= 18.0) then '[0, 18]' else None)
    """
    of = col(column) if isinstance(column, str) else as_expression(column)
    marks, names = _edges(edges), intervals(edges)
    case: Case = when(of < marks[0], null(Type.TEXT))
    for mark, name in zip(marks[1:-1], names, strict=False):
        case = case.when(of < mark, name)
    return case.when(of <= marks[-1], names[-1])


@explain_wrong_calls
def date_range(first: date, last: date, *, by: DateStep = "day") -> list[date]:
    """The first days of all days, weeks (from Monday), months, quarters or years that meet [`first`, `last`].

    They are the values of `col(name).truncate(by)` for a column of dates.

    `by` is "day", "week", "month", "quarter" or "year".

    >>> date_range(date(2024, 1, 15), date(2024, 3, 1), by="month")
    [datetime.date(2024, 1, 1), datetime.date(2024, 2, 1), datetime.date(2024, 3, 1)]
    """
    if by not in STEPS:
        raise InvalidParameter("tables.date_step", parameter="by", allowed=list(STEPS))
    if not isinstance(first, date) or not isinstance(last, date) or _to_day(first) > _to_day(last):
        raise InvalidParameter("tables.date_range_reversed")
    day, end, found = _start(_to_day(first), by), _to_day(last), []
    while day <= end:
        found.append(day)
        day = _next(day, by)
    return found


def _to_day(day: date) -> date:
    if isinstance(day, datetime):
        return (day.astimezone(UTC) if day.tzinfo else day).date()
    return day


def _start(day: date, by: str) -> date:
    if by == "week":
        return day - timedelta(days=day.weekday())
    month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}.get(by)
    return day if month is None else date(day.year, month, 1)


def _next(day: date, by: str) -> date:
    if by in ("day", "week"):
        return day + timedelta(days=1 if by == "day" else 7)
    months = day.year * 12 + day.month - 1 + {"month": 1, "quarter": 3, "year": 12}[by]
    return date(months // 12, months % 12 + 1, 1)
