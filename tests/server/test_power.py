"""A power cut: what was acknowledged is on disk, also where many wait for one flush."""

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mosha.server.errors import StoreUnavailable
from mosha.server.store import database as store
from mosha.server.store.database import open_database
from tests.chance import TRIES

WRITERS, ROWS = 8, 25


class Disk:
    """What the disk holds of a store's log: what was flushed, and no more."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.image, self.flushes = folder, b"", 0
        self._flush = os.fsync

    def flush(self, file: int) -> None:
        """What is in the log when a flush begins is on disk when it is over, and nothing else is counted on."""
        held = (self.folder / "server.db-wal").read_bytes()
        self._flush(file)
        time.sleep(0.002)  # others commit meanwhile
        self.image, self.flushes = held, self.flushes + 1

    def read_after_power_cut(self, image: bytes, place: Path) -> set[str]:
        """The rows that somebody finds who starts again from what the disk held."""
        place.mkdir()
        shutil.copy(self.folder / "server.db", place / "server.db")
        (place / "server.db-wal").write_bytes(image)
        found = open_database(place / "server.db")
        try:
            return {row["name"] for row in found.rows("SELECT name FROM things")}
        finally:
            found.close()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = Disk(tmp_path)
    monkeypatch.setattr(os, "fsync", found.flush)
    return found


def write_and_cut(disk: Any, folder: Path) -> list[tuple[str, bytes]]:
    """Many write at once: each row, with what the disk held at the moment when it was acknowledged."""
    database = open_database(folder / "server.db")
    database.run("CREATE TABLE things (name TEXT)")
    acknowledged = []

    def write(who: int) -> None:
        for number in range(ROWS):
            name = f"{who}/{number}"
            database.run("INSERT INTO things VALUES (?)", name)
            acknowledged.append((name, disk.image))

    threads = [threading.Thread(target=write, args=(who,)) for who in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return acknowledged


def count_lost(disk: Any, folder: Path) -> int:
    """How many rows were acknowledged and are gone, if the power had been cut at that very moment."""
    acknowledged = write_and_cut(disk, folder)
    assert len(acknowledged) == WRITERS * ROWS
    found: dict[bytes, set[str]] = {}
    for _, image in acknowledged:
        if image not in found:
            found[image] = disk.read_after_power_cut(image, folder / f"image {len(found)}")
    return sum(name not in found[image] for name, image in acknowledged)


def test_what_was_acknowledged_is_there_after_a_power_cut(disk: Any, tmp_path: Path) -> None:
    assert count_lost(disk, tmp_path) == 0
    assert disk.flushes <= WRITERS * ROWS + 1


def test_a_flush_that_is_shared_with_whoever_committed_after_it_began_is_found(
    disk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: whoever commits while a flush goes on is told that it holds their row."""

    def reach(self: Any, commit: int) -> None:
        with self._turn:
            if self._flushed < commit:
                with self._path.open("r+b") as log:
                    os.fsync(log.fileno())
                self._flushed = self.commits

    monkeypatch.setattr(store._Flush, "reach", reach)
    lost = 0
    for number in range(TRIES):
        disk.folder = tmp_path / f"attempt {number}"
        disk.folder.mkdir()
        lost += count_lost(disk, disk.folder)
    assert lost > 0


def test_a_disk_that_once_took_no_log_is_believed_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system tells of pages that it lost once, and calls the next flush a success."""
    database = open_database(tmp_path / "server.db")
    database.run("CREATE TABLE things (name TEXT)")
    assert database.lasting

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StoreUnavailable):
            database.run("INSERT INTO things VALUES ('lost')")
    assert not database.lasting
    with pytest.raises(StoreUnavailable):
        database.run("INSERT INTO things VALUES ('afterwards')")
    assert database.row("SELECT 1 AS one") == {"one": 1}
    database.close()
