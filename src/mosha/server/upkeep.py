"""Upkeep: a backup of ledger and store with its head, a restore that refuses an older book, a check of both.

A ledger that is put back to an earlier state forgets payments, and the promise with them. So a restore must hold every
head that is known elsewhere: those that the present store has noted (each publication shows one), and those that the
operator names.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from mosha.core.language import phrase
from mosha.files.locks import FileLock
from mosha.ledger import Ledger
from mosha.ledger.storage.chain import GENESIS, Head
from mosha.server.errors import BadRequest, Conflict
from mosha.server.settings import LOCK, Settings
from mosha.server.store.database import Database, open_database
from mosha.server.store.migrations import migrate

__all__ = ["back_up", "check_server", "restore"]

FILES = ("privacy.db", "server.db")


def _check_files(settings: Settings) -> None:
    if "://" in settings.ledger_place or "://" in settings.store_place:
        raise BadRequest("server.backup_database")


def back_up(settings: Settings, target: Path) -> dict[str, Any]:
    """Copy the store, then the ledger, each whole, into a new folder; the head that the copy ends with.

    The ledger comes last: a copy of the store may know less than the ledger, and never a payment that it does not hold.
    """
    _check_files(settings)
    if target.exists() and any(target.iterdir()):
        raise Conflict("server.not_empty", parameter="target")
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, place in (("server.db", settings.store_place), ("privacy.db", settings.ledger_place)):
        with closing(sqlite3.connect(place)) as source, closing(sqlite3.connect(target / name)) as copy:
            source.backup(copy)
        (target / name).chmod(0o600)
    with Ledger(target / "privacy.db", key=settings.ledger_key or None, create=False) as ledger:
        head = str(ledger.head)
    (target / "backup.json").write_text(json.dumps({"head": head}), encoding="utf-8")
    return {"head": head, "folder": str(target)}


def restore(settings: Settings, backup: Path, *, heads: Iterable[str] = ()) -> dict[str, Any]:
    """Put a backup in the place of the folder's files; refused where its ledger lacks a head that is known.

    Refused as well while a server works in the folder: what it pays meanwhile would be forgotten.
    """
    _check_files(settings)
    if not all((backup / name).is_file() for name in FILES):
        raise BadRequest("server.no_backup", parameter="backup")
    settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock.take(settings.folder / LOCK)
    if lock is None:
        raise Conflict("server.restore_running")
    try:
        return _put_back(settings, backup, heads)
    finally:
        lock.release()


def _put_back(settings: Settings, backup: Path, heads: Iterable[str]) -> dict[str, Any]:
    known = [*heads, *_noted_heads(settings)]
    with Ledger(backup / "privacy.db", key=settings.ledger_key or None, create=False) as ledger:
        report = ledger.verify()
        lacking = [head for head in known if not _holds(ledger, head)]
        head = str(ledger.head)
    if not report.ok:
        raise Conflict("server.backup_broken")
    if lacking:
        raise Conflict("server.backup_older", heads=lacking[:5])
    for name in FILES:
        for ending in ("-wal", "-shm", ".head"):
            (settings.folder / f"{name}{ending}").unlink(missing_ok=True)
        shutil.copyfile(backup / name, settings.folder / name)
        (settings.folder / name).chmod(0o600)
    return {"head": head}


def _noted_heads(settings: Settings) -> list[str]:
    """Heads that the present store and the present ledger know: an older book than those is not put back."""
    found = []
    if Path(settings.store_place).is_file():
        with closing(open_database(settings.store_place)) as database:
            migrate(database)
            found += [row["head"] for row in database.rows("SELECT head FROM heads")]
    if Path(settings.ledger_place).is_file():
        with Ledger(settings.ledger_place, key=settings.ledger_key or None, create=False) as ledger:
            found.append(str(ledger.head))
    return found


def _holds(ledger: Ledger, head: str) -> bool:
    """Whether a chain that was verified has this row: every publication keeps a head, and none needs a look at all."""
    known = Head.parse(head)
    rows = ledger.entries(known.sequence - 1, most=1) if known.sequence else []
    return known == GENESIS or any(row.head == known for row in rows)


def check_server(settings: Settings, *, heads: Iterable[str] = ()) -> dict[str, Any]:
    """Whether the chain is whole, holds every head that is known, and has a payment for every request that was paid."""
    problems: list[str] = []
    with Ledger(settings.ledger_place, key=settings.ledger_key or None, create=False) as ledger:
        if not ledger.verify().ok:
            problems.append(phrase("server.wrong_chain"))
        with closing(open_database(settings.store_place)) as database:
            migrate(database)
            noted = [row["head"] for row in database.rows("SELECT head FROM heads")]
            problems += [
                phrase("server.wrong_head", head=head) for head in (*noted, *heads) if not _holds(ledger, head)
            ]
            problems += _unpaid(database, ledger)
        head = str(ledger.head)
    return {"well": not problems, "problems": problems, "head": head}


def _unpaid(database: Database, ledger: Ledger) -> list[str]:
    rows = database.rows("SELECT id FROM requests WHERE outcome IN ('answered', 'failed')")
    paid = {entry.content().get("key") for entry in ledger.entries() if entry.kind == "pay"}
    unpaid = [row["id"] for row in rows if f"request {row['id']}" not in paid]
    return [phrase("server.wrong_unpaid", request=request) for request in unpaid]
