"""Several processes at once: 10^8 reports of a survey counted in states that add up, and one book that all write.

Rates of writing are by the clock, for the disk decides; they are compared with that of one process in the same run.
"""

from __future__ import annotations

import itertools
import multiprocessing
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Final

import numpy as np

import mosha
from benchmarks._rows import Row
from mosha import events
from mosha.local import Collector, Frequency

REPORTS: Final = 100_000_000
PART: Final = 1_000_000
COUNTERS: Final = 4
SECONDS: Final = 4.0
WRITERS: Final = (2, 4, 8, 16)
SURVEY: Final = Frequency(range(1_000), epsilon=1)
PERSON: Final = mosha.Person("who")
COUNT: Final = mosha.Measurement(unit=PERSON, event=events.Laplace(1000), step=lambda state, *_: (0, state), name="n")


def count_reports(number: int) -> tuple[bytes, float, float, int]:
    """A state, CPU seconds of making and of counting reports, and the largest number of bytes of this process."""
    source, collector = np.random.default_rng(number), SURVEY.collector()
    making = counting = 0.0
    for _ in range(REPORTS // COUNTERS // PART):
        start = time.process_time()
        batch = SURVEY.reports(source.integers(0, 1_000, PART))
        made = time.process_time()
        collector.add(batch)
        making, counting = making + made - start, counting + time.process_time() - made
    return collector.to_bytes(), making, counting, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reports() -> list[Row]:
    """Made and counted by four processes, their states added up, and the answers estimated."""
    with multiprocessing.get_context("spawn").Pool(COUNTERS) as pool:
        found = pool.map(count_reports, range(COUNTERS))
    start = time.process_time()
    whole = SURVEY.collector()
    for state, *_ in found:
        whole.merge(Collector.from_bytes(SURVEY, state))  # type: ignore[arg-type]
    shares = whole.estimate()
    spent = time.process_time() - start
    if whole.accepted != REPORTS or len(shares.counts) != 1_000:
        raise SystemExit("reports were lost")
    counting, largest = sum(each[2] for each in found), max(each[3] for each in found)
    rate = f"{1e9 * counting / REPORTS:.1f} ns a report"
    return [
        Row("10^8 reports counted by four processes", "50 ns", 50e-9 * REPORTS / counting, 1.0, rate, "50 ns"),
        Row("memory of the largest", "1 GB", 2**30 / largest, 1.0, f"{largest / 1e6:.0f} MB", "1,074 MB"),
        Row("states added up and estimated", "1 s", 1 / spent, 1.0, f"{spent:.3f} s", "1 s"),
    ]


_together: list[Barrier] = []


def keep_barrier(barrier: Barrier) -> None:
    """Where a writer waits until all have imported what they need."""
    _together.append(barrier)


def write_book(place: str) -> tuple[int, float, float]:
    """How many releases were paid for and written until the time was over, the longest wait, and CPU seconds."""
    warnings.simplefilter("ignore")
    with mosha.Ledger(place) as ledger:
        account = ledger.account("visits")
        account.open(COUNT).step(None)  # imports
        _together[0].wait()
        begin, number, longest, start = time.time(), 0, 0.0, time.process_time()
        while (now := time.time()) < begin + SECONDS:
            account.open(COUNT).step(None)
            number, longest = number + 1, max(longest, time.time() - now)
        spent = time.process_time() - start
    return number, longest, spent


def write_together(place: str, count: int) -> list[tuple[int, float, float]]:
    """What so many processes found that wrote one new book at once; the book is verified."""
    warnings.simplefilter("ignore")
    with mosha.Ledger(place) as ledger:
        ledger.account("visits", unit=PERSON, epsilon=1e6)
    spawning = multiprocessing.get_context("spawn")
    with spawning.Pool(count, keep_barrier, (spawning.Barrier(count),)) as pool:
        found = pool.map(write_book, [place] * count, chunksize=1)
    with mosha.Ledger(place) as ledger:
        if not ledger.verify().ok:
            raise SystemExit("the benchmark broke the book")
    return found


def compare_writers(kind: str, open_place: Callable[[], AbstractContextManager[str]]) -> list[Row]:
    """The rate of all writers beside that of one, the slowest beside the mean, and CPU seconds of a release."""
    rows, alone, least = [], 0.0, 0.0
    for count in (1, *WRITERS):
        with open_place() as place:
            found = write_together(place, count)
        numbers = [number for number, *_ in found]
        rate, slowest = sum(numbers) / SECONDS, min(numbers) * count / max(sum(numbers), 1)
        spent = sum(each[2] for each in found) / max(sum(numbers), 1)
        alone, least = alone or rate, least or spent
        if count == 1:
            continue
        longest = f"longest wait {max(wait for _, wait, _ in found):.2f} s"
        what = f"{kind}, {count} writers"
        rows += [
            Row(f"{what}: releases a second", "one writer", rate / alone, None, f"{rate:.0f}", f"{alone:.0f}"),
            Row(f"{what}: the slowest", "their mean", slowest, 0.5, f"{slowest:.2f}", longest),
            Row(
                f"{what}: CPU of one",
                "one writer",
                least / spent,
                0.5,
                f"{spent * 1e3:.2f} ms",
                f"{least * 1e3:.2f} ms",
            ),
        ]
    return rows


@contextmanager
def _file() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "privacy.db")


def writers() -> list[Row]:
    """One SQLite book."""
    return compare_writers("SQLite", _file)


def postgresql() -> list[Row]:
    """One book in PostgreSQL, whose processes write on a disk that is flushed for each release."""
    import psycopg

    from benchmarks.tables_postgresql import server

    numbers = itertools.count()
    with server() as url:

        @contextmanager
        def database() -> Iterator[str]:
            name = f"book{next(numbers)}"
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}".encode())
            yield url.rpartition("/")[0] + f"/{name}"

        return compare_writers("PostgreSQL", database)


PIECES: Final = {"reports": reports, "writers": writers, "postgresql": postgresql}
