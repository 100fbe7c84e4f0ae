"""One suite, two engines: every test that asks for `place` runs on SQLite and on PostgreSQL."""

import sqlite3

import pytest

import mosha
from tests.ledger.place import PostgreSQLPlace, SQLitePlace
from tests.postgres import postgres_server  # noqa: F401  (a fixture)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a book can be kept, opened as often as one likes, and tampered with."""
    if request.param == "sqlite":
        made = SQLitePlace(tmp_path / "privacy.db")
    else:
        made = PostgreSQLPlace(request.getfixturevalue("postgres_server"))
    yield made
    made.close()


@pytest.fixture
def ledger(place):
    return place.open()


@pytest.fixture
def person():
    return mosha.Person("patient_id")


@pytest.fixture(autouse=True)
def _no_connection_is_forgotten(monkeypatch):
    """SQLite connections that a crashed or tampered ledger left open are closed, whatever the test did."""
    opened, connect = [], sqlite3.connect

    def remembered(*arguments, **options):
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", remembered)
    yield
    for connection in opened:
        connection.close()
