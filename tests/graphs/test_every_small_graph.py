"""On all graphs of up to five vertices the exact output law of every mechanism keeps its claim."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mosha
from mosha.graphs.data.graph import Graph, kernels
from mosha.graphs.statistics.bounded_subgraphs import StarsOfClamped, TrianglesOfBounded
from mosha.graphs.statistics.choice_of_bound import balanced_bound, choose_bound, powers_of_two
from mosha.graphs.statistics.forests import bounded_forest
from mosha.graphs.statistics.ladder import Rungs
from mosha.graphs.statistics.lipschitz import capped_triangles_at
from mosha.graphs.statistics.smooth import largest_decay
from mosha.graphs.statistics.statistic import (
    ComponentCount,
    CumulativeDegrees,
    DegreeHistogram,
    EdgeCount,
    MaximumDegree,
    SortedDegrees,
    StarsOfBounded,
    VertexCount,
)
from mosha.graphs.statistics.subgraphs import StarCount, TriangleCount
from mosha.mechanisms.smooth_sensitivity import LEAST_SCALE, smooth_bound
from tests.graphs.small_graphs import edge_neighbors, every_graph, vertex_neighbors

EDGE = mosha.Edge()


def kinds(n: Any) -> list[Any]:
    return [TriangleCount(n), StarCount(n, 2), StarCount(n, 3)]


def states(statistic: Any, n: Any) -> set[Any]:
    """All pairs of (exact, widths) that neighbors have: all that a law depends on."""
    read = {}
    for graph in every_graph(n).values():
        read[id(graph)] = (statistic.evaluate(graph), statistic.widths(graph))
    return {(read[id(a)], read[id(b)]) for a, b in edge_neighbors(n)}


def ladder_law(rungs: Any, exact: Any, widths: Any, reach: Any = 400) -> Any:
    """log P(y) for y in -reach..reach, from the definition: the rung of each integer."""
    steps = np.array([rungs.statistic.reach(rungs.raise_to_floor(widths), s) for s in range(8)])
    steps = np.append(steps, np.full(reach, steps[-1]))  # n - 2 was reached long before
    rung = np.searchsorted(np.cumsum(steps), np.abs(np.arange(-reach, reach + 1) - exact))
    sizes = 2.0 * steps
    sizes[0] += 1
    decay = float(rungs.decay)
    return -decay * rung - math.log((sizes * np.exp(-decay * np.arange(sizes.size))).sum())


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 6.0, 40.0])
def test_the_ladder_never_exceeds_its_epsilon(n: int, epsilon: float) -> None:
    for statistic in kinds(n):
        if statistic.global_sensitivity == 0:
            continue
        rungs = Rungs(statistic, epsilon)
        worst = max(
            np.abs(ladder_law(rungs, *one) - ladder_law(rungs, *two)).max() for one, two in states(statistic, n)
        )
        assert worst <= epsilon * (1 + 1e-9)
        assert worst >= 0.2 * epsilon  # the law does depend on the graph: the check could fail


def test_a_ladder_that_pays_nothing_for_its_constant_is_found_out() -> None:
    statistic = StarCount(5, 3)
    rungs = Rungs(statistic, 6.0)
    rungs.floor, rungs.decay = 1, Fraction(6)
    found = max(np.abs(ladder_law(rungs, *one) - ladder_law(rungs, *two)).max() for one, two in states(statistic, 5))
    assert found > 6.1


def laplace_law(exact: Any, scale: Any, reach: Any = 1500) -> Any:
    places = np.arange(-reach, reach + 1) - exact
    return math.log(math.tanh(1 / (2 * scale))) - np.abs(places) / scale


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.5, 1e-2), (4.0, 1e-9)])
def test_smooth_laplace_noise_never_exceeds_its_delta(n: int, epsilon: float, delta: float) -> None:
    shift = 0.9 * epsilon
    decay = largest_decay(shift, epsilon, delta)
    for statistic in kinds(n):

        def scale(widths: Any, statistic: Any = statistic) -> Any:
            bound = smooth_bound(statistic.reaches(widths, n), decay)
            return max(bound / shift, LEAST_SCALE)

        for one, two in states(statistic, n):
            laws = [laplace_law(exact, scale(widths)) for exact, widths in (one, two)]
            for p, q in (laws, laws[::-1]):
                assert np.maximum(np.exp(p) - np.exp(epsilon + q), 0).sum() <= delta


def test_the_bound_on_the_delta_of_a_dilation_is_close_to_the_truth_and_never_below_it() -> None:
    for epsilon, delta, scale in [(1.0, 1e-6, 8.0), (1.0, 1e-3, 300.0), (0.2, 1e-4, 50.0), (3.0, 1e-2, 20.0)]:
        shift = 0.9 * epsilon
        decay = largest_decay(shift, epsilon, delta)
        narrow, wide = scale, scale * math.exp(decay)
        reach = int(60 * wide)
        worst = 0.0
        for moved in {0, math.floor(shift * narrow)}:
            p, q = laplace_law(0, wide, reach), laplace_law(moved, narrow, reach)
            worst = max(worst, np.maximum(np.exp(p) - np.exp(epsilon + q), 0).sum())
        assert worst <= delta
        assert worst >= delta / 50 or decay >= 0.12


EDGE_STATISTICS = [
    EdgeCount(),
    ComponentCount(),
    MaximumDegree(),
    SortedDegrees(5),
    DegreeHistogram(5),
    CumulativeDegrees(4),
]


@pytest.mark.parametrize("statistic", EDGE_STATISTICS, ids=lambda s: type(s).__name__)
def test_one_edge_moves_a_statistic_by_its_sensitivity_and_no_further(statistic: Any) -> None:
    exact = {id(graph): statistic.evaluate(graph, EDGE) for graph in every_graph(5).values()}
    moves = [np.abs(exact[id(a)] - exact[id(b)]) for a, b in edge_neighbors(5)]
    claimed = statistic.sensitivity(EDGE)
    assert max(move.sum() for move in moves) == claimed.l1
    assert max(move.max() for move in moves) <= claimed.linf
    assert max((move > 0).sum() for move in moves) <= claimed.l0


def node_statistics(bound: Any) -> tuple[Any, ...]:
    unit = mosha.Node(max_degree=bound)
    stars = [StarsOfBounded(k) for k in (2, 3) if k <= bound]
    return unit, [
        EdgeCount(),
        VertexCount(),
        MaximumDegree(),
        DegreeHistogram(bound + 1),
        CumulativeDegrees(bound),
        CumulativeDegrees(bound, 3),
        *stars,
    ]


@pytest.mark.parametrize("bound", [1, 2, 3, 4])
def test_one_vertex_moves_a_bounded_statistic_by_no_more_than_its_sensitivity(bound: int) -> None:
    unit, statistics = node_statistics(bound)
    for statistic in statistics:
        exact = {id(g): statistic.evaluate(g, unit) for n in (4, 5) for g in every_graph(n).values()}
        read = [(exact[id(a)], exact[id(b)]) for a, b in vertex_neighbors(5)]
        worst = max(np.abs(before - after).sum() for before, after in read)
        assert worst <= statistic.sensitivity(unit).l1
        if not isinstance(statistic, StarsOfBounded):
            assert worst >= statistic.sensitivity(unit).l1 - 2 * (bound > 2)  # and five vertices nearly reach it


def test_edges_of_a_bounded_graph_never_fall_when_a_vertex_comes() -> None:
    for bound in (1, 2, 3):
        unit = mosha.Node(max_degree=bound)
        for a, b in vertex_neighbors(5):
            assert 0 <= EdgeCount().evaluate(b, unit)[0] - EdgeCount().evaluate(a, unit)[0] <= bound


def test_triangles_after_a_projection_would_move_further_than_a_bounded_degree_suggests() -> None:
    """Why nothing but degrees is asked of a projected graph: the last vertex brings 2 triangles, and C(2, 2) is 1."""
    edges = [(1, 3), (1, 4), (2, 4), (2, 5), (2, 6), (3, 4), (5, 6)]
    counts = []
    for n in (6, 7):
        graph = Graph.of([edge for edge in edges if edge[1] < n], vertices=n)
        kept = kernels().project_degrees(graph.starts, graph.ends, 2)[1]
        sources = np.repeat(np.arange(n), graph.degrees)
        counts.append(Graph.of(np.stack([sources[kept], graph.ends[kept]], axis=1), vertices=n).triangles)
    assert abs(counts[1] - counts[0]) > math.comb(2, 2)


def test_capped_triangles_are_lipschitz_and_never_fall() -> None:
    caps = (1, 2, 3, 6)
    seen = {}

    def values(graph: Any) -> Any:
        key = (graph.vertices, tuple(graph))
        if key not in seen:
            seen[key] = capped_triangles_at(graph, caps)
        return seen[key]

    for a, b in vertex_neighbors(5)[::37]:
        for cap, before, after in zip(caps, values(a), values(b), strict=True):
            assert -1 <= after - before <= cap + 1
            assert after <= b.triangles
            if cap == 6:
                assert after == b.triangles


@pytest.mark.parametrize("bound", [1, 2, 4])
def test_a_forest_of_bounded_degree_is_lipschitz_and_finds_the_components(bound: int) -> None:
    seen = {}

    def value(graph: Any) -> Any:
        if id(graph) not in seen:
            seen[id(graph)] = bounded_forest(graph, bound)
        return seen[id(graph)]

    moves = [value(b) - value(a) for a, b in vertex_neighbors(5)[4::61]]
    assert min(moves) >= -1
    assert bound - 1 <= max(moves) <= bound + 1
    if bound == 4:  # every forest on five vertices keeps it
        assert all(b.vertices - value(b) == b.components for _, b in vertex_neighbors(5)[4::61])


def test_a_bound_below_what_forests_need_counts_too_many_components_and_never_too_few() -> None:
    star = Graph.of([(0, i) for i in range(1, 5)], vertices=5)
    assert [5 - bounded_forest(star, bound) for bound in (1, 2, 3, 4)] == [4, 3, 2, 1]
    assert bounded_forest(Graph.of([], vertices=0), 3) == 0


BOUNDED = [
    TrianglesOfBounded(2),
    TrianglesOfBounded(3),
    StarsOfClamped(2, 2),
    StarsOfClamped(2, 3),
    StarsOfClamped(3, 3),
]


@pytest.mark.parametrize("statistic", BOUNDED, ids=str)
def test_a_declared_bound_at_edge_level_is_enforced_on_every_graph(statistic: Any) -> None:
    pairs = edge_neighbors(5)[::29]
    exact = {id(g): statistic.evaluate(g, EDGE)[0] for pair in pairs for g in pair}
    moves = [abs(exact[id(a)] - exact[id(b)]) for a, b in pairs]
    assert statistic.sensitivity(EDGE).l1 - 1 <= max(moves) <= statistic.sensitivity(EDGE).l1


def flip_law(scores: Any, scale: Any) -> Any:
    """P(i) of permute-and-flip: the integral of p_i prod (1 - p_j t) over t in [0, 1], a polynomial."""
    heads = np.exp((np.array(scores, np.float64) - max(scores)) / float(scale))
    law = []
    for i in range(len(heads)):
        polynomial = np.polynomial.Polynomial([heads[i]])
        for j, p in enumerate(heads):
            if j != i:
                polynomial *= np.polynomial.Polynomial([1.0, -p])
        law.append(polynomial.integ()(1.0))
    return np.array(law)


@pytest.mark.parametrize("choose", [choose_bound, balanced_bound])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_choice_of_a_bound_never_exceeds_its_epsilon(
    epsilon: float, choose: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = []
    monkeypatch.setattr(
        "mosha.graphs.statistics.choice_of_bound.permute_and_flip_choice",
        lambda scores, scale, rng: captured.append(flip_law(scores, scale)) or 0,
    )
    bounds = powers_of_two(4)
    pairs = {
        tuple(tuple(int(g.projected_degrees(b).sum()) // 2 for b in bounds) for g in pair)
        for pair in vertex_neighbors(5)
    }
    worst = 0.0
    for one, two in pairs:
        for values in (one, two):
            choose(values, bounds, epsilon=epsilon, noise=1.0, rng=None)
        p, q = captured[-2:]
        assert abs(p.sum() - 1) < 1e-9
        worst = max(worst, np.abs(np.log(p / q)).max())
    assert 0.05 * epsilon < worst <= epsilon * (1 + 1e-9)
