"""How many vertices a graph has beyond its components, as a linear programme that no vertex can move far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.graphs.data.exact_programme import maximize
from mosha.graphs.data.graph import Graph

__all__ = ["bounded_forest"]

TOLERANCE = 0.25
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def bounded_forest(graph: Graph, bound: int) -> int:
    """The largest size of a mixture of forests in which no vertex has more edges than `bound`; a whole number.

    Where a spanning forest of such degrees exists it is the vertices minus the components.

    Guarantee:
        See `forests.md`: it moves by -1 to bound + 1 when a vertex is added. The solver is not trusted.

    Units:
        Edges.

    >>> path, star = Graph.of([(0, 1), (1, 2)], vertices=4), Graph.of([(0, i) for i in range(1, 9)], vertices=9)
    >>> bounded_forest(path, 2), bounded_forest(star, 3), bounded_forest(star, 8)
    (2, 3, 8)
    """
    if graph.edge_count == 0:
        return 0
    mixture = _Mixture(graph.pairs().astype(np.int64), graph.vertices, bound)
    upper, trusted = float(graph.vertices - graph.components), np.zeros(graph.vertices)
    asked = [trusted]
    while True:
        before = mixture.size
        for prices in asked:
            value = mixture.add_heaviest(prices)
            if value < upper:
                upper, trusted = value, prices
        lower, prices = mixture.best_mixture()
        if upper - lower <= TOLERANCE:
            return int(np.floor(upper + 0.5))
        if mixture.size == before:
            return math.floor(mixture.exact_optimum() + Fraction(1, 2))
        asked = [prices, 0.7 * trusted + 0.3 * prices]  # those in between hold the search steady


@dataclass
class _Mixture:
    """Forests found so far: their sizes and degrees, and what is known of the best mixture of them."""

    pairs: Integers
    vertices: int
    bound: int
    sizes: list[int] = field(default_factory=list)
    degrees: list[Integers] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.load = np.zeros(self.vertices)

    @property
    def size(self) -> int:
        return len(self.sizes)

    def add_heaviest(self, prices: Floats) -> float:
        """Add a forest of largest size less what its degrees cost; an upper bound on every mixture of any forests."""
        from scipy.sparse import csr_matrix  # noqa: PLC0415  (SciPy is loaded when it is needed)
        from scipy.sparse.csgraph import minimum_spanning_tree  # noqa: PLC0415

        first, second = self.pairs.T
        cost = prices[first] + prices[second]
        useful = np.flatnonzero(cost < 1)
        order = useful[np.lexsort((self._rank_by_crowding(first, second)[useful], cost[useful]))]
        ranks = csr_matrix(
            (np.arange(1.0, order.size + 1), (first[order], second[order])), shape=(self.vertices, self.vertices)
        )
        chosen = order[minimum_spanning_tree(ranks).data.astype(np.int64) - 1]
        degrees = np.bincount(self.pairs[chosen].ravel(), minlength=self.vertices).astype(np.int64)
        self.load = 0.9 * self.load + degrees
        key = degrees.tobytes()
        if key not in self.seen:
            self.seen.add(key)
            self.sizes.append(chosen.size)
            self.degrees.append(degrees)
        return float(self.bound * prices.sum() + (1 - cost[chosen]).sum())

    def _rank_by_crowding(self, first: Integers, second: Integers) -> Floats:
        """Among edges of one cost, those between vertices that earlier forests used less come first."""
        return np.asarray(
            np.maximum(self.load[first], self.load[second]) + 1e-3 * (self.load[first] + self.load[second])
        )

    def best_mixture(self) -> tuple[float, Floats]:
        """The size of a mixture that keeps the bound, and what each vertex's edges cost in the best one."""
        from scipy.optimize import linprog  # noqa: PLC0415

        table = np.stack(self.degrees, axis=1)
        crowded = np.flatnonzero((table > self.bound).any(axis=1))
        rows = np.vstack([table[crowded], np.ones(self.size)]).astype(np.float64)
        limits = np.append(np.full(crowded.size, float(self.bound)), 1.0)
        solve: Any = linprog
        sizes = np.array(self.sizes, np.float64)
        solved = solve(-sizes, A_ub=rows, b_ub=limits, bounds=(0, None), method="highs")
        if solved.x is None:
            return 0.0, np.zeros(self.vertices)
        weights = np.maximum(solved.x, 0.0)
        within = np.max(rows @ weights / limits, initial=1.0)
        prices = np.zeros(self.vertices)
        prices[crowded] = np.maximum(-solved.ineqlin.marginals[:-1], 0.0)
        return float(sizes @ weights / within), prices

    def exact_optimum(self) -> Fraction:
        """The optimum over all forests in exact fractions: forests are added as long as one would gain."""
        found = [dict(enumerate(degrees.tolist())) for degrees in self.degrees]
        limits = [self.bound] * self.vertices + [1]
        while True:
            columns = [{**{v: d for v, d in degrees.items() if d}, self.vertices: 1} for degrees in found]
            value, prices = maximize(columns, [sum(degrees.values()) // 2 for degrees in found], limits)
            degrees, gain = self._find_heaviest(prices)
            if gain <= prices[self.vertices]:
                return value
            found.append(degrees)

    def _find_heaviest(self, prices: list[Fraction]) -> tuple[dict[int, int], Fraction]:
        """The degrees of a heaviest forest under weights 1 - y_u - y_v, greedily, and its weight."""
        weighed = sorted(((1 - prices[u] - prices[v], u, v) for u, v in self.pairs.tolist()), reverse=True)
        root, degrees, total = list(range(self.vertices)), dict.fromkeys(range(self.vertices), 0), Fraction(0)
        for weight, u, v in weighed:
            ends = [u, v]
            for i in (0, 1):
                while root[ends[i]] != ends[i]:
                    root[ends[i]] = root[root[ends[i]]]
                    ends[i] = root[ends[i]]
            if weight > 0 and ends[0] != ends[1]:
                root[ends[0]] = ends[1]
                degrees[u], degrees[v], total = degrees[u] + 1, degrees[v] + 1, total + weight
        return degrees, total
