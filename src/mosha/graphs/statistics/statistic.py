"""Statistics of a graph that additive noise can be put on, each with how far an edge or a vertex moves it.

At node level degrees are bounded first by edge addition in an order of labels (`projection.md`): only functions of the
bounded degrees are asked there, for which the bound is proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mosha.core.errors import DataError, InvalidParameter, Unbounded
from mosha.core.number import positive_integer
from mosha.core.unit import Edge, Neighbors, Node, Unit
from mosha.exact.statistic import Sensitivity, Steps, root_up

__all__ = [
    "ComponentCount",
    "CumulativeDegrees",
    "DegreeHistogram",
    "EdgeCount",
    "MaximumDegree",
    "SortedDegrees",
    "StarsOfBounded",
    "VertexCount",
    "check_unit",
    "degree_bound",
]


LONGEST = 1 << 22
"""Entries of a histogram of degrees: each has noise of its own."""


def _entries(length: int) -> tuple[int, ...]:
    if length > LONGEST:
        raise InvalidParameter("graphs.histogram_too_long", parameter="max_degree")
    return tuple(range(length))


def check_unit(unit: object) -> Unit:
    """An Edge or a Node that comes or goes."""
    if not isinstance(unit, Edge | Node):
        raise InvalidParameter("graphs.unit_of_graph", parameter="unit")
    if unit.neighbors is not Neighbors.ADD_REMOVE:
        raise InvalidParameter("graphs.neighbors_of_graphs", parameter="unit")
    return unit


def degree_bound(unit: Unit, name: str) -> int:
    """The public bound on degrees that a statistic at node level needs."""
    if isinstance(unit, Node) and unit.max_degree is not None:
        return unit.max_degree
    raise Unbounded("graphs.needs_degree_bound", parameter="unit", statistic=name)


def _make_sensitivity(l0: int, l1: int, linf: int, *, monotone: bool = False) -> Sensitivity:
    span = linf if monotone else min(l1, 2 * linf)
    return Sensitivity(l0=l0, l1=l1, l2=root_up(l1 * linf), linf=linf, span=span, monotone=monotone)


def _as_vector(value: int) -> Steps:
    return np.array([value], np.int64)


@dataclass(frozen=True)
class _GraphNumber:
    """A whole number about a graph."""

    grid: ClassVar[float] = 1.0
    labels: ClassVar[None] = None


@dataclass(frozen=True)
class EdgeCount(_GraphNumber):
    """How many edges there are; at node level, after degrees were bounded.

    Guarantee:
        One edge moves it by 1. One vertex moves the edges of the bounded graph by at most D and never down
        (`projection.md`).

    >>> EdgeCount().sensitivity(Edge()).l1, EdgeCount().sensitivity(Node(max_degree=50)).l1
    (1, 50)
    """

    def sensitivity(self, unit: Unit) -> Sensitivity:
        step = 1 if isinstance(check_unit(unit), Edge) else degree_bound(unit, "the number of edges")
        return _make_sensitivity(1, step, step, monotone=True)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        if isinstance(unit, Edge):
            return _as_vector(data.edge_count)
        return _as_vector(int(data.projected_degrees(degree_bound(unit, "the number of edges")).sum()) // 2)


@dataclass(frozen=True)
class VertexCount(_GraphNumber):
    """How many vertices there are: private at node level only.

    Guarantee:
        One vertex moves it by 1; one edge not at all, so that `laplace` refuses to sell it at edge level.

    >>> VertexCount().sensitivity(Node()).l1
    1
    """

    def sensitivity(self, unit: Unit) -> Sensitivity:
        step = 0 if isinstance(check_unit(unit), Edge) else 1
        return _make_sensitivity(step, step, step, monotone=True)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        del unit
        return _as_vector(data.vertices)


@dataclass(frozen=True)
class ComponentCount(_GraphNumber):
    """How many connected components there are, at edge level.

    Guarantee:
        One edge joins two components or none: it moves the count by at most 1.

    >>> ComponentCount().sensitivity(Edge()).l1
    1
    """

    def sensitivity(self, unit: Unit) -> Sensitivity:
        if isinstance(check_unit(unit), Node):
            raise Unbounded("graphs.node_level_components", parameter="unit")
        return _make_sensitivity(1, 1, 1)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        del unit
        return _as_vector(data.components)


@dataclass(frozen=True)
class MaximumDegree(_GraphNumber):
    """The highest degree; at node level, clamped to the public bound.

    Guarantee:
        One edge moves every degree, so the highest, by at most 1. Clamped into [0, D] it moves by at most D.

    >>> MaximumDegree().sensitivity(Edge()).l1, MaximumDegree().sensitivity(Node(max_degree=50)).l1
    (1, 50)
    """

    def sensitivity(self, unit: Unit) -> Sensitivity:
        step = 1 if isinstance(check_unit(unit), Edge) else degree_bound(unit, "the maximum degree")
        return _make_sensitivity(1, step, step, monotone=True)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        highest = data.highest_degrees()[0]
        return _as_vector(highest if isinstance(unit, Edge) else min(highest, degree_bound(unit, "the maximum degree")))


@dataclass(frozen=True)
class SortedDegrees:
    """All degrees in increasing order, at edge level.

    Guarantee:
        One edge raises two degrees by 1. Sorting both lists moves no coordinate further apart in total (l1), so the
        sorted list moves by at most 2, and each entry by at most 1.

    >>> SortedDegrees(10).sensitivity(Edge()).l1
    2
    """

    vertices: int
    grid: ClassVar[float] = 1.0
    labels: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(range(self.vertices)))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        if isinstance(check_unit(unit), Node):
            raise Unbounded("graphs.node_level_degrees", parameter="unit")
        return _make_sensitivity(2, 2, 1, monotone=True)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        del unit
        if data.vertices != self.vertices:
            raise DataError("graphs.wrong_vertices")
        return np.repeat(np.arange(self.vertices, dtype=np.int64), data.degree_counts(self.vertices))


@dataclass(frozen=True)
class DegreeHistogram:
    """How many vertices have degree 0, 1, ..., length - 1; higher degrees count as the last one.

    Guarantee:
        One edge moves two vertices by one place each: 2 entries each, l1 4. At node level the length is D + 1, a vertex
        moves at most D others by one place and brings itself: 2 D + 1 (`projection.md`).

    >>> DegreeHistogram(10).sensitivity(Edge()).l1, DegreeHistogram(51).sensitivity(Node(max_degree=50)).l1
    (4, 101)
    """

    length: int
    grid: ClassVar[float] = 1.0

    @property
    def labels(self) -> tuple[int, ...]:
        return _entries(self.length)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        if isinstance(check_unit(unit), Edge):
            return _make_sensitivity(min(4, self.length), 4, 2)
        bound = _check_length(self.length, unit)
        return _make_sensitivity(min(2 * bound + 1, self.length), 2 * bound + 1, bound + 1)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        if isinstance(unit, Edge):
            counts: Steps = data.degree_counts(self.length)
            return counts
        return np.bincount(data.projected_degrees(_check_length(self.length, unit)), minlength=self.length).astype(
            np.int64
        )


@dataclass(frozen=True)
class CumulativeDegrees:
    """How many vertices have degree at most 0, 1, ..., D, at node level, after degrees were bounded by D.

    The last entry, all vertices, is counted `weight` times: its noise is the smaller after it is divided again.

    Guarantee:
        A vertex of bounded degree k moves k others by one place, one entry below D each, and brings D - k such entries
        of its own and 1, times the weight, in the last: D + weight in l1 (`projection.md`).

    >>> CumulativeDegrees(50).sensitivity(Node(max_degree=50)).l1
    51
    """

    bound: int
    weight: int = 1
    grid: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        positive_integer("weight", self.weight)

    @property
    def labels(self) -> tuple[int, ...]:
        return _entries(self.bound + 1)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        if isinstance(check_unit(unit), Edge):
            return _make_sensitivity(2, 2, 2, monotone=True)
        bound = _check_length(self.bound + 1, unit)
        return _make_sensitivity(bound + 1, bound + self.weight, bound + self.weight)

    def evaluate(self, data: object, unit: Unit) -> Steps:
        counts = np.cumsum(DegreeHistogram(self.bound + 1).evaluate(data, unit))
        counts[-1] *= self.weight
        return counts


@dataclass(frozen=True)
class StarsOfBounded(_GraphNumber):
    """Stars with k leaves at node level, counted in the graph of bounded degrees.

    Guarantee:
        The count is the sum of C(d, k) over the bounded degrees. A vertex brings at most C(D, k) of its own and moves
        at most D others by one, each by at most C(D, k) - C(D - 1, k) = C(D - 1, k - 1) (`projection.md`).

    >>> StarsOfBounded(2).sensitivity(Node(max_degree=10)).l1
    135
    """

    leaves: int

    def sensitivity(self, unit: Unit) -> Sensitivity:
        if isinstance(check_unit(unit), Edge):
            raise InvalidParameter("graphs.edge_level_stars", parameter="unit")
        bound = degree_bound(unit, "the number of stars")
        step = math.comb(bound, self.leaves) + bound * math.comb(bound - 1, self.leaves - 1)
        if step == 0:
            raise InvalidParameter("graphs.no_stars", parameter="leaves")
        return _make_sensitivity(1, step, step)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        degrees, counts = np.unique(data.projected_degrees(degree_bound(unit, "stars")), return_counts=True)
        total = sum(math.comb(int(d), self.leaves) * int(c) for d, c in zip(degrees, counts, strict=True))
        return _as_vector(min(total, 1 << 60))


def _check_length(length: int, unit: Unit) -> int:
    bound = degree_bound(unit, "a degree histogram")
    if length != bound + 1:
        raise InvalidParameter("graphs.histogram_length", parameter="length")
    return bound
