"""Without anybody to trust: every vertex is a person with a device that knows its own neighbors and sends noise.

An edge is protected at both its ends: neighbor lists are reported for smaller numbers only, so that each edge is in
one report; degrees are in two, and have half of epsilon each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import DiscreteLaplace, RandomizedResponse
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.core.unit import Edge
from mosha.graphs.data.graph import Graph
from mosha.graphs.data.picture import draw_comparison
from mosha.graphs.statistics.ladder import ladder
from mosha.graphs.statistics.subgraphs import TriangleCount
from mosha.graphs.synthesis.adjacency import flip_positions, flip_rate
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import secure
from mosha.noise.unbounded import unbounded_laplace

__all__ = [
    "compare_models",
    "degree_report",
    "find_degree_distribution",
    "local_degrees",
    "local_triangles",
    "neighbor_report",
    "triangle_report",
]

FINE = 1 << 10
MOST_VERTICES = 8000


def degree_report(neighbors: Any, *, epsilon: float, rng: Rng | None = None) -> int:
    """On the device: how many neighbors there are, with Laplace noise of scale 2 / epsilon.

    Guarantee:
        epsilon for an edge: it is in the reports of both its ends, each costs epsilon / 2.
    """
    scale = Fraction(laplace_multiplier(epsilon)) * 2
    return len(neighbors) + int(unbounded_laplace(scale, 1, rng=rng or secure())[0])


def neighbor_report(neighbors: Any, *, own: int, epsilon: float, rng: Rng | None = None) -> NDArray[np.int64]:
    """On the device: who of 0, ..., own - 1 is a neighbor, each bit by randomized response.

    Guarantee:
        epsilon for an edge: only the end with the larger number reports it, in one bit.

    >>> neighbor_report([0, 2], own=4, epsilon=50).tolist()
    [0, 2]
    """
    true = np.array(sorted(int(v) for v in neighbors if v < own), np.int64)
    flips = flip_positions(own, flip_rate(epsilon), rng or secure()) if own else np.zeros(0, np.int64)
    return np.setxor1d(true, flips, assume_unique=True)


def triangle_report(
    neighbors: Any,
    *,
    own: int,
    noisy: NDArray[np.bool_],
    cap: int,
    epsilon: float,
    flipped: float,
    rng: Rng | None = None,
) -> int:
    """On the device, second round: pairs of its smaller neighbors that the public noisy graph joins, in 1024ths.

    Guarantee:
        epsilon for an edge. Of the smaller neighbors the first `cap` count, in the order of numbers; one more or less
        takes in at most one and puts out at most one, each in at most cap - 1 pairs that weigh at most 1 in size: the
        report moves by at most 2 (cap - 1), and one step for its rounding.

    Units:
        1024ths of (joined pairs - flipped * all pairs), an unbiased count but for the factor 1 - 2 flipped.
    """
    kept = np.array(sorted(int(v) for v in neighbors if v < own)[:cap], np.int64)
    joined = int(np.triu(noisy[np.ix_(kept, kept)], 1).sum())
    exact = math.floor((joined - flipped * (kept.size * (kept.size - 1) // 2)) * FINE)
    steps = 2 * max(cap - 1, 1) * FINE + 1
    return exact + int(unbounded_laplace(Fraction(laplace_multiplier(epsilon)) * steps, 1, rng=rng or secure())[0])


def _check_graph(data: Any, count: int) -> Graph:
    if data.vertices != count:
        raise DataError("graphs.wrong_vertices")
    return data  # type: ignore[no-any-return]


def local_degrees(epsilon: float, *, count: int) -> Measurement:
    """All devices report their degrees: what the collector sees."""

    def step(state: object, data: Graph, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        graph = _check_graph(data, count)
        return np.array([degree_report(graph.neighbors(v), epsilon=epsilon, rng=rng) for v in range(count)]), state

    event = DiscreteLaplace(laplace_multiplier(epsilon) * 2) * 2
    return Measurement(unit=Edge(), event=event, step=step, name="local degrees", question=f"local degrees:{count}")


@explain_wrong_calls
def find_degree_distribution(
    reports: NDArray[np.int64], *, epsilon: float, max_degree: int, steps: int = 200
) -> NDArray[np.float64]:
    """The share of vertices of each degree up to `max_degree`, from reports with noise: deconvolution, post-processing.

    The likeliest distribution for Laplace noise of scale 2 / epsilon, by expectation and maximization; neighboring
    degrees are averaged lightly in each step, without which the likeliest one is a few spikes.

    Units:
        Shares of all vertices, with sum 1.

    Args:
        reports: what `degree_report` sent, one number for each vertex.
        epsilon: that of the reports.
        max_degree: the highest degree that is considered: a public number.
        steps: of expectation and maximization.

    >>> rng = np.random.default_rng(1)
    >>> noisy = rng.choice([3, 30], 4000) + np.rint(rng.laplace(0, 2, 4000)).astype(int)
    >>> share = find_degree_distribution(noisy, epsilon=1, max_degree=50)
    >>> bool(share[:12].sum() > 0.45), bool(share[24:38].sum() > 0.4)
    (True, True)
    """
    noisy = np.asarray(reports)
    if noisy.ndim != 1 or noisy.size == 0 or noisy.dtype.kind not in "iu":
        raise InvalidParameter("graphs.not_degree_reports", parameter="reports")
    degrees = np.arange(positive_integer("max_degree", max_degree) + 1)
    values, counts = np.unique(noisy, return_counts=True)
    likely = np.exp(-np.abs(values[:, None] - degrees[None, :]) * (epsilon / 2))
    likely = np.maximum(likely, 1e-300)
    share = np.full(degrees.size, 1 / degrees.size)
    for _ in range(positive_integer("steps", steps)):
        joint = likely * share
        share = (counts[:, None] * joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) / noisy.size
        padded = np.pad(share, 1, mode="edge")
        share = (padded[:-2] + 6 * padded[1:-1] + padded[2:]) / 8
        share /= share.sum()
    return share


def local_triangles(epsilon: float, *, count: int, cap: int) -> Measurement:
    """Two rounds (after Imola, Murakami and Chaudhuri 2021): noisy neighbor lists, then counts against them.

    Guarantee:
        epsilon for an edge: half in `neighbor_report`, half in `triangle_report` of the end with the larger number;
        what the other devices count in the second round is made of the noisy graph and of other edges.

    Units:
        Triangles. `cap` is the public number of neighbors that count.
    """
    cap, half = positive_integer("cap", cap), epsilon / 2
    if not 2 <= count <= MOST_VERTICES:
        raise InvalidParameter("graphs.simulation_size", parameter="count", most=MOST_VERTICES)
    flipped = -math.expm1(-float(flip_rate(half)))

    def step(state: object, data: Graph, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        graph = _check_graph(data, count)
        noisy = np.zeros((count, count), np.bool_)
        rows = [graph.neighbors(v) for v in range(count)]
        for v in range(count):
            noisy[neighbor_report(rows[v], own=v, epsilon=half, rng=rng), v] = True
        noisy |= noisy.T
        send: Callable[[int], int] = lambda v: triangle_report(
            rows[v], own=v, noisy=noisy, cap=cap, epsilon=half, flipped=flipped, rng=rng
        )
        return sum(send(v) for v in range(count)) / FINE / (1 - 2 * flipped), state

    return Measurement(
        unit=Edge(),
        event=RandomizedResponse(half) + DiscreteLaplace(laplace_multiplier(half)),
        step=step,
        name="local triangles",
        question=f"local triangles:{count}:{cap}",
    )


@explain_wrong_calls
def compare_models(graph: Graph, *, epsilon: float, draws: int = 20) -> tuple[dict[str, tuple[float, float]], Any]:
    """Mean relative errors on a *public* `graph`, central and local side by side, and a picture (extra `plot`).

    Each answer costs `epsilon`, and errors are means over so many `draws`.

    >>> import mosha
    >>> graph = mosha.graphs.Graph.of([(0, 1), (1, 2), (2, 0), (2, 3)], vertices=4)
    >>> errors, picture = compare_models(graph, epsilon=1, draws=2)
    >>> "edges" in errors
    True
    """
    n, cap = graph.vertices, max(graph.highest_degrees()[0], 2)
    from mosha.graphs.statistics.counting import edges  # noqa: PLC0415  (central questions, for the comparison alone)

    central_edges, reports = edges(Edge(), epsilon), local_degrees(epsilon, count=n)
    central, local = ladder(TriangleCount(n), unit=Edge(), epsilon=epsilon), local_triangles(epsilon, count=n, cap=cap)

    def error(measurement: Measurement, truth: float, read: Callable[[Any], float]) -> float:
        found = [read(measurement.step(None, graph, None, secure())[0]) for _ in range(draws)]
        return float(np.mean(np.abs(np.array(found) - truth))) / max(truth, 1)

    rows = {
        "edges": (
            error(central_edges, graph.edge_count, float),
            error(reports, graph.edge_count, lambda degrees: float(degrees.sum()) / 2),
        ),
        "triangles": (
            error(central, graph.triangles, lambda answer: float(answer["value"])),
            error(local, graph.triangles, float),
        ),
    }
    return rows, draw_comparison(rows, names=("central", "local"), title=f"epsilon {epsilon:g}: who is trusted")
