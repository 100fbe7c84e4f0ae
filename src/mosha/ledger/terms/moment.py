"""Moments in a book: microseconds since 1970, and how people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from mosha.core.errors import InvalidParameter

__all__ = ["as_datetime", "as_text", "read_moment"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_moment(name: str, given: object) -> int:
    """The moment that a date or a time means; a date means the end of that day, in UTC.

    >>> as_text(read_moment("expires", "2027-03-31"))
    '2027-04-01T00:00:00+00:00'
    >>> as_text(read_moment("expires", "2027-03-31T18:00:00+08:00"))
    '2027-03-31T10:00:00+00:00'
    """
    said = _read_text(given) if isinstance(given, str) else given
    try:
        if isinstance(said, datetime):
            if said.tzinfo is None:
                raise InvalidParameter("ledger.no_time_zone", parameter=name)
            return (said - _EPOCH) // timedelta(microseconds=1)
        if isinstance(said, date):
            return (datetime(said.year, said.month, said.day, tzinfo=UTC) + timedelta(days=1) - _EPOCH) // timedelta(
                microseconds=1
            )
    except OverflowError:
        pass
    raise InvalidParameter("ledger.not_a_date", parameter=name)


def _read_text(text: str) -> date | datetime | None:
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(text)
        except ValueError:
            continue
    return None


def as_datetime(moment: int) -> datetime:
    return _EPOCH + timedelta(microseconds=moment)


def as_text(moment: int) -> str:
    """For people and for JSON, to the second."""
    return as_datetime(moment).isoformat(timespec="seconds")
