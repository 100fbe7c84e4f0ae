"""Sums of vectors over the neighbors of every vertex that one vertex, with all its edges, moves only so far.

No rule that keeps some edges and drops others does that: a vertex that leaves frees a place at each neighbor, which
admits another edge, which blocks another, along a chain without end. So every edge gets a weight between zero and
one, the best weights of a concave programme, and concavity is what holds them still.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.number import positive_integer
from mosha.exact.clip import clip_vectors
from mosha.exact.statistic import root_up

__all__ = ["RADIUS", "WeightedSums"]

RADIUS = 1 << 14  # the norm of a vector of length one, in whole steps
WEIGHT = 1 << 33  # a weight of one, in whole steps
COARSER = 1 << 11  # sums are rounded to this many of the steps that they are counted in
STEP = COARSER / (RADIUS * WEIGHT)
STEEP = 8.0  # how fast an edge loses when the weights at a vertex pass the limit
CLOSE = 1 / 2048  # how near to the best the weights have to be, in squares of the limit

Numbers = TypeVar("Numbers", NDArray[np.int64], NDArray[np.float64])


@dataclass(frozen=True, kw_only=True)
class WeightedSums:
    """Sums over neighbors, every edge weighted so that a vertex whose degree is above `limit` counts for about that.

    Weights x maximize 2 D sum(x) - |Z(x)|^2 / 2 - 4 sum(max(0, s - D)^2), where D is the limit, Z(x) are the weighted
    sums of vectors over neighbors and s the sums of weights at the vertices.

    Guarantee:
        A vertex that comes or goes with all its edges moves the sums by at most (sqrt(3) + 1/16) D in the l2 norm of
        all rows together, and by sqrt(vertices * width) steps of rounding: `neighbor_sums.md`. Where no degree is above
        D, all weights may be one.

    Units:
        Vectors count in their own norm, which is at most one; numbers below zero count as zero.

    >>> sums = WeightedSums(vertices=3, width=2, limit=2)
    >>> found = sums.evaluate(np.array([(0, 1), (1, 2)]), np.eye(3)[:, :2])
    >>> (found * STEP).round(3).tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """

    vertices: int
    width: int
    limit: int

    def __post_init__(self) -> None:
        for name in ("vertices", "width", "limit"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))

    def sensitivity(self) -> int:
        """The l2 sensitivity, in steps of `STEP`; rounded up."""
        least = 1 / STEP * (math.sqrt(3) + 1 / 16) * self.limit
        return math.ceil(least * (1 + 2**-40)) + math.ceil(root_up(self.vertices * self.width))

    def evaluate(self, ends: NDArray[np.int64], vectors: NDArray[np.float64]) -> NDArray[np.int64]:
        """The sums in steps of `STEP`; `ends` has each edge once, without loops."""
        whole = clip_vectors(np.maximum(vectors, 0.0), RADIUS, 2, 1.0 / RADIUS)
        if len(ends) == 0:
            return np.zeros(whole.shape, np.int64)
        sums = _Programme(ends, whole, self.limit).solve()
        return (sums + COARSER // 2) // COARSER


class _Programme:
    """The concave programme of one graph, in floats; what is certified is computed in whole numbers."""

    def __init__(self, ends: NDArray[np.int64], whole: NDArray[np.int64], limit: int) -> None:
        self.limit, self.gain = float(limit), 2.0 * limit
        self.first, self.second = ends[:, 0], ends[:, 1]
        self.count = np.column_stack([whole, np.full(len(whole), RADIUS, np.int64)])  # the last column counts
        self.vectors = self.count / RADIUS
        here, there = np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])
        order = np.argsort(here, kind="stable")
        self.there, self.edge = there[order], np.tile(np.arange(len(ends)), 2)[order]
        self.rows, self.begin, degrees = np.unique(here[order], return_index=True, return_counts=True)
        self.degrees = np.zeros(len(whole))
        self.degrees[self.rows] = degrees

    def _add(self, weights: Numbers, vectors: Numbers) -> Numbers:
        """Weighted sums over the neighbors of every vertex; in whole numbers where both are."""
        products = weights[self.edge][:, None] * vectors[self.there]
        total = np.zeros(vectors.shape, products.dtype)
        total[self.rows] = np.add.reduceat(products, self.begin, axis=0)
        return total

    def _losses(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a little more weight of each edge loses; its gain is twice the limit."""
        slopes = sums.copy()
        slopes[:, -1] = STEEP * np.maximum(sums[:, -1] - self.limit, 0.0)
        first, second = self.first, self.second
        there = np.einsum("ij,ij->i", slopes[second], self.vectors[first])
        return np.asarray(there + np.einsum("ij,ij->i", slopes[first], self.vectors[second]))

    def solve(self) -> NDArray[np.int64]:
        """Accelerated ascent, begun again where it overshoots, until the weights are certified; sums at the weights."""
        longest = (1.0 + STEEP) * (self.degrees[self.first] + self.degrees[self.second])
        most = np.maximum(self.degrees[self.first], self.degrees[self.second])
        weights = np.minimum(1.0, self.limit / most)
        ahead, speed, turn = weights, 1.0, 0
        while True:
            if turn % 20 == 0:
                steps = np.rint(weights * WEIGHT).astype(np.int64)
                sums = self._add(steps, self.count)
                if self._gap(steps, sums) <= CLOSE * self.limit**2:
                    return np.asarray(sums[:, :-1])
            turn += 1
            losses = self._losses(self._add(ahead, self.vectors))
            following = np.clip(ahead + (self.gain - losses) / longest, 0.0, 1.0)
            if speed > 1.0 and float(((ahead - following) * (following - weights) * longest).sum()) > 0.0:
                ahead, speed = weights, 1.0
                continue
            faster = (1.0 + math.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
            ahead = following + (speed - 1.0) / faster * (following - weights)
            weights, speed = following, faster

    def _gap(self, steps: NDArray[np.int64], sums: NDArray[np.int64]) -> float:
        """At least how far these weights are from the best value: no point of the box is above its tangent."""
        losses = self._losses(sums / (RADIUS * WEIGHT))
        slopes, weights = self.gain - losses, steps / WEIGHT
        missed = np.where(slopes > 0.0, slopes * (1.0 - weights), -slopes * weights)
        margin = (4 * self.vectors.shape[1] + 32) * 2.0**-52 * math.fsum(self.gain + losses)
        return float(math.fsum(missed) + margin)
