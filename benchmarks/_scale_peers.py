"""Others on the curves of `benchmarks/scale.py`: libraries in environments of their own, and a PostgreSQL server."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import tables_postgresql
from benchmarks._curves import Line
from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks.local import PURE
from benchmarks.tables import OPENDP, PIPELINEDP

__all__ = ["PEERS", "Peer", "columns_of", "measure_peer", "measure_postgresql", "rows_file"]

PURE_COUNTS: Final = """
import json, sys, time
from pure_ldp.frequency_oracles import LHClient, LHServer
client, server = LHClient(1, 1000, use_olh=True), LHServer(1, 1000, use_olh=True)
reports = [client.privatise(1 + place % 1000) for place in range(int(sys.argv[1]))]
start = time.process_time()
for report in reports:
    server.aggregate(report)
print(json.dumps({"cpu": time.process_time() - start}))
"""
OPENDP_NOISE: Final = """
import json, sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
zeros = [0] * int(sys.argv[1])
release = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64"), scale=1000.0)
start = time.process_time()
release(zeros)
print(json.dumps({"cpu": time.process_time() - start}))
"""
GOOGLE_ONE_MORE: Final = """
import json, sys, time
from dp_accounting.pld import privacy_loss_distribution as p
def make(sigma):
    return p.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
history = make(50.0).self_compose(int(sys.argv[1]) // 8)
for kind in range(1, 8):
    history = history.compose(make(50.0 + kind).self_compose(int(sys.argv[1]) // 8))
one = make(50.0)
start = time.process_time()
history.compose(one).get_epsilon_for_delta(1e-6)
print(json.dumps({"cpu": time.process_time() - start}))
"""


def columns_of(rows: int, groups: int) -> dict[str, np.ndarray]:
    """People, groups and values, ten rows a person."""
    source = np.random.default_rng()
    people, keys = source.integers(0, max(rows // 10, 1), rows), source.integers(0, groups, rows)
    return {"u": people, "g": keys, "v": source.uniform(0, 100, rows)}


def rows_file(rows: int) -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """The same in a Parquet file, and the folder that holds it."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "rows.parquet"
    pq.write_table(pa.table(columns_of(rows, 1_000)), path)
    return path, folder


@dataclass(frozen=True)
class Peer:
    """A library on the curves of a panel: what it needs, at which sizes it is asked, and how (CPU seconds)."""

    english: str
    chinese: str
    panel: str
    requirements: tuple[str, ...]
    sizes: tuple[int, ...]
    ask: Callable[[Path, int], float]


def _ask_tables(python: Path, code: str, size: int, argument: object) -> float:
    path, folder = rows_file(size)
    try:
        return float(run(python, code, path, argument)["cpu"])
    finally:
        folder.cleanup()


def _ask_size(code: str) -> Callable[[Path, int], float]:
    return lambda python, size: float(run(python, code, size)["cpu"])


PEERS: Final = (
    Peer(
        "OpenDP 0.16, Polars", "OpenDP 0.16 · Polars", "tables", ("opendp[polars]==0.16.0",),
        (10**5, 4 * 10**5, 16 * 10**5), lambda python, size: _ask_tables(python, OPENDP, size, 1_000),
    ),
    Peer(
        "PipelineDP 0.3.1", "PipelineDP 0.3.1", "tables", ("pipeline-dp==0.3.1", "pyarrow"),
        (10**4, 4 * 10**4, 10**5), lambda python, size: _ask_tables(python, PIPELINEDP, size, size),
    ),
    Peer(
        "pure-ldp 1.2.0, local hashing", "pure-ldp 1.2.0 · 本地哈希", "local", PURE,
        (1_000, 4_000, 16_000), _ask_size(PURE_COUNTS),
    ),
    Peer(
        "OpenDP 0.16, Gaussian noise", "OpenDP 0.16 的高斯噪声", "noise", ("opendp[polars]==0.16.0",),
        (10**4, 10**5, 10**6), _ask_size(OPENDP_NOISE),
    ),
    Peer(
        "dp-accounting 0.6, an event more", "dp-accounting 0.6 · 多一个事件", "accounting", ("dp-accounting==0.6.0",),
        (10**3, 10**4, 10**5), _ask_size(GOOGLE_ONE_MORE),
    ),
)  # fmt: skip
"""Counts and means (OpenDP: counts and sums) of 1,000 groups, reports of 1,000 values, exact noise, one event more: at
the sizes that a peer reaches."""


def measure_peer(each: Peer) -> list[Line]:
    """Its curve, as far as it gets; none where it cannot be installed."""
    costs: list[float] = []
    try:
        python = peer(*each.requirements)
        for size in each.sizes:
            costs.append(each.ask(python, size))  # noqa: PERF401  (what was measured stays where a larger size fails)
    except PeerUnavailable as reason:
        print(f"{each.english} left out from {each.sizes[len(costs)]:,} on: {reason}", file=sys.stderr)
    return [Line(each.english, each.chinese, each.sizes[: len(costs)], tuple(costs), dashed=True)] if costs else []


def measure_postgresql() -> list[Line]:
    """The same counts and means on PostgreSQL, and its raw query; none where no server is installed."""
    sizes = (10**5, 3 * 10**5, 10**6)
    try:
        found = tables_postgresql.measure_sizes(sizes)
    except PeerUnavailable as reason:
        print(f"PostgreSQL left out: {reason}", file=sys.stderr)
        return []
    ours, raw = zip(*found, strict=True)
    return [
        Line("the same on PostgreSQL", "在 PostgreSQL 上同样的问题", sizes, ours),
        Line("raw query of PostgreSQL", "PostgreSQL 原始查询", sizes, raw, dashed=True),
    ]
