"""Places where a test keeps a book: opened through Mosha, and touched behind its back."""

import contextlib
import sqlite3
from typing import Any

import mosha
from mosha import events
from mosha.core.measurement import Measurement

PERSON = mosha.Person("patient_id")


def asking(
    event: Any = None,
    *,
    answer: Any = 0,
    unit: Any = PERSON,
    horizon: Any = 1,
    name: str = "question",
    step: Any = None,
    delta: Any = None,
) -> Any:
    """A measurement that answers what it is told, at the price it is told."""

    def respond(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        return (answer(data) if callable(answer) else answer), state

    what = {"unit": unit, "event": event or events.Laplace(1), "horizon": horizon, "name": name, "delta": delta}
    return Measurement(step=step or respond, **what)


class Place:
    def __init__(self) -> None:
        self._ledgers = []  # type: ignore[var-annotated]

    def open(self, **options: Any) -> Any:
        ledger = mosha.Ledger(self.where, **options)  # type: ignore[attr-defined]
        self._ledgers.append(ledger)
        return ledger

    def close(self) -> None:
        for ledger in self._ledgers:
            with contextlib.suppress(mosha.errors.MoshaError):
                ledger.close()

    def bodies(self) -> Any:
        return self.query("SELECT sequence, body FROM entries ORDER BY sequence")  # type: ignore[attr-defined]


class SQLitePlace(Place):
    engine = "sqlite"

    def __init__(self, path: Any) -> None:
        super().__init__()
        self.path = path
        self.where = str(path)

    def query(self, statement: Any, *values: Any) -> Any:
        with contextlib.closing(sqlite3.connect(self.path)) as raw:
            return raw.execute(statement, values).fetchall()

    def tamper(self, *statements: Any) -> None:
        """Change the file as a thief would: without the guards."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as raw:
            guards = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                raw.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                raw.execute(statement)
            for _, text in guards:
                raw.execute(text)


class PostgreSQLPlace(Place):
    engine = "postgresql"

    def __init__(self, server: Any) -> None:
        super().__init__()
        self.server = server
        self._forget()

    @property
    def where(self) -> Any:
        return self.server.url("postgres")

    def _forget(self) -> None:
        import psycopg

        others = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid != pg_backend_pid()"
        with psycopg.connect(self.where, autocommit=True) as raw:
            raw.execute(others + " AND backend_type = 'client backend'")
            raw.execute("SET client_min_messages TO error")
            raw.execute("DROP SCHEMA IF EXISTS mosha CASCADE")

    def query(self, statement: Any, *values: Any) -> Any:
        import psycopg

        with psycopg.connect(self.where) as raw:
            raw.execute("SET search_path TO mosha")
            return raw.execute(statement.replace("?", "%s"), values).fetchall()

    def tamper(self, *statements: Any) -> None:
        import psycopg

        with psycopg.connect(self.where, autocommit=True) as raw:
            raw.execute("SET search_path TO mosha")
            raw.execute("SET session_replication_role TO replica")
            for statement in statements:
                raw.execute(statement)

    def close(self) -> None:
        super().close()
        self._forget()
