"""Questions about sizes: edges, vertices, components, the highest degree, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement, Rng
from mosha.core.unit import Node, Unit
from mosha.graphs.data.graph import AnyGraph
from mosha.graphs.statistics.bounded import bound_degrees
from mosha.graphs.statistics.node_components import node_components
from mosha.graphs.statistics.statistic import ComponentCount, EdgeCount, MaximumDegree, VertexCount
from mosha.mechanisms import laplace
from mosha.mechanisms.picture import make_drawing

__all__ = ["average_degree", "clamp_answer", "components", "density", "edges", "maximum_degree", "vertices"]


def clamp_answer(measurement: Measurement, low: int, high: int | None = None) -> Measurement:
    """The same measurement, its number clamped into a public range: post-processing, never further from the truth."""

    def clamp(value: float) -> Any:
        value = max(value, low)
        return value if high is None else min(value, high)

    return replace(measurement.map(clamp), error=measurement.error, draw=measurement.draw)


def edges(unit: Unit, epsilon: float, *, most: int | None = None) -> Measurement:
    """How many edges there are.

    Guarantee:
        Laplace noise on `EdgeCount`; at node level after `bound_degrees`.

    Units:
        Edges. At node level the error bar is that of the noise; the bound on degrees may lose edges besides.

    >>> from mosha import Edge, noise
    >>> from mosha.graphs.data.graph import Graph
    >>> ring = Graph.of([(i, (i + 1) % 1000) for i in range(1000)], vertices=1000)
    >>> abs(edges(Edge(), 1.0).step(None, ring, None, noise.SeededRandom(1))[0] - 1000) < 40
    True
    """
    if isinstance(unit, Node):
        return bound_degrees(unit, epsilon, lambda u, e: clamp_answer(laplace(EdgeCount(), unit=u, epsilon=e), 0))
    return clamp_answer(laplace(EdgeCount(), unit=unit, epsilon=epsilon), 0, most)


def vertices(unit: Unit, epsilon: float) -> Measurement:
    """How many vertices there are: at node level, where that is private."""
    return clamp_answer(laplace(VertexCount(), unit=unit, epsilon=epsilon), 0)


def components(unit: Unit, epsilon: float, *, most: int) -> Measurement:
    """How many connected components there are."""
    if isinstance(unit, Node):
        return node_components(unit, epsilon)
    return clamp_answer(laplace(ComponentCount(), unit=unit, epsilon=epsilon), min(1, most), most)


def maximum_degree(unit: Unit, epsilon: float, *, most: int | None) -> Measurement:
    """The highest degree; at node level within the declared bound, which is as far as one vertex can move it."""
    if isinstance(unit, Node) and unit.max_degree is None:
        raise InvalidParameter("graphs.maximum_degree_bound", parameter="unit")
    limit = unit.max_degree if isinstance(unit, Node) else most
    return clamp_answer(laplace(MaximumDegree(), unit=unit, epsilon=epsilon), 0, limit)


def _scale_answer(measurement: Measurement, factor: float, title: str) -> Measurement:
    """The same number in another unit."""
    error: Any = measurement.error

    def scale_error(confidence: float, answer: Any) -> Any:
        return error(confidence, None if answer is None else answer / factor) * factor

    return replace(measurement.map(lambda value: value * factor), error=scale_error, draw=make_drawing(title, None))


def density(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """The part of all pairs that are edges; the vertices are public at edge level."""
    pairs = count * (count - 1) // 2
    if isinstance(unit, Node):
        return _ratio(unit, epsilon, lambda m, n: 2 * m / (n * (n - 1)) if n > 1 else 0.0, "density")
    return _scale_answer(edges(unit, epsilon, most=pairs), 1 / max(pairs, 1), "density")


def average_degree(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """Twice the edges over the vertices."""
    if isinstance(unit, Node):
        return _ratio(unit, epsilon, lambda m, n: 2 * m / max(n, 1), "average degree")
    return _scale_answer(edges(unit, epsilon, most=count * (count - 1) // 2), 2 / max(count, 1), "average degree")


def _ratio(unit: Node, epsilon: float, combine: Callable[[float, float], float], title: str) -> Measurement:
    """Edges and vertices, both private: nine tenths of epsilon for the edges, the rest for the vertices."""
    for_vertices = epsilon * 0.1
    first, second = edges(unit, (epsilon - for_vertices) * (1 - 2.0**-40)), vertices(unit, for_vertices)

    def step(state: object, data: AnyGraph, ask: object, rng: Rng) -> tuple[Any, Any]:
        found, _ = first.step(None, data, ask, rng)
        count, _ = second.step(None, data, ask, rng)
        parts = {"edges": found["value"], "vertices": count, "max_degree": found["max_degree"]}
        return {"value": float(combine(found["value"], count)), **parts}, state

    def error(confidence: float, answer: Any) -> float:
        if answer is None or "edges" not in answer:
            raise InvalidParameter("graphs.ratio_without_forecast", statistic=title)
        half = 1 - (1 - confidence) / 2
        wide = first.error(half, answer) if first.error else 0.0
        tall = second.error(half, None) if second.error else 0.0
        corners = [
            combine(max(answer["edges"] + i * wide, 0), max(answer["vertices"] + j * tall, 1))
            for i in (-1, 1)
            for j in (-1, 1)
        ]
        return float(max(abs(corner - answer["value"]) for corner in corners))

    return Measurement(
        unit=unit,
        event=first.event + second.event,
        step=step,
        error=error,
        draw=lambda answer, bar: make_drawing(title, None)(answer["value"], bar),
        name=title,
        question=f"{title}:{first.question}",
    )
