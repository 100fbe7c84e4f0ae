"""Private graph networks by aggregation perturbation (GAP, Sajadmanesh et al. 2023): noisy sums over neighbors.

Vertices, features and labels are public here, edges are private: each single one (`Edge`), or all those of a vertex
together (`Node`). A network sees edges through sums over neighbors alone; each hop is paid once, and everything that
is trained on the noisy sums afterwards is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import DiscreteGaussian
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive_integer
from mosha.core.unit import Edge, Neighbors, Node, Unit
from mosha.exact.clip import clip_vectors
from mosha.exact.grid import add_noise
from mosha.exact.neighbor_sums import STEP, WeightedSums
from mosha.exact.statistic import root_up
from mosha.learning.linear.descent import gaussian_budget, step_multiplier
from mosha.learning.linear.rows import RADIUS
from mosha.mechanisms.gaussian import discrete_multiplier
from mosha.noise import LARGEST_SCALE, discrete_gaussian
from mosha.noise.parameters import enlarge_scale

__all__ = ["Aggregation", "unit_rows"]

MOST_VERTICES = 1 << 15  # at node level: sums of weighted vectors stay within 64 bits


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """Sums over the neighbors of every vertex, `hops` times; each vertex holds a vector of `width` numbers.

    Methods take `edges` between so many `vertices`, a vector of each vertex (`vectors`), the `unit` that is hidden, and
    the price as `epsilon` with `delta`, `rho` or `mu`.

    Guarantee:
        Vectors become whole ones of norm at most R (`clip_vectors`); edges are sets of two vertices, each
        counted once. An edge {u, v} that comes or goes changes the sum at u by v's vector and the sum at v by u's:
        sqrt(2) R in all (2 sqrt(2) R when one edge is replaced by another). For `Node(max_degree=D)` edges are
        weighted (`WeightedSums`): a vertex moves the sums by (sqrt(3) + 1/16) D. Sums of whole numbers are exact. Hop
        k looks at the noisy sums of earlier hops (through the ask) and at the edges: squares of mu add over hops.

    Units:
        Vectors count in their own norm, which is at most one; at node level numbers below zero count as zero.

    >>> plan = Aggregation(vertices=3, width=2, hops=2)
    >>> plan.evaluate([(0, 1), (1, 0), (1, 2), (2, 2)], np.eye(3)[:, :2]).tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """

    vertices: int
    width: int
    hops: int

    def __post_init__(self) -> None:
        for name in ("vertices", "width", "hops"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        if self.vertices * self.width > 1 << 31 or self.hops > 1 << 10:
            raise InvalidParameter("learning.aggregation_size")

    def sensitivity(self, unit: Unit) -> float:
        """The l2 sensitivity of the sums, in steps; rounded up."""
        times = 2 if unit.neighbors is Neighbors.REPLACE_ONE else 1
        if isinstance(unit, Node):
            return float(times * self._make_sums(unit).sensitivity())
        if not isinstance(unit, Edge):
            raise InvalidParameter("learning.edge_unit", parameter="unit")
        return root_up(2 * (RADIUS * times) ** 2)

    def _make_sums(self, unit: Node) -> WeightedSums:
        if unit.max_degree is None:
            raise InvalidParameter("learning.node_without_degree", parameter="unit", spent="nothing")
        if self.vertices > MOST_VERTICES:
            raise InvalidParameter("learning.too_many_vertices", most=MOST_VERTICES, spent="nothing")
        return WeightedSums(vertices=self.vertices, width=self.width, limit=unit.max_degree)

    def evaluate(self, edges: object, vectors: object, *, unit: Unit | None = None) -> NDArray[np.float64]:
        """The sums without noise, of all edges or as `unit` bounds them: for public graphs and for tests."""
        return self._sums(edges, vectors, unit).astype(np.float64) * _step(unit)

    def _sums(self, edges: object, vectors: object, unit: Unit | None = None) -> NDArray[np.int64]:
        array = np.asarray(vectors, np.float64)
        if array.shape != (self.vertices, self.width):
            raise InvalidParameter("learning.ask_vectors", vertices=self.vertices, width=self.width)
        ends = self._ends(edges)
        if isinstance(unit, Node):
            return self._make_sums(unit).evaluate(ends, array)
        whole = clip_vectors(array, RADIUS, 2, 1.0 / RADIUS)
        total = np.zeros((self.vertices, self.width), np.int64)
        np.add.at(total, ends[:, 0], whole[ends[:, 1]])
        np.add.at(total, ends[:, 1], whole[ends[:, 0]])
        return total

    def _ends(self, edges: object) -> NDArray[np.int64]:
        """Each edge once, its smaller end first; loops and ends that are no vertices are left out."""
        array = np.asarray(edges)
        if array.size == 0:
            return np.zeros((0, 2), np.int64)
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
            raise DataError("learning.pairs_of_vertices")
        ends = np.sort(array.astype(np.int64), axis=1)
        inside = (ends[:, 0] >= 0) & (ends[:, 1] < self.vertices) & (ends[:, 0] < ends[:, 1])
        return np.unique(ends[inside], axis=0)

    def measurement(
        self,
        *,
        unit: Unit,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
    ) -> Measurement:
        """All hops, paid at once: `run.step(edges, ask=vectors)` gives the noisy sums of one hop."""
        sensitivity, entries = self.sensitivity(unit), self.vertices * self.width
        multiplier = step_multiplier(gaussian_budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu), self.hops)
        if rho is None:
            multiplier = discrete_multiplier(multiplier, sensitivity, entries)
        drawn = enlarge_scale(Fraction(multiplier) * Fraction(sensitivity))
        if not 1 << 10 <= drawn <= LARGEST_SCALE:
            raise InvalidParameter("learning.noise_out_of_range")

        def step(state: object, data: object, ask: object, rng: Rng) -> tuple[NDArray[np.float64], Any]:
            noise = discrete_gaussian(drawn, (self.vertices, self.width), rng=rng)
            return add_noise(self._sums(data, ask, unit), noise).astype(np.float64) * _step(unit), state

        return Measurement(
            unit=unit,
            event=DiscreteGaussian(multiplier, sensitivity, entries) * self.hops,
            step=step,
            horizon=self.hops,
            name="sums over neighbors",
            delta=delta,
            question=fingerprint(self, unit),
        )


def _step(unit: Unit | None) -> float:
    """What one step of the whole sums counts in the norm of a vector."""
    return STEP if isinstance(unit, Node) else 1.0 / RADIUS


def unit_rows(vectors: object) -> NDArray[np.float64]:
    """Each of `vectors` divided by its norm; zero stays zero. What goes into a hop, and comes out of the one before.

    >>> unit_rows([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    array = np.asarray(vectors, np.float64)
    norms = np.linalg.norm(array, axis=-1, keepdims=True)
    return np.asarray(np.divide(array, norms, out=np.zeros_like(array), where=norms > 0))
