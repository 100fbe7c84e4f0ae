"""The book in one SQLite file: write-ahead log, flushed at every commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mosha.core.errors import LedgerTampered, LedgerUnavailable
from mosha.ledger.storage import ADDED, SCHEMA, Storage, Transaction
from mosha.ledger.witness import Witness

__all__ = ["SQLiteStorage"]

GUARDS = tuple(
    f"""CREATE TRIGGER IF NOT EXISTS entries_refuse_{verb.lower()} BEFORE {verb} ON entries
        BEGIN SELECT RAISE(ABORT, 'the book is only ever appended to'); END"""
    for verb in ("UPDATE", "DELETE")
)


class SQLiteTransaction(Transaction):
    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], int]) -> None:
        self._connection = connection
        super().__init__(clock)

    def rows(self, statement: str, *values: Any) -> list[Sequence[Any]]:
        return self._connection.execute(statement, values).fetchall()

    def run(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values)


class SQLiteStorage(Storage):
    """A file, or memory alone where `path` is None. `patience` bounds, in seconds, the wait for another writer."""

    def __init__(
        self,
        path: Path | None,
        *,
        clock: Callable[[], int],
        patience: float,
        witness: Witness | None = None,
        create: bool = True,
    ) -> None:
        beside = Witness(path.absolute().with_name(path.name + ".head")) if path else None
        super().__init__(clock=clock, patience=patience, witness=witness or beside, create=create)
        self._given = str(path or "memory")
        self.path = path.absolute() if path else None  # the process may change its folder
        self._connect()
        self.recognise()

    @property
    def place(self) -> str:
        return self._given

    def _connect(self) -> None:
        if self.path and not self._create and not self.path.exists():
            raise self._missing()
        if self.path and self.path.is_dir():
            raise LedgerUnavailable(f"{self.place} is a folder: a ledger is kept in a file, such as privacy.db in it.")
        with self._translated():
            connection = sqlite3.connect(
                self.path or ":memory:", timeout=self._patience, isolation_level=None, check_same_thread=False
            )
            try:
                self._settle(connection)
            except BaseException:
                connection.close()
                raise
        self._connection = connection
        self._identity = self._stat()

    def _settle(self, connection: sqlite3.Connection) -> None:
        """Make every commit durable, and begin the book where there is none."""
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if names and not {"entries", "accounts", "payments"} <= set(names):
            raise LedgerUnavailable(f"{self.place} is a database and not a ledger. Choose another file.")
        if not names and not self._create:  # before anything is written
            raise self._missing()
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {pragma}")
        if not names:
            connection.execute("BEGIN IMMEDIATE")
            for statement in (*SCHEMA, *GUARDS):
                connection.execute(statement)
            connection.execute("COMMIT")
        elif "failures" not in names:
            for statement in ADDED:
                connection.execute(statement)

    def _stat(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat() if self.path else None
        except FileNotFoundError:
            return None
        return (found.st_dev, found.st_ino) if found else None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        if self._stat() != self._identity:
            raise LedgerTampered(
                f"the file {self.place} was moved or replaced while it was open. Nothing was spent; open it again."
            )
        with self._translated(), self._held("BEGIN IMMEDIATE", "COMMIT") as transaction:
            yield transaction

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._translated(), self._held("BEGIN", "ROLLBACK") as transaction:
            yield transaction

    @contextmanager
    def _held(self, begin: str, end: str) -> Iterator[Transaction]:
        self._connection.execute(begin)
        try:
            yield SQLiteTransaction(self._connection, self._clock)
            self._connection.execute(end)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            reason = getattr(error, "sqlite_errorname", type(error).__name__)
            raise LedgerUnavailable(
                f"the ledger {self.place} cannot be used: {_why(error)} ({reason}). Nothing left the private side. "
                "A retry with the same key never pays twice."
            ) from None
        except OSError as error:
            raise LedgerUnavailable(f"the ledger {self.place} cannot be used: {error.strerror}.") from None

    def _disconnect(self) -> None:
        self._connection.close()


_REASONS = {
    sqlite3.SQLITE_BUSY: "another writer holds it",
    sqlite3.SQLITE_LOCKED: "another writer holds it",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_IOERR: "the disk does not answer",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; does its folder exist",
    sqlite3.SQLITE_NOTADB: "the file is not a ledger",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_PERM: "access is denied",
    sqlite3.SQLITE_AUTH: "access is denied",
}


def _why(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    return _REASONS.get(code & 0xFF, "the database refused") if code is not None else "the database is closed"
