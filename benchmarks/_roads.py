"""How the cost of a piece of work grows with its size: measured, fitted, and compared with the least it could be."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks._rows import Row

__all__ = [
    "FLAT",
    "LINEAR",
    "Curve",
    "Prepare",
    "Road",
    "fit_exponent",
    "measure_cpu",
    "measure_curve",
    "read_status",
    "rows_of",
]

LINEAR, FLAT = 1.1, 0.1
SLACK = 0.1  # of a slope that is measured on a busy machine
ENOUGH = 2.0  # CPU seconds after which a measurement is not repeated

Prepare = Callable[[int], Callable[[], object]]


@dataclass(frozen=True)
class Road:
    """Work of a given size, with what it needs prepared outside the clock.

    `least` is the same without privacy (a raw query, an exact statistic, plain noise), called `beside`; the work may
    take `most` times as long. `chinese` is what the road is called in Chinese.
    """

    what: str
    sizes: Sequence[int]
    prepare: Prepare
    bar: float = LINEAR
    least: Prepare | None = None
    beside: str = ""
    most: float | None = None
    chinese: str = field(default="", compare=False)


@dataclass(frozen=True)
class Curve:
    """What a road costs at each size: CPU seconds, those of `least`, and bytes at the largest size."""

    costs: tuple[float, ...]
    least: tuple[float, ...]
    memory: int


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of log(cost) over log(size).

    >>> round(fit_exponent([1, 10, 100], [2, 200, 20_000]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


@lru_cache
def measure_curve(road: Road) -> Curve:
    """Each size of a road in turn; measured once in a process."""
    costs, least, peak = [], [], 0
    for size in road.sizes:
        work = road.prepare(size)
        work()  # tables and imports
        costs.append(measure_cpu(work))
        if road.least is not None:
            plain = road.least(size)
            plain()
            least.append(measure_cpu(plain))
        if size == road.sizes[-1]:
            peak = measure_memory(work)
    return Curve(tuple(costs), tuple(least), peak)


def rows_of(road: Road) -> list[Row]:
    """The exponent of a road beside its bar, and what it takes beside the work without privacy at its largest size."""
    curve = measure_curve(road)
    exponent = fit_exponent(road.sizes, curve.costs)
    found = ", ".join(f"{size:,}: {1e3 * cost:.3g} ms" for size, cost in zip(road.sizes, curve.costs, strict=True))
    kept = 1.0 if exponent <= road.bar + SLACK else road.bar / exponent
    what, memory = f"{road.what} (exponent {exponent:.2f})", f"{curve.memory / 1e6:.1f} MB"
    rows = [Row(what, f"at most {road.bar}", kept, 1.0, found, memory)]
    if curve.least:
        ours, theirs = curve.costs[-1], curve.least[-1]
        bar = None if road.most is None else 1 / road.most
        rows.append(Row(road.what, road.beside, theirs / ours, bar, f"{ours:.3g} s", f"{theirs:.3g} s"))
    return rows


def measure_cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one run: the least of five, each of 20 ms or more; fewer where they take long."""
    best, runs, total = float("inf"), 1, 0.0
    for _ in range(5):
        while True:
            start = time.process_time()
            for _ in range(runs):
                work()
            spent = time.process_time() - start
            total += spent
            if spent >= 0.02:
                break
            runs *= 2
        best = min(best, spent / runs)
        if total > ENOUGH:
            break
    return best


def measure_memory(work: Callable[[], object]) -> int:
    """Bytes that a run needs: those of Python and NumPy, or those by which the process grows, if they are more."""
    tracemalloc.start()
    work()
    traced = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = read_status("VmRSS")
        work()
        return max(read_status("VmHWM") - before, traced)
    except OSError:  # not on Linux
        return traced


def read_status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
