"""Questions about degrees: the sorted sequence, the histogram, the distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mosha.core.measurement import Measurement
from mosha.core.unit import Edge, Node, Unit
from mosha.graphs.bounded import bounded
from mosha.graphs.degrees import consistent_sequence, distribution, monotone_counts, sequence_of_counts
from mosha.graphs.statistics import CumulativeDegrees, DegreeHistogram, SortedDegrees, degree_bound
from mosha.mechanisms import laplace
from mosha.mechanisms.error_bars import LaplaceError, laplace_width

__all__ = ["cumulative_degrees", "degree_distribution", "degree_histogram", "degree_sequence"]


def degree_sequence(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """All degrees in increasing order, as accurate as their order allows.

    Guarantee:
        Edge level: Laplace noise of l1 sensitivity 2 on `SortedDegrees`, then post-processing. Node level: the
        sequence that the private cumulative histogram stands for.

    Units:
        Degrees. The error bar is simultaneous: all entries stay within it, for isotonic regression never raises the
        largest error; single entries are far better. At node level there is none.

    >>> from mosha import noise
    >>> from mosha.graphs.graph import Graph
    >>> ring = Graph.of([(i, (i + 1) % 1000) for i in range(1000)], vertices=1000)
    >>> sequence, _ = degree_sequence(Edge(), 1.0, count=1000).step(None, ring, None, noise.SeededRandom(1))
    >>> round(float(np.median(sequence)), 1)
    2.0
    """
    if isinstance(unit, Node):
        return _of_counts(unit, epsilon, lambda counts: sequence_of_counts(counts).astype(np.float64))
    noisy = laplace(SortedDegrees(count), unit=unit, epsilon=epsilon)
    bar = noisy.error
    assert isinstance(bar, LaplaceError)
    clean = noisy.map(lambda y: consistent_sequence(y, max(count - 1, 0), variance=bar.standard_deviation**2))

    def error(confidence: float, answer: Any) -> float:
        del answer
        return laplace_width(bar.scale, 1 - (1 - confidence) / max(count, 1)) + 0.5

    return replace(clean, error=error, draw=_curve("sorted degrees", "vertices, by degree", "degree"))


def degree_histogram(unit: Unit, epsilon: float, *, length: int) -> Measurement:
    """How many vertices have each degree, with Laplace noise on every entry.

    Guarantee:
        `DegreeHistogram`: l1 sensitivity 4 at edge level; 2 D + 1 at node level, after `bounded`.

    Units:
        Vertices. Entries may be negative: clamping them would move their sum.
    """
    if isinstance(unit, Node):
        return bounded(unit, epsilon, lambda u, e: laplace(_histogram(u), unit=u, epsilon=e))
    return laplace(DegreeHistogram(length), unit=unit, epsilon=epsilon)


def _histogram(unit: Node) -> DegreeHistogram:
    return DegreeHistogram(degree_bound(unit, "a degree histogram") + 1)


def cumulative_degrees(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """How many vertices have degree at most 0, 1, ...: increasing, and at edge level from the sorted sequence."""
    if isinstance(unit, Edge):
        sequence = degree_sequence(unit, epsilon, count=count)
        places = np.arange(max(count, 1)) + 0.5
        return sequence.map(lambda degrees: np.searchsorted(degrees, places).astype(np.float64))
    return _of_counts(unit, epsilon, lambda counts: counts)


def degree_distribution(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """The part of the vertices with degree at most 0, 1, ...: what a Kolmogorov-Smirnov distance compares."""
    if isinstance(unit, Edge):
        return cumulative_degrees(unit, epsilon, count=count).map(distribution)
    return _of_counts(unit, epsilon, distribution)


def _of_counts(unit: Unit, epsilon: float, function: Callable[[Any], Any]) -> Measurement:
    """A function of the private cumulative histogram at node level, made increasing."""
    assert isinstance(unit, Node)

    def build(under: Node, price: float) -> Measurement:
        counts = CumulativeDegrees(degree_bound(under, "a degree distribution"))
        return laplace(counts, unit=under, epsilon=price)

    noisy = bounded(unit, epsilon, build)
    clean = noisy.map(lambda answer: {**answer, "value": function(monotone_counts(answer["value"]))})
    draw = _curve("degrees at node level", "degree", "")
    return replace(clean, draw=lambda answer, error: draw(answer["value"], error))


def _curve(title: str, across: str, up: str) -> Callable[[Any, Any], Any]:
    def draw(answer: Any, error: Any) -> Any:
        from mosha.graphs.picture import curve  # noqa: PLC0415  (pictures are drawn when they are asked for)

        return curve(answer, error, title=title, across=across, up=up)

    return draw
