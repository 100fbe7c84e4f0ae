"""Triangles and stars at edge level under a declared bound on degrees, which is enforced and not believed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer
from mosha.core.unit import Edge, Unit
from mosha.exact.statistic import Sensitivity, Steps, root_up
from mosha.graphs.statistics.lipschitz import triangles_capped_at_edges

__all__ = ["StarsOfClamped", "TrianglesOfBounded"]

LARGEST = 1 << 60


def _single_sensitivity(step: int, unit: Unit) -> Sensitivity:
    if not isinstance(unit, Edge):
        raise InvalidParameter("graphs.edge_level_only", parameter="unit")
    return Sensitivity(l0=1, l1=step, l2=root_up(step * step), linf=step, span=min(step, 2 * step), monotone=False)


@dataclass(frozen=True)
class TrianglesOfBounded:
    """Triangles of which no edge holds more than D - 1, as in every graph of degrees at most D.

    Guarantee:
        `triangles_capped_at_edges` moves by -1 to D when one edge is added, whatever the degrees are; where no edge is
        in more than D - 1 triangles it is their number.

    >>> TrianglesOfBounded(10).sensitivity(Edge()).l1
    10
    """

    max_degree: int
    grid: ClassVar[float] = 1.0
    labels: ClassVar[None] = None

    def __post_init__(self) -> None:
        if positive_integer("max_degree", self.max_degree) < 2:
            raise InvalidParameter("graphs.no_triangles", parameter="max_degree")

    def sensitivity(self, unit: Unit) -> Sensitivity:
        return _single_sensitivity(self.max_degree, unit)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        del unit
        return np.array([triangles_capped_at_edges(data, self.max_degree - 1)], np.int64)


@dataclass(frozen=True)
class StarsOfClamped:
    """Stars with k leaves, every degree first clamped to D.

    Guarantee:
        One edge moves two clamped degrees by one or none, and C(d, k) by at most C(D, k) - C(D - 1, k) =
        C(D - 1, k - 1) each, as it is convex in d.

    >>> StarsOfClamped(2, 10).sensitivity(Edge()).l1
    18
    """

    leaves: int
    max_degree: int
    grid: ClassVar[float] = 1.0
    labels: ClassVar[None] = None

    def __post_init__(self) -> None:
        if positive_integer("leaves", self.leaves) < 2 or positive_integer("max_degree", self.max_degree) < self.leaves:
            raise InvalidParameter("graphs.star_leaves", parameter="leaves")
        if 2 * math.comb(self.max_degree - 1, self.leaves - 1) >= LARGEST:
            raise InvalidParameter("graphs.count_too_large_for_degrees")

    def sensitivity(self, unit: Unit) -> Sensitivity:
        return _single_sensitivity(2 * math.comb(self.max_degree - 1, self.leaves - 1), unit)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        del unit
        counts = data.degree_counts(self.max_degree + 1)
        total = sum(math.comb(degree, self.leaves) * int(count) for degree, count in enumerate(counts))
        return np.array([min(total, LARGEST)], np.int64)
