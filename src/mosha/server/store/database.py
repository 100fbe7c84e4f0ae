"""One small door to a database: SQLite in a file, or PostgreSQL, with the same plain SQL.

Statements use `?` for values. A transaction is serialised on SQLite (one writer) and runs under the locks that it
takes on PostgreSQL. Every commit is on disk before it returns.
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from mosha.core.errors import MissingExtra
from mosha.core.language import phrase
from mosha.server.clock import END_OF_TIME
from mosha.server.errors import NotFound, StoreUnavailable

__all__ = ["Database", "Row", "Transaction", "marks", "open_database"]

Row = dict[str, Any]


class Transaction(ABC):
    """Statements that happen together or not at all."""

    @abstractmethod
    def rows(self, statement: str, *values: Any) -> list[Row]: ...

    @abstractmethod
    def run(self, statement: str, *values: Any) -> int:
        """Execute a change; how many rows it touched."""

    def row(self, statement: str, *values: Any) -> Row | None:
        found = self.rows(statement, *values)
        return found[0] if found else None


class Database(ABC):
    """A place where the server keeps what it knows."""

    shared = False  # whether other server processes work on it too
    lasting = True  # whether what is committed from now on is on disk

    @abstractmethod
    def _lend(self, *, writing: bool) -> Any: ...

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All changes inside are committed at the end, or none."""
        with self._lend(writing=True) as transaction:
            yield transaction

    def rows(self, statement: str, *values: Any) -> list[Row]:
        with self._lend(writing=False) as transaction:
            found: list[Row] = transaction.rows(statement, *values)
        return found

    def row(self, statement: str, *values: Any) -> Row | None:
        found = self.rows(statement, *values)
        return found[0] if found else None

    def find(self, statement: str, *values: Any) -> Row:
        """The row that is asked for; `NotFound` where there is none."""
        found = self.row(statement, *values)
        if found is None:
            raise NotFound("server.not_found")
        return found

    def list_newest(self, table: str, *, before: int = END_OF_TIME, most: int = 200, **equal: object) -> list[Row]:
        """The rows made before a moment, the newest first; where a value is given, those that have it."""
        given = {column: value for column, value in equal.items() if value is not None}
        tests = " AND ".join([*(f"{column} = ?" for column in given), "created < ?"])
        statement = f"SELECT * FROM {table} WHERE {tests} ORDER BY created DESC LIMIT ?"  # noqa: S608
        return self.rows(statement, *given.values(), before, most)

    def run(self, statement: str, *values: Any) -> int:
        with self.transaction() as transaction:
            return transaction.run(statement, *values)

    @abstractmethod
    def close(self) -> None: ...


class _SQLiteTransaction(Transaction):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.has_written = False

    def rows(self, statement: str, *values: Any) -> list[Row]:
        cursor = self._connection.execute(statement, values)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, found, strict=True)) for found in cursor.fetchall()]

    def run(self, statement: str, *values: Any) -> int:
        touched = self._connection.execute(statement, values).rowcount
        self.has_written = self.has_written or touched != 0
        return touched


class _Flush:
    """Puts the log of a database onto the disk: once for all who committed while the last time went on.

    Guarantee:
        SQLite's `synchronous = FULL` is `NORMAL` and a flush of the log after each commit, while nobody else may write.
        Here the flush comes after the turn is given on. Whoever waits in `reach` returns when a flush is over that
        began after their commit, and so holds it. Where the disk once failed to take the log, nobody is told any more
        that something is on it: a system tells of pages that it lost only once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._flushed = 0
        self.commits = 0  # counted by whoever has the turn to write
        self.failed = False

    def reach(self, commit: int) -> None:
        with self._turn:
            if self._flushed >= commit:
                return
            begun = self.commits
            if not self.failed:
                try:
                    with self._path.open("r+b") as log:
                        os.fsync(log.fileno())
                except OSError:
                    self.failed = True
            if self.failed:
                raise StoreUnavailable("server.store_unavailable")
            self._flushed = begun


class SQLiteDatabase(Database):
    """A file: readers never wait for the writer (WAL), writers take turns, and flushes of the disk are shared."""

    def __init__(self, path: Path, *, patience: float = 10.0) -> None:
        self._path, self._patience = path, patience
        self._turn = threading.Lock()
        self._readers: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._writer = self._connect()
        self._flush = self._share_flushes()
        path.chmod(0o600)

    @property
    def lasting(self) -> bool:  # type: ignore[override]
        return self._flush is None or not self._flush.failed

    def _share_flushes(self) -> _Flush | None:
        """What puts commits onto the disk in place of SQLite; None where there is no log, and SQLite does it itself."""
        ((journal,),) = self._writer.execute("PRAGMA journal_mode").fetchall()
        if journal != "wal":
            return None
        self._writer.execute("PRAGMA synchronous = NORMAL")
        return _Flush(self._path.with_name(f"{self._path.name}-wal"))

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self._path, timeout=self._patience, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error:
            raise StoreUnavailable("server.store_unavailable") from None
        return connection

    @contextmanager
    def _lend(self, *, writing: bool) -> Iterator[Transaction]:
        try:
            if writing:
                with self._turn:
                    commit = yield from self._write()
                if commit and self._flush is not None:
                    self._flush.reach(commit)
            else:
                yield from self._read()
        except sqlite3.OperationalError:
            raise StoreUnavailable("server.store_unavailable") from None

    def _write(self) -> Generator[Transaction, None, int]:
        """One transaction; the number of its commit, 0 where nothing was written."""
        transaction = _SQLiteTransaction(self._writer)
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield transaction
        except BaseException:
            self._writer.execute("ROLLBACK")
            raise
        self._writer.execute("COMMIT")
        if self._flush is None or not transaction.has_written:
            return 0
        self._flush.commits += 1
        return self._flush.commits

    def _read(self) -> Iterator[Transaction]:
        try:
            connection = self._readers.get_nowait()
        except queue.Empty:
            connection = self._connect()
        try:
            yield _SQLiteTransaction(connection)
        finally:
            self._readers.put(connection)

    def close(self) -> None:
        self._writer.close()
        with suppress(queue.Empty):
            while True:
                self._readers.get_nowait().close()


@cache
def _dialect(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


class _PostgreSQLTransaction(Transaction):
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: Any) -> list[Row]:
        cursor = self._connection.execute(_dialect(statement), values)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, found, strict=True)) for found in cursor.fetchall()]

    def run(self, statement: str, *values: Any) -> int:
        return int(self._connection.execute(_dialect(statement), values).rowcount)


class PostgreSQLDatabase(Database):
    """A schema of a PostgreSQL database, which several server processes share."""

    shared = True

    def __init__(self, url: str, *, patience: float = 10.0) -> None:
        try:
            import psycopg  # noqa: PLC0415  (an extra)
        except ImportError:
            raise MissingExtra("postgres", needed_for=phrase("server.on_postgresql")) from None
        self._url, self._patience, self._psycopg = url, patience, psycopg
        self._idle: queue.LifoQueue[Any] = queue.LifoQueue()
        with self._lend(writing=True) as transaction:
            transaction.run("CREATE SCHEMA IF NOT EXISTS mosha_server")

    def _connect(self) -> Any:
        connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=max(2, int(self._patience)))
        connection.execute("SET search_path TO mosha_server")
        connection.execute(f"SET lock_timeout TO {int(self._patience * 1000)}")
        return connection

    @contextmanager
    def _lend(self, *, writing: bool) -> Iterator[Transaction]:
        connection = None
        try:
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                connection = self._connect()
            if writing:
                with connection.transaction():
                    yield _PostgreSQLTransaction(connection)
            else:
                yield _PostgreSQLTransaction(connection)
        except self._psycopg.OperationalError:
            if connection is not None:
                connection.close()
            raise StoreUnavailable("server.store_unavailable") from None
        finally:
            if connection is not None and not connection.closed:
                self._idle.put(connection)

    def close(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()


def open_database(place: str | Path, *, patience: float = 10.0) -> Database:
    """The database at a URL (PostgreSQL) or in a file (SQLite)."""
    if str(place).startswith(("postgresql://", "postgres://")):
        return PostgreSQLDatabase(str(place), patience=patience)
    return SQLiteDatabase(Path(place), patience=patience)


def marks(values: Sequence[Any]) -> str:
    """As many question marks as there are values."""
    return ", ".join("?" * len(values))
