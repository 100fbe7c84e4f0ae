"""Backup, restore and check: a book that is older than a known head is never put back."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha.errors import MoshaError
from mosha.server.settings import read_settings
from mosha.server.upkeep import back_up, check_server, restore
from tests.server.house import COUNT, opened


def _ask(folder: Any, key: Any) -> None:
    with opened(folder) as house:
        assert house.answer("li", key=key, epsilon=0.01)["state"] == "answered"


def test_an_older_ledger_is_refused_and_the_newest_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    _ask(folder, "before")
    settings = read_settings(folder, environment={})
    first = back_up(settings, tmp_path / "first")
    assert check_server(settings)["well"]
    _ask(folder, "after")
    with pytest.raises(MoshaError, match="forget payments"):
        restore(settings, tmp_path / "first")
    second = back_up(settings, tmp_path / "second")
    assert second["head"] != first["head"]
    assert restore(settings, tmp_path / "second")["head"] == second["head"]
    empty = read_settings(tmp_path / "elsewhere", environment={})
    with pytest.raises(MoshaError, match="forget payments"):
        restore(empty, tmp_path / "first", heads=[second["head"]])
    assert restore(empty, tmp_path / "second", heads=[first["head"]])["head"] == second["head"]
    with mosha.Ledger(tmp_path / "elsewhere" / "privacy.db") as ledger:
        assert ledger.verify().ok


def test_nothing_is_put_back_beneath_a_server_that_runs(tmp_path: Path) -> None:
    folder, settings = tmp_path / "server", read_settings(tmp_path / "server", environment={})
    with opened(folder) as house:
        assert house.answer("li", key="before", epsilon=0.01)["state"] == "answered"
        kept = back_up(settings, tmp_path / "kept")
        with pytest.raises(MoshaError, match="Stop it first"):
            restore(settings, tmp_path / "kept")
        assert house.answer("li", f"{COUNT} WHERE days > 2", key="after", epsilon=0.01)["state"] == "answered"
        assert check_server(settings)["well"]
        latest = back_up(settings, tmp_path / "latest")
    assert latest["head"] != kept["head"]
    assert restore(settings, tmp_path / "latest")["head"] == latest["head"]


def test_a_request_without_a_payment_is_found(tmp_path: Path) -> None:
    _ask(tmp_path, "one")
    settings = read_settings(tmp_path, environment={})
    with contextlib.closing(sqlite3.connect(tmp_path / "server.db")) as connection, connection:
        connection.execute("UPDATE requests SET id = 'r-forged'")
    connection.close()
    found = check_server(settings)
    assert not found["well"]
    assert "r-forged" in found["problems"][0]


def test_a_head_that_the_ledger_does_not_hold_is_told_by_the_api(house: Any) -> None:
    """The answer of `verify` has no truth value of its own: it once said `well` whatever was found."""
    forged = f"3:{'0' * 64}"
    found = house.call("sun", "POST", "/ledger/verify", {"head": forged}).json()
    assert found["well"] is False
    assert found["problems"]
    assert house.call("sun", "POST", "/ledger/verify", {}).json()["well"] is True


def test_a_row_that_was_edited_is_found(tmp_path: Path) -> None:
    _ask(tmp_path, "one")
    with contextlib.closing(sqlite3.connect(tmp_path / "privacy.db")) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE entries SET body = replace(body, '0.01', '0.02') WHERE kind = 'pay'")
        connection.execute("UPDATE entries SET at = at + 1 WHERE kind = 'pay'")
    connection.close()
    assert not check_server(read_settings(tmp_path, environment={}))["well"]
