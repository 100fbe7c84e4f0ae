"""Durable charges a second, against the plain way: check and debit in one flushed SQLite transaction each.

These are bound by the disk, so it is wall-clock time that is compared, in turns on one machine. A charge of ours also
writes the event, chains the row by hash, knows its tree of accounts, and can be verified; the plain way adds floats.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import mosha
from benchmarks._big_book import repeat
from benchmarks._rows import Row
from mosha import events
from mosha.ledger.checking.checkpoint import Checkpoint

REPEATS: Final = 3
PERSON: Final = mosha.Person("patient_id")
COUNT: Final = mosha.Measurement(
    unit=PERSON, event=events.Laplace(1000), step=lambda state, *_: (0, state), name="count"
)
READERS_BAR: Final = 0.5  # a payment takes at most twice as long
SIZES: Final = (1_000, 10_000, 100_000)
STATED: Final = 100.0  # milliseconds of CPU for the statement of one account in a book of 100,000 releases
LEASED_BAR: Final = 20.0  # 5,000 a second where the plain way does 250


def plain(connection: sqlite3.Connection) -> Callable[[int], None]:
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"):
        connection.execute(statement)
    connection.execute("CREATE TABLE balance (spent REAL)")
    connection.execute("CREATE TABLE log (event TEXT)")
    connection.execute("INSERT INTO balance VALUES (0)")

    def charge(times: int) -> None:
        for _ in range(times):
            connection.execute("BEGIN IMMEDIATE")
            (spent,) = connection.execute("SELECT spent FROM balance").fetchone()
            if spent + 0.001 <= 1e6:
                connection.execute("UPDATE balance SET spent = ?", (spent + 0.001,))
                connection.execute("INSERT INTO log VALUES ('Laplace 0.001')")
            connection.execute("COMMIT")

    return charge


def single(account: mosha.Account) -> Callable[[int], None]:
    def charge(times: int) -> None:
        for _ in range(times):
            account.open(COUNT)

    return charge


def grouped(account: mosha.Account, threads: int) -> Callable[[int], None]:
    def charge(times: int) -> None:
        crowd = [threading.Thread(target=single(account), args=(times // threads,)) for _ in range(threads)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()

    return charge


def leased(account: mosha.ledger.LedgerAccount) -> Callable[[int], None]:
    def charge(times: int) -> None:
        with account.lease(COUNT.event * times) as lease:
            for _ in range(times):
                lease.open(COUNT).step(None)

    return charge


def beside_readers(ledger: mosha.Ledger, account: mosha.ledger.LedgerAccount) -> Row:
    """The median payment while statements are read in a loop, beside the median payment in a quiet ledger.

    The book holds some ten thousand payments by now. Quiet and loud moments take turns.
    """
    quiet: list[float] = []
    loud: list[float] = []
    for _ in range(REPEATS):
        quiet += _times(account, 100)
        over = threading.Event()
        reader = threading.Thread(target=_read, args=(ledger, account.name, over))
        reader.start()
        try:
            loud += _times(account, 100)
        finally:
            over.set()
            reader.join()
    without, with_readers = statistics.median(quiet), statistics.median(loud)
    told = f"{with_readers * 1000:.2f} ms", f"{without * 1000:.2f} ms"
    return Row("a payment while statements are read", "a quiet ledger", without / with_readers, READERS_BAR, *told)


def _times(account: mosha.Account, times: int) -> list[float]:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        account.open(COUNT)
        taken.append(time.perf_counter() - start)
    return taken


def _read(ledger: mosha.Ledger, name: str, over: threading.Event) -> None:
    while not over.is_set():
        ledger.statement(name)


def growth(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """A book grows: opening, charging, stating one account and verifying what came later, in CPU time."""
    rows, base, checked = [], {}, None  # type: ignore[var-annotated]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "privacy.db"
        with mosha.Ledger(place) as ledger:
            ledger.account("visits", unit=PERSON, epsilon=1e5).child("zhang", epsilon=1e4)
        done = 0
        for size in sizes:
            with mosha.Ledger(place) as ledger:
                repeat(ledger, "visits/zhang", COUNT, size - done)
                found = ledger.verify(since=checked)
                if not found.ok:
                    raise SystemExit("the book is not what payments leave")
            done, checked = size, found.checkpoint
            for name, seconds in _measure(place, checked).items():
                first = base.setdefault(name, seconds)
                bar = name.startswith("statement") and size == 100_000
                shown = f"{seconds * 1000:.2f} ms", f"{first * 1000:.2f} ms"
                ratio = STATED / 1000 / seconds if bar else first / seconds
                peer = f"{STATED} ms" if bar else f"{sizes[0]:,} releases"
                rows.append(Row(f"{name}, {size:,} releases", peer, ratio, 1.0 if bar else None, *shown))
    return rows


def million() -> list[Row]:
    """The same up to a million releases."""
    return growth((10_000, 100_000, 1_000_000))


def _measure(place: Path, checked: Checkpoint | None) -> dict[str, float]:
    def cpu(work: Callable[[], object], times: int) -> float:
        found = []
        for _ in range(times):
            start = time.process_time()
            work()
            found.append(time.process_time() - start)
        return sorted(found)[times // 2]

    opening = cpu(lambda: mosha.Ledger(place).close(), 5)
    with mosha.Ledger(place) as ledger:
        account = ledger.account("visits/zhang")
        return {
            "open": opening,
            "charge and release": cpu(lambda: account.open(COUNT).step(None), 101),
            "statement of one account": cpu(lambda: ledger.statement("visits/zhang").markdown(), 5),
            "event of one account": cpu(account.event, 5),
            "verify of what came later": cpu(lambda: ledger.verify(since=checked), 3),
        }


def main() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, mosha.Ledger(Path(folder) / "privacy.db") as ledger:
        account = ledger.account("visits", unit=PERSON, epsilon=1e6)
        child = account.child("analyst", epsilon=1e6).child("purpose", epsilon=1e6)
        with closing(sqlite3.connect(Path(folder) / "plain.db", isolation_level=None)) as connection:
            works = {
                "plain": (plain(connection), 200),
                "one thread": (single(account), 200),
                "one thread, three accounts deep": (single(child), 200),
                "16 threads, group commit": (grouped(account, 16), 1600),
                "64 threads, group commit": (grouped(account, 64), 3200),
                "a lease, charge and release": (leased(account), 10_000),
                "a lease, three accounts deep": (leased(child), 10_000),
            }
            rates = dict.fromkeys(works, 0.0)
            for _ in range(REPEATS):
                for name, (charge, times) in works.items():
                    start = time.perf_counter()
                    charge(times)
                    rates[name] = max(rates[name], times / (time.perf_counter() - start))
        readers = beside_readers(ledger, account)
        if not ledger.verify().ok or ledger.entries() == []:
            raise SystemExit("the benchmark broke the book")
    base = rates.pop("plain")
    bars = {"a lease, charge and release": LEASED_BAR}
    rows = [
        Row(f"charges a second, {name}", "plain SQLite", rate / base, bars.get(name), f"{rate:,.0f}", f"{base:,.0f}")
        for name, rate in rates.items()
    ]
    return [*rows, readers]


PIECES: Final = {"charges": main, "growth": growth, "million": million}
