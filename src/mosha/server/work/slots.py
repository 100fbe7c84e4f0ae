"""Slots: each runs one question at a time in its own worker process, and is free again at the question's tick."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import secrets
import threading
import time
from collections.abc import Mapping
from typing import Any

from mosha.core.errors import LedgerError
from mosha.ledger import Ledger
from mosha.server.asking.requests import expire_requests, is_stale, ledger_key
from mosha.server.catalogue.datasets import declaration_of, find_dataset
from mosha.server.catalogue.declarations import plain_declaration
from mosha.server.catalogue.sources import open_place
from mosha.server.catalogue.webhooks import announce, deliver_due, is_wanted
from mosha.server.clock import now
from mosha.server.errors import ServerError, StoreUnavailable, TooMany
from mosha.server.settings import Settings
from mosha.server.store.database import Database, Row
from mosha.server.work.process import Lost, TooLate, WorkerProcess
from mosha.server.work.queue import MOST_ATTEMPTS, beat, claim, finish, forget_instance, requeue_lost
from mosha.server.work.ticks import tick

__all__ = ["Slots"]

PATIENCE = 60.0  # seconds for noting that a step was lost
WRITING = 0.05  # seconds that are left for writing an end down before its tick
LEAD = 0.25  # seconds before the tick at which an answer goes into the book
WAKING = 1.5  # seconds before the tick at which a worker is told to note that a step was lost
PAUSE_TO_WRITE = 5.0  # seconds after a tick that a server which stops leaves for writing an end down
GRACE = 25.0  # seconds that a server which stops waits for ticks of what was measured
FAILED = {"problem": {"code": "server.step_failed"}}
PAUSE = 0.25  # seconds between two looks at an empty queue
LOW = 0.8  # the share of a budget after which its operator is told
TURN = 2.0  # seconds that somebody waits for a process beside the slots, before they are told to come back
BEAT = 2.0  # seconds between two signs of life
_log = logging.getLogger("mosha.server")


class Slots:
    """The workers of one server process, and the threads that feed them."""

    def __init__(self, settings: Settings, database: Database, ledger: Ledger) -> None:
        self._settings = settings
        self._ledger = ledger
        self._database = database
        self.holder = f"i-{secrets.token_hex(8)}"
        self._wake = threading.Condition()
        self._stopping = False
        self._options = {
            "ledger": settings.ledger_place,
            "ledger_key": settings.ledger_key,
            "memory": settings.memory,
            "spill": str(settings.folder / "spill"),
        }
        self._workers = [WorkerProcess(self._options) for _ in range(settings.workers)]
        self._measured: dict[WorkerProcess, float] = {}  # who waits for a tick, and until when
        self._abandoned = threading.Event()
        self._beside = threading.BoundedSemaphore(settings.workers)
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Requeue what was lost, and begin to work."""
        beat(self._database, self.holder)
        requeue_lost(self._database, alone=not self._database.shared)
        work = [threading.Thread(target=self._serve, args=(worker,), daemon=True) for worker in self._workers]
        others = [threading.Thread(target=each, daemon=True) for each in (self._keep_time, self._deliver)]
        self._threads = [*work, *others]
        for thread in self._threads:
            thread.start()

    def stop(self, *, patience: float = 5.0) -> None:
        """Claim nothing more, and wait a little for what runs; the rest is queued again, under its key."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        begun = time.monotonic()
        latest = max(self._measured.values(), default=begun) + PAUSE_TO_WRITE
        end = max(begun + patience, min(latest, begun + GRACE))
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._abandoned.set()
        for worker in self._workers:
            worker.kill()
        with contextlib.suppress(ServerError):
            change = "UPDATE requests SET state = 'queued', holder = NULL WHERE state = 'running' AND holder = ?"
            self._database.run(change, self.holder)
            forget_instance(self._database, self.holder)

    def wake(self) -> None:
        """There is something in the queue."""
        with self._wake:
            self._wake.notify()

    def look(self, source: tuple[str, dict[str, object]], *, seconds: float = 30.0) -> dict[str, Any]:
        """The columns of a source, found by a worker of its own."""
        return self._do_beside({"op": "look", "source": source}, seconds)

    def _do_beside(self, job: Mapping[str, object], seconds: float) -> dict[str, Any]:
        """Work that somebody waits for, in a process of its own: as many at a time as there are slots, and no more."""
        if not self._beside.acquire(timeout=TURN):
            raise TooMany("server.too_many", seconds=10)
        worker = WorkerProcess(self._options)
        try:
            return worker.do(job, until=time.monotonic() + seconds)
        except (Lost, TooLate):
            return {"outcome": "crashed"}
        finally:
            worker.kill()
            self._beside.release()

    def sample(self, row: Row, *, rows: int | None, seed: int, form: str, seconds: float = 120.0) -> bytes:
        """A file of rows of a synthetic table that was paid for, drawn by a worker of its own."""
        job = self._job(row, find_dataset(self._database, row["dataset"]))
        said = self._do_beside(job | {"op": "sample", "rows": rows, "seed": seed, "form": form}, seconds)
        if said["outcome"] != "sampled":
            raise StoreUnavailable("server.not_drawn")
        return base64.b64decode(said["file"])

    def _keep_time(self) -> None:
        """Say that this process is alive, and end what waited too long."""
        while not self._stopping:
            with contextlib.suppress(ServerError):
                beat(self._database, self.holder)
                expire_requests(self._database)
                if self._database.shared:
                    requeue_lost(self._database, alone=False)
            self._sleep(BEAT)

    def _deliver(self) -> None:
        """Tell other programs what they want to know, apart from everything else: they may be slow."""
        while not self._stopping:
            with contextlib.suppress(ServerError):
                deliver_due(self._database)
            self._sleep(1.0)

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._stopping and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.2))

    def _serve(self, worker: WorkerProcess) -> None:
        with contextlib.suppress(OSError, Lost):
            worker.start(warm=True)
        while not self._stopping:
            row = None
            try:
                row = claim(self._database, self.holder, most_running=self._settings.running_per_principal)
                if row is None:
                    with self._wake:
                        self._wake.wait(PAUSE)
                else:
                    self._run(worker, row)
            except ServerError:
                self._sleep(1.0)
            except Exception:  # noqa: BLE001  (a slot goes on, whatever one request did)
                _log.exception("a slot met an unexpected error")
                self._sleep(1.0)

    def _run(self, worker: WorkerProcess, row: Row) -> None:
        """Run one request to its end; it appears at its tick, and the slot is busy until then."""
        begun = time.monotonic()
        dataset = find_dataset(self._database, row["dataset"])
        deadline, timing = float(dataset["deadline"]), str(dataset["timing"])
        job = self._job(row, dataset)
        outcome, result = self._end_of(worker, row, job, begun)
        if outcome == "again" and self._stopping:
            return
        if outcome == "again":
            change = "UPDATE requests SET state = 'queued', holder = NULL WHERE id = ? AND holder = ?"
            self._database.run(change, row["id"], self.holder)
            self._sleep(0.5)
            return
        if outcome == "refused":
            self._finish(row, outcome, result, now())
            return
        after = tick(timing, seconds=min(time.monotonic() - begun + WRITING, deadline), deadline=deadline)
        self._finish(row, outcome, result, row["started"] + int(after * 1e6))
        self._sleep(begun + after - time.monotonic())
        worker.wait()

    def _finish(self, row: Row, outcome: str, result: dict[str, object], visible: int) -> None:
        """Write an end down; whoever wants to know of it is told when it can be seen."""
        if finish(self._database, row, self.holder, outcome, result, visible):
            announce(self._database, "request.ended", due=visible, request=row["id"], dataset=row["dataset"])
            if outcome != "refused" and is_wanted(self._database, "budget.low") and self._passes_low_mark(row):
                announce(self._database, "budget.low", due=visible, dataset=row["dataset"])

    def _passes_low_mark(self, row: Row) -> bool:
        """Whether this question was the one after which less than a fifth of its dataset's budget is left."""
        try:
            account = self._ledger.account(find_dataset(self._database, row["dataset"])["account"])
            mark, spent = LOW * account.limit, account.spent
        except (LedgerError, ServerError):
            return False
        return bool(spent - row["cost"] < mark <= spent)

    def _end_of(self, worker: WorkerProcess, row: Row, job: dict[str, Any], begun: float) -> tuple[str, dict[str, Any]]:
        if (row["attempts"] == 1 or not self._is_paid(job)) and is_stale(self._database, row):
            return "refused", {"problem": {"code": "server.approval_stale"}}
        try:
            said = worker.do(job | {"op": "ask"}, until=begun + job["kill"])
            while said["outcome"] == "measured":
                self._wait_for_tick(worker, job, begun, LEAD)
                said = worker.go_on(until=time.monotonic() + PATIENCE)
        except Lost:
            ended = self._give_up(worker, job, begun)
            return ("again", {}) if ended[0] == "refused" and row["attempts"] < MOST_ATTEMPTS else ended
        except TooLate:
            return self._give_up(worker, job, begun)
        if said["outcome"] == "unreached" and row["attempts"] < MOST_ATTEMPTS:
            return "again", {}
        if said["outcome"] in ("unreached", "crashed"):
            return self._give_up(worker, job, begun)
        results: dict[str, dict[str, Any]] = {"answered": {"answer": said.get("answer")}, "failed": FAILED}
        refused = {"problem": {"error": said.get("error"), "kind": said.get("kind")}}
        return said["outcome"], results.get(said["outcome"], refused)

    def _wait_for_tick(self, worker: WorkerProcess, job: Mapping[str, Any], begun: float, lead: float) -> None:
        """Until so many seconds before the tick: what is written into the book then has a place that tells nothing."""
        if job["timing"] == "off":
            return
        seconds = min(time.monotonic() - begun + lead, job["end"])
        due = begun + tick(job["timing"], seconds=seconds, deadline=job["end"])
        self._measured[worker] = due
        try:
            if self._abandoned.wait(max(0.0, due - lead - time.monotonic())):
                raise Lost
        finally:
            self._measured.pop(worker, None)

    def _give_up(self, worker: WorkerProcess, job: dict[str, Any], begun: float) -> tuple[str, dict[str, Any]]:
        """A step came to no end: where it was paid for, the ledger counts it as a failure, shortly before the tick.

        That is not broken off, for the ledger lets a step be started twice and no more. Where it takes longer than the
        deadline, the request is seen to have failed then all the same, and the slot waits for it. A server that stops
        gives nothing up: the next one asks once more.
        """
        if self._stopping:
            return "again", {}
        if self._is_paid(job):
            with contextlib.suppress(OSError, Lost):
                worker.start(warm=True)
            try:
                self._wait_for_tick(worker, job, begun, WAKING)
            except Lost:
                return "again", {}
        said: dict[str, Any] = {}

        def note() -> None:
            with contextlib.suppress(Lost, TooLate):
                said.update(worker.do(job | {"op": "give_up"}, until=time.monotonic() + PATIENCE))

        thread = worker.in_background(note)
        thread.join(max(0.0, begun + job["end"] - WRITING - time.monotonic()))
        if said.get("outcome") == "unpaid" or (said.get("outcome") != "failed" and not self._is_paid(job)):
            thread.join()
            return "refused", {"problem": {"code": "server.not_run"}}
        return "failed", FAILED

    def _is_paid(self, job: Mapping[str, Any]) -> bool:
        payer = self._ledger.together([self._ledger.account(name) for name in job["accounts"]])
        return payer.holds(job["key"])

    def _job(self, row: Row, dataset: Row) -> dict[str, Any]:
        """What the worker is told. The engine stops before its process is killed, and both before the deadline."""
        end = float(dataset["deadline"])
        kept, _ = declaration_of(self._database, row["dataset"], row["version"])
        return {
            "dataset": row["dataset"],
            "source": open_place(json.loads(dataset["source"])),
            "declaration": plain_declaration(kept),
            "question": json.loads(row["question"]),
            "condition": self._condition(row),
            "accounts": json.loads(row["accounts"]),
            "price": json.loads(row["price"]),
            "key": ledger_key(row["id"]),
            "deadline": max(0.5 * end, end - 4.0),
            "kill": max(0.7 * end, end - 2.5),
            "end": end,
            "timing": str(dataset["timing"]),
        }

    def _condition(self, row: Row) -> Mapping[str, Any] | None:
        if row["block"] is None:
            return None
        found = self._database.row(
            "SELECT condition FROM blocks WHERE dataset = ? AND name = ?", row["dataset"], row["block"]
        )
        condition: Mapping[str, Any] | None = None if found is None else json.loads(found["condition"])
        return condition
