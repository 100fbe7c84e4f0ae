"""Counts of small subgraphs at edge level, with how far one edge can move them: on this graph and on graphs nearby."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.number import positive_integer
from mosha.graphs.data.graph import AnyGraph

__all__ = ["StarCount", "SubgraphCount", "TriangleCount"]

LARGEST = 1 << 62


@dataclass(frozen=True)
class SubgraphCount:
    """A count f with widths w_1, ..., w_j of the graph that say how far one edge moves it.

    Guarantee:
        With r = `order` and cap = n - 2, put A_s(G) = sum over i of C(min(w_i + s, cap), r). For neighbors G, G' (one
        edge more or less) |f(G) - f(G')| <= min(A_0(G), A_0(G')), and no w_i changes by more than 1; hence A_s(G) <=
        A_(s+1)(G'). Each kind of count proves the first two; the third follows as C(x, r) grows with x.

    Units:
        Counts of subgraphs; widths are degrees or numbers of common neighbors.
    """

    vertices: int

    def __post_init__(self) -> None:
        if self.vertices < 0:
            raise InvalidParameter("graphs.negative_vertices", parameter="vertices")
        if 2 * math.comb(max(self.vertices - 2, 0), self.order) >= LARGEST:
            raise InvalidParameter("graphs.count_too_large", parameter="vertices")

    @property
    def order(self) -> int:
        raise NotImplementedError

    @property
    def parts(self) -> int:
        """How many widths there are."""
        raise NotImplementedError

    @property
    def most(self) -> int:
        """The largest count that a graph of this size can have."""
        raise NotImplementedError

    @property
    def cap(self) -> int:
        return max(self.vertices - 2, 0)

    @property
    def global_sensitivity(self) -> int:
        return self.parts * math.comb(self.cap, self.order)

    def evaluate(self, graph: object) -> int:
        raise NotImplementedError

    def widths(self, graph: AnyGraph) -> tuple[int, ...]:
        raise NotImplementedError

    def reach(self, widths: tuple[int, ...], distance: int) -> int:
        """A_s for one s."""
        return sum(math.comb(min(w + distance, self.cap), self.order) for w in widths)

    def reaches(self, widths: tuple[int, ...], length: int) -> NDArray[np.float64]:
        """A_0, ..., A_(length - 1) as floats, each off by less than 2**-48, relative."""
        total = np.zeros(length)
        for w in widths:
            places = np.minimum(w + np.arange(length, dtype=np.float64), self.cap)
            chosen = np.ones(length)
            for i in range(self.order):
                chosen *= np.maximum(places - i, 0) / (i + 1)
            total += chosen
        return total

    def check_graph(self, graph: AnyGraph) -> Any:
        if graph.vertices != self.vertices:
            raise DataError("graphs.wrong_vertices")
        return graph


@dataclass(frozen=True)
class TriangleCount(SubgraphCount):
    """Triangles; the width is the largest number a of common neighbors over all pairs of vertices.

    Guarantee:
        Adding or removing the edge ij changes the count by the common neighbors of i and j, which do not depend on
        that edge: at most a(G) and at most a(G'). One edge ik changes the common neighbors of a pair (i, j) by one at
        most, so a by one at most.

    >>> from mosha.graphs.data.graph import Graph
    >>> clique = Graph.of([(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)], vertices=4)
    >>> TriangleCount(4).evaluate(clique), TriangleCount(4).widths(clique), TriangleCount(4).global_sensitivity
    (4, (2,), 2)
    """

    @property
    def order(self) -> int:
        return 1

    @property
    def parts(self) -> int:
        return 1

    @property
    def most(self) -> int:
        return math.comb(self.vertices, 3)

    def evaluate(self, graph: Any) -> int:
        return int(self.check_graph(graph).triangles)

    def widths(self, graph: AnyGraph) -> tuple[int, ...]:
        return (int(graph.most_common_neighbors),)


@dataclass(frozen=True)
class StarCount(SubgraphCount):
    """Stars with k leaves; the widths are the two highest degrees.

    Guarantee:
        Adding the edge ij adds C(d_i, k-1) + C(d_j, k-1) stars, degrees without that edge: at most n - 2 each, and at
        most the two highest degrees of either graph. One edge changes no degree, so no sorted degree, by more than 1.

    >>> from mosha.graphs.data.graph import Graph
    >>> star = Graph.of([(0, 1), (0, 2), (0, 3)], vertices=4)
    >>> StarCount(4, 2).evaluate(star), StarCount(4, 2).widths(star), StarCount(4, 2).global_sensitivity
    (3, (3, 1), 4)
    """

    leaves: int

    def __post_init__(self) -> None:
        if positive_integer("leaves", self.leaves) < 2:
            raise InvalidParameter("graphs.two_leaves", parameter="leaves")
        super().__post_init__()

    @property
    def order(self) -> int:
        return self.leaves - 1

    @property
    def parts(self) -> int:
        return 2

    @property
    def most(self) -> int:
        return self.vertices * math.comb(max(self.vertices - 1, 0), self.leaves)

    def evaluate(self, graph: Any) -> int:
        return int(self.check_graph(graph).stars(self.leaves))

    def widths(self, graph: AnyGraph) -> tuple[int, ...]:
        return tuple(int(d) for d in graph.highest_degrees())


def growth(order: int, floor: int) -> Fraction:
    """How much more C(x + 1, r) is than C(x, r) at most, for x >= floor >= r."""
    return Fraction(floor + 1, floor + 1 - order)
