"""Seven types that mean the same on every engine, and the public list of a table's columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.fingerprint import Description
from mosha.core.language import say
from mosha.core.showing import Card

__all__ = [
    "LARGEST_INTEGER",
    "LARGEST_REAL",
    "LONGEST_TEXT",
    "SMALLEST_FACTOR",
    "Columned",
    "Schema",
    "Type",
    "literal_type",
]

LARGEST_INTEGER = 2**63 - 1
LARGEST_REAL = 2.0**500
SMALLEST_FACTOR = 2.0**-500
LONGEST_TEXT = 2**18  # bytes of UTF-8


class Type(StrEnum):
    """What a column holds. Every type has NULL, the missing value.

    INTEGER    whole numbers of 64 bits; anything wider is missing
    REAL       doubles of magnitude below 2**500; NaN, infinities and anything larger are missing
    BOOLEAN    true and false
    TEXT       Unicode text of up to 2**18 bytes in UTF-8, compared code point by code point; anything longer is missing
    DATE       days from 0001-01-01 to 9999-12-31; anything else is missing
    TIMESTAMP  a reading of a wall clock, in microseconds, over the same years
    INSTANT    a moment with a time zone, read in UTC; it does not compare with a wall clock

    >>> Type.INTEGER.numeric, Type.TEXT.numeric
    (True, False)
    """

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INSTANT = "instant"

    @property
    def numeric(self) -> bool:
        return self in {Type.INTEGER, Type.REAL}

    @property
    def temporal(self) -> bool:
        return self in {Type.DATE, Type.TIMESTAMP, Type.INSTANT}


def literal_type(value: object) -> tuple[Any, Type]:
    """A public constant in its plain form, with its type.

    >>> literal_type(3), literal_type(2.5)
    ((3, <Type.INTEGER: 'integer'>), (2.5, <Type.REAL: 'real'>))
    """
    if isinstance(value, bool):
        return value, Type.BOOLEAN
    if isinstance(value, str):
        if "\x00" in value:
            raise InvalidParameter("connect.text_with_nul")
        return _encodable(str.__str__(value)), Type.TEXT  # also of an enumeration, whose str() is the name of a member
    if isinstance(value, datetime) and value == value:  # noqa: PLR0124  (NaT of pandas is none)
        if value.tzinfo is None:
            return _plain_clock(value), Type.TIMESTAMP
        return _plain_clock(value.astimezone(UTC)), Type.INSTANT
    if isinstance(value, date) and not isinstance(value, datetime):
        return date(value.year, value.month, value.day), Type.DATE
    return _number(value)


def _plain_clock(value: datetime) -> datetime:
    """The reading in microseconds, as engines compare it: two that differ by less are one constant.

    >>> import pandas as pd
    >>> _plain_clock(pd.Timestamp("2024-02-29 12:00:00.000000001"))
    datetime.datetime(2024, 2, 29, 12, 0)
    """
    return datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)  # noqa: DTZ001


def _encodable(value: str) -> str:
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidParameter("connect.text_not_unicode") from None
    if size > LONGEST_TEXT:
        raise InvalidParameter("connect.text_too_long", most=LONGEST_TEXT, spent="nothing")
    return value


def _number(value: Any) -> tuple[int | float, Type]:
    try:
        whole = value.__index__()
    except AttributeError:
        whole = None
    if whole is not None:
        if abs(whole) > LARGEST_INTEGER:
            raise InvalidParameter("connect.integer_too_large")
        return int(whole), Type.INTEGER
    try:
        number = float(value) if isinstance(value, (float, Decimal)) or hasattr(value, "__float__") else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise InvalidParameter("connect.not_a_constant", kind=type(value).__name__)
    if not math.isfinite(number) or abs(number) >= LARGEST_REAL:
        raise InvalidParameter("connect.real_too_large")
    return number + 0.0, Type.REAL


class Schema(Mapping[str, Type]):
    """The public types of `columns` by name, in order; `skipped` names columns of types without a meaning here.

    Columns in `loose` are text of a file that has no types, and nobody has declared them: where an operator needs a
    number or a date, such a column is read as one, and what does not read so is missing (`checking.read_loose_types`).

    >>> Schema({"ward": Type.TEXT, "days": Type.INTEGER})["days"]
    <Type.INTEGER: 'integer'>
    """

    def __init__(self, columns: Mapping[str, Type], skipped: Iterable[str] = (), loose: Iterable[str] = ()) -> None:
        self._columns = dict(columns)
        self._skipped = frozenset(skipped)
        self.loose = frozenset(loose)

    def __getitem__(self, name: str) -> Type:
        try:
            return self._columns[name]
        except KeyError:
            if name in self._skipped:
                raise DataError(
                    "connect.column_without_type",
                    column=name,
                    columns=[repr(column) for column in self._columns] or ["none"],
                ) from None
            if close := get_close_matches(str(name), self._columns, n=2, cutoff=0.7):
                raise DataError(
                    "connect.misspelled_column",
                    column=name,
                    close=[repr(column) for column in close],
                    columns=[repr(column) for column in self._columns],
                ) from None
            raise DataError(
                "connect.no_column", column=name, columns=[repr(column) for column in self._columns] or ["none"]
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def public_parts(self) -> Iterable[Description]:
        """What a fingerprint knows of the columns: names, types, and which of them are loose."""
        return ([name, str(kind), name in self.loose] for name, kind in self.items())

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}: {kind}' for name, kind in self._columns.items())})"


class Columned:
    """What has columns shows them, and nothing of rows: as text, and in a notebook.

    >>> class Wards(Columned):
    ...     schema = Schema({"ward": "text", "floor": "integer"})
    >>> Wards()
    Wards(ward text, floor integer)
    """

    schema: Schema

    def make_card(self) -> Card:
        """Columns and their types."""
        heads = [say("tables.shown_column"), say("tables.shown_type")]
        lines = [[name, str(kind)] for name, kind in self.schema.items()]
        return Card(title=say("connect.shown_table"), heads=heads, lines=lines, numbers=2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name} {kind}' for name, kind in self.schema.items())})"

    def __str__(self) -> str:
        return self.make_card().write_text()

    def _repr_html_(self) -> str:
        return self.make_card().write_html()
