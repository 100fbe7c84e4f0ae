"""Synthetic graphs: a few private numbers about a graph, and a random graph that agrees with them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import DiscreteLaplace, Pure
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive
from mosha.core.options import SyntheticGraph, choose
from mosha.core.unit import Edge, Unit
from mosha.graphs.data.graph import Graph
from mosha.graphs.statistics.counting import edges
from mosha.graphs.statistics.degree_questions import degree_sequence
from mosha.graphs.statistics.ladder import ladder
from mosha.graphs.statistics.subgraphs import TriangleCount
from mosha.graphs.synthesis.adjacency import cells_of_pairs, flip_positions, pairs_of_cells
from mosha.graphs.synthesis.communities import communities, group_counts
from mosha.graphs.synthesis.generators import clustered_graph, round_degrees
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise.cauchy import flip_coin
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["KINDS", "synthetic"]

KINDS = ("clustered", "communities", "filter")
_LESS = 1 - 2.0**-40
PAIRS_AT_ONCE = 2**20


def synthetic(unit: Unit, epsilon: float, *, count: int, kind: SyntheticGraph = "clustered") -> Measurement:
    """A whole graph on as many vertices; the answer's value is an array of pairs in lexicographic order.

    Guarantee:
        epsilon-differential privacy at edge level. "clustered": 55% for the degree sequence, 35% for the triangles, 10%
        for the edges; "communities": half for a partition, half for the edges between communities; "filter": a 64th
        for the edges, the rest for asymmetric randomized response. Each part proves its own price, they compose, and
        the generator sees nothing else. The answer is a set of pairs, in the one order that a set has (`_sort_pairs`):
        which of them were drawn first is not told.

    Units:
        Pairs of vertices. "clustered" does not know which vertex is which; the other two do.
    """
    if not isinstance(unit, Edge):
        raise InvalidParameter("graphs.synthetic_at_node_level", parameter="unit")
    if count < 4:
        raise InvalidParameter("graphs.synthetic_too_small", parameter="vertices")
    epsilon = positive("epsilon", epsilon) * _LESS
    kinds = {"clustered": _clustered_model, "communities": _community_model, "filter": _filter_cells}
    return kinds[choose("kind", kind, SyntheticGraph)](unit, epsilon, count).map(_sort_pairs)


def _sort_pairs(answer: dict[str, object]) -> dict[str, Any]:
    """The pairs as a set, smaller end first and sorted: the order in which they were made may follow the edges."""
    pairs = np.asarray(answer["value"]).reshape(-1, 2)
    codes = np.minimum(pairs[:, 0], pairs[:, 1]).astype(np.int64)
    codes <<= 32
    codes |= np.maximum(pairs[:, 0], pairs[:, 1])
    codes = _unite(codes)
    value = np.empty((len(codes), 2), np.int64)
    np.right_shift(codes, 32, out=value[:, 0])
    np.bitwise_and(codes, 0xFFFFFFFF, out=value[:, 1])
    return {**answer, "value": value}


def _unite(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number once and in order; the array is sorted where it is."""
    codes.sort()
    again = np.flatnonzero(codes[1:] == codes[:-1])
    return np.delete(codes, again) if again.size else codes


def _generator(rng: Rng) -> Any:
    return np.random.default_rng(int.from_bytes(rng.bytes(32), "little"))


def _clustered_model(unit: Edge, epsilon: float, count: int) -> Measurement:
    parts = (
        degree_sequence(unit, epsilon * 0.55, count=count),
        ladder(TriangleCount(count), unit=unit, epsilon=epsilon * 0.35),
        edges(unit, epsilon * 0.1 * _LESS, most=count * (count - 1) // 2),
    )

    def step(state: object, data: Graph, ask: object, rng: Rng) -> tuple[Any, Any]:
        degrees, triangles, size = (part.step(None, data, ask, rng)[0] for part in parts)
        generator = _generator(rng)
        graph = clustered_graph(round_degrees(degrees, size, generator), triangles["value"], generator)
        pairs, numbers = graph.pairs(), generator.permutation(count).astype(np.int32)
        del graph
        for first in range(0, len(pairs), PAIRS_AT_ONCE):
            some = pairs[first : first + PAIRS_AT_ONCE]
            some[:] = numbers[some]
        return {"value": pairs, "edges": size, "triangles": triangles["value"]}, state

    event = parts[0].event + parts[1].event + parts[2].event
    return Measurement(unit=unit, event=event, step=step, name="synthetic", question=f"synthetic:clustered:{count}")


def _community_model(unit: Edge, epsilon: float, count: int) -> Measurement:
    partition = communities(unit, epsilon / 2, count=count)
    multiplier = laplace_multiplier(epsilon / 4)
    reports = laplace_multiplier(epsilon / 8)  # an edge is in two of them

    def step(state: object, data: Graph, ask: object, rng: Rng) -> tuple[Any, Any]:
        label, _ = partition.step(None, data, ask, rng)
        known = int(label.max()) + 1
        exact = group_counts(data.pairs(), label, known)
        between = exact + unbounded_laplace(Fraction(multiplier), known * known, rng=rng).reshape(known, known)
        weights = np.maximum(data.degrees + unbounded_laplace(Fraction(reports), count, rng=rng), 0.5)
        return {"value": _block_graph(label, between, weights, _generator(rng)), "communities": label}, state

    return Measurement(
        unit=unit,
        event=partition.event + DiscreteLaplace(multiplier) + DiscreteLaplace(reports) * 2,
        step=step,
        name="synthetic",
        question=f"synthetic:communities:{count}",
    )


def _block_graph(
    label: NDArray[Any], between: NDArray[Any], weights: NDArray[Any], generator: np.random.Generator
) -> NDArray[Any]:
    """Between two communities as many edges as the noisy count says, their ends drawn by weight."""
    members = [np.flatnonzero(label == c).astype(np.int32) for c in range(len(between))]
    chances = [weights[m] / weights[m].sum() if m.size else weights[m] for m in members]
    found = []
    for a in range(len(between)):
        for b in range(a, len(between)):
            most = members[a].size * members[b].size if a != b else members[a].size * (members[a].size - 1) // 2
            wanted = int(min(max(between[a, b], 0), most))
            if wanted:
                ends = np.empty((2, 2 * wanted + 8), np.int32)
                for side, c in enumerate((a, b)):
                    for first in range(0, 2 * wanted + 8, PAIRS_AT_ONCE):
                        some = ends[side, first : first + PAIRS_AT_ONCE]
                        some[:] = generator.choice(members[c], size=len(some), p=chances[c])
                ends.sort(axis=0)
                codes = ends[0].astype(np.int64)
                codes <<= 32
                codes |= ends[1]
                codes = codes[ends[0] != ends[1]]
                del ends
                codes = _unite(codes)
                generator.shuffle(codes)
                found.append(codes[:wanted].copy())
    return np.concatenate([codes.view(np.int32).reshape(-1, 2) for codes in found] or [np.zeros((0, 2), np.int32)])


def _filter_cells(unit: Edge, epsilon: float, count: int) -> Measurement:
    """As many cells as there are edges, by the noisy number; an edge stays e^epsilon times as often as a gap fills.

    Guarantee:
        Given the noisy number, a gap becomes an edge with probability p = 1 - e^-r, an edge stays one with
        q <= e^rest p, and (1 - p) / (1 - q) <= e^rest: rest-private for the one cell that differs. q is a rational
        below both bounds.
    """
    share = epsilon / 64
    rest = (epsilon - share) * _LESS
    total = count * (count - 1) // 2

    def step(state: object, data: Graph, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        if data.vertices != count:
            raise DataError("graphs.wrong_vertices")
        size = data.edge_count + int(unbounded_laplace(Fraction(laplace_multiplier(share)), 1, rng=rng)[0])
        rate, stay = _rates(min(max(size, 1), total - 1), total, rest)
        own = cells_of_pairs(data.pairs())
        filled = _leave_out(flip_positions(total, rate, rng), np.sort(own))
        tossed = (flip_coin(stay.numerator, stay.denominator, rng) for _ in range(own.size))
        kept = own[np.fromiter(tossed, np.bool_, own.size)]
        del own
        return {"value": pairs_of_cells(np.concatenate([kept, filled])), "edges": size}, state

    return Measurement(
        unit=unit,
        event=Pure(rest) + DiscreteLaplace(laplace_multiplier(share)),
        step=step,
        name="synthetic",
        question=f"synthetic:filter:{count}",
    )


def _leave_out(cells: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cells that are not among others; both are in order."""
    found = np.zeros(len(cells), np.bool_)
    for first in range(0, len(cells) if others.size else 0, PAIRS_AT_ONCE):
        some = cells[first : first + PAIRS_AT_ONCE]
        places = np.minimum(np.searchsorted(others, some), others.size - 1)
        found[first : first + PAIRS_AT_ONCE] = others[places] == some
    return cells[~found]


def _rates(size: int, total: int, epsilon: float) -> tuple[Fraction, Fraction]:
    """The rate of gaps and the chance of edges: together `size` ones are expected if there are so many edges."""
    fill = size / (total + size * math.expm1(min(epsilon, 600.0)))
    fill = max(fill, 1e-15)
    rate = Fraction(-math.log1p(-min(fill, 0.5)))
    fill = -math.expm1(-float(rate))
    ratio = math.exp(min(epsilon, 600.0)) * (1 - 2.0**-40)
    stay = min(fill * ratio, 1 - (1 - fill) / ratio)
    return rate, Fraction(max(stay * (1 - 2.0**-40), fill))
