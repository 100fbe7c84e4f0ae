"""Large tables: CPU and memory of questions about ten million rows and more, each in a process of its own.

Memory is by how much the process grows beyond its libraries while it answers. A small table is asked the same before,
so that everything is loaded and compiled. The raw query of DuckDB runs in a process of its own; all have one thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import mosha
from benchmarks._roads import read_status
from benchmarks._rows import Row
from mosha.connect.engines.duckdb import DuckDB
from mosha.tables import Budget, count, mean, protect
from mosha.tables import sum as total

FOLDER: Final = Path(__file__).resolve().parent.parent / ".bench"
SMALL: Final = 100_000
AT_ONCE: Final = 10_000_000
MEDIAN: Final = "SELECT g, median(v) FROM read_parquet(?) GROUP BY g"
SUMS: Final = "SELECT g, count(*), sum(greatest(least(v, 100), 0)), avg(v) FROM read_parquet(?) GROUP BY g"
KEYS: Final = "SELECT g, count(*) FROM read_parquet(?) GROUP BY g"


@dataclass(frozen=True)
class Case:
    """A question about so many rows in so many groups, and the raw query beside it.

    `people` says how many rows people have: about ten each ("even") or by a law with a heavy tail ("skewed"). The
    answer may take `most` times the CPU of the raw query, `beyond` seconds more than it, and so many `megabytes`.
    """

    what: str
    rows: int
    groups: int
    raw: str
    verb: str
    people: str = "even"
    at_most: int = 10
    most: float | None = None
    beyond: float | None = None
    megabytes: int | None = None


CASES: Final = {
    "medians": Case("medians", 10**7, 1_000, MEDIAN, "median", most=6, megabytes=200),
    "medians_skewed": Case("medians, skewed people", 10**7, 1_000, MEDIAN, "median", "skewed", most=6, megabytes=200),
    "medians_wide": Case("medians, 50 rows a person", 10**7, 1_000, MEDIAN, "median", "skewed", 50, 6, megabytes=200),
    "many_medians": Case("medians of 10^5 groups", 10**6, 100_000, MEDIAN, "median"),
    "listed": Case("counts of 10^6 listed groups", 10**6, 1_000_000, KEYS, "count", beyond=3),
    "found": Case("groups found among 10^7 keys", 2 * 10**7, 10**7, KEYS, "found", at_most=1, megabytes=1_000),
    "sums_1e7": Case("counts, sums, means", 10**7, 1_000, SUMS, "sums", most=5, megabytes=1_000),
    "sums_3e7": Case("counts, sums, means", 3 * 10**7, 1_000, SUMS, "sums", most=5, megabytes=1_000),
    "sums_1e8": Case("counts, sums, means", 10**8, 1_000, SUMS, "sums", most=5, megabytes=1_000),
}


def rows_file(case: Case, rows: int) -> Path:
    """The table (u, g, v), made once."""
    path = FOLDER / f"large-{case.verb == 'found'}-{case.people}-{rows}-{case.groups}.parquet"
    if not path.exists():
        FOLDER.mkdir(exist_ok=True)
        unfinished = path.with_suffix(".part")
        with pq.ParquetWriter(unfinished, pa.schema({"u": pa.int64(), "g": pa.int64(), "v": pa.float64()})) as writer:
            for first in range(0, rows, AT_ONCE):
                writer.write_table(_make_rows(case, rows, first, min(AT_ONCE, rows - first)))
        unfinished.rename(path)
    return path


def _make_rows(case: Case, rows: int, first: int, many: int) -> pa.Table:
    source, numbers = np.random.default_rng(), np.arange(first, first + many)
    if case.verb == "found":  # half of all rows have a key of their own, the others share a hundred
        keys = np.where(numbers % 2 == 0, numbers, numbers % 199)
        return pa.table({"u": numbers, "g": keys, "v": np.zeros(many)})
    people = rows // 10
    if case.people == "skewed":
        who = (people * source.random(many) ** 3).astype(np.int64)  # one in a hundred has a fifth of the rows
    else:
        who = source.integers(0, people, many)
    return pa.table({"u": who, "g": source.integers(0, case.groups, many), "v": source.uniform(0, 100, many)})


def _ask(case: Case, path: Path) -> None:
    table = protect(path, unit=mosha.Person("u", at_most=case.at_most), engine=DuckDB(threads=1, compiled_from=1))
    if case.verb == "found":
        budget, question = Budget(epsilon=1, delta=1e-9), table.group_by("g").count()
    else:
        budget, grouped = Budget(epsilon=1), table.group_by("g", keys=range(case.groups))
        asked: dict[str, Callable[[], Any]] = {
            "median": lambda: grouped.median("v", between=(0, 100)),
            "count": grouped.count,
            "sums": lambda: grouped.aggregate(n=count(), s=total("v", between=(0, 100)), m=mean("v", between=(0, 100))),
        }
        question = asked[case.verb]()
    plan, measurement = question.plan_release(budget), question.measurement(budget)
    value, _ = measurement.step(None, None, None, mosha.noise.secure())
    plan.answers(value)
    plan.errors(value, 0.95)


def _ask_raw(case: Case, path: Path) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(case.raw, [str(path)]).fetchnumpy()


def measure_here(case: Case, kind: str) -> dict[str, float]:
    """CPU seconds of one answer in this process, and by how many bytes it grew while it was found."""
    ask = _ask if kind == "ours" else _ask_raw
    path = rows_file(case, case.rows)
    ask(case, rows_file(case, SMALL))
    with path.open("rb") as file:  # so that the disk is not part of it
        while file.read(1 << 24):
            pass
    Path("/proc/self/clear_refs").write_text("5")
    before, start = read_status("VmRSS"), time.process_time()
    ask(case, path)
    return {"cpu": time.process_time() - start, "memory": read_status("VmHWM") - before}


def _measure(name: str, kind: str) -> dict[str, float]:
    code = (
        "import json, sys; from benchmarks.tables_large import CASES, measure_here;"
        "print(json.dumps(measure_here(CASES[sys.argv[1]], sys.argv[2])))"
    )
    done = subprocess.run([sys.executable, "-c", code, name, kind], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def rows_of(name: str) -> list[Row]:
    """A case beside the raw query and beside its bars; the least CPU of two processes."""
    case = CASES[name]
    rows_file(case, SMALL), rows_file(case, case.rows)
    tries = {kind: [_measure(name, kind) for _ in range(2)] for kind in ("raw", "ours")}
    raw, ours = (min(each["cpu"] for each in tries[kind]) for kind in ("raw", "ours"))
    memory = max(each["memory"] for each in tries["ours"]) / 1e6
    what = f"{case.what}, {case.rows:.0e} rows, {case.groups:,} groups".replace("e+0", "e")
    found = [Row(what, "raw query", raw / ours, case.most and 1 / case.most, f"{ours:.2f} s", f"{raw:.2f} s")]
    if case.beyond is not None:
        beyond = max(ours - raw, 1e-9)
        found.append(Row(what, "seconds beyond raw", case.beyond / beyond, 1.0, f"{beyond:.2f} s", f"{case.beyond} s"))
    most = case.megabytes
    found.append(Row(what, "memory", (most or memory) / memory, most and 1.0, f"{memory:.0f} MB", f"{most or ''}"))
    return found


PIECES: Final = {name: (lambda name=name: rows_of(name)) for name in CASES}
