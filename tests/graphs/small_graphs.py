"""All graphs of up to five vertices, and all pairs of neighbors among them."""

import itertools
from functools import cache
from typing import Any

from mosha.graphs import Graph


@cache
def every_graph(n: Any) -> dict[Any, Any]:
    """Every labelled graph on n vertices: edges as a bit mask -> graph."""
    pairs = list(itertools.combinations(range(n), 2))
    return {
        mask: Graph.of([pair for i, pair in enumerate(pairs) if mask >> i & 1], vertices=n)
        for mask in range(1 << len(pairs))
    }


@cache
def edge_neighbors(n: Any) -> list[Any]:
    """(graph, the same graph with one edge more), every such pair once."""
    graphs = every_graph(n)
    bits = n * (n - 1) // 2
    return [(graph, graphs[mask | 1 << i]) for mask, graph in graphs.items() for i in range(bits) if not mask >> i & 1]


@cache
def vertex_neighbors(n: Any) -> list[Any]:
    """(graph without a vertex, graph), for every graph on n vertices and every vertex of it."""
    graphs = every_graph(n - 1)
    return [(graphs[without(mask, n, v)], graph) for mask, graph in every_graph(n).items() for v in range(n)]


def without(mask: Any, n: Any, vertex: Any) -> Any:
    """The mask of the graph without a vertex; the others keep their order."""
    others = [i for i, pair in enumerate(itertools.combinations(range(n), 2)) if vertex not in pair]
    return sum((mask >> i & 1) << place for place, i in enumerate(others))
