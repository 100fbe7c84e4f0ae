"""Directed graphs: every small one keeps what is proved of arcs, degrees and feed-forward loops."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import Edge, Node, noise
from mosha.core.errors import InvalidParameter, Unbounded
from mosha.graphs import find_degree_distribution, protect_arcs
from mosha.graphs.statistics.directed import ArcCount, ArcDegrees, DirectedGraph, FeedForwardLoops

ALL = list(itertools.permutations(range(4), 2))


def graphs(count: Any, vertices: Any = 4) -> Iterator[tuple[Any, ...]]:
    """Random directed graphs of all densities, with one arc more or less each."""
    rng, arcs = np.random.default_rng(), list(itertools.permutations(range(vertices), 2))
    for _ in range(count):
        chosen = {arc for arc in arcs if rng.random() < rng.choice([0.2, 0.5, 0.9])}
        other = chosen ^ {arcs[rng.integers(len(arcs))]}
        yield chosen, *(DirectedGraph.of(sorted(kind), vertices=vertices) for kind in (chosen, other))


def test_loops_are_counted_as_by_hand() -> None:
    for arcs, graph, _ in graphs(150, vertices=5):
        triples = itertools.permutations(range(5), 3)
        expected = sum({(a, b), (b, c), (a, c)} <= arcs for a, b, c in triples)
        assert FeedForwardLoops(5).evaluate(graph) == expected


@pytest.mark.parametrize("vertices", [4, 6])
def test_one_arc_moves_loops_by_no_more_than_the_widths_say_and_widths_by_one(vertices: int) -> None:
    loops = FeedForwardLoops(vertices)
    for _, graph, other in graphs(300, vertices):
        moved = abs(loops.evaluate(graph) - loops.evaluate(other))
        assert moved <= min(loops.reach(loops.widths(found), 0) for found in (graph, other))
        assert all(abs(a - b) <= 1 for a, b in zip(loops.widths(graph), loops.widths(other), strict=True))


def test_widths_that_are_too_small_by_one_would_be_found() -> None:
    """In a complete graph an arc is in 3 (n - 2) loops, which is what the widths say."""
    loops, whole, less = FeedForwardLoops(4), *(DirectedGraph.of(ALL[n:], vertices=4) for n in (0, 1))
    assert loops.evaluate(whole) - loops.evaluate(less) == loops.reach(loops.widths(whole), 0) == 6


@pytest.mark.parametrize("statistic", [ArcCount(), ArcDegrees(3, "in"), ArcDegrees(5, "out")], ids=repr)
def test_one_arc_moves_degrees_by_no_more_than_is_derived(statistic: Any) -> None:
    pairs = [(graph, other) for _, graph, other in graphs(100)]
    assert mosha.audit.statistic_contract(statistic, unit=Edge(), neighbors=pairs).kept


def test_answers_lie_within_their_bars() -> None:
    """One bar of confidence 1 - 1e-9 each."""
    rng = np.random.default_rng()
    arcs = rng.integers(0, 60, (900, 2))
    account = mosha.Ledger.memory().account("genes", unit=Edge(), epsilon=30)
    genes = protect_arcs(arcs, vertices=60, account=account)
    exact = DirectedGraph.of(arcs, vertices=60)
    loops = genes.feed_forward_loops().release(epsilon=1)
    assert abs(loops.value - exact.loops[0]) <= loops.error(1 - 1e-9)
    degrees = genes.out_degrees(up_to=30).release(epsilon=1)
    truth = np.bincount(np.minimum(exact.degrees("out"), 30), minlength=31)
    assert np.all(np.abs(degrees.value - truth) <= degrees.error(1 - 1e-11))
    assert genes.arcs().release(epsilon=20).value == pytest.approx(exact.arc_count, abs=2)
    assert "900" not in repr(genes) + repr(exact)


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(Unbounded, match="Edge"):
        ArcCount().sensitivity(Node(max_degree=3))
    with pytest.raises(InvalidParameter, match="up_to"):
        ArcDegrees(1, "out")
    with pytest.raises(InvalidParameter):
        DirectedGraph.of([("a", "b")], vertices=3)
    with pytest.raises(InvalidParameter, match="reports"):
        find_degree_distribution(np.array([0.5]), epsilon=1, max_degree=3)


def test_deconvolution_is_closer_to_the_truth_than_the_reports() -> None:
    """10,000 vertices: both distances have deviations below 0.02, and they lie more than 0.3 apart."""
    rng = np.random.default_rng()
    degrees = np.minimum(rng.geometric(0.2, 10_000), 40)
    reports = degrees + noise.discrete_laplace(2, 10_000, rng=noise.secure())
    truth = np.bincount(degrees, minlength=41) / 10_000
    naive = np.bincount(np.clip(reports, 0, 40), minlength=41) / 10_000
    found = find_degree_distribution(reports, epsilon=1, max_degree=40)
    assert found.sum() == pytest.approx(1)
    assert np.abs(found - truth).sum() < 0.8 * np.abs(naive - truth).sum()


def test_questions_about_arcs_survive_json_and_are_refused_by_other_graphs() -> None:
    genes = protect_arcs([(0, 1), (1, 2), (0, 2)], vertices=50)
    for question in (genes.arcs(), genes.in_degrees(up_to=5), genes.out_degrees(up_to=5), genes.feed_forward_loops()):
        stored = json.loads(json.dumps(question.to_dict()))
        assert mosha.graphs.Question.from_dict(genes, stored).fingerprint == question.fingerprint
        with pytest.raises(InvalidParameter):
            mosha.graphs.Question.from_dict(mosha.graphs.protect([(0, 1)], unit=Edge(), vertices=50), stored)
        with pytest.raises(InvalidParameter):
            mosha.graphs.Question.from_dict(protect_arcs([(0, 1)], vertices=51), stored)
