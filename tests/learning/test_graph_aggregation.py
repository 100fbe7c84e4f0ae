"""Sums over neighbors that hide a vertex with all its edges."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mosha import Edge, Ledger, Neighbors, Node, accounting, noise
from mosha.core.errors import InvalidParameter
from mosha.exact.neighbor_sums import CLOSE, RADIUS, STEP, WEIGHT, WeightedSums, _Programme
from mosha.learning import Aggregation, unit_rows


def length(moved: Any) -> Any:
    return math.sqrt(sum(int(entry) ** 2 for entry in moved.ravel()))


def without(ends: Any, vertex: Any) -> Any:
    return ends[(ends != vertex).all(axis=1)]


def every_graph(vertices: Any) -> Iterator[Any]:
    pairs = np.array(list(itertools.combinations(range(vertices), 2)))
    for bits in itertools.product([False, True], repeat=len(pairs)):
        yield pairs[np.array(bits)]


def furthest_move(sums: Any, vertices: Any, vectors: Any) -> Any:
    """How far one vertex moves the sums in all graphs of so many vertices, as a share of the sensitivity."""
    found = {graph.tobytes(): sums.evaluate(graph, vectors) for graph in every_graph(vertices)}
    moves = (
        length(found[graph.tobytes()] - found[without(graph, vertex).tobytes()])
        for graph in every_graph(vertices)
        for vertex in range(vertices)
    )
    return max(moves) / sums.sensitivity()


@pytest.mark.parametrize(
    ("vertices", "limit", "kinds"), [(4, 1, [0, 0, 0, 0]), (4, 2, [0, 1, 0, 1]), (5, 1, [0, 0, 1, 0, 1])]
)
def test_no_vertex_of_any_small_graph_moves_the_sums_by_more_than_the_sensitivity(
    vertices: int, limit: int, kinds: Any
) -> None:
    sums = WeightedSums(vertices=vertices, width=2, limit=limit)
    assert 0.5 < furthest_move(sums, vertices, np.eye(2)[kinds]) <= 1


@pytest.mark.parametrize("limit", [1, 2])
def test_hubs_long_paths_and_crowds_stay_within_the_sensitivity(limit: int) -> None:
    path = np.array([(i, i + 1) for i in range(59)])
    star = np.array([(0, i) for i in range(1, 60)])
    crowd = np.unique(np.sort(np.random.default_rng().integers(0, 59, (400, 2)), axis=1), axis=0)
    crowd = crowd[crowd[:, 0] < crowd[:, 1]]
    sums, vectors = WeightedSums(vertices=61, width=2, limit=limit), np.eye(2)[np.arange(61) % 2]
    for graph, leaver in [(path, 0), (path, 30), (star, 0), (np.vstack([crowd, star]), 0)]:
        moved = sums.evaluate(graph, vectors) - sums.evaluate(without(graph, leaver), vectors)
        assert length(moved) <= sums.sensitivity()


def keep_edges_in_order(ends: Any, vertices: Any, limit: Any) -> Any:
    """The rule that keeps or drops: an edge stays if both its ends have room."""
    degrees, found = np.zeros(vertices), []
    for first, second in ends.tolist():
        if max(degrees[first], degrees[second]) < limit:
            degrees[[first, second]] += 1
            found.append((first, second))
    return np.array(found)


def test_a_rule_that_keeps_or_drops_edges_would_be_found_out() -> None:
    path, vectors = np.array([(i, i + 1) for i in range(59)]), np.eye(2)[np.arange(60) // 2 % 2]
    sums, plan = WeightedSums(vertices=60, width=2, limit=1), Aggregation(vertices=60, width=2, hops=1)
    ordered = [plan.evaluate(keep_edges_in_order(graph, 60, 1), vectors) for graph in (path, without(path, 0))]
    assert np.linalg.norm(ordered[0] - ordered[1]) > 2 * sums.sensitivity() * STEP


def test_sums_are_plain_where_no_degree_is_above_the_limit() -> None:
    ring = [(i, (i + 1) % 9) for i in range(9)]
    vectors = unit_rows(np.random.default_rng().random((9, 3)))
    plan = Aggregation(vertices=9, width=3, hops=1)
    apart = plan.evaluate(ring, vectors, unit=Node(max_degree=2)) - plan.evaluate(ring, vectors)
    assert np.linalg.norm(apart) <= 2 / 32 + 1e-6


def value(ends: Any, vectors: Any, limit: Any, weights: Any) -> Any:
    """What the weights maximize, written down once more."""
    sums, degrees = np.zeros(vectors.shape), np.zeros(len(vectors))
    for (first, second), weight in zip(ends, weights, strict=True):
        sums[first] += weight * vectors[second]
        sums[second] += weight * vectors[first]
        degrees[[first, second]] += weight
    return 2 * limit * weights.sum() - (sums**2).sum() / 2 - 4 * (np.maximum(degrees - limit, 0) ** 2).sum()


def test_the_certificate_bounds_what_any_other_weights_could_gain() -> None:
    rng = np.random.default_rng()
    ends = np.array(list(itertools.combinations(range(7), 2)))
    whole = np.rint(unit_rows(rng.random((7, 3))) * (RADIUS - 2)).astype(np.int64)
    programme = _Programme(ends, whole, 2)
    for _ in range(40):
        steps = rng.integers(0, WEIGHT + 1, len(ends))
        gap = programme._gap(steps, programme._add(steps, programme.count))
        assert gap > CLOSE * 4  # weights drawn by chance are not taken
        for other in rng.random((20, len(ends))):
            gained = value(ends, whole / RADIUS, 2, other) - value(ends, whole / RADIUS, 2, steps / WEIGHT)
            assert gained <= gap


def test_negative_numbers_and_what_is_no_number_count_as_zero() -> None:
    sums = WeightedSums(vertices=2, width=2, limit=1)
    found = sums.evaluate(np.array([(0, 1)]), np.array([[-3.0, 0.5], [math.nan, 1.0]]))
    assert np.allclose(found * STEP, [[0, 0], [0, 0.5]], atol=0.04)  # type: ignore[arg-type]


def test_node_level_is_paid_as_asked_and_twice_as_far_when_a_vertex_is_replaced() -> None:
    plan, node = Aggregation(vertices=12, width=3, hops=2), Node(max_degree=2)
    measurement = plan.measurement(unit=node, epsilon=2, delta=1e-6)
    assert 1.99 < accounting.epsilon(measurement.event, 1e-6) <= 2
    replaced = Node(max_degree=2, neighbors=Neighbors.REPLACE_ONE)
    assert plan.sensitivity(replaced) == 2 * plan.sensitivity(node)
    account = Ledger.memory().account("g", unit=node, epsilon=2, delta=1e-6, rule="gaussian", delta_for_events=1e-13)
    with account.open(measurement) as run:
        sums = run.step([(0, 1), (1, 2)], ask=np.ones((12, 3))).value
        assert run.step([(0, 1), (1, 2)], ask=unit_rows(sums)).value.shape == (12, 3)


def test_the_noise_at_node_level_is_as_wide_as_it_is_priced() -> None:
    """2,400 samples: the variance is within 6.8 standard errors (false alarms below 1e-9); 0.7 and 1.4 are not."""
    plan, node = Aggregation(vertices=800, width=3, hops=1), Node(max_degree=2)
    found, _ = plan.measurement(unit=node, mu=0.5).step(None, [], np.zeros((800, 3)), noise.secure())
    scaled = found.ravel() / (2 * plan.sensitivity(node) * STEP)
    accepted = lambda samples: abs(samples.var() - 1) * math.sqrt(samples.size / 2) < 6.8
    assert accepted(scaled)
    assert not accepted(scaled * 0.7)
    assert not accepted(scaled * 1.4)


def test_a_vertex_without_a_degree_and_graphs_that_are_too_large_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="max_degree"):
        Aggregation(vertices=3, width=2, hops=1).measurement(unit=Node(), mu=1)
    with pytest.raises(InvalidParameter, match="at most"):
        Aggregation(vertices=1 << 16, width=2, hops=1).measurement(unit=Node(max_degree=2), mu=1)
    assert Aggregation(vertices=1 << 16, width=2, hops=1).sensitivity(Edge()) > 0
