"""Directed graphs at the level of arcs: degrees in and out, and feed-forward loops, the motif of regulation.

The neighbors are graphs on the same vertices with one arc more or less; `mosha.Edge()` is the unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.core.errors import InvalidParameter, Unbounded
from mosha.core.number import positive_integer
from mosha.core.options import ArcSide, choose
from mosha.core.unit import Node, Unit
from mosha.exact.statistic import Sensitivity, Steps, root_up
from mosha.graphs.data.graph import AnyGraph
from mosha.graphs.statistics.statistic import check_unit
from mosha.graphs.statistics.subgraphs import SubgraphCount

__all__ = ["ArcCount", "ArcDegrees", "DirectedGraph", "FeedForwardLoops"]


@dataclass(frozen=True, eq=False, repr=False)
class DirectedGraph:
    """Vertices 0, ..., n - 1 and arcs between them; loops are dropped, repeated arcs merged.

    Arcs with an end that is no vertex are left out without a word: that there are any is private.

    >>> DirectedGraph.of([(0, 1), (1, 2), (0, 2), (2, 2), (0, 1), (9, 1)], vertices=3).arc_count
    3
    """

    arcs: NDArray[np.int64]
    vertices: int
    labels: ClassVar[None] = None

    @classmethod
    def of(cls, pairs: ArrayLike, *, vertices: int) -> DirectedGraph:
        count = positive_integer("vertices", vertices)
        array = np.asarray(pairs)
        array = array.reshape(-1, 2) if array.size else np.zeros((0, 2), np.int64)
        if array.dtype.kind not in "iu":
            raise InvalidParameter("graphs.ends_not_integers", parameter="pairs")
        inside = np.all((array >= 0) & (array < count), axis=1) & (array[:, 0] != array[:, 1])
        return cls(np.unique(array[inside].astype(np.int64), axis=0), count)

    @property
    def arc_count(self) -> int:
        return len(self.arcs)

    def degrees(self, side: ArcSide) -> NDArray[np.int64]:
        """How many arcs leave ("out") or reach ("in") each vertex."""
        return np.bincount(self.arcs[:, 0 if side == "out" else 1], minlength=self.vertices).astype(np.int64)

    def _matrix(self) -> Any:
        from scipy.sparse import csr_array  # noqa: PLC0415  (loops alone need it)

        ones = np.ones(len(self.arcs), np.int64)
        return csr_array((ones, (self.arcs[:, 0], self.arcs[:, 1])), shape=(self.vertices, self.vertices))

    @cached_property
    def loops(self) -> tuple[int, tuple[int, int, int]]:
        """Feed-forward loops, and the most targets, paths of two arcs and sources that two vertices have in common."""
        matrix = self._matrix()
        targets, paths, sources = matrix @ matrix.T, matrix @ matrix, matrix.T @ matrix
        widths = _find_largest(targets), _find_largest(paths), _find_largest(sources)
        return int((paths * matrix).sum()), widths

    def __repr__(self) -> str:
        return "DirectedGraph(...)"  # how many arcs it has may be private


def _find_largest(matrix: Any) -> int:
    """The largest entry beside the diagonal."""
    entries = matrix.tocoo()
    rows, columns = entries.coords
    return int(entries.data[rows != columns].max(initial=0))


def _check_arcs(unit: Unit) -> Unit:
    if isinstance(check_unit(unit), Node):
        raise Unbounded("graphs.node_level_arcs", parameter="unit")
    return unit


@dataclass(frozen=True)
class ArcCount:
    """How many arcs there are.

    Guarantee:
        One arc moves it by 1.

    >>> from mosha import Edge
    >>> ArcCount().sensitivity(Edge()).l1
    1
    """

    grid: ClassVar[float] = 1.0
    labels: ClassVar[None] = None

    def sensitivity(self, unit: Unit) -> Sensitivity:
        _check_arcs(unit)
        return Sensitivity(l0=1, l1=1, l2=1.0, linf=1, span=1, monotone=True)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        del unit
        return np.array([data.arc_count], np.int64)


@dataclass(frozen=True)
class ArcDegrees:
    """How many vertices have 0, 1, ..., length - 1 arcs out (or in); higher degrees count as the last one.

    Guarantee:
        One arc changes the degree of one vertex on each side, by 1: the vertex leaves one entry and joins the next.
        So two entries of either histogram move by 1 each, half of what an edge does that has no direction.

    >>> from mosha import Edge
    >>> ArcDegrees(10, "out").sensitivity(Edge()).l1
    2
    """

    length: int
    side: ArcSide
    grid: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if positive_integer("length", self.length) < 2:
            raise InvalidParameter("graphs.one_degree", parameter="up_to")
        choose("side", self.side, ArcSide)

    @property
    def labels(self) -> tuple[int, ...]:
        return tuple(range(self.length))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        _check_arcs(unit)
        return Sensitivity(l0=2, l1=2, l2=root_up(2), linf=1, span=2)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        del unit
        degrees = np.minimum(data.degrees(self.side), self.length - 1)
        return np.bincount(degrees, minlength=self.length).astype(np.int64)


@dataclass(frozen=True)
class FeedForwardLoops(SubgraphCount):
    """Triples a -> b, b -> c, a -> c; the widths are the most common targets, paths and sources of two vertices.

    Guarantee:
        The arc i -> j is in |out(i) & out(j)| loops as a -> b, in |out(i) & in(j)| as a -> c and in |in(i) & in(j)| as
        b -> c; none of the three depends on that arc, so adding or removing it moves the count by at most the sum of
        the largest such numbers of either graph. Each has at most n - 2 members, and one arc k -> l is one condition
        of one member, so that no number, and no largest one, changes by more than 1.

    >>> loop = DirectedGraph.of([(0, 1), (1, 2), (0, 2)], vertices=4)
    >>> FeedForwardLoops(4).evaluate(loop), FeedForwardLoops(4).widths(loop), FeedForwardLoops(4).global_sensitivity
    (1, (1, 1, 1), 6)
    """

    @property
    def order(self) -> int:
        return 1

    @property
    def parts(self) -> int:
        return 3

    @property
    def most(self) -> int:
        return self.vertices * max(self.vertices - 1, 0) * max(self.vertices - 2, 0)

    def evaluate(self, graph: Any) -> int:
        loops: int = self.check_graph(graph).loops[0]
        return loops

    def widths(self, graph: AnyGraph | DirectedGraph) -> tuple[int, ...]:
        assert isinstance(graph, DirectedGraph)
        return graph.loops[1]
