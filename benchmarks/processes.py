"""Several processes at once: 10^8 reports of a survey counted in states that add up, and one book that all write.

Rates of writing are by the clock, for the disk decides; they are compared with that of one process in the same run.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
import warnings
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


def write_book(place: str) -> tuple[int, float]:
    """How many releases were paid for and written until the time was over, and the longest wait for one."""
    warnings.simplefilter("ignore")
    with mosha.Ledger(place) as ledger:
        account = ledger.account("visits")
        account.open(COUNT).step(None)  # imports
        _together[0].wait()
        begin, number, longest = time.time(), 0, 0.0
        while (now := time.time()) < begin + SECONDS:
            account.open(COUNT).step(None)
            number, longest = number + 1, max(longest, time.time() - now)
    return number, longest


def writers() -> list[Row]:
    """One SQLite book: the rate of all writers beside that of one, and the slowest beside the mean."""
    warnings.simplefilter("ignore")
    rows, alone = [], 0.0
    for count in (1, *WRITERS):
        with tempfile.TemporaryDirectory() as folder:
            place = str(Path(folder) / "privacy.db")
            with mosha.Ledger(place) as ledger:
                ledger.account("visits", unit=PERSON, epsilon=1e6)
            spawning = multiprocessing.get_context("spawn")
            with spawning.Pool(count, keep_barrier, (spawning.Barrier(count),)) as pool:
                found = pool.map(write_book, [place] * count, chunksize=1)
            with mosha.Ledger(place) as ledger:
                if not ledger.verify().ok:
                    raise SystemExit("the benchmark broke the book")
        numbers = [number for number, _ in found]
        rate, slowest = sum(numbers) / SECONDS, min(numbers) * count / max(sum(numbers), 1)
        longest = f"longest wait {max(wait for _, wait in found):.2f} s"
        alone = alone or rate
        if count > 1:
            rows.append(
                Row(
                    f"releases a second, {count} writers",
                    "one writer",
                    rate / alone,
                    None,
                    f"{rate:.0f}",
                    f"{alone:.0f}",
                )
            )
            rows.append(Row(f"the slowest of {count} writers", "their mean", slowest, 0.5, f"{slowest:.2f}", longest))
    return rows


PIECES: Final = {"reports": reports, "writers": writers}
