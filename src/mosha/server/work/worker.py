"""A worker: a process that reads one job a line from its parent, and answers one line.

Jobs and answers are JSON: data, never code. What goes wrong after payment is told with one word, `failed`, whatever it
was; what was refused before payment is told in full, because it was decided without a row.

    ask      pay, ask, answer; once the data were met it says `measured`, and goes on when its parent says so (the tick)
    give_up  note that a step which was started came to no end (its process was killed): it stays paid, and counts
    look     the columns of a source, names and types alone
    sample   rows of a synthetic table that was released under a key
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TextIO

from mosha.core.errors import (
    AccountFrozen,
    AlreadyReleased,
    DataError,
    Interrupted,
    MoshaError,
    RunError,
    SourceUnavailable,
    StepFailed,
)
from mosha.core.private_log import note_privately
from mosha.server.work.edges import check_files, read_edges
from mosha.server.work.withheld import WithheldAccount

__all__ = ["Worker", "main"]

FAILED = {"outcome": "failed"}


class Worker:
    """One ledger, one engine, and the tables that were opened so far."""

    def __init__(self, options: Mapping[str, Any], wait: Callable[[], None] = lambda: None) -> None:
        self._options = options
        self._wait = wait
        self._ledger: Any = None
        self._engine: Any = None
        self._tables: dict[str, Any] = {}

    def ledger(self) -> Any:
        if self._ledger is None:
            from mosha.ledger import Ledger  # noqa: PLC0415  (a worker is there before it has work)

            key = self._options.get("ledger_key") or None
            self._ledger = Ledger(self._options["ledger"], key=key, create=False)
        return self._ledger

    def table(self, job: Mapping[str, Any]) -> Any:
        """The dataset as it is declared in this version."""
        name = json.dumps([job["dataset"], job["source"], job["declaration"]], sort_keys=True)
        if job["declaration"].get("kind") == "graph":
            from mosha.server.catalogue.graphs import public_graph_of  # noqa: PLC0415

            return public_graph_of(job["declaration"])
        if name not in self._tables:
            from mosha.tables import protect  # noqa: PLC0415

            self._tables.clear()
            place, options = job["source"]
            self._tables[name] = protect(place, schema=job["declaration"], **self._with_engine(place, options))
        return self._tables[name]

    def _with_engine(self, place: str, options: Mapping[str, Any]) -> dict[str, Any]:
        if "://" in place:
            return dict(options)
        if self._engine is None:
            from mosha.connect.engines.duckdb import DuckDB  # noqa: PLC0415

            memory = max(64, self._options["memory"] // 2_000_000)
            self._engine = DuckDB(memory_limit=f"{memory}MB", threads=1, spill=self._options.get("spill"))
        return {**options, "engine": self._engine}

    def look(self, job: Mapping[str, Any]) -> dict[str, Any]:
        from mosha.connect import source  # noqa: PLC0415
        from mosha.connect.engines.origins import find_origin  # noqa: PLC0415
        from mosha.connect.engines.source import ServerTable  # noqa: PLC0415

        place, options = job["source"]
        found = source(place, **self._with_engine(place, options))
        columns = {name: str(kind) for name, kind in found.schema.items()}
        identity = [found.database, found.origin_name] if isinstance(found, ServerTable) else None
        origin = find_origin(found, place, options.get("table"))
        said = {"identity": identity, "origin": None if origin is None else origin.to_dict()}
        return {"outcome": "looked", "columns": columns} | said

    def _build_question(self, job: Mapping[str, Any]) -> Any:
        from mosha.server.asking.questions import build_question  # noqa: PLC0415

        asked = build_question(self.table(job), job["dataset"], job["question"], job["condition"])
        ledger = self.ledger()
        account = ledger.together([ledger.account(name) for name in job["accounts"]])
        is_withheld = job["op"] == "ask" and job["timing"] != "off"
        return asked.paid_by(WithheldAccount(account, self._wait) if is_withheld else account)

    def ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Pay and ask. Whether a payment was made decides what may be told: nothing afterwards, all before."""
        account = None
        try:
            asked = self._build_question(job)
            account = asked.question.account
            return {"outcome": "answered", "answer": self._release(asked, job)}
        except (StepFailed, AlreadyReleased, Interrupted):
            return FAILED
        except SourceUnavailable:
            return {"outcome": "unreached", "paid": self._is_paid(account, job)}
        except MoshaError as error:
            if error.code == "connect.columns_changed":
                self._tables.clear()  # which are opened again for the next question
            if self._is_paid(account, job) or isinstance(error, RunError) or getattr(error, "paid", False):
                return FAILED
            return {"outcome": "refused", "error": error.to_dict(), "kind": type(error).__name__}

    def _release(self, asked: Any, job: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of a question of any kind, as JSON."""
        if asked.kind == "graph":
            from mosha.server.asking.graph_questions import graph_answer_to_dict, release_graph  # noqa: PLC0415

            question, price = asked.question, job["price"]
            check_files(job["source"])
            read = partial(self._read_graph, job)
            found = release_graph(question, read, price, key=job["key"], account=question.account)
            return graph_answer_to_dict(question, found)
        if asked.kind == "synthetic":
            from mosha.server.asking.synthesis import synthetic_to_dict  # noqa: PLC0415

            return synthetic_to_dict(self._synthetic(asked, job))
        from mosha.server.asking.answers import answer_to_dict  # noqa: PLC0415

        answer = asked.question.release(**job["price"], key=job["key"], deadline=job["deadline"])
        return answer_to_dict(asked.show(answer))

    def _read_graph(self, job: Mapping[str, Any]) -> Any:
        """The edges, read inside of a step that was paid for; a worker holds one graph at a time."""
        name = json.dumps([job["source"], job["declaration"]], sort_keys=True)
        if name not in self._tables:
            self._tables.clear()
            self._tables[name] = read_edges(job["source"], job["declaration"])
        return self._tables[name]

    def _synthetic(self, asked: Any, job: Mapping[str, Any]) -> Any:
        return asked.question.release(**job["price"], key=job["key"], deadline=job["deadline"])

    def sample(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Rows of a synthetic table that was paid for: what was released is found by its key, no person's row is."""
        from mosha.server.asking.synthesis import draw_file  # noqa: PLC0415

        asked = self._build_question(job)
        if asked.kind != "synthetic" or not asked.question.account.holds(job["key"]):
            return {"outcome": "refused", "error": {"code": "server.not_found"}, "kind": "NotFound"}
        drawn = draw_file(self._synthetic(asked, job), rows=job["rows"], seed=job["seed"], form=job["form"])
        return {"outcome": "sampled", "file": base64.b64encode(drawn).decode()}

    def _is_paid(self, account: Any, job: Mapping[str, Any]) -> bool:
        """Whether the ledger holds a payment of this job; where it cannot be asked, it may."""
        try:
            return account is not None and bool(account.holds(job["key"]))
        except MoshaError:
            return True

    def give_up(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Note a step that was killed as failed, where it was paid for: the ledger counts it, and no data are read."""
        asked = self._build_question(job)
        account = asked.question.account
        if not account.holds(job["key"]):
            return {"outcome": "unpaid"}

        def fail(state: Any, data: Any, ask: Any, rng: object) -> Any:  # noqa: ARG001
            raise StepFailed

        plain = asked.question.measurement_for(**job["price"])
        measurement = replace(plain, step=fail, question=asked.fingerprint(job["price"]))
        with contextlib.suppress(StepFailed, AlreadyReleased, AccountFrozen, DataError):
            found = account.open(measurement, key=job["key"]).step(None)
            return {"outcome": "released"} if found is not None else FAILED
        return FAILED

    def do(self, job: Mapping[str, Any]) -> dict[str, Any]:
        work = {"ask": self.ask, "give_up": self.give_up, "look": self.look, "sample": self.sample}[job["op"]]
        try:
            return work(job)
        except MoshaError as error:
            return {"outcome": "refused", "error": error.to_dict(), "kind": type(error).__name__}
        except (MemoryError, Exception) as error:  # noqa: BLE001  (what broke it is for the private log alone)
            note_privately("worker", error)
            return {"outcome": "crashed"}


def _limit_memory(size: int) -> None:
    """Bound what this process may hold; an allocation beyond it fails here, and not in the whole machine."""
    try:
        import resource  # noqa: PLC0415  (not on Windows)
    except ImportError:
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with_parent() -> None:
    """Where the system can do it, die when the server dies, so that no orphan goes on."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415

        parent_death_signal = 1
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def main(incoming: TextIO, outgoing: TextIO) -> None:
    """Answer jobs until the parent closes the line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    options = json.loads(incoming.readline() or "null")
    if options is None or os.getppid() != options["parent"]:
        return
    _limit_memory(options["memory"])
    job: dict[str, Any] = {}

    def wait() -> None:
        """Say that the data were met, until the parent says that it is time."""
        outgoing.write(json.dumps({"job": job["job"], "outcome": "measured"}) + "\n")
        outgoing.flush()
        if not incoming.readline():
            raise SystemExit  # the parent is gone, and nobody waits for this any more

    worker = Worker(options, wait)
    if options.get("warm"):
        threading.Thread(target=_warm, daemon=True).start()
    while line := incoming.readline():
        job = json.loads(line)
        outgoing.write(json.dumps({"job": job["job"]} | worker.do(job)) + "\n")
        outgoing.flush()


def _warm() -> None:
    """Load what the first question will need."""
    with contextlib.suppress(Exception):
        from mosha.server.asking.questions import load_engines  # noqa: PLC0415

        load_engines()


if __name__ == "__main__":
    out, sys.stdout = sys.stdout, sys.stderr  # nothing that a library prints gets into the answers
    main(sys.stdin, out)
