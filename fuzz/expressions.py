"""Random expressions with extreme constants over extreme rows: no engine may raise, and all give what the oracle gives.

By itself: `python -m fuzz.expressions --engine postgresql --seconds 3600 --seed 1000`. Each seed is one expression, so
a finding is repeated with `--seed N --count 1`, and a search goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mosha.connect import private, source, type_of
from mosha.connect.engines.duckdb import DuckDB
from mosha.core.errors import DataError
from tests.connect import extremes
from tests.connect.extremes import SCHEMA, expression_of, extreme_rows, find_fault, find_fault_in_sum, seen

ENGINES = ("duckdb", "kernel", "csv", "parquet", "postgresql", "mariadb", "spark")


class Bench:
    """The same extreme rows in one engine."""

    def __init__(self, engine: str, stack: contextlib.ExitStack) -> None:
        self.engine = engine
        rows = extreme_rows()
        self.rows: list[Any] = seen(rows)
        folder = Path(tempfile.mkdtemp(prefix="mosha-fuzz-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.relation = self._load(rows, folder, stack)

    def _load(self, rows: list[Any], folder: Path, stack: contextlib.ExitStack) -> Any:
        from tests.connect.places import MariaDBPlace, PostgreSQLPlace, SparkPlace, arrow_table

        if self.engine == "postgresql":
            return private(PostgreSQLPlace(stack.enter_context(_server(folder))).load(SCHEMA, rows), person="id")
        if self.engine == "mariadb":
            from tests.mariadb import run_server

            return private(MariaDBPlace(stack.enter_context(run_server()), "fuzz").load(SCHEMA, rows), person="id")
        if self.engine == "spark":
            return private(SparkPlace(stack.enter_context(_session(folder)), folder).load(SCHEMA, rows), person="id")
        if self.engine == "csv":
            extremes.write_csv(folder / "rows.csv", rows)
            self.rows = extremes.seen_in_csv(rows)
            return extremes.read_csv(private(source(folder / "rows.csv")))
        table = arrow_table(SCHEMA, rows)
        if self.engine == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, folder / "rows.parquet")
            return private(source(folder / "rows.parquet"), person="id")
        compiled = 1 if self.engine == "kernel" else None
        return private(DuckDB(compiled_from=compiled).frame(table), person="id")

    def fault(self, seed: int) -> str | None:
        """What is wrong with the expression of a seed, or None; the message names the seed."""
        expression = expression_of(seed)
        try:
            kind = type_of(expression, SCHEMA)
        except DataError:  # too deep, or a mixture of types
            return None
        if self.engine == "kernel":
            found = find_fault_in_sum(self.relation, expression, self.rows) if kind.numeric else None
        else:
            found = find_fault(self.relation, expression, self.rows)
        return found and f"{self.engine}, seed {seed}: {found}\n  {expression!r:.1500}"


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[str]:
    from tests.postgres import Server, binaries

    commands = binaries()
    if commands is None:
        sys.exit("PostgreSQL is not installed")
    folder.chmod(0o755)
    home = folder / "server"
    home.mkdir()
    server = Server(home, commands)
    try:
        yield server.url("postgres")
    finally:
        server.stop(signal.SIGQUIT)


@contextlib.contextmanager
def _session(folder: Path) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    from tests.spark import SETTINGS

    builder = SparkSession.builder.master("local[1]")
    for name, value in {**SETTINGS, "spark.sql.warehouse.dir": str(folder), "spark.local.dir": str(folder)}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


_benches: dict[str, Bench] = {}
_stack = contextlib.ExitStack()


def attempt() -> None:
    """One random expression on the engines that need no server."""
    seed = secrets.randbits(48)
    for engine in ENGINES[:4]:
        if engine not in _benches:
            _benches[engine] = Bench(engine, _stack)
        found = _benches[engine].fault(seed)
        if found:
            raise AssertionError(found)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.expressions", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="duckdb")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the last one is printed")
    options = parser.parse_args(arguments)
    faults = 0
    with contextlib.ExitStack() as stack:
        bench = Bench(options.engine, stack)
        end, seed = time.monotonic() + options.seconds, options.seed
        for seed in itertools.count(options.seed):
            if time.monotonic() > end or seed >= options.seed + options.count:
                break
            if found := bench.fault(seed):
                faults += 1
                print(found, flush=True)
    print(f"{options.engine}: seeds {options.seed} to {seed - 1}, {faults} faults; go on with --seed {seed}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
