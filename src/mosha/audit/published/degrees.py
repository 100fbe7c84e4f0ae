"""Who is who in a graph without names: people are recognized by how many friends they, and their friends, have."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer
from mosha.graphs import Graph

__all__ = ["reidentify_by_degrees"]


def reidentify_by_degrees(original: Graph, published: Graph, *, depth: int = 1) -> float:
    """The share of people whom an attacker finds again in a published graph, by degrees alone.

    The attacker knows the degree of each person (depth 1), or that and the sorted degrees of all friends (depth 2), and
    calls the one vertex of the published graph that has the same. A call counts if it is the right vertex: the vertices
    of both graphs have the same numbers, which the attacker does not see.

    Units:
        A share of all vertices, from 0 to 1.

    Args:
        original: the true graph.
        published: the graph that was released, on the same vertices: without names, or synthetic.
        depth: 1 or 2.

    >>> path = Graph.of([(0, 1), (1, 2), (2, 3), (3, 4), (3, 5)], vertices=6)
    >>> round(reidentify_by_degrees(path, path), 2), round(reidentify_by_degrees(path, path, depth=2), 2)
    (0.17, 0.67)
    """
    if original.vertices != published.vertices or original.vertices == 0:
        raise InvalidParameter("audit.graphs_of_other_people", parameter="published")
    if positive_integer("depth", depth) > 2:
        raise InvalidParameter("audit.depth_of_degrees", parameter="depth")
    known, seen = _describe(original, depth), _describe(published, depth)
    alone = {mark for mark, count in Counter(seen).items() if count == 1}
    return float(np.mean([mine == theirs and theirs in alone for mine, theirs in zip(known, seen, strict=True)]))


def _describe(graph: Graph, depth: int) -> list[tuple[int, ...]]:
    """What is known of each vertex."""
    degrees = graph.degrees
    if depth == 1:
        return [(int(degree),) for degree in degrees]
    return [(int(degrees[v]), *np.sort(degrees[graph.neighbors(v)]).tolist()) for v in range(graph.vertices)]
