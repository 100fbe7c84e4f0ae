"""One suite, two engines: every test that asks for `place` runs on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mosha
from tests.ledger.place import PostgreSQLPlace, SQLitePlace
from tests.postgres import postgres_server  # noqa: F401  (a fixture)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Where a book can be kept, opened as often as one likes, and tampered with."""
    if request.param == "sqlite":
        made = SQLitePlace(tmp_path / "privacy.db")
    else:
        made = PostgreSQLPlace(request.getfixturevalue("postgres_server"))  # type: ignore[assignment]
    yield made
    made.close()


@pytest.fixture
def ledger(place: Any) -> Any:
    return place.open()


@pytest.fixture
def person() -> Any:
    return mosha.Person("patient_id")
