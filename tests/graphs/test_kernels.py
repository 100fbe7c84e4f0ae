"""Compiled loops, their twins without a compiler, and the golden numbers of real graphs agree."""

from typing import Any

import numpy as np
import pytest

from mosha.graphs import Graph
from mosha.graphs.data import compiled, sparse
from mosha.graphs.data.graph import split_rows
from mosha.graphs.synthesis import generators
from tests.graphs.real_graphs import GOLDEN, real
from tests.graphs.small_graphs import every_graph


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_exact_statistics_are_the_published_ones(name: Any) -> None:
    graph, row = real(name), GOLDEN[name]
    assert graph.edge_count == int(row["m"])
    assert graph.highest_degrees()[0] == int(row["max_degree"])
    assert int((graph.degrees == 0).sum()) == int(row["isolated"])
    assert graph.components == int(row["components"])
    assert graph.triangles == int(row["triangles"])
    assert [graph.stars(k) for k in (2, 3, 4)] == [int(row[f"stars{k}"]) for k in (2, 3, 4)]
    assert graph.most_common_neighbors == int(row["max_common_neighbors_all_pairs"])
    assert compiled.triangles_at(graph.starts, graph.ends).max() == int(row["max_triangles_on_a_node"])


def random_graph(generator: Any, vertices: Any, edges: Any) -> Any:
    hubs = generator.integers(0, max(1, vertices // 8), edges)  # a few vertices of high degree
    return Graph.of(np.stack([hubs, generator.integers(0, vertices, edges)], axis=1), vertices=vertices)


def both(name: Any, *arguments: Any) -> tuple[Any, ...]:
    return getattr(compiled, name)(*arguments), getattr(sparse, name)(*arguments)


@pytest.mark.parametrize(("vertices", "edges"), [(0, 0), (1, 3), (7, 12), (60, 400), (500, 3000)])
def test_both_kinds_of_kernels_give_the_same_integers(vertices: int, edges: int) -> None:
    generator = np.random.default_rng()
    pairs = generator.integers(0, max(vertices, 1), (edges if vertices else 0, 2))
    for ours, theirs in zip(*both("compress_rows", pairs[:, 0], pairs[:, 1], vertices), strict=True):
        assert np.array_equal(ours, theirs)
    graph = random_graph(generator, vertices, edges) if vertices else Graph.of([], vertices=0)
    rows = (graph.starts, graph.ends)
    for name in ("triangle_count", "most_common_neighbors", "component_count"):
        ours, theirs = both(name, *rows)
        assert ours == theirs, name
    for name in ("triangles_at", "distance_counts"):
        assert np.array_equal(*both(name, *rows)), name
    listed, other = (set(map(frozenset, found.tolist())) for found in both("list_triangles", *rows))
    assert listed == other
    assert len(listed) == graph.triangles
    for bound in (1, 3):
        for ours, theirs in zip(*both("project_degrees", *rows, bound), strict=True):
            assert np.array_equal(ours, theirs)
    values = generator.normal(size=vertices)
    assert np.allclose(*both("fit_isotonic", values))


def test_common_neighbors_are_counted_over_all_pairs_joined_or_not() -> None:
    for graph in every_graph(5).values():
        rows = [set(graph.neighbors(v).tolist()) for v in range(5)]
        brute = max(len(rows[a] & rows[b]) for a in range(5) for b in range(a))
        assert compiled.most_common_neighbors(graph.starts, graph.ends) == brute
        assert sparse.most_common_neighbors(graph.starts, graph.ends) == brute


def test_a_projection_keeps_the_bound_and_loses_nothing_below_it() -> None:
    generator = np.random.default_rng()
    graph = random_graph(generator, 300, 2000)
    for bound in (1, 5, 40):
        assert graph.projected_degrees(bound).max() <= bound
    assert np.array_equal(graph.projected_degrees(300), graph.degrees)


def test_isotonic_regression_is_increasing_and_keeps_the_sum() -> None:
    values = np.random.default_rng().normal(size=400)
    fitted = compiled.fit_isotonic(values)
    assert (np.diff(fitted) >= 0).all()
    assert fitted.sum() == pytest.approx(values.sum())
    assert np.array_equal(compiled.fit_isotonic(np.sort(values)), np.sort(values))


@pytest.mark.parametrize("at_once", [1, 7, 2**20])
def test_stubs_are_matched_without_loops_repetitions_or_edges_that_are_there(
    at_once: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generators, "CODES_AT_ONCE", at_once)
    for _ in range(50):
        source = np.random.default_rng()
        vertices = int(source.integers(2, 40))
        stubs = source.integers(0, 6, vertices)
        taken = Graph.of(source.integers(0, vertices, (10, 2)), vertices=vertices).pairs().astype(np.int64)
        codes = taken[:, 0] * vertices + taken[:, 1]
        found = generators.match_stubs(stubs, codes, vertices, source)
        low, high = found // vertices, found % vertices
        assert (low < high).all()
        assert len(np.unique(found)) == len(found)
        assert not np.isin(found, codes).any()
        assert (np.bincount(np.concatenate([low, high]), minlength=vertices) <= stubs).all()


@pytest.mark.parametrize("size", [1, 5, 10**6])
def test_rows_are_split_into_ranges_that_cover_all_vertices_in_order(size: Any) -> None:
    graph = random_graph(np.random.default_rng(), 60, 150)
    ranges = list(split_rows(graph.starts, size))
    assert [vertex for first, last in ranges for vertex in range(first, last)] == list(range(60))
    for first, last in ranges:
        assert last == first + 1 or graph.starts[last - 1] - graph.starts[first] < size


@pytest.mark.parametrize("triangles", [0, 30, 10**6])
def test_slices_do_not_change_the_graph_that_is_made(triangles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = np.random.default_rng()
    degrees, replayed = source.integers(0, 9, 80), int(source.integers(2**32))
    made = []
    for at_once in (5, 2**20):
        monkeypatch.setattr(generators, "CODES_AT_ONCE", at_once)
        made.append(generators.clustered_graph(degrees, triangles, np.random.default_rng(replayed)))
    assert np.array_equal(made[0].starts, made[1].starts)
    assert np.array_equal(made[0].ends, made[1].ends)
    again = Graph.of(made[0].pairs(), vertices=80)
    assert np.array_equal(again.starts, made[0].starts)
    assert np.array_equal(again.ends, made[0].ends)
