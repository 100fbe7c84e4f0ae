"""Who is found again: by a few points of a trajectory, and by degrees in a graph without names."""

import numpy as np
import pytest

from mosha import audit
from mosha.core.errors import InvalidParameter
from mosha.graphs import Graph


def test_traces_that_are_all_alike_single_nobody_out_and_different_ones_everybody() -> None:
    alike = np.zeros((20, 6), int)
    assert audit.measure_unicity(alike, points=6) == 0
    assert audit.measure_unicity(alike + np.arange(20)[:, None], points=1) == 1


def test_more_points_single_out_more_people() -> None:
    """Two points of 10 places: about exp(-5) are alone; six points: all but one in 2,000."""
    traces = np.random.default_rng().integers(0, 10, (500, 30))
    assert audit.measure_unicity(traces, points=2) < 0.2
    assert audit.measure_unicity(traces, points=6) > 0.9


def test_places_that_are_not_known_are_not_used() -> None:
    assert audit.measure_unicity([[1, -1, -1], [-1, 2, -1]], points=2) == 0
    with pytest.raises(InvalidParameter, match="traces"):
        audit.measure_unicity([[0.5, 1.0]], points=1)


def test_people_are_found_again_by_degrees_and_not_in_a_graph_of_other_edges() -> None:
    """Of 80, 0.14 share their degrees with another on average: that 40 do has a chance far below 1e-20."""
    rng = np.random.default_rng()
    graph = Graph.of(rng.integers(0, 80, (400, 2)), vertices=80)
    other = Graph.of(rng.integers(0, 80, (400, 2)), vertices=80)
    assert audit.reidentify_by_degrees(graph, graph, depth=2) > 0.5
    assert audit.reidentify_by_degrees(graph, other, depth=2) < 0.1
    with pytest.raises(InvalidParameter, match="depth"):
        audit.reidentify_by_degrees(graph, graph, depth=3)
    with pytest.raises(InvalidParameter, match="published"):
        audit.reidentify_by_degrees(graph, Graph.of([], vertices=3))
