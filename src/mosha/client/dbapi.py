"""DB-API 2.0 over a server of Mosha: for `pandas.read_sql`, dashboards and whatever else speaks it.

The price of a question comes from the connection. The same text within a window (an hour, a day, a week) is the same
question under the same key, and free: a dashboard that refreshes does not burn the budget.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any

from mosha.client.lab import Lab, connect_to
from mosha.core.errors import InvalidParameter, MoshaError

__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Connection", "Cursor", "DataError", "DatabaseError", "Error",
    "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError", "OperationalError", "ProgrammingError",
    "Warning", "apilevel", "connect", "paramstyle", "threadsafety",
]  # fmt: skip

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"
STRING, BINARY, NUMBER, DATETIME, ROWID = "text", "binary", "number", "datetime", "rowid"
WINDOWS = {"hour": 3600, "day": 86_400, "week": 604_800}


class Warning(Exception):  # noqa: A001  (the names are the standard's)
    """Of the standard; never raised here."""


class Error(MoshaError):
    """The root of the standard's errors."""


class InterfaceError(Error):
    """The connection or the cursor is closed, or used wrongly."""


class DatabaseError(Error):
    """What the server refuses; its cause is the library's error."""


class DataError(DatabaseError):
    """Of the standard."""


class OperationalError(DatabaseError):
    """Of the standard."""


class IntegrityError(DatabaseError):
    """Of the standard."""


class InternalError(DatabaseError):
    """Of the standard."""


class ProgrammingError(DatabaseError):
    """A statement or its values are wrong."""


class NotSupportedError(DatabaseError):
    """Of the standard."""


def connect(
    url: str,
    *,
    token: str,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    window: str = "day",
) -> Connection:
    """A connection whose every new question costs the same.

    Args:
        url: the address of the server.
        token: what the server gave you.
        epsilon: the price of a question; or
        rho: the same.
        delta: the same.
        window: "hour", "day" or "week" (UTC): within it, the same text is asked once.
    """
    if window not in WINDOWS:
        raise InvalidParameter("client.window", parameter="window")
    price = {"epsilon": epsilon, "delta": delta, "rho": rho}
    return Connection(connect_to(url, token=token), {n: v for n, v in price.items() if v is not None}, WINDOWS[window])


class Connection:
    """A server, a price and a window. There are no transactions: an answer is paid for, for good."""

    def __init__(self, lab: Lab, price: dict[str, float], window: int) -> None:
        self.lab, self.price, self.window = lab, price, window
        self._open = True

    def cursor(self) -> Cursor:
        self.check_open()
        return Cursor(self)

    def check_open(self) -> None:
        if not self._open:
            raise InterfaceError("client.closed")

    def commit(self) -> None:
        """Nothing waits to be committed."""

    def rollback(self) -> None:
        """Nothing can be taken back: what was asked is paid for."""

    def close(self) -> None:
        self._open = False


class Cursor:
    """One question at a time, and the rows of its answer."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description: list[tuple[Any, ...]] | None = None
        self.answer: Any = None
        self._rows: list[tuple[Any, ...]] = []
        self._next = 0

    @property
    def rowcount(self) -> int:
        return len(self._rows) if self.description else -1

    def execute(self, operation: str, parameters: Sequence[object] = ()) -> Cursor:
        """Ask a SELECT; `?` stands for values."""
        self.connection.check_open()
        sql = _fill_in(operation, parameters)
        connection = self.connection
        place = int(time.time() // connection.window)
        said = repr((sql, sorted(connection.price.items()), connection.window, place))
        key = hashlib.sha256(said.encode()).hexdigest()
        try:
            self.answer = connection.lab.query(sql, **connection.price, key=key)  # type: ignore[arg-type]
        except MoshaError as error:
            raise DatabaseError(str(error)) from error
        table = self.answer.table
        self.description = [(name, None, None, None, None, None, True) for name in table]
        self._rows = list(zip(*table.values(), strict=True))
        self._next = 0
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[object]]) -> None:  # noqa: ARG002
        raise NotSupportedError("client.one_at_a_time")

    def fetchone(self) -> tuple[Any, ...] | None:
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        if self.description is None:
            raise InterfaceError("client.nothing_asked")
        end = self._next + (self.arraysize if size is None else size)
        found, self._next = self._rows[self._next : end], min(end, len(self._rows))
        return found

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def setinputsizes(self, sizes: object) -> None:
        """Of the standard; nothing to do."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """Of the standard; nothing to do."""

    def close(self) -> None:
        self.description, self._rows = None, []


def _fill_in(operation: str, parameters: Sequence[object]) -> str:
    """The statement with its values written as literals: the server parses it, and no engine ever sees it as text.

    >>> _fill_in("SELECT COUNT(*) FROM t WHERE a = ? AND b = '?'", ["it's"])
    "SELECT COUNT(*) FROM t WHERE a = 'it''s' AND b = '?'"
    """
    left, pieces, quote = list(parameters), [], ""
    for letter in operation:
        if letter == "?" and not quote:
            if not left:
                raise ProgrammingError("client.values_missing")
            pieces.append(_literal(left.pop(0)))
            continue
        if letter in "'\"":
            quote = "" if quote == letter else (quote or letter)
        pieces.append(letter)
    if left:
        raise ProgrammingError("client.values_missing")
    return "".join(pieces)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    raise ProgrammingError("client.values_missing")
