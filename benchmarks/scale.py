"""How cost grows: each road at four sizes or more, the exponent of its CPU time, and the bar that it has to keep.

The exponent is the slope of log(CPU seconds) over log(size), by least squares. 1 is linear; roads that should not
depend on their size have a bar of 0.1. A ratio of 1 or more in the table means that the bar is kept.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks._rows import Row
from mosha.connect.engines.duckdb import DuckDB
from mosha.core.budget import Budget
from mosha.core.event import NOTHING
from mosha.core.events import Pure
from mosha.core.unit import Person, Reading
from mosha.ledger import Ledger
from mosha.local.protocols.hyperplanes import count_orthogonal
from mosha.local.protocols.projective import count_points
from mosha.mechanisms.sampling import FixedSize, Poisson
from mosha.noise import secure
from mosha.streams.statistics import KeyedSum
from mosha.tables import protect

__all__ = ["PIECES", "ROADS", "Road", "fit_exponent"]

_LINEAR = 1.1
_FLAT = 0.1
_BUDGET = Budget(epsilon=1)
_SLACK = 0.1  # of a slope that is measured on a busy machine


@dataclass(frozen=True)
class Road:
    """Work of a given size, with what it needs prepared outside the clock."""

    what: str
    sizes: Sequence[int]
    prepare: Callable[[int], Callable[[], object]]
    bar: float = _LINEAR


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of log(cost) over log(size).

    >>> round(fit_exponent([1, 10, 100], [2, 200, 20_000]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def measure_road(road: Road) -> Row:
    """The exponent of a road, beside its bar."""
    costs, peak = [], 0
    for size in road.sizes:
        work = road.prepare(size)
        work()  # tables and imports
        costs.append(_cpu(work))
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    exponent = fit_exponent(road.sizes, costs)
    found = ", ".join(f"{size:,}: {1e3 * cost:.3g} ms" for size, cost in zip(road.sizes, costs, strict=True))
    kept = 1.0 if exponent <= road.bar + _SLACK else road.bar / exponent
    return Row(
        f"{road.what} (exponent {exponent:.2f})", f"at most {road.bar}", kept, 1.0, found, f"{peak / 1e6:.1f} MB"
    )


def _cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one run: the least of five, each of 20 ms or more."""
    best, runs = float("inf"), 1
    for _ in range(5):
        while True:
            start = time.process_time()
            for _ in range(runs):
                work()
            spent = time.process_time() - start
            if spent >= 0.02:
                break
            runs *= 2
        best = min(best, spent / runs)
    return best


def _decode(points: int) -> Callable[[], object]:
    """The sums over all hyperplanes of the space of four coordinates that has about this many points."""
    q = next(n for n in range(round(points ** (1 / 3)), 2, -1) if all(n % d for d in range(2, math.isqrt(n) + 1)))
    counters = np.ones(count_points(q, 4), np.int64)
    return lambda: count_orthogonal(counters, q, 4, len(counters))


def _poisson(size: int) -> Callable[[], object]:
    return lambda: Poisson(256 / size).places(range(size), size, 1, secure())


def _fixed_size(size: int) -> Callable[[], object]:
    return lambda: FixedSize(256).places(range(size), size, 1, secure())


def _keyed_sums(keys: int) -> Callable[[], object]:
    statistic = KeyedSum(keys=range(keys), key="key", between=(0, 4), column="value")
    rows = {"key": np.arange(1_000) % keys, "value": np.ones(1_000)}
    return lambda: statistic.evaluate(rows, Reading())


def _added_events(kinds: int) -> Callable[[], object]:
    events = [Pure(1 + i / kinds) for i in range(kinds)]

    def add() -> object:
        total = NOTHING
        for event in events:
            total = total + event
        return total.parts()

    return add


def _accounts(count: int) -> Callable[[], object]:
    book = Ledger.memory()
    for i in range(count):
        book.account(f"account {i}", unit=Reading(), epsilon=1.0)
    return book.accounts


def _release(rows: int, groups: int, verb: str) -> Callable[[], object]:
    """A median or mean by group of a table in memory, bounded by compiled kernels: noise, answers and error bars."""
    source = np.random.default_rng()
    columns = {
        "who": source.integers(0, rows // 10, rows),
        "group": source.integers(0, groups, rows),
        "value": source.uniform(0, 100, rows),
    }
    engine = DuckDB(threads=1, compiled_from=1)
    table = protect(engine.frame(pa.table(columns)), unit=Person("who", at_most=10))
    question = getattr(table.group_by("group", keys=range(groups)), verb)("value", between=(0, 100))
    plan, measurement = question.plan_release(_BUDGET), question.measurement(_BUDGET)

    def release() -> object:
        value, _ = measurement.step(None, None, None, secure())
        return plan.answers(value), plan.errors(value, 0.95)

    return release


def _medians_by_rows(rows: int) -> Callable[[], object]:
    return _release(rows, 100, "median")


def _medians_by_groups(groups: int) -> Callable[[], object]:
    return _release(200_000, groups, "median")


def _means_by_groups(groups: int) -> Callable[[], object]:
    return _release(200_000, groups, "mean")


ROADS = {
    "tables": [
        Road("medians of 100 groups, by rows", (10**5, 4 * 10**5, 16 * 10**5, 64 * 10**5), _medians_by_rows),
        Road("medians of 200,000 rows, by groups", (10**3, 4_000, 16_000, 64_000), _medians_by_groups),
        Road("means of 200,000 rows, by groups", (10**3, 8_000, 64_000, 512_000), _means_by_groups),
    ],
    "local": [Road("estimate of a survey, by points", (30_000, 150_000, 700_000, 3_500_000), _decode)],
    "samples": [
        Road("Poisson sample of 256", (10**4, 10**6, 10**8, 10**10), _poisson, _FLAT),
        Road("fixed size of 256", (10**4, 10**6, 10**8, 10**9), _fixed_size, _FLAT),
    ],
    "streams": [Road("sums by key of 1,000 rows, by keys", (10**3, 4_000, 16_000, 64_000), _keyed_sums)],
    "accounting": [Road("events added one by one", (500, 1_000, 2_000, 4_000), _added_events)],
    "ledger": [Road("accounts of a book", (125, 250, 500, 1_000), _accounts)],
}


def _piece(roads: list[Road]) -> Callable[[], list[Row]]:
    return lambda: [measure_road(road) for road in roads]


PIECES = {name: _piece(roads) for name, roads in ROADS.items()}
