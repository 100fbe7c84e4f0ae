"""The service: settings, store, ledger, workers and rates, opened together and closed together."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Self

from mosha.files.locks import FileLock
from mosha.ledger import Ledger
from mosha.server.asking.questions import load_engines
from mosha.server.catalogue.heads import PublicView
from mosha.server.errors import Conflict
from mosha.server.people.limits import Rates
from mosha.server.settings import LOCK, Settings
from mosha.server.store.database import Database, open_database
from mosha.server.store.migrations import migrate
from mosha.server.work.slots import Slots

__all__ = ["Service"]

LOADING = 1.0  # seconds after its start at which a server loads what the first question needs


class _FolderLock:
    """One server works in a folder: what it holds is freed by the system when it ends, however it ends."""

    def __init__(self, path: Path) -> None:
        lock = FileLock.take(path)
        if lock is None:
            raise Conflict("server.folder_in_use")
        self._lock = lock

    def close(self) -> None:
        self._lock.release()


class Service:
    """Everything that a request needs. Handlers get it, pages get it, tests open one."""

    def __init__(self, settings: Settings) -> None:
        settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (settings.folder / "data").mkdir(exist_ok=True, mode=0o700)
        (settings.folder / "spill").mkdir(exist_ok=True, mode=0o700)
        os.environ.setdefault("MOSHA_PRIVATE_LOG", str(settings.folder / "private.log"))
        self.settings = settings
        if settings.oidc_issuer:
            import mosha.server.people.oidc  # noqa: F401, PLC0415  (an extra: say so before anybody comes)
        shared = settings.store_place.startswith(("postgresql://", "postgres://"))
        self._lock = None if shared else _FolderLock(settings.folder / LOCK)
        self.database: Database = open_database(settings.store_place)
        migrate(self.database)
        self.ledger = Ledger(settings.ledger_place, key=settings.ledger_key or None)
        self.public = PublicView(self.ledger)
        self.slots = Slots(settings, self.database, self.ledger)
        self.rates = Rates(self.database)
        self.counts: Counter[tuple[str, ...]] = Counter()
        self._counting = threading.Lock()
        self.ready = False
        self._loading = threading.Timer(LOADING, load_engines)
        self._loading.daemon = True
        self.log = logging.getLogger("mosha.server")

    def start(self) -> None:
        """Begin to work on the queue; what a first question needs is loaded a moment later, before it is asked."""
        self.slots.start()
        self.ready = True
        self._loading.start()

    def count(self, *labels: str) -> None:
        with self._counting:
            self.counts[labels] += 1

    def close(self) -> None:
        self.ready = False
        self._loading.cancel()
        self.slots.stop()
        self.ledger.close()
        self.database.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()
