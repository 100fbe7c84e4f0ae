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

from benchmarks import _federated_peers, tables_postgresql
from benchmarks._curves import Line
from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks.federated import FLOWER
from benchmarks.local import PURE
from benchmarks.tables import OPENDP, PIPELINEDP

__all__ = ["PEERS", "Peer", "columns_of", "measure_peer", "measure_postgresql", "rows_file"]

NETWORKS: Final = (Path(__file__).parent / "_networks.py").read_text()
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

PURE_TEXTS: Final = """
import json, random, sys, time
from pure_ldp.heavy_hitters import PEMClient, PEMServer
client, server = PEMClient(4, 5, 15, 5), PEMServer(4, 5, 15, 5)
reports = [client.privatise(f"{random.getrandbits(7):015b}") for _ in range(int(sys.argv[1]))]
start = time.process_time()
for report in reports:
    server.aggregate(report)
server.find_heavy_hitters(k=10)
print(json.dumps({"cpu": time.process_time() - start}))
"""
TUMULT: Final = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4").getOrCreate())
from tmlt.analytics import AddRowsWithID, KeySet, MaxGroupsPerID, MaxRowsPerGroupPerID, PureDPBudget
from tmlt.analytics import QueryBuilder, Session
def cpu():
    parents, spent = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        except OSError:
            continue
        parents[pid], spent[pid] = fields[1], sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    mine = {str(os.getpid())}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(spent[pid] for pid in mine if pid in spent)
frame = spark.read.parquet(sys.argv[1])
frame.count()
session = Session.from_dataframe(PureDPBudget(10), "t", frame, protected_change=AddRowsWithID("u"))
keys = KeySet.from_dict({"g": list(range(int(sys.argv[2])))})
bounded = QueryBuilder("t").enforce(MaxGroupsPerID("g", 10)).enforce(MaxRowsPerGroupPerID("g", 1))
start = cpu()
session.evaluate(bounded.groupby(keys).count(), PureDPBudget(1)).toPandas()
session.evaluate(bounded.groupby(keys).sum("v", 0.0, 100.0), PureDPBudget(1)).toPandas()
print(json.dumps({"cpu": cpu() - start}))
"""
OPACUS: Final = """
import json, sys, warnings
warnings.simplefilter("ignore")
torch.set_num_threads(1)
from torch.utils.data import DataLoader, TensorDataset
inputs, targets = torch.randn(int(sys.argv[1]), 784), torch.randint(0, 10, (int(sys.argv[1]),))
loader = DataLoader(TensorDataset(inputs, targets), batch_size=len(inputs))
def measure(mode):
    model, criterion = mlp()[0], nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    options = dict(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0)
    model, optimizer, criterion, _ = with_opacus(mode, criterion, poisson_sampling=False, **options)
    def step():
        optimizer.zero_grad()
        criterion(model(inputs), targets).backward()
        optimizer.step()
    step()
    return seconds(step, 3)
print(json.dumps({"cpu": min(measure(mode) for mode in ("hooks", "ghost"))}))
"""
FLOWER_ROUNDS: Final = 4


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


def _ask_flower(python: Path, clients: int) -> float:
    return float(run(python, _federated_peers.FLOWER, clients, FLOWER_ROUNDS)["cpu"])


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
        "Tumult 0.21, Spark", "Tumult 0.21 · Spark", "tables", ("tmlt.analytics==0.21.0", "setuptools<81"),
        (10**5, 3 * 10**5, 10**6), lambda python, size: _ask_tables(python, TUMULT, size, 1_000),
    ),
    Peer(
        "pure-ldp 1.2.0, local hashing", "pure-ldp 1.2.0 · 本地哈希", "local", PURE,
        (1_000, 4_000, 16_000), _ask_size(PURE_COUNTS),
    ),
    Peer(
        "pure-ldp 1.2.0, prefix extending, 15 bits", "pure-ldp 1.2.0 · 前缀扩展 · 15 位", "texts", PURE,
        (100, 300, 1_000), _ask_size(PURE_TEXTS),
    ),
    Peer(
        "OpenDP 0.16, Gaussian noise", "OpenDP 0.16 的高斯噪声", "noise", ("opendp[polars]==0.16.0",),
        (10**4, 10**5, 10**6), _ask_size(OPENDP_NOISE),
    ),
    Peer(
        "dp-accounting 0.6, an event more", "dp-accounting 0.6 · 多一个事件", "accounting", ("dp-accounting==0.6.0",),
        (10**3, 10**4, 10**5), _ask_size(GOOGLE_ONE_MORE),
    ),
    Peer(
        "Opacus 1.6, a step in its quicker mode", "Opacus 1.6 的一步 · 较快的模式", "learning",
        ("torch==2.13.0", "opacus==1.6.0"), (64, 128, 256), _ask_size(NETWORKS + OPACUS),
    ),
    Peer(
        "Flower 1.41, a simulated round", "Flower 1.41 模拟的一轮", "federated", FLOWER,
        (10, 30, 100), _ask_flower,
    ),
)  # fmt: skip
"""Counts and means (OpenDP and Tumult: counts and sums) of 1,000 groups, reports of 1,000 values, popular texts, exact
noise, one event more, a step of a training, a round: at the sizes that a peer reaches."""


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
