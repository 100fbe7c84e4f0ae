"""Influential vertices: a few whose neighborhoods together cover the most, chosen one after the other."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import Pure
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive, positive_integer
from mosha.core.unit import Edge, Unit
from mosha.graphs.data.graph import Graph
from mosha.mechanisms.choice import permute_and_flip_regret
from mosha.noise import permute_and_flip_choice

__all__ = ["coverage", "greedy_seeds", "seeds"]


def _gains(graph: Graph, covered: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each vertex how many vertices it and its neighbors would newly cover."""
    fresh = np.append(0, np.cumsum(~covered[graph.ends]))
    gains: NDArray[np.int64] = fresh[graph.starts[1:]] - fresh[graph.starts[:-1]] + ~covered
    return gains


def _cover(graph: Graph, covered: NDArray[np.bool_], vertex: int) -> None:
    covered[vertex] = True
    covered[graph.neighbors(vertex)] = True


def coverage(graph: Graph, chosen: Any) -> int:
    """How many vertices are chosen or next to a chosen one.

    >>> coverage(Graph.of([(0, 1), (0, 2), (3, 4)], vertices=6), [0, 3])
    5
    """
    covered = np.zeros(graph.vertices, np.bool_)
    for vertex in chosen:
        _cover(graph, covered, int(vertex))
    return int(covered.sum())


def greedy_seeds(graph: Graph, k: int) -> list[int]:
    """The choice without privacy, for public graphs: always the largest gain."""
    covered = np.zeros(graph.vertices, np.bool_)
    chosen: list[int] = []
    for _ in range(min(k, graph.vertices)):
        gains = _gains(graph, covered)
        gains[chosen] = -1
        chosen.append(int(gains.argmax()))
        _cover(graph, covered, chosen[-1])
    return chosen


def seeds(unit: Unit, epsilon: float, *, k: int, count: int) -> Measurement:
    """Vertices, k of them one after the other, each by permute-and-flip on how many others it would newly cover.

    Guarantee:
        epsilon-differential privacy at edge level. Given the vertices S chosen so far, score v by |N[S + v]| (adding
        |N[S]| to all gains changes no choice). A new edge ab adds at most one vertex to N[S + v]: b if only a is in
        S + v, a if only b is. So all scores move up by 0 or 1: a span of 1, and a choice with scale k / epsilon costs
        epsilon / k (`mosha.mechanisms.permute_and_flip`); k choices compose.

    Units:
        Numbers of vertices. The error bar is how much coverage one of the choices may lose against the best one.

    >>> from mosha import noise
    >>> star = Graph.of([(7, i) for i in range(7)], vertices=8)
    >>> seeds(Edge(), 50.0, k=1, count=8).step(None, star, None, noise.SeededRandom(1))[0]
    [7]
    """
    k = positive_integer("k", k)
    if not isinstance(unit, Edge):
        raise InvalidParameter("graphs.seeds_name_vertices", parameter="unit")
    if k >= count:
        raise InvalidParameter("graphs.too_many_seeds", parameter="k")
    each = Fraction(positive("epsilon", epsilon)) / k
    price = float(each) * (1 - 2.0**-50)

    def step(state: object, data: Graph, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        if data.vertices != count:
            raise DataError("graphs.wrong_vertices")
        covered = np.zeros(count, np.bool_)
        left = np.arange(count)
        chosen: list[int] = []
        for _ in range(k):
            place = permute_and_flip_choice(_gains(data, covered)[left], 1 / Fraction(price), rng=rng)
            chosen.append(int(left[place]))
            _cover(data, covered, chosen[-1])
            left = np.delete(left, place)
        return chosen, state

    def error(confidence: float, answer: object) -> float:
        del answer
        return permute_and_flip_regret(count, 1 - (1 - confidence) / k) / price

    return Measurement(
        unit=unit, event=Pure(price) * k, step=step, error=error, name="seeds", question=f"seeds:{k}:{count}"
    )
