"""How cost grows: each road at four sizes, the exponent of its CPU time, its memory, and the bars that it has to keep.

The exponent is the slope of log(CPU seconds) over log(size), by least squares. 1 is linear; roads that should not
depend on their size have a bar of 0.1. A second row compares the largest size with the same work without privacy.
`pictures` draws the curves, those of peers beside them, into `docs/pictures`.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import mosha
from benchmarks._big_book import fill
from benchmarks._curves import Line, draw_curves
from benchmarks._learning_roads import plain_round, plain_training_step, simulated_round, training_step
from benchmarks._roads import FLAT, Road, fit_exponent, measure_curve, rows_of
from benchmarks._rows import Row
from benchmarks._scale_peers import PEERS, columns_of, measure_peer, measure_postgresql, rows_file
from benchmarks.graphs import power_law
from mosha import events
from mosha.accounting import Odometer
from mosha.connect.engines.duckdb import DuckDB
from mosha.core.event import NOTHING
from mosha.core.events import Pure
from mosha.core.unit import Person, Reading
from mosha.graphs import Graph
from mosha.graphs import protect as protect_graph
from mosha.ledger import Ledger
from mosha.local import Batch, Frequency, HeavyHitters
from mosha.local.protocols.hyperplanes import count_orthogonal
from mosha.local.protocols.projective import count_points  # type: ignore[attr-defined]
from mosha.mechanisms.plans.sampling import FixedSize, Poisson
from mosha.noise import discrete_gaussian, secure
from mosha.streams import counter
from mosha.streams.statistics import KeyedSum
from mosha.tables import Budget, count, mean, protect

__all__ = ["PIECES", "ROADS", "Road", "fit_exponent"]

Work = Callable[[], object]
BUDGET = Budget(epsilon=1)
BESIDE = {
    "raw query": ("raw query of DuckDB", "DuckDB 原始查询"),
    "exact count": ("exact count of triangles", "三角形的精确计数"),
    "NumPy's normal": ("NumPy's normal numbers", "NumPy 的正态随机数"),
    "plain PyTorch": ("the step in plain PyTorch", "普通 PyTorch 的一步"),
    "plain round": ("the round without privacy", "没有隐私的一轮"),
}
PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
COUNT = mosha.Measurement(unit=Person("who"), event=events.Laplace(1000), step=lambda state, *_: (0, state), name="n")


def _decode(points: int) -> Work:
    """The sums over all hyperplanes of the space of four coordinates that has about this many points."""
    q = next(n for n in range(round(points ** (1 / 3)), 2, -1) if all(n % d for d in range(2, math.isqrt(n) + 1)))
    counters = np.ones(count_points(q, 4), np.int64)
    return lambda: count_orthogonal(counters, q, 4, len(counters))


def _poisson(size: int) -> Work:
    return lambda: Poisson(256 / size).places(range(size), size, 1, secure())


def _fixed_size(size: int) -> Work:
    return lambda: FixedSize(256).places(range(size), size, 1, secure())


def _keyed_sums(keys: int) -> Work:
    statistic = KeyedSum(keys=range(keys), key="key", between=(0, 4), column="value")
    rows = {"key": np.arange(1_000) % keys, "value": np.ones(1_000)}
    return lambda: statistic.evaluate(rows, Reading())


def _stream_step(horizon: int) -> Work:
    """64 steps of a counter; noise is drawn ahead, so one step alone says little."""
    run = Ledger.memory().account("stream", unit=Reading(), rho=1).open(counter(unit=Reading(), horizon=horizon, rho=1))

    def step() -> None:
        for _ in range(64):
            run.step([1])

    return step


def _added_events(kinds: int) -> Work:
    each = [Pure(1 + i / kinds) for i in range(kinds)]

    def add() -> object:
        total = NOTHING
        for event in each:
            total = total + event  # type: ignore[assignment]
        return total.parts()

    return add


def _odometer(history: int) -> Work:
    """Eight kinds of events, each repeated; one more is added, and the whole is priced: 0.02 to 50 at delta 1e-6.

    A history that costs thousands is asked of a slower accountant: less than a millisecond, whatever its length.
    """
    odometer = Odometer()
    for kind in range(8):
        odometer.add(events.Gaussian(5_000.0 + kind), history // 8)

    def ask() -> object:
        odometer.add(events.Gaussian(5_000.0))
        return odometer.epsilon(1e-6)

    return ask


def _accounts(number: int) -> Work:
    book = Ledger.memory()
    for i in range(number):
        book.account(f"account {i}", unit=Reading(), epsilon=1.0)
    return book.accounts


def _book(releases: int) -> Ledger:
    book = Ledger.memory()
    book.account("visits", unit=Person("who"), epsilon=1e6)
    fill(book, "visits", COUNT, releases)
    return book


def _charge(releases: int) -> Work:
    account = _book(releases).account("visits")
    return lambda: account.open(COUNT).step(None)


def _verify(releases: int) -> Work:
    return _book(releases).verify


def _release(rows: int, groups: int, verb: str) -> Work:
    """A median or mean by group of a table in memory, bounded by compiled kernels: noise, answers and error bars."""
    engine = DuckDB(threads=1, compiled_from=1)
    table = protect(engine.frame(pa.table(columns_of(rows, groups))), unit=Person("u", at_most=10))
    question = getattr(table.group_by("g", keys=range(groups)), verb)("v", between=(0, 100))
    plan, measurement = question.plan_release(BUDGET), question.measurement(BUDGET)

    def release() -> object:
        value, _ = measurement.step(None, None, None, secure())
        return plan.answers(value), plan.errors(value, 0.95)

    return release


def _medians_by_rows(rows: int) -> Work:
    return _release(rows, 100, "median")


def _medians_by_groups(groups: int) -> Work:
    return _release(200_000, groups, "median")


def _means_by_groups(groups: int) -> Work:
    return _release(200_000, groups, "mean")


def _from_file(rows: int) -> Work:
    """Counts and means of 1,000 groups of a Parquet file; a new engine each time, so that nothing is kept."""
    path, folder = rows_file(rows)

    def release() -> object:
        table = protect(path, unit=Person("u", at_most=10), engine=DuckDB(threads=1, compiled_from=1))
        question = table.group_by("g", keys=range(1_000)).aggregate(n=count(), m=mean("v", between=(0, 100)))
        return question.measurement(BUDGET).step(None, None, None, secure())

    weakref.finalize(release, folder.cleanup)
    return release


def _raw_from_file(rows: int) -> Work:
    path, folder = rows_file(rows)
    raw = "SELECT g, count(*), avg(greatest(least(v, 100), 0)) FROM read_parquet(?) GROUP BY g"

    def ask() -> object:
        with duckdb.connect(config={"threads": 1}) as connection:
            return connection.execute(raw, [str(path)]).fetchnumpy()

    weakref.finalize(ask, folder.cleanup)
    return ask


def _found_groups(keys: int) -> Work:
    """Half of all rows have a key of their own; the others share a hundred, which are shown."""
    numbers = np.arange(2 * keys)
    columns = {"u": numbers, "g": np.where(numbers % 2 == 0, numbers, numbers % 199)}
    table = protect(DuckDB(threads=1).frame(pa.table(columns)), unit=Person("u", at_most=1))
    measurement = table.group_by("g").count().measurement(Budget(epsilon=1, delta=1e-9))
    return lambda: measurement.step(None, None, None, secure())


def _raw_groups(keys: int) -> Work:
    numbers = np.arange(2 * keys)
    frame = pa.table({"g": np.where(numbers % 2 == 0, numbers, numbers % 199)})
    connection = duckdb.connect(config={"threads": 1})
    connection.register("frame", frame)
    return lambda: connection.execute("SELECT g, count(*) FROM frame GROUP BY g").fetchnumpy()


def _text_reports(number: int) -> tuple[HeavyHitters, Batch]:
    survey = HeavyHitters(longest=6, alphabet="abcdefghijklmnopqrstuvwxyz", epsilon=4, buckets=1 << 14)
    return survey, survey.reports([f"text {place % 100}" for place in range(number)])


def _count_texts(reports: int) -> Work:
    survey, batch = _text_reports(reports)
    return lambda: survey.collector().add(batch)


def _search_texts(reports: int) -> Work:
    survey, batch = _text_reports(reports)
    collector = survey.collector()
    collector.add(batch)
    return collector.estimate


def _collect(reports: int) -> Work:
    survey = Frequency(range(1_000), epsilon=1)
    batch = survey.reports(np.arange(reports) % 1_000)
    return lambda: survey.collector().add(batch)


def _of_graph(edges: int, verb: str) -> Work:
    """The exact statistic, which a graph keeps, is computed anew each time."""
    pairs, vertices = power_law(edges, max(edges // 7, 10)), max(edges // 7, 10)

    def release() -> object:
        data = Graph.of(pairs, vertices=vertices)
        question = getattr(protect_graph(data, unit=mosha.Edge()), verb)()
        return question.measurement(epsilon=1.0).step(None, data, None, secure())

    return release


def _triangles(edges: int) -> Work:
    return _of_graph(edges, "triangles")


def _exact_triangles(edges: int) -> Work:
    pairs, vertices = power_law(edges, max(edges // 7, 10)), max(edges // 7, 10)
    return lambda: Graph.of(pairs, vertices=vertices).triangles


def _degrees(edges: int) -> Work:
    return _of_graph(edges, "degree_sequence")


def _communities(edges: int) -> Work:
    return _of_graph(edges, "communities")


def _synthetic(edges: int) -> Work:
    return _of_graph(edges, "synthetic")


def _noise(draws: int) -> Work:
    return lambda: discrete_gaussian(1000, draws, rng=secure())


def _plain_noise(draws: int) -> Work:
    return lambda: np.random.default_rng().normal(0, 1000, draws)


ROADS = {
    "tables": [
        Road(
            "counts and means of 1,000 groups of a file, by rows", (10**5, 4 * 10**5, 16 * 10**5, 64 * 10**5),
            _from_file, least=_raw_from_file, beside="raw query", most=5, chinese="文件中 1,000 组的计数和均值 · 行数",
        ),
        Road("medians of 100 groups, by rows", (10**5, 4 * 10**5, 16 * 10**5, 64 * 10**5), _medians_by_rows,
             chinese="100 组的中位数 · 行数"),
    ],
    "groups": [
        Road("medians of 200,000 rows, by groups", (10**3, 4_000, 16_000, 64_000), _medians_by_groups,
             chinese="20 万行的中位数 · 组数"),
        Road("means of 200,000 rows, by groups", (10**3, 8_000, 64_000, 512_000), _means_by_groups,
             chinese="20 万行的平均值 · 组数"),
        Road(
            "groups found in the data, by keys", (10**4, 10**5, 10**6, 4 * 10**6), _found_groups,
            least=_raw_groups, beside="raw query", chinese="从数据中找出的组 · 键数",
        ),
    ],
    "local": [
        Road("estimate of a survey, by points", (30_000, 150_000, 700_000, 3_500_000), _decode,
             chinese="调查的估计 · 点数"),
        Road("reports of a survey counted, by reports", (10**5, 4 * 10**5, 16 * 10**5, 64 * 10**5), _collect,
             chinese="统计调查的报告 · 报告数"),
    ],
    "texts": [
        Road("reports of texts counted, by reports", (10**5, 2 * 10**5, 4 * 10**5, 8 * 10**5), _count_texts,
             chinese="统计文本的报告 · 报告数"),
        Road("popular texts searched, by reports", (10**4, 10**5, 4 * 10**5, 8 * 10**5), _search_texts, FLAT,
             chinese="寻找流行文本 · 报告数"),
    ],
    "samples": [
        Road("Poisson sample of 256", (10**5, 10**6, 10**8, 10**10), _poisson, FLAT, chinese="泊松抽样 256 个 · 总体"),
        Road("fixed size of 256", (10**4, 10**6, 10**8, 10**9), _fixed_size, FLAT, chinese="固定抽样 256 个 · 总体"),
    ],
    "streams": [
        Road("sums by key of 1,000 rows, by keys", (10**3, 4_000, 16_000, 64_000), _keyed_sums,
             chinese="1,000 行按键求和 · 键数"),
        Road("64 steps of a counter, by horizon", (10**6, 10**8, 10**10, 10**12), _stream_step, FLAT,
             chinese="计数流的 64 步 · 总步数"),
    ],
    "graphs": [
        Road(  # the exact count itself grows so on power laws
            "triangles, by edges", (2 * 10**4, 8 * 10**4, 32 * 10**4, 128 * 10**4), _triangles, 1.5,
            least=_exact_triangles, beside="exact count", most=2, chinese="三角形 · 边数",
        ),
        Road("degree sequence, by edges", (2 * 10**4, 8 * 10**4, 32 * 10**4, 128 * 10**4), _degrees,
             chinese="度序列 · 边数"),
        Road("communities, by edges", (10**4, 3 * 10**4, 9 * 10**4, 27 * 10**4), _communities, chinese="社区 · 边数"),
        Road("synthetic graph, by edges", (10**4, 3 * 10**4, 9 * 10**4, 27 * 10**4), _synthetic,
             chinese="合成图 · 边数"),
    ],
    "noise": [
        Road(
            "discrete Gaussian noise, by draws", (10**4, 10**5, 10**6, 10**7), _noise,
            least=_plain_noise, beside="NumPy's normal", most=4, chinese="离散高斯噪声 · 个数",
        ),
    ],
    "accounting": [
        Road("events added one by one", (500, 1_000, 2_000, 4_000), _added_events, chinese="逐个相加的事件 · 种类"),
        Road("an event more on an odometer, by events", (10**3, 10**5, 10**7, 10**9), _odometer, FLAT,
             chinese="里程表上多一个事件 · 历史"),
    ],
    "ledger": [
        Road("accounts of a book", (125, 250, 500, 1_000), _accounts, chinese="账本里的账户 · 账户数"),
        Road("a charge and its release, by releases", (200, 800, 3_200, 12_800), _charge, FLAT,
             chinese="一次扣款和发布 · 已有发布数"),
        Road("a book verified, by releases", (200, 800, 3_200, 12_800), _verify, chinese="核对账本 · 发布数"),
    ],
    "learning": [
        Road("a step of a training, by examples", (64, 256, 1_024, 4_096), training_step,
             least=plain_training_step, beside="plain PyTorch", chinese="训练的一步 · 样本数"),
    ],
    "federated": [
        Road("a simulated round, by clients", (50, 100, 200, 400), simulated_round,
             least=plain_round, beside="plain round", chinese="模拟的一轮 · 客户端数"),
    ],
}  # fmt: skip


def _piece(roads: list[Road]) -> Callable[[], list[Row]]:
    return lambda: [row for road in roads for row in rows_of(road)]


def measure_panel(name: str) -> list[Line]:
    """The curves of one panel, those of peers dashed."""
    lines = []
    for road in ROADS[name]:
        curve = measure_curve(road)
        lines.append(Line(road.what, road.chinese, road.sizes, curve.costs))
        if curve.least:
            lines.append(Line(*BESIDE[road.beside], road.sizes, curve.least, dashed=True))
    lines += [line for peer in PEERS if peer.panel == name for line in measure_peer(peer)]
    return lines + (measure_postgresql() if name == "tables" else [])


def pictures() -> list[Row]:
    """Draw all curves, in English and in Chinese."""
    panels = {name: measure_panel(name) for name in ROADS}
    draw_curves(panels, PICTURES / "scale.png", "en")
    draw_curves(panels, PICTURES / "scale-zh.png", "zh")
    return []


PIECES = {name: _piece(roads) for name, roads in ROADS.items()} | {"pictures": pictures}
