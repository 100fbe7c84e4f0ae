"""How far one edge or one vertex can move each statistic: derived, and shown."""

from __future__ import annotations

import math

from mosha.core.names.calls import explain_wrong_calls
from mosha.core.unit import Edge, Node, Unit
from mosha.graphs.statistics.bounded_subgraphs import StarsOfClamped, TrianglesOfBounded
from mosha.graphs.statistics.statistic import (
    ComponentCount,
    CumulativeDegrees,
    DegreeHistogram,
    EdgeCount,
    MaximumDegree,
    SortedDegrees,
    StarsOfBounded,
    check_unit,
)
from mosha.graphs.statistics.subgraphs import StarCount, TriangleCount

__all__ = ["sensitivities"]


@explain_wrong_calls
def sensitivities(
    unit: Unit, *, vertices: int | None = None, leaves: int = 2, max_degree: int | None = None
) -> dict[str, int | None]:
    """The worst case of each statistic (l1 for vectors); None where one unit can move it without a public limit.

    At edge level triangles and stars are in fact released with noise for the graph at hand, which is far smaller. With
    `max_degree` they are those of `triangles(max_degree=...)` and `stars(k, max_degree=...)`, which enforce the bound
    (for triangles D - 1, and 1 for rounding the linear programme). At node level the bound is that of the unit; without
    one a vertex has at most `vertices` - 1 edges.

    `unit` is `Edge()` or `Node()`, and stars have so many `leaves`.

    >>> sensitivities(Edge(), vertices=100)["triangles"], sensitivities(Node(max_degree=10))["degree histogram"]
    (98, 21)
    """
    check_unit(unit)
    if isinstance(unit, Edge):
        n = vertices or 0
        return {
            "edges": EdgeCount().sensitivity(unit).l1,
            "maximum degree": MaximumDegree().sensitivity(unit).l1,
            "degree sequence": SortedDegrees(0).sensitivity(unit).l1,
            "degree histogram": DegreeHistogram(max(n, 1)).sensitivity(unit).l1,
            "triangles": _triangles(vertices, max_degree),
            "stars": _stars(vertices, leaves, max_degree),
            "components": ComponentCount().sensitivity(unit).l1,
        }
    assert isinstance(unit, Node)
    if unit.max_degree is None and vertices is not None:
        unit = Node(max_degree=max(vertices - 1, 1))
    names = ("edges", "maximum degree", "degree histogram", "cumulative degrees", "triangles", "stars", "components")
    bound = unit.max_degree
    if bound is None:
        return dict.fromkeys(names)
    return {
        "edges": EdgeCount().sensitivity(unit).l1,
        "maximum degree": MaximumDegree().sensitivity(unit).l1,
        "degree histogram": DegreeHistogram(bound + 1).sensitivity(unit).l1,
        "cumulative degrees": CumulativeDegrees(bound).sensitivity(unit).l1,
        "triangles": math.comb(bound, 2),
        "stars": StarsOfBounded(leaves).sensitivity(unit).l1 if bound >= 2 else 0,
        "components": max(bound, 2),
    }


def _triangles(vertices: int | None, max_degree: int | None) -> int | None:
    if max_degree is not None:
        return TrianglesOfBounded(max_degree).sensitivity(Edge()).l1
    return TriangleCount(vertices).global_sensitivity if vertices is not None else None


def _stars(vertices: int | None, leaves: int, max_degree: int | None) -> int | None:
    if max_degree is not None:
        return StarsOfClamped(leaves, max_degree).sensitivity(Edge()).l1
    return StarCount(vertices, leaves).global_sensitivity if vertices is not None else None
