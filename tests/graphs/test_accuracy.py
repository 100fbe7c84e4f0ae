"""Answers are as accurate as was promised, and their noise has the law it should have.

False alarms: each statistical assertion below 1e-9, by the margins stated beside it.
"""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha.core.errors import InvalidParameter
from mosha.graphs import Graph, NoisyAdjacency, compare_models, protect, similarity
from mosha.graphs.data.louvain import modularity
from mosha.graphs.question import answer_of
from mosha.graphs.statistics.degrees import consistent_sequence, distribution, distribution_tail
from mosha.graphs.statistics.ladder import Rungs
from mosha.graphs.statistics.subgraphs import TriangleCount
from mosha.graphs.synthesis.adjacency import flip_positions, flip_rate, pairs_of_cells
from mosha.graphs.synthesis.generators import clustered_graph
from mosha.graphs.synthesis.seeds import coverage, greedy_seeds
from tests.graphs.real_graphs import real

SECURE = mosha.noise.secure()


def asked(question: Any, graph: Any, **price: Any) -> Any:
    return question.measurement(**price).step(None, graph, None, SECURE)[0]


def rung_counts(rungs: Any, widths: Any, draws: Any) -> Any:
    edges = np.cumsum([rungs.statistic.reach(rungs.raise_to_floor(widths), s) for s in range(200)])
    noise = np.abs([rungs.draw(widths, SECURE) for _ in range(draws)])
    return np.searchsorted(edges, noise)


def expected_below(decay: Any, sizes: Any, rung: Any) -> Any:
    weights = sizes * np.exp(-decay * np.arange(sizes.size))
    return weights[:rung].sum() / weights.sum()


@pytest.mark.parametrize("planted", [1.0, 0.8, 1.25])
def test_the_ladder_draws_rungs_by_their_weight(planted: float) -> None:
    """10,000 draws; a share is off by 6.5 standard deviations with probability below 1e-10, planted ones by 16."""
    rungs = Rungs(TriangleCount(1000), 1.0)
    widths, draws = (100,), 10_000
    found = (rung_counts(rungs, widths, draws) < 1).mean()
    truth = expected_below(planted * float(rungs.decay), rungs.sizes(widths, 400), 1)
    deviations = abs(found - truth) / math.sqrt(truth * (1 - truth) / draws)
    assert (deviations < 6.5) == (planted == 1.0)


def test_noise_of_the_ladder_is_even_within_its_rung_and_both_ways() -> None:
    """2000 draws: the mean sign is off by 6.5 / sqrt(2000) with probability below 1e-10."""
    rungs = Rungs(TriangleCount(1000), 1.0)
    drawn = np.array([rungs.draw((50,), SECURE) for _ in range(2000)])
    assert abs(np.sign(drawn).mean()) < 6.5 / math.sqrt(2000)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_error_bars_of_triangles_hold(delta: float) -> None:
    """At confidence 1 - 1e-12 a bar is missed never; at one half it is missed now and then: 300 draws."""
    graph = real("ca-GrQc")
    question = protect(graph, unit=mosha.Edge()).triangles().measurement(epsilon=1, delta=delta)
    missed = 0
    for _ in range(100):
        answer, _ = question.step(None, graph, None, SECURE)
        off = abs(answer["value"] - graph.triangles)
        assert off <= question.error(1 - 1e-12, answer)
        missed += off > graph.triangles * 1e-4
    assert missed > 20


@pytest.mark.parametrize("question", ["triangles", "clustering"])
def test_no_bar_is_given_where_a_cap_that_was_chosen_may_lose_triangles(question: str, tmp_path: Path) -> None:
    """A clique of ten in which the bound loses nothing: the noise alone would be a bar that does not hold."""
    clique = Graph.of([(i, j) for i in range(10) for j in range(i)], vertices=10)
    unit = mosha.Node(max_degree=9)
    account = mosha.Ledger(tmp_path / "privacy.db").account("people", unit=unit, epsilon=1)
    asked = getattr(protect(clique, unit=unit, account=account), question)()
    answer = asked.release(epsilon=1)
    with pytest.raises(InvalidParameter, match="may lose triangles"):
        answer.error(0.95)
    assert answer.plot().axes


def test_a_forecast_of_triangles_at_node_level_is_that_of_the_noise_at_the_largest_cap() -> None:
    asked = protect([(0, 1)], unit=mosha.Node(max_degree=9), vertices=10).triangles()
    scale = (32 + 2) / 0.6  # 32 is the last power of two up to C(9, 2), and two fifths of epsilon choose the cap
    assert asked.forecast(epsilon=1) == pytest.approx(scale * np.log(20), rel=0.03)


def test_triangles_are_as_accurate_as_the_published_bar() -> None:
    """The mean of 200 relative errors; a mean of 200 exponentials exceeds its own by a half with probability 1e-10."""
    for name, bar in {"facebook": 2.2e-4, "ca-GrQc": 1.8e-3}.items():
        graph = real(name)
        question = protect(graph, unit=mosha.Edge()).triangles()
        found = [asked(question, graph, epsilon=1, delta=1e-6)["value"] for _ in range(200)]
        assert np.mean(np.abs(np.array(found) - graph.triangles)) / graph.triangles < 1.5 * bar


def test_sorted_degrees_gain_from_their_order() -> None:
    """Plain noise has a mean squared error of 8; regression leaves a fiftieth of it on this graph."""
    graph = real("ca-GrQc")
    found = asked(protect(graph, unit=mosha.Edge()).degree_sequence(), graph, epsilon=1)
    assert ((found - np.sort(graph.degrees)) ** 2).mean() < 0.3
    assert (np.diff(found) >= -1e-12).all()


def test_a_sequence_without_noise_is_left_as_it_is() -> None:
    degrees = np.sort(np.random.default_rng().integers(0, 40, 300))
    assert np.allclose(consistent_sequence(degrees, 299, variance=1e-9), degrees)


def test_node_level_answers_are_near_the_truth() -> None:
    graph = real("ca-GrQc")
    behind = protect(graph, unit=mosha.Node(max_degree=64))
    found = asked(behind.edges(), graph, epsilon=1)
    assert abs(found["value"] - graph.edge_count) < 64 * 25 + 0.01 * graph.edge_count  # e^-25 and the bias
    curve = asked(behind.degree_distribution(), graph, epsilon=1)["value"]
    truth = np.cumsum(graph.degree_counts(65)) / graph.vertices
    assert np.abs(curve - truth).max() < 0.3
    assert curve[-1] == 1.0


def test_a_chosen_bound_serves_a_degree_distribution() -> None:
    """Means of 25 distances, measured mean and spread .024, .010 and .065, .020: the bars are 10 and 16 standard errors
    above; a bound chosen for edges instead has means of .064 and .168."""
    for name, bar in {"ca-GrQc": 0.045, "facebook": 0.13}.items():
        graph = real(name)
        truth = np.cumsum(graph.degree_counts(graph.vertices)) / graph.vertices
        question = protect(graph, unit=mosha.Node()).degree_distribution()
        curves = [asked(question, graph, epsilon=1)["value"] for _ in range(25)]
        longer = [np.append(curve, np.ones(truth.size))[: truth.size] for curve in curves]
        assert np.mean([np.abs(curve - truth).max() for curve in longer]) < bar
        assert all((np.diff(curve) >= 0).all() and curve[0] >= 0 and curve[-1] == 1.0 for curve in curves)


def test_degrees_beyond_a_bound_go_on_as_they_fall_below_it_and_a_cliff_stays() -> None:
    counts = 5000 * (1 - np.exp(-np.arange(1, 201) / 20))
    beyond = distribution_tail(counts[:32], 5000.0, 200)
    assert np.abs(beyond[:-1] - counts[32:199] / 5000).max() < 0.02
    assert (distribution_tail(np.zeros(32), 5000.0, 64) == 1.0).all()  # everybody has degree 32 or is cut there
    assert (distribution_tail(np.full(32, 5000.0), 5000.0, 64) == 1.0).all()
    for vertices in (0.0, -3.0):
        assert (distribution_tail(np.zeros(32), vertices, 64) == 1.0).all()
        assert (distribution(np.zeros(4), vertices) == 1.0).all()


def test_components_at_node_level_are_near_the_truth() -> None:
    """Laplace noise of scale 16 is beyond 400 with probability e^-25."""
    graph = real("ca-GrQc")
    found = asked(protect(graph, unit=mosha.Node(max_degree=16)).components(), graph, epsilon=1)
    assert abs(found["value"] - graph.components) <= 400
    assert protect(graph, unit=mosha.Node(max_degree=16)).components().forecast(epsilon=1) < 60


@pytest.mark.parametrize("unit", [mosha.Edge(), mosha.Node(max_degree=64)], ids=["edge", "node"])
@pytest.mark.parametrize("kind", ["cumulative_degrees", "degree_distribution"])
def test_bars_of_cumulative_degrees_hold_for_all_entries_at_once(unit: Any, kind: str) -> None:
    """Missed with probability 1e-10; ca-GrQc loses at most 60 vertices' worth of any entry to the bound of 64."""
    graph = real("ca-GrQc")
    question = getattr(protect(graph, unit=unit), kind)().measurement(epsilon=1)
    answer, _ = question.step(None, graph, None, SECURE)
    value = answer if isinstance(unit, mosha.Edge) else answer["value"]
    share = graph.vertices if kind == "degree_distribution" else 1
    truth = np.cumsum(graph.degree_counts(len(value))) / share
    lost = (
        0
        if isinstance(unit, mosha.Edge)
        else np.abs(np.cumsum(np.bincount(graph.projected_degrees(64)))[:64] / share - truth[:64]).max()
    )
    bar = question.error(1 - 1e-10, answer)
    assert (np.abs(value - truth) <= bar + lost + 1e-9).all()
    assert np.min(question.error(0.95, answer)) < 0.5 * graph.vertices / share  # and says something


def test_a_declared_bound_on_degrees_at_edge_level_is_asked() -> None:
    graph = real("ca-GrQc")
    behind = protect(graph, unit=mosha.Edge())
    shown = behind.sensitivities(max_degree=81)
    assert (shown["triangles"], shown["stars"]) == (81, 160)
    assert abs(asked(behind.triangles(max_degree=81), graph, epsilon=1) - graph.triangles) < 81 * 25
    assert abs(asked(behind.stars(2, max_degree=81), graph, epsilon=1) - graph.stars(2)) < 160 * 25
    with pytest.raises(InvalidParameter, match="edge level"):
        protect(graph, unit=mosha.Node()).triangles(max_degree=5)


def test_a_forecast_with_a_public_graph_tells_noise_and_bias() -> None:
    graph = real("ca-GrQc")
    edge, node = protect(graph, unit=mosha.Edge()), protect(graph, unit=mosha.Node(max_degree=8))
    assert edge.triangles().forecast(epsilon=1, like=graph) < edge.triangles().forecast(epsilon=1) / 10
    lost = graph.edge_count - int(graph.projected_degrees(8).sum()) // 2
    assert node.edges().forecast(epsilon=1, like=graph) == node.edges().forecast(epsilon=1) + lost


def test_randomized_response_flips_at_its_rate_and_cells_are_pairs() -> None:
    """1e6 cells: the share is off by 6.5 standard deviations with probability below 1e-10."""
    rate = flip_rate(1.0)
    truth = -math.expm1(-float(rate))
    assert math.log((1 - truth) / truth) <= 1.0
    flipped = flip_positions(1_000_000, rate, SECURE)
    assert abs(flipped.size / 1e6 - truth) < 6.5 * math.sqrt(truth / 1e6)
    assert (np.diff(flipped) > 0).all()
    n = 70
    pairs = pairs_of_cells(np.arange(n * (n - 1) // 2))
    assert len({tuple(pair) for pair in pairs.tolist()}) == n * (n - 1) // 2
    assert (pairs[:, 0] < pairs[:, 1]).all()
    large = pairs_of_cells(np.array([2**31 * (2**31 - 1) // 2 - 1]))
    assert large.tolist() == [[2**31 - 2, 2**31 - 1]]


class Answered:
    receipt = None

    def __init__(self, value: Any) -> None:
        self.value = value


def test_a_noisy_matrix_becomes_a_simple_graph_without_a_look_at_the_truth() -> None:
    graph = real("polblogs")
    raw = asked(protect(graph, unit=mosha.Edge()).adjacency(), graph, epsilon=6)
    matrix = NoisyAdjacency.of(answer_of(Answered(raw)))  # type: ignore[arg-type]
    closest = matrix.closest()
    assert closest.edge_count == min(max(matrix.edges, 0), 1490 * 1489 // 2)
    assert matrix.threshold().edge_count == raw["value"].size
    assert abs(matrix.estimate_edges() - graph.edge_count) < 2000
    assert np.array_equal(closest.neighbors(0), np.unique(closest.neighbors(0)))
    few = NoisyAdjacency(10, np.array([0, 1], np.int64), 0.1, 7).closest()
    assert few.edge_count == 7
    assert {(0, 1), (0, 2)} <= set(few)


@pytest.mark.parametrize("kind", ["clustered", "communities", "filter"])
def test_synthetic_graphs_are_simple_and_have_the_edges(kind: str) -> None:
    graph = real("polblogs")
    raw = asked(protect(graph, unit=mosha.Edge()).synthetic(kind), graph, epsilon=6)  # type: ignore[arg-type]
    made = Graph.of(raw["value"], vertices=graph.vertices)
    assert made.edge_count == len(raw["value"])
    assert abs(made.edge_count - graph.edge_count) < 0.05 * graph.edge_count
    if kind == "clustered":
        assert abs(made.triangles - graph.triangles) < 0.1 * graph.triangles
        scores = similarity(graph, made)
        assert scores["degree variance"] < 0.2
        assert similarity(graph, graph)["degree divergence"] == 0.0


@pytest.mark.parametrize("kind", ["clustered", "communities", "filter"])
def test_the_order_of_synthetic_pairs_tells_nothing(kind: str) -> None:
    graph = Graph.of([(i, i + 20) for i in range(20)], vertices=40)
    pairs = asked(protect(graph, unit=mosha.Edge()).synthetic(kind), graph, epsilon=2)["value"].tolist()  # type: ignore[arg-type]
    assert pairs == sorted([low, high] for low, high in pairs)
    assert all(low < high for low, high in pairs)


@pytest.mark.parametrize("epsilon", [2.0**-20, 2.0**-13, 0.01, 1.0, 1000.0])
def test_the_ladder_pays_for_its_growth_rounded_up(epsilon: Any) -> None:
    rungs = Rungs(TriangleCount(10**9), epsilon)
    told = Fraction(epsilon) - rungs.decay
    x = Fraction(1, rungs.floor)  # the order of triangles is 1: growth is 1 + x
    above = x - x**2 / 2 + x**3 / 3
    assert above - x**4 / 4 < told < above * (1 + Fraction(1, 2**38))


def test_generators_survive_degenerate_degrees() -> None:
    generator = np.random.default_rng()
    for degrees in ([0, 0, 0, 0], [1, 1, 0, 0], [3, 3, 3, 3], [9] * 10, [9] + [1] * 9):
        made = clustered_graph(np.array(degrees), 5, generator)
        assert (made.degrees <= np.array(degrees)).all()


def test_seeds_cover_nearly_what_greed_covers() -> None:
    graph = real("facebook")
    best = coverage(graph, greedy_seeds(graph, 5))
    chosen = asked(protect(graph, unit=mosha.Edge()).seeds(5), graph, epsilon=2)
    assert coverage(graph, chosen) >= 0.8 * best
    assert len(set(chosen)) == 5


def test_communities_and_partitions_find_what_is_there() -> None:
    halves = np.repeat([0, 1], 40)
    pairs = [(i, j) for i in range(80) for j in range(i) if halves[i] == halves[j]]
    graph = Graph.of(pairs, vertices=80)
    behind = protect(graph, unit=mosha.Edge())
    label = asked(behind.communities(), graph, epsilon=20)
    assert modularity(graph.starts, graph.ends, label) > 0.3
    wrong = np.arange(80) % 2
    assert asked(behind.best_partition([wrong, halves], density=0.5), graph, epsilon=1) == 1


def test_nobody_to_trust_costs_accuracy() -> None:
    generator = np.random.default_rng()
    graph = Graph.of(generator.integers(0, 60, (500, 2)), vertices=60)
    rows, figure = compare_models(graph, epsilon=2, draws=4)
    assert rows["triangles"][0] < rows["triangles"][1]
    assert figure.axes


def test_every_question_is_released_paid_plotted_and_found_again(tmp_path: Path) -> None:
    ledger = mosha.Ledger(tmp_path / "privacy.db")
    graph = real("polblogs")
    edge = protect(graph, unit=mosha.Edge(), account=ledger.account("e", unit=mosha.Edge(), epsilon=50, delta=1e-5))
    for question in (edge.edges(), edge.triangles(), edge.degree_sequence(), edge.clustering(), edge.average_degree()):
        answer = question.release(epsilon=1, key=question.title)
        assert np.array_equal(question.release(epsilon=1, key=question.title).value, answer.value)
        assert np.all(answer.error(0.9) >= 0)
        assert answer.plot().axes
    node = protect(graph, unit=mosha.Node(), account=ledger.account("n", unit=mosha.Node(), epsilon=50))
    for question in (node.edges(), node.degree_distribution(), node.cumulative_degrees(), node.degree_histogram()):
        answer = question.release(epsilon=1)
        assert answer.plot().axes
        assert "max_degree" in answer.details
        assert answer.receipt.cost <= 1
    ledger.close()
