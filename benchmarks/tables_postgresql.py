"""Tables on PostgreSQL: CPU seconds of the server for a bounded question, beside the same query without privacy.

A server of its own is made in a temporary folder. Its CPU is that of the process that answers, without helpers.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

import mosha
from benchmarks._peers import PeerUnavailable
from benchmarks._rows import Row
from mosha.connect.engines.source import engine_of
from mosha.connect.plan.aggregation import Question
from mosha.connect.plan.source import Totals
from mosha.connect.sql.norms import queries
from mosha.tables import Budget, count, mean, protect
from mosha.tables import sum as total

ROWS: Final = 1_000_000
GROUPS: Final = 1_000
RAW: Final = "SELECT g, count(*), sum(greatest(least(v, 100), 0)), avg(v) FROM visits GROUP BY g"
BY_PERSON: Final = "SELECT count(*) FROM (SELECT u, count(*) AS n FROM visits GROUP BY u) t WHERE n > 50"
Timer = Callable[[str], float]


@contextmanager
def server() -> Iterator[str]:
    """The URL of a database on a server that runs for this benchmark."""
    from tests.postgres import SETTINGS, Server, binaries

    commands = binaries()
    if commands is None:
        raise PeerUnavailable("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    SETTINGS["shared_buffers"] = "256MB"
    folder = Path(tempfile.mkdtemp(prefix="mosha-postgres-"))
    running = Server(folder, commands)
    try:
        yield running.url("postgres")
    finally:
        running.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def measuring(url: str, rows: int = ROWS, *, indexed: bool = False) -> Iterator[Timer]:
    """A table of so many rows of a tenth as many people, and what tells the CPU seconds of a statement.

    Where it is `indexed`, an index lists people with their groups, so that their rows are counted in its order.
    """
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        _fill(connection, rows)
        if indexed:
            connection.execute("CREATE INDEX ON visits (u) INCLUDE (g)")
            connection.execute("VACUUM ANALYZE visits")
        connection.execute("SET max_parallel_workers_per_gather = 0")
        found = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert found is not None

        def measure(statement: str) -> float:
            taken = []
            for _ in range(5):
                before = _cpu_of(found[0])
                connection.execute(statement.encode()).fetchall()
                taken.append(_cpu_of(found[0]) - before)
            return min(taken)

        yield measure


def _fill(connection: Any, rows: int) -> None:
    source = np.random.default_rng()
    columns = source.integers(0, rows // 10, rows), source.integers(0, GROUPS, rows), source.uniform(0, 100, rows)
    connection.execute("DROP TABLE IF EXISTS visits")
    connection.execute("CREATE TABLE visits (u bigint, g bigint, v double precision)")
    with connection.cursor().copy("COPY visits FROM STDIN") as copy:
        for row in zip(*(column.tolist() for column in columns), strict=True):
            copy.write_row(row)
    connection.execute("VACUUM ANALYZE visits")


def _cpu_of(process: int) -> float:
    """Seconds that a process has run, by the scheduler's own count in nanoseconds where there is one."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e9
    except OSError:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def statements(question: Any) -> str:
    """The one statement that answers a question."""
    asked: list[Question] = []
    engine = engine_of(question.frame.relation)
    answer = engine.answer

    def record(question: Question) -> Totals:
        asked.append(question)
        return answer(question)

    try:
        engine.answer = record
        question.measurement(Budget(epsilon=1)).step(None, None, None, mosha.noise.secure())
    finally:
        del engine.answer
    [query] = [query for each in asked for query in queries(each, engine.dialect)]
    return engine.dialect.sql(query.statement)


def _ask(url: str, unit: mosha.Person | mosha.Row) -> Any:
    table = protect(url, table="visits", unit=unit).group_by("g", keys=range(GROUPS))
    return table.aggregate(n=count(), s=total("v", between=(0, 100)), m=mean("v", between=(0, 100)))


def measure_sizes(sizes: Sequence[int]) -> list[tuple[float, float]]:
    """CPU seconds of the bounded question and of the raw query, at each number of rows."""
    found = []
    with server() as url:
        for size in sizes:
            with measuring(url, size) as measure:
                found.append((measure(statements(_ask(url, mosha.Person("u", at_most=50)))), measure(RAW)))
    return found


def speed() -> list[Row]:
    """Count, sum and mean of a thousand groups.

    No bound by person can do without each person's number of rows, and to count these alone takes the server three
    times as long as the raw query, whose thousand groups stay in the cache: so both together are what is compared with.
    Where an index has people with their groups, they are counted in its order, in no table of people.
    """
    units: dict[str, mosha.Person | mosha.Row] = {
        "norm bounding": mosha.Person("u", at_most=50),
        "truncation 5 x 10": mosha.Person("u", groups=5, per_group=10),
        "unit Row": mosha.Row(),
    }
    with server() as url, measuring(url) as measure:
        raw, people = measure(RAW), measure(BY_PERSON)
        ours = {}
        for name, unit in units.items():
            ours[name] = measure(statements(_ask(url, unit)))
        raw, people = min(raw, measure(RAW)), min(people, measure(BY_PERSON))
    with server() as url, measuring(url, indexed=True) as measure:
        statement = statements(_ask(url, units["norm bounding"]))
        plain, quick, sooner = measure(RAW), measure(statement), measure(BY_PERSON)
        plain = min(plain, measure(RAW))
    bars: dict[str, float | None] = {"norm bounding": None, "truncation 5 x 10": None, "unit Row": 1 / 2}
    rows = [_beside(f"{name}, 1M rows", "raw query", raw, cost, bars[name]) for name, cost in ours.items()]
    least = raw + people
    both = "raw query, and people counted"
    rows.append(_beside("norm bounding, 1M rows", both, least, ours["norm bounding"], 1 / 1.4))
    rows.append(_beside("people counted, and nothing else", "raw query", raw, people, None))
    rows.append(_beside("norm bounding, 1M rows, an index of people", "raw query", plain, quick, 1 / 4))
    rows.append(_beside("people counted in an index, and nothing else", "raw query", plain, sooner, None))
    return rows


def _beside(what: str, peer: str, theirs: float, ours: float, bar: float | None) -> Row:
    return Row(what, peer, theirs / ours, bar, f"{ours:.3f} s", f"{theirs:.3f} s")


PIECES: Final = {"speed": speed}
