"""The book in one SQLite file: write-ahead log, flushed at every commit."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mosha.core.errors import LedgerUnavailable
from mosha.core.language import Phrase, describe_system_error, phrase
from mosha.ledger.storage.chain import Witness
from mosha.ledger.storage.files import (
    BookFiles,
    Inode,
    begin_in_turn,
    inode,
    refuse_foreign_ground,
    refuse_missing_locks,
)
from mosha.ledger.storage.fork import keep_for_ever
from mosha.ledger.storage.readers import Disturbed, Readers
from mosha.ledger.storage.transactions import ADDED, SCHEMA, SHARED, Storage, Transaction

__all__ = ["SQLiteStorage"]

LONG_LOG = 2**24  # bytes; from there on the next reading begins the log anew
_inherited: set[Inode | None] = set()  # files to which this process has a copy of somebody else's connection

GUARDS = tuple(
    f"""CREATE TRIGGER IF NOT EXISTS entries_refuse_{verb.lower()} BEFORE {verb} ON entries
        BEGIN SELECT RAISE(ABORT, 'the book is only ever appended to'); END"""
    for verb in ("UPDATE", "DELETE")
)


class SQLiteTransaction(Transaction):
    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], int]) -> None:
        self._connection = connection
        super().__init__(clock)

    def rows(self, statement: str, *values: object) -> list[Sequence[Any]]:
        return self._connection.execute(statement, values).fetchall()

    def has_table(self, name: str) -> bool:
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name))

    def run(self, statement: str, *values: object) -> None:
        self._connection.execute(statement, values)


class SQLiteView(SQLiteTransaction):
    """A view of the book that is given up as soon as the process wants to fork."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], int], readers: Readers) -> None:
        self._readers = readers
        super().__init__(connection, clock)

    def rows(self, statement: str, *values: object) -> list[Sequence[Any]]:
        if self._readers.must_stop():
            raise Disturbed
        try:
            return super().rows(statement, *values)
        except sqlite3.OperationalError:
            if self._readers.must_stop():
                raise Disturbed from None
            raise


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
        self._given = str(path or "memory")
        self._mode = "rwc"
        self._still: tuple[int, ...] | None = None
        self._parking = False
        self._held_for = 0.0  # seconds that the last transaction took
        self._tolerated = LONG_LOG
        # one file has one witness and one log, whatever links lead to it; and the process may change its folder
        self.path = path.resolve() if path else None
        self._files = BookFiles(self.path, self._given) if self.path else None
        beside = Witness(self.path.with_name(self.path.name + ".head")) if self.path else None
        super().__init__(clock=clock, patience=patience, witness=witness or beside, create=create)
        with self._turn:
            self._connect()
        self.recognise()

    @property
    def place(self) -> str:
        return self._given

    def is_same_book(self, other: Storage) -> bool:
        if isinstance(other, SQLiteStorage) and self.path is not None:
            return self.path == other.path
        return self is other

    def _connect(self) -> None:
        with self._translate_errors():
            if self.path is None:
                self._connection = self._prepare(sqlite3.connect(":memory:", **self._options))
                return
            self._check_ground(self.path)
            try:
                connection = self._prepare(self._open(self._mode))
            except sqlite3.OperationalError as error:
                if not self._may_only_be_read(error):
                    raise
                connection = self._open_to_read()
            self._connection = connection

    def _fresh(self) -> None:
        super()._fresh()
        self._shortening = threading.Lock()

    def _check_ground(self, path: Path) -> None:
        if path.is_dir():
            raise LedgerUnavailable("ledger.place_is_folder", place=self.place)
        assert self._files is not None
        self._files.check_names()
        if not self._create and not path.exists():
            raise self._missing()
        if self._files.identity is not None or not self._create:
            self._mode = self._mode.replace("rwc", "rw")  # nothing is begun a second time
        if inode(path) in _inherited:
            raise LedgerUnavailable("ledger.inherited", place=self.place, spent="nothing")
        refuse_foreign_ground(path, self.place)

    @property
    def _options(self) -> dict[str, Any]:
        return {"timeout": self._patience, "isolation_level": None, "check_same_thread": False}

    def _open(self, mode: str) -> sqlite3.Connection:
        assert self.path is not None
        connection: sqlite3.Connection = sqlite3.connect(f"{self.path.as_uri()}?mode={mode}", uri=True, **self._options)
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Make every commit durable, begin the book where there is none, and see that the files are the right ones."""
        try:
            self._settle(connection)
            if self._files:
                connection.execute("SELECT 1 FROM entries LIMIT 1").fetchall()  # from here on its log is open
                self._check_files()
                refuse_missing_locks(self._files.path, self.place)
        except BaseException:
            connection.close()
            raise
        return connection

    def _settle(self, connection: sqlite3.Connection) -> None:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if names and not {"entries", "accounts", "payments"} <= set(names):
            raise LedgerUnavailable("ledger.other_database", place=self.place)
        if not names and not self._create:  # before anything is written
            raise self._missing()
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != ("wal" if self.path else "memory"):
            raise LedgerUnavailable("ledger.no_log", place=self.place, spent="nothing")
        for pragma in ("synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {pragma}")
        if not names:
            connection.execute("BEGIN IMMEDIATE")
            for statement in (*SCHEMA, *GUARDS):
                connection.execute(statement)
            connection.execute("COMMIT")
        elif "failures" not in names:
            for statement in ADDED:
                connection.execute(statement)

    def _check_files(self) -> None:
        if self._files and not self._is_read_only:
            self._files.check()
        self._check_stillness()

    def _check_stillness(self) -> None:
        """A file that is read without a lock must not change meanwhile."""
        if self._still is not None and self._files and self._still != self._files.shape():
            raise LedgerUnavailable("ledger.changed_while_read", place=self.place)

    @property
    def _is_read_only(self) -> bool:
        return self._mode.startswith("ro")

    def _may_only_be_read(self, error: sqlite3.OperationalError) -> bool:
        denied = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        return denied and self._files is not None and self._files.path.is_file() and self._files.shape()[1] > 0

    def _open_to_read(self) -> sqlite3.Connection:
        """Where nothing can be written, a book can still be shown: with locks if possible, else as it lies there."""
        assert self._files is not None
        for mode in ("ro", "ro&immutable=1"):
            self._still = self._files.shape() if "immutable" in mode else None
            if self._still and self._files.log_size():
                raise LedgerUnavailable("ledger.log_not_readable", place=self.place)
            connection = self._open(mode)
            try:
                names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
                break
            except sqlite3.OperationalError as error:
                connection.close()
                if not (mode == "ro" and self._may_only_be_read(error)):
                    raise
        if "entries" not in names:
            connection.close()
            raise self._missing()
        self._mode = mode
        return connection

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        if self._is_read_only:
            raise LedgerUnavailable("ledger.read_only", place=self.place, spent="nothing")
        is_shared = self.path is not None and time.monotonic() - self._others_wrote_at < SHARED
        courtesy = self._held_for if is_shared else 0.0
        begin = partial(begin_in_turn, self._connection, self._patience, courtesy)
        with self._translate_errors(), self._hold(self._connection, begin, "COMMIT"):
            start = time.monotonic()
            self._check_files()  # while the book is held: nobody who keeps the rules removes its log now
            yield SQLiteTransaction(self._connection, self._clock)
        self._held_for = time.monotonic() - start

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        if self.path is None:  # what is in memory has one connection, which all share
            with (
                self._turn,
                self._translate_errors(),
                self._hold(self._connection, partial(self._begin_reading, self._connection), "ROLLBACK"),
            ):
                yield SQLiteTransaction(self._connection, self._clock)
            return
        readers = self._readers
        self._shorten_log(readers)
        lent = readers.lend(self._patience, self._open_reader, self._begin_reading)
        with self._translate_errors(), lent as connection, self._hold(connection, None, "ROLLBACK"):
            view = SQLiteView(connection, self._clock, readers)
            self._check_files()
            yield view
            self._check_stillness()

    def _open_reader(self) -> sqlite3.Connection:
        assert self.path is not None
        self._check_ground(self.path)
        connection = self._open(self._mode.replace("rwc", "rw"))
        try:
            for pragma in ("query_only = ON", "trusted_schema = OFF"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin_reading(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")

    def _shorten_log(self, readers: Readers) -> None:
        """Begin a long log anew, which no writer can do while somebody reads: so new readings wait for old ones."""
        assert self._files is not None
        if self._is_read_only or self._is_inside() or self._files.log_size() <= self._tolerated:
            return
        with self._shortening:
            if self._files.log_size() > self._tolerated:
                readers.wait_until_alone(self._patience)
                lent = readers.lend(self._patience, self._open_reader, _empty_log)
                with (
                    self._turn,
                    self._translate_errors(),
                    lent,
                ):  # payers wait once, for as long as it takes to write it down
                    pass
                self._tolerated = self._files.log_size() + LONG_LOG  # where others read on, it stays long

    @contextmanager
    def _hold(self, connection: sqlite3.Connection, begin: Callable[[], None] | None, end: str) -> Iterator[None]:
        process = os.getpid()
        if begin is not None:
            begin()
        try:
            yield
            self._check_process(process)
            connection.execute(end)
        except BaseException:
            if os.getpid() == process and connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            raise LedgerUnavailable(
                "ledger.storage_failed", place=self.place, reason=_find_reason(error), detail=name
            ) from None
        except OSError as error:
            raise LedgerUnavailable(
                "ledger.system_failed", place=self.place, reason=describe_system_error(error)
            ) from None

    def prepare_fork(self) -> None:
        if self._over or self._lost or self._is_inside():  # inside: the connection cannot be closed now
            return
        self._parking = True
        if not self._turn.acquire(timeout=self._patience + 1):
            return
        if self.path is not None and self._readers.park(self._patience + 1, sqlite3.Connection.interrupt):
            self._disconnect()

    def resume_in_parent(self) -> None:
        if self._parking:
            self._parking = False
            self._readers.unpark()
            if self._is_inside():
                self._turn.release()

    def begin_in_child(self) -> None:
        self._parking = False
        left = ([] if self._connection is None else [self._connection]) + self._readers.connections
        for connection in left:
            keep_for_ever(connection)
        if left and not self._over and self.path is None:
            self._lost = "ledger.memory_forked"
        elif left and self._files:
            _inherited.add(self._files.identity)
            self._lost = "ledger.inherited"
        self._connection = None
        if self._files:
            self._files.forget_log()
        self._fresh()

    def _disconnect(self) -> None:
        super()._disconnect()
        if self._files:
            self._files.forget_log()


_REASONS = {
    sqlite3.SQLITE_BUSY: "ledger.reason_busy",
    sqlite3.SQLITE_LOCKED: "ledger.reason_busy",
    sqlite3.SQLITE_FULL: "ledger.reason_full",
    sqlite3.SQLITE_READONLY: "ledger.reason_read_only",
    sqlite3.SQLITE_IOERR: "ledger.reason_disk",
    sqlite3.SQLITE_CANTOPEN: "ledger.reason_not_opened",
    sqlite3.SQLITE_NOTADB: "ledger.reason_not_a_ledger",
    sqlite3.SQLITE_CORRUPT: "ledger.reason_file_damaged",
    sqlite3.SQLITE_PERM: "ledger.reason_denied",
    sqlite3.SQLITE_AUTH: "ledger.reason_denied",
}


def _empty_log(connection: sqlite3.Connection) -> None:
    """Write the log into the file, if no other process pays or reads right now; wait hardly at all, for payers wait."""
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 100")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.execute(f"PRAGMA busy_timeout = {patience}")


def _find_reason(error: sqlite3.Error) -> Phrase:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return phrase("ledger.reason_closed")
    return phrase(_REASONS.get(code & 0xFF, "ledger.reason_refused"))
