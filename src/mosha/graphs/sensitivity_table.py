"""How far one edge or one vertex can move each statistic: derived, and shown."""

from __future__ import annotations

import math

from mosha.core.unit import Edge, Node, Unit
from mosha.graphs.statistics import (
    ComponentCount,
    CumulativeDegrees,
    DegreeHistogram,
    EdgeCount,
    MaximumDegree,
    SortedDegrees,
    StarsOfBounded,
    check_unit,
)
from mosha.graphs.subgraphs import StarCount, TriangleCount

__all__ = ["sensitivities"]


def sensitivities(unit: Unit, *, vertices: int | None = None, leaves: int = 2) -> dict[str, int | None]:
    """The worst case of each statistic (l1 for vectors); None where one unit can move it without a public limit.

    At edge level triangles and stars are in fact released with noise for the graph at hand, which is far smaller.

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
            "triangles": TriangleCount(n).global_sensitivity if vertices is not None else None,
            "stars": StarCount(n, leaves).global_sensitivity if vertices is not None else None,
            "components": ComponentCount().sensitivity(unit).l1,
        }
    assert isinstance(unit, Node)
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
        "components": bound,
    }
