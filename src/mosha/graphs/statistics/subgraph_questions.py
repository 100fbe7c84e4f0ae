"""Questions about small subgraphs: triangles, stars, and the clustering coefficient that follows from both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement, Rng
from mosha.core.options import SubgraphMethod, choose
from mosha.core.unit import Node, Unit
from mosha.graphs.data.graph import AnyGraph
from mosha.graphs.statistics.bounded import bound_degrees
from mosha.graphs.statistics.bounded_subgraphs import StarsOfClamped, TrianglesOfBounded
from mosha.graphs.statistics.counting import clamp_answer
from mosha.graphs.statistics.ladder import ladder
from mosha.graphs.statistics.node_triangles import node_triangles
from mosha.graphs.statistics.smooth import smooth
from mosha.graphs.statistics.statistic import StarsOfBounded
from mosha.graphs.statistics.subgraphs import StarCount, SubgraphCount, TriangleCount
from mosha.mechanisms import laplace
from mosha.mechanisms.picture import make_drawing

__all__ = ["clustering", "stars", "subgraphs", "triangles"]


def subgraphs(
    statistic: SubgraphCount, unit: Unit, epsilon: float, delta: float, method: SubgraphMethod | None
) -> Measurement:
    """A subgraph count at edge level: the ladder, or smooth sensitivity where delta is paid."""
    if method is not None:
        choose("method", method, SubgraphMethod)
    if statistic.global_sensitivity == 0:
        raise InvalidParameter("graphs.too_few_vertices", parameter="vertices")
    if method == "smooth" or (method is None and delta > 0):
        return smooth(statistic, unit=unit, epsilon=epsilon, delta=delta)
    return ladder(statistic, unit=unit, epsilon=epsilon)


def triangles(
    unit: Unit,
    epsilon: float,
    delta: float,
    *,
    count: int,
    method: SubgraphMethod | None = None,
    max_degree: int | None = None,
) -> Measurement:
    """How many triangles there are; at edge level with a bound on degrees, by Laplace noise for that bound."""
    if isinstance(unit, Node):
        return node_triangles(unit, epsilon)
    if max_degree is not None:
        return clamp_answer(
            laplace(TrianglesOfBounded(max_degree), unit=unit, epsilon=epsilon), 0, TriangleCount(count).most
        )
    return subgraphs(TriangleCount(count), unit, epsilon, delta, method)


def stars(
    unit: Unit,
    leaves: int,
    epsilon: float,
    delta: float,
    *,
    count: int,
    method: SubgraphMethod | None = None,
    max_degree: int | None = None,
) -> Measurement:
    """How many stars with so many leaves there are; at node level in the graph of bounded degrees."""
    if isinstance(unit, Node):
        return bound_degrees(
            unit, epsilon, lambda u, e: clamp_answer(laplace(_bounded_stars(leaves, u), unit=u, epsilon=e), 0)
        )
    if max_degree is not None:
        return clamp_answer(laplace(StarsOfClamped(leaves, max_degree), unit=unit, epsilon=epsilon), 0)
    return subgraphs(StarCount(count, leaves), unit, epsilon, delta, method)


def _bounded_stars(leaves: int, unit: Node) -> StarsOfBounded:
    """There are no stars with more leaves than the bound: those of the bound stand in, with noise of the same price."""
    return StarsOfBounded(min(leaves, unit.max_degree or leaves))


def clustering(unit: Unit, epsilon: float, delta: float, *, count: int) -> Measurement:
    """The global clustering coefficient: three times the triangles over the stars with two leaves.

    Guarantee:
        Two measurements, composed: three quarters of epsilon (and half of delta) for the triangles, the rest for the
        stars; their ratio, clamped into [0, 1], is post-processing.

    Units:
        A pure number. The error bar is that of the ratio at the corners of both error bars; none at node level.
    """
    first = triangles(unit, epsilon * 0.75, delta / 2, count=count)
    second = stars(unit, 2, epsilon * 0.25, delta / 2, count=count)

    def step(state: object, data: AnyGraph, ask: object, rng: Rng) -> tuple[Any, Any]:
        closed, _ = first.step(None, data, ask, rng)
        wedges, _ = second.step(None, data, ask, rng)
        return {"value": _coefficient(closed["value"], wedges["value"]), "triangles": closed, "stars": wedges}, state

    def error(confidence: float, answer: Any) -> float:
        if answer is None:
            raise InvalidParameter("graphs.clustering_without_forecast")
        half = 1 - (1 - confidence) / 2
        return _corners(answer, *(_bar(m, half, answer[part]) for m, part in ((first, "triangles"), (second, "stars"))))

    return Measurement(
        unit=unit,
        event=first.event + second.event,
        step=step,
        error=error,
        draw=lambda answer, bar: make_drawing("clustering coefficient", None)(answer["value"], bar),
        name="clustering",
        question=f"clustering:{first.question}:{second.question}",
    )


def _bar(measurement: Measurement, confidence: float, answer: object) -> float:
    error: Callable[[float, Any], Any] | None = measurement.error
    return math.inf if error is None else float(error(confidence, answer))


def _coefficient(triangle_count: float, star_count: float) -> float:
    return float(min(1.0, max(0.0, 3 * triangle_count / star_count))) if star_count > 0 else 0.0


def _corners(answer: Any, wide: float, tall: float) -> float:
    closed, wedges = answer["triangles"]["value"], answer["stars"]["value"]
    reached = [_coefficient(closed + i * wide, max(wedges + j * tall, 1.0)) for i in (-1, 1) for j in (-1, 1)]
    return float(max(abs(corner - answer["value"]) for corner in reached))
