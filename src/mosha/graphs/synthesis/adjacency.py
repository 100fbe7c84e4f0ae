"""The adjacency matrix under randomized response, and simple graphs made of it by post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import DiscreteLaplace, RandomizedResponse
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive
from mosha.core.unit import Edge, Unit
from mosha.graphs.data.graph import Graph
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import geometric
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["NoisyAdjacency", "adjacency", "cells_of_pairs", "flip_positions", "flip_rate", "pairs_of_cells"]

MOST_FLIPS = 50_000_000
COUNT_SHARE = 2.0**-6
CELLS_AT_ONCE = 2**20


def flip_rate(epsilon: float) -> Fraction:
    """The rate r at which cells are kept: P(kept) = e^-r, with log(e^-r / (1 - e^-r)) at most epsilon.

    >>> round(float(flip_rate(1.0)), 4)
    0.3133
    """
    return max(Fraction(math.log1p(math.exp(-epsilon)) * (1 + 2.0**-40)), Fraction(1, 1 << 50))


def flip_positions(cells: int, rate: Fraction, rng: Rng) -> NDArray[np.int64]:
    """Which of so many cells change: each on its own with probability 1 - e^-rate.

    Guarantee:
        Between two cells that change lie K that do not, P(K = k) = (1 - q) q^k with q = e^-rate: geometric steps.
    """
    batch = max(16, math.ceil(cells * -math.expm1(-float(rate)) * 1.02) + 64)
    found, last = [], -1
    while last < cells:
        steps = np.minimum(geometric(1 / rate, batch, rng=rng), cells) + 1
        places = last + np.cumsum(steps)
        found.append(places[places < cells])
        last = int(places[-1])
    return np.concatenate(found)


def pairs_of_cells(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs (i, j), i < j, that cells of the upper triangle, column by column, stand for.

    >>> pairs_of_cells(np.array([0, 1, 2, 3])).tolist()
    [[0, 1], [0, 2], [1, 2], [0, 3]]
    """
    pairs = np.empty((len(cells), 2), np.int64)
    for first in range(0, len(cells), CELLS_AT_ONCE):
        some = cells[first : first + CELLS_AT_ONCE]
        high = ((1 + np.sqrt(1 + 8.0 * some)) / 2).astype(np.int64)
        high -= high * (high - 1) // 2 > some
        high += high * (high + 1) // 2 <= some
        pairs[first : first + CELLS_AT_ONCE, 0] = some - high * (high - 1) // 2
        pairs[first : first + CELLS_AT_ONCE, 1] = high
    return pairs


def cells_of_pairs(pairs: NDArray[np.int32]) -> NDArray[np.int64]:
    """The cells of the upper triangle, column by column, that pairs (i, j), i < j, stand for.

    >>> cells_of_pairs(np.array([[0, 1], [0, 2], [1, 2], [0, 3]], np.int32)).tolist()
    [0, 1, 2, 3]
    """
    cells = pairs[:, 1].astype(np.int64)
    cells *= pairs[:, 1] - np.int64(1)
    cells //= 2
    cells += pairs[:, 0]
    return cells


@dataclass(frozen=True)
class NoisyAdjacency:
    """Cells of a symmetric matrix without a diagonal after randomized response, and a noisy number of edges.

    Of all cells of so many `vertices`, those numbered in `cells` say one; each was `flipped` with this probability, and
    `edges` is the noisy number.

    Guarantee:
        Everything here is a function of what was released: no method knows how many edges there truly are.

    >>> import numpy as np
    >>> released = NoisyAdjacency(vertices=4, cells=np.array([0, 3]), flipped=0.1, edges=2)
    >>> released.estimate_edges() > 0
    True
    """

    vertices: int
    cells: NDArray[np.int64]
    flipped: float
    edges: int

    @classmethod
    def of(cls, answer: Any) -> NoisyAdjacency:
        """The matrix that an `answer` to `adjacency()` stands for."""
        return cls(answer.details["vertices"], answer.value, answer.details["flipped"], answer.details["edges"])

    def threshold(self) -> Graph:
        """The cells that say one, as they are: far too many edges at a small epsilon."""
        return Graph.of(pairs_of_cells(self.cells), vertices=self.vertices)

    def closest(self, *, generator: Any = None) -> Graph:
        """A graph with the noisy number of edges: cells that say one come first, at random; others fill up.

        Among all graphs with so many edges it differs from the noisy matrix in the fewest cells.

        `generator` is any of NumPy's: the choice is post-processing.
        """
        generator = np.random.default_rng() if generator is None else generator
        total = self.vertices * (self.vertices - 1) // 2
        wanted = min(max(self.edges, 0), total)
        if wanted <= self.cells.size:
            return Graph.of(pairs_of_cells(generator.permutation(self.cells)[:wanted]), vertices=self.vertices)
        said = np.zeros(total, np.bool_)
        said[self.cells] = True
        more = generator.permutation(np.flatnonzero(~said))[: wanted - self.cells.size]
        return Graph.of(pairs_of_cells(np.concatenate([self.cells, more])), vertices=self.vertices)

    def estimate_edges(self) -> float:
        """The number of edges that the matrix alone points to."""
        total = self.vertices * (self.vertices - 1) / 2
        return (self.cells.size - total * self.flipped) / (1 - 2 * self.flipped)


def adjacency(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """Every cell of the adjacency matrix by randomized response, and the number of edges by Laplace noise.

    Guarantee:
        epsilon-differential privacy at edge level: one edge is one cell above the diagonal, which changes with
        probability p = 1 - e^-r on its own, log((1 - p) / p) <= the most of epsilon; a 64th of it pays for the number.

    Units:
        The answer holds the numbers of the cells that say one, see `NoisyAdjacency`.
    """
    if not isinstance(unit, Edge):
        raise InvalidParameter("graphs.matrix_names_vertices", parameter="unit")
    share = positive("epsilon", epsilon) * COUNT_SHARE
    rest = (epsilon - share) * (1 - 2.0**-40)
    total = count * (count - 1) // 2
    rate = flip_rate(rest)
    if total < 1 or total * -math.expm1(-float(rate)) > MOST_FLIPS:
        raise InvalidParameter("graphs.matrix_too_large", parameter="epsilon")

    def step(state: object, data: Graph, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        if data.vertices != count:
            raise DataError("graphs.wrong_vertices")
        cells = np.setxor1d(cells_of_pairs(data.pairs()), flip_positions(total, rate, rng), assume_unique=True)
        noisy = data.edge_count + int(unbounded_laplace(Fraction(laplace_multiplier(share)), 1, rng=rng)[0])
        return {"value": cells, "edges": noisy, "flipped": -math.expm1(-float(rate)), "vertices": count}, state

    return Measurement(
        unit=unit,
        event=RandomizedResponse(rest) + DiscreteLaplace(laplace_multiplier(share)),
        step=step,
        name="adjacency",
        question=f"adjacency:{count}",
    )
