"""How much one machine has to manage: series, graphs and surveys of one large size, each with its bar.

`scale` has the curves; these are the sizes that have figures of their own. Memory is the largest of a process that does
nothing else, with its libraries; that of graphs is what a release needs beyond the libraries and the graph, which
another process made.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

import mosha
from benchmarks._peers import run
from benchmarks._roads import measure_cpu
from benchmarks._rows import Row
from mosha import streams

__all__ = ["PIECES"]

GIGABYTE: Final = 2**30
LARGE: Final = ((1.05e7, "communities"), (1.05e7, "synthetic"), (2.1e7, "triangles"))

MAKE_GRAPH: Final = """
import json, sys, time
import numpy as np
from benchmarks.graphs import power_law
from mosha.graphs import Graph
edges = int(float(sys.argv[1]))
Graph.of([(0, 1)], vertices=2)
pairs = power_law(edges, edges // 10)
start = time.process_time()
data = Graph.of(pairs, vertices=edges // 10)
spent = time.process_time() - start
np.save(sys.argv[2] + "/starts.npy", data.starts)
np.save(sys.argv[2] + "/ends.npy", data.ends)
print(json.dumps([data.edge_count, spent]))
"""
GRAPH: Final = """
import json, sys, time
from pathlib import Path
import numpy as np
import mosha
from benchmarks._roads import read_status
from mosha.graphs import Graph, protect
def release(data):
    question = getattr(protect(data, unit=mosha.Edge()), sys.argv[1])()
    return question.measurement(epsilon=1.0).step(None, data, None, mosha.noise.secure())
release(Graph.of(np.random.default_rng().integers(0, 300, (2000, 2)), vertices=300))
data = Graph(np.load(sys.argv[2] + "/starts.npy"), np.load(sys.argv[2] + "/ends.npy"))
Path("/proc/self/clear_refs").write_text("5")
before, start = read_status("VmRSS"), time.process_time()
answer = release(data)
print(json.dumps([time.process_time() - start, read_status("VmHWM") - before]))
"""
SURVEY: Final = """
import json, re, sys, time
from pathlib import Path
import numpy as np
from mosha.local import Frequency
survey = Frequency(range(int(sys.argv[1])), epsilon=float(sys.argv[2]))
values = np.random.default_rng().integers(0, len(survey.values), 20_000)
batch = survey.reports(values)
start = time.process_time()
shares = survey.estimate(batch)
spent = time.process_time() - start
truth = np.bincount(values, minlength=len(survey.values)) / len(values)
squares = float(np.mean((shares.raw - truth) ** 2)) * len(values)
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
print(json.dumps([spent, int(peak) * 1024, squares, survey.protocol.variance]))
"""


def _in_own_process(code: str, *arguments: object) -> list[float]:
    return [float(number) for number in run(Path(sys.executable), code, *arguments)]


def _row(what: str, bar: float, found: float, shown: Callable[[float], str]) -> Row:
    return Row(what, "the bar", bar / found, 1.0, shown(found), shown(bar))


def _seconds(number: float) -> str:
    return f"{number:.3g} s"


def _megabytes(number: float) -> str:
    return f"{number / 1e6:.0f} MB"


def series() -> list[Row]:
    """A step of 10,000 series with 1,000 rows, and 100,000 series served from one sealed file."""
    rows = {"key": np.arange(1_000) * 7 % 10_000, "value": np.ones(1_000)}
    kept = {"unit": mosha.Reading(), "horizon": 1_000, "rho": 1.0, "key": "key", "column": "value"}
    stream = streams.series(keys=range(10_000), between=(0, 4), **kept)  # type: ignore[arg-type]
    step = mosha.Ledger.memory().account("series", unit=mosha.Reading(), rho=1.0).open(stream).step
    found = [_row("a step of 10,000 series with 1,000 rows", 2e-3, measure_cpu(lambda: step(rows)), _milliseconds)]
    many = streams.series(keys=range(100_000), between=(0, 4), **kept)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder, mosha.Ledger(f"{folder}/book.db") as ledger:
        account = ledger.account("series", unit=mosha.Reading(), rho=1.0)
        with streams.serve(account, many, name="meters", state=f"{folder}/meters.state") as service:
            spent = measure_cpu(lambda: service.step(rows))
            taken = service.taken
        size = (Path(folder) / "meters.state").stat().st_size
        with streams.serve(account, many, name="meters", state=f"{folder}/meters.state") as service:
            service.step(rows)
            if service.taken != taken + 1:
                raise SystemExit("the series did not go on where they were")
    what = "100,000 series in one file"
    found.append(Row(f"{what}: a step, the file sealed anew", "", 1.0, None, _milliseconds(spent), _megabytes(size)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return [*found, _row(f"{what}: memory", GIGABYTE, peak, _megabytes)]


def _milliseconds(number: float) -> str:
    return f"{1e3 * number:.3g} ms"


def _graph(edges: float, verb: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        count, made = _in_own_process(MAKE_GRAPH, edges, folder)
        spent, memory = _in_own_process(GRAPH, verb, folder)
        spent += made
    what = f"{verb}, {count:.3g} edges"
    found = [_row(f"{what}: memory beyond the graph", GIGABYTE, memory, _megabytes)]
    bar = 10.0 if edges < 2e6 else None
    timed = Row(what, "the bar", 10.0 / spent, 1.0 if bar else None, _seconds(spent), _seconds(10.0) if bar else "")
    return [timed, *found]


def graphs() -> list[Row]:
    """Communities and synthetic graphs of 10^6 edges."""
    return [*_graph(1.05e6, "communities"), *_graph(1.05e6, "synthetic")]


def large_graphs() -> list[Row]:
    """The same of 10^7 edges, and triangles of 2 x 10^7: within a gigabyte beyond the graph."""
    return [row for edges, verb in LARGE for row in _graph(edges, verb)]


def surveys() -> list[Row]:
    """Surveys whose reports are planes of large spaces: seconds, memory, and the variance that was promised."""
    found = []
    for size, epsilon in ((1_000_000, 6.0), (10_000, 8.0)):
        spent, memory, squares, promised = _in_own_process(SURVEY, size, epsilon)
        what = f"{size:,} values, epsilon {epsilon:g}, estimated"
        found += [
            _row(what, 5.0, spent, _seconds),
            _row(f"{what}: memory", GIGABYTE, memory, _megabytes),
            _row(f"{what}: n times the variance", 1.1 * promised, squares, lambda number: f"{number:.4g}"),
        ]
    return found


PIECES: Final = {piece.__name__: piece for piece in (series, graphs, large_graphs, surveys)}
