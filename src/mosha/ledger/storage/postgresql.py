"""The book in a PostgreSQL database: schema `mosha`, one lock that all writers take in turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from mosha.core.errors import LedgerUnavailable, MissingExtra
from mosha.core.language import Phrase, phrase
from mosha.ledger.storage.chain import Witness
from mosha.ledger.storage.transactions import ADDED, SCHEMA, Storage, Transaction

try:
    import psycopg
except ImportError:
    raise MissingExtra("postgres", needed_for=phrase("ledger.in_postgresql")) from None

__all__ = ["PostgreSQLStorage"]

CREATION = 0x6D6F736861  # the number of the lock under which a book is begun
GUARDS = (
    """CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the book is only ever appended to'; END $$""",
    """CREATE OR REPLACE TRIGGER entries_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()""",
)


@cache
def _dialect(statement: str) -> str:
    return statement.replace("?", "%s")


class PostgreSQLTransaction(Transaction):
    def __init__(self, connection: Any, clock: Callable[[], int]) -> None:
        self._connection = connection
        super().__init__(clock)

    def rows(self, statement: str, *values: Any) -> list[Sequence[Any]]:
        found: list[Sequence[Any]] = self._connection.execute(_dialect(statement), values).fetchall()
        return found

    def has_table(self, name: str) -> bool:
        return self.rows("SELECT to_regclass(?)", f"mosha.{name}")[0][0] is not None

    def run(self, statement: str, *values: Any) -> None:
        self._connection.execute(_dialect(statement), values)


class PostgreSQLStorage(Storage):
    """A database. `patience` bounds, in seconds, the wait for another writer and for the server."""

    def __init__(
        self, url: str, *, clock: Callable[[], int], patience: float, witness: Witness | None, create: bool = True
    ) -> None:
        super().__init__(clock=clock, patience=patience, witness=witness, create=create)
        self._url = url
        self._abandoned: list[Any] = []
        self._place = "postgresql://"
        with self._translate_errors():
            parts = psycopg.conninfo.conninfo_to_dict(url)
        self._place = f"postgresql://{parts.get('host') or 'local'}/{parts.get('dbname') or ''}"
        with self._turn:
            self._connect()
        self.recognise()

    @property
    def place(self) -> str:
        return self._place

    def is_same_book(self, other: Storage) -> bool:
        return isinstance(other, PostgreSQLStorage) and self._url == other._url  # noqa: SLF001

    def _connect(self) -> None:
        self._connection = self._open(self._settle)

    def _open(self, settle: Callable[[Any], None]) -> Any:
        with self._translate_errors():
            wait = max(2, int(self._patience))
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=wait)
            try:
                settle(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _open_reader(self) -> Any:
        return self._open(self._bound_waiting)

    def _begin_reading(self, connection: Any) -> None:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _bound_waiting(self, connection: Any) -> None:
        milliseconds = max(1, int(self._patience * 1000))
        connection.execute(f"SET lock_timeout TO {milliseconds}")
        connection.execute(f"SET idle_in_transaction_session_timeout TO {milliseconds + 60_000}")
        connection.execute("SET search_path TO mosha")

    def prepare_fork(self) -> None:
        """A child can leave the sockets of its parent alone: nothing has to be closed."""

    def resume_in_parent(self) -> None:
        """Nothing was prepared."""

    def begin_in_child(self) -> None:
        """The sockets are the parent's: they are neither used nor closed here."""
        self._abandoned += [self._connection, *self._readers.connections]
        self._connection = None
        self._fresh()

    def _settle(self, connection: Any) -> None:
        """Make every commit durable and every wait bounded, and begin the book where there is none."""
        run = connection.execute
        if run("SHOW fsync").fetchone()[0] != "on":
            raise LedgerUnavailable("ledger.fsync_off", place=self.place, spent="nothing")
        run("SET synchronous_commit TO on")
        self._bound_waiting(connection)
        run("SELECT pg_advisory_lock(%s)", (CREATION,))
        try:
            if run("SELECT to_regclass('mosha.entries')").fetchone()[0] is None:
                if not self._create:
                    raise self._missing()
                run("CREATE SCHEMA IF NOT EXISTS mosha")
                with connection.transaction():
                    for statement in (*SCHEMA, *GUARDS):
                        run(statement)
            if run("SELECT to_regclass('mosha.failures')").fetchone()[0] is None:
                for statement in ADDED:
                    run(statement)
        finally:
            run("SELECT pg_advisory_unlock(%s)", (CREATION,))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        if self._connection.closed:
            self._connect()
        connection = self._connection
        with self._translate_errors(), self._hold(connection, "BEGIN", "COMMIT"):
            # the lock is taken before the first snapshot: what is read afterwards is what stands
            connection.execute("LOCK TABLE entries IN SHARE ROW EXCLUSIVE MODE")
            yield PostgreSQLTransaction(connection, self._clock)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        lent = self._readers.lend(self._patience, self._open_reader, self._begin_reading)
        with self._translate_errors(), lent as connection, self._hold(connection, "", "ROLLBACK"):
            yield PostgreSQLTransaction(connection, self._clock)

    @contextmanager
    def _hold(self, connection: Any, begin: str, end: str) -> Iterator[None]:
        process = os.getpid()
        if begin:
            connection.execute(begin)
        try:
            yield
            self._check_process(process)
            connection.execute(end)
        except BaseException:
            if os.getpid() == process and not connection.closed:
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise LedgerUnavailable(
                "ledger.storage_failed",
                place=self._place,
                reason=_find_reason(error),
                detail=error.sqlstate or type(error).__name__,
            ) from None


_REASONS = {
    "08": "ledger.reason_server_silent",
    "25": "ledger.reason_read_only",
    "28": "ledger.reason_denied",
    "3D": "ledger.reason_no_database",
    "42": "ledger.reason_tables",
    "53": "ledger.reason_exhausted",
    "55": "ledger.reason_busy",
    "57": "ledger.reason_stopped",
    "58": "ledger.reason_disk",
    "XX": "ledger.reason_damaged",
}


def _find_reason(error: psycopg.Error) -> Phrase:
    return phrase(_REASONS.get((error.sqlstate or "08")[:2], "ledger.reason_refused"))
