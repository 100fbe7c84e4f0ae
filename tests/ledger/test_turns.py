"""Several processes write one file: each gets its turn, and a file that is held for too long is told."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha.core.errors import LedgerUnavailable
from mosha.ledger.storage import files
from mosha.ledger.storage.files import begin_in_turn
from tests.ledger.place import PERSON, asking


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Any]:
    connections = [
        sqlite3.connect(tmp_path / "t.db", isolation_level=None, check_same_thread=False, timeout=7) for _ in "ab"
    ]
    connections[0].execute("PRAGMA journal_mode = WAL")
    connections[0].execute("CREATE TABLE t (x)")
    yield connections
    for connection in connections:
        connection.close()


def patience_of(connection: Any) -> Any:
    return connection.execute("PRAGMA busy_timeout").fetchone()[0]


def test_who_waits_begins_when_the_other_has_written(book: Any) -> None:
    one, other = book
    begin_in_turn(one, 5, 0)
    asked = threading.Event()

    def wait() -> None:
        asked.set()
        begin_in_turn(other, 60, 0)

    thread = threading.Thread(target=wait)
    thread.start()
    asked.wait()
    assert not other.in_transaction
    one.execute("INSERT INTO t VALUES (1)")
    one.execute("COMMIT")
    thread.join()
    assert other.in_transaction
    assert other.execute("SELECT x FROM t").fetchall() == [(1,)]
    assert patience_of(one) == 5_000
    assert patience_of(other) == 60_000


def test_patience_ends_and_the_connection_stays_as_it_was(book: Any) -> None:
    one, other = book
    begin_in_turn(one, 5, 0)
    with pytest.raises(sqlite3.OperationalError) as failure:
        begin_in_turn(other, 0, 0)
    assert failure.value.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
    assert not other.in_transaction
    assert patience_of(other) == 0


def test_another_trouble_is_told_at_once(book: Any) -> None:
    one, _ = book
    begin_in_turn(one, 5, 0)
    with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
        begin_in_turn(one, 600, 0)


def test_only_who_shares_the_book_lets_others_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A book with one writer never waits; once another has written, its transactions begin with a pause."""
    pauses: list[Any] = []
    monkeypatch.setattr(files, "_pause", pauses.append)
    with mosha.Ledger(tmp_path / "p.db") as mine, mosha.Ledger(tmp_path / "p.db") as theirs:
        account = mine.account("visits", unit=PERSON, epsilon=5)
        pauses.clear()
        mine._storage._others_wrote_at = -files.PAUSE - 10
        account.open(asking())
        account.open(asking())
        assert pauses == []
        theirs.account("visits").open(asking())
        account.open(asking())  # finds that somebody else wrote
        assert pauses == []
        account.open(asking())
        assert len(pauses) == 1
        assert 0 < pauses[0] <= files.PAUSE


def test_a_book_that_is_held_for_too_long_is_told_and_nothing_is_spent(tmp_path: Path) -> None:
    with mosha.Ledger(tmp_path / "p.db", patience=0.01) as ledger:
        account = ledger.account("visits", unit=PERSON, epsilon=5)
        holder = sqlite3.connect(tmp_path / "p.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable) as refusal:
            account.open(asking())
        assert refusal.value.code == "ledger.storage_failed"
        holder.execute("ROLLBACK")
        holder.close()
        assert account.spent == 0
        account.open(asking())
