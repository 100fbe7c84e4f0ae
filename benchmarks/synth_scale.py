"""Synthetic tables that are wide or long: CPU seconds and memory, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

from benchmarks._peers import PeerUnavailable
from benchmarks._rows import Row

COLUMNS, WIDE_ROWS, WIDE_SECONDS, WIDE_BYTES = 100, 20_000, 60, 1e9
LONG = (1_000_000, 10_000_000)
DELTA = 1e-9

WIDE = """
import json, resource, sys, time
import numpy as np, pyarrow as pa
import mosha
generator = np.random.default_rng()
rows, columns = int(sys.argv[1]), int(sys.argv[2])
kind = generator.integers(0, 6, rows)
made = {f"c{i}": (kind * (i % 5) + generator.geometric(0.3, rows)) % 12 for i in range(columns)}
table = mosha.protect(pa.table(made), unit=mosha.Row())
"""
LONG_TABLE = """
import json, resource, sys, time
import mosha
table = mosha.protect(sys.argv[1], table="stays", unit=mosha.Row())
columns = 10
"""
ASK = """
from mosha.noise import secure
from mosha.tables import Budget
budget = dict(epsilon=1.0, delta=float(sys.argv[3]))
question = table.synthesize(keys={f"c{i}": range(12) for i in range(columns)}, nulls=[])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, clock = time.process_time(), time.perf_counter()
value = question.measurement_for(**budget).step(None, None, None, secure())[0]
measured, waited = time.process_time() - start, time.perf_counter() - clock
synthetic = question.read(value, question.noises(Budget(**budget)))
rows = len(synthetic.sample(20_000)["c0"])
whole, most = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([synthetic.method, measured, whole, waited, before * 1024, most * 1024]))
"""


def columns() -> list[Row]:
    """A hundred columns of twelve values, 20,000 rows."""
    method, measured, whole, _, before, most = _run(WIDE, WIDE_ROWS, COLUMNS)
    what = f"{COLUMNS} columns, epsilon 1 ({method})"
    return [
        Row(f"{what}: CPU", "bar", WIDE_SECONDS / whole, 1.0, f"{whole:.1f} s", f"{WIDE_SECONDS} s"),
        Row(f"{what}: of it to measure", "", 1.0, None, f"{measured:.1f} s"),
        Row(f"{what}: memory of the process", "bar", WIDE_BYTES / most, 1.0, f"{most / 1e6:.0f} MB", "1000 MB"),
        Row(f"{what}: before the question", "", 1.0, None, f"{before / 1e6:.0f} MB"),
    ]


def rows() -> list[Row]:
    """Ten columns in DuckDB, with up to 10**7 rows: as many different rows as there are groups to be counted."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for count in LONG:
            place = str(Path(folder) / f"{count}.duckdb")
            values = ", ".join(f"((i * {7919 + 2 * c} + i // {c + 3}) % {c + 12} % 12)::INTEGER AS c{c}"
                               for c in range(10))  # fmt: skip
            with duckdb.connect(place) as database:
                database.execute(f"CREATE TABLE stays AS SELECT {values} FROM range({count}) AS made(i)")
            method, measured, whole, waited, before, most = _run(LONG_TABLE, place, 10)
            what = f"{count:,} rows in DuckDB ({method})"
            found += [
                Row(f"{what}: CPU to measure", "", 1.0, None, f"{measured:.1f} s", f"{waited:.1f} s of the clock"),
                Row(f"{what}: CPU in all", "bar", 180 / whole, 1.0, f"{whole:.1f} s", "180 s"),
                Row(f"{what}: memory on top", "bar", 1e9 / max(most - before, 1.0), 1.0,
                    f"{(most - before) / 1e6:.0f} MB", "1000 MB"),
            ]  # fmt: skip
    return found


def _run(script: str, first: object, second: object) -> tuple[str, float, float, float, float, float]:
    """What a process of its own says of itself."""
    command = [sys.executable, "-c", script + ASK, str(first), str(second), str(DELTA)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PeerUnavailable(done.stderr.strip().splitlines()[-1])
    method, *numbers = json.loads(done.stdout.strip().splitlines()[-1])
    measured, whole, waited, before, most = (float(number) for number in numbers)
    return str(method), measured, whole, waited, before, most


PIECES = {"columns": columns, "rows": rows}
