"""Questions about degrees: the sorted sequence, the histogram, the distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.unit import Edge, Node, Unit
from mosha.graphs.statistics.bounded import LARGEST_BOUND, bound_degrees
from mosha.graphs.statistics.degree_bands import find_count_bars, find_degree_bars
from mosha.graphs.statistics.degrees import (
    consistent_sequence,
    distribution,
    distribution_tail,
    monotone_counts,
    sequence_of_counts,
)
from mosha.graphs.statistics.statistic import CumulativeDegrees, DegreeHistogram, SortedDegrees, degree_bound
from mosha.mechanisms import laplace
from mosha.mechanisms.error_bars import LaplaceError, laplace_width

__all__ = ["cumulative_degrees", "degree_distribution", "degree_histogram", "degree_sequence"]


def degree_sequence(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """All degrees in increasing order, as accurate as their order allows.

    Guarantee:
        Edge level: Laplace noise of l1 sensitivity 2 on `SortedDegrees`, then post-processing. Node level: the
        sequence that the private cumulative histogram stands for.

    Units:
        Degrees. The error bars of an answer are those of its entries, each by itself, and narrow where many degrees are
        alike (`degree_bands`); a forecast is one that all entries keep at once on any graph, for isotonic regression
        never raises the largest error. At node level there is none.

    >>> from mosha import noise
    >>> from mosha.graphs.data.graph import Graph
    >>> ring = Graph.of([(i, (i + 1) % 1000) for i in range(1000)], vertices=1000)
    >>> sequence, _ = degree_sequence(Edge(), 1.0, count=1000).step(None, ring, None, noise.SeededRandom(1))
    >>> round(float(np.median(sequence)), 1)
    2.0
    """
    if isinstance(unit, Node):
        return _apply_to_counts(unit, epsilon, lambda counts: sequence_of_counts(counts).astype(np.float64))
    noisy = laplace(SortedDegrees(count), unit=unit, epsilon=epsilon)
    bar = noisy.error
    assert isinstance(bar, LaplaceError)
    clean = noisy.map(lambda y: consistent_sequence(y, max(count - 1, 0), variance=bar.standard_deviation**2))

    def error(confidence: float, answer: Any) -> Any:
        if answer is None:
            return laplace_width(bar.scale, 1 - (1 - confidence) / max(count, 1)) + 0.5
        return find_degree_bars(np.asarray(answer, np.float64), max(count - 1, 0), bar.scale, 1 - confidence)

    draw = _curve("sorted degrees", "vertices, by degree", "degree")
    together = 0.05 / max(count, 1)  # a picture shows the band that holds all entries at once
    return replace(
        clean,
        error=error,
        draw=lambda answer, seen: draw(
            answer, None if seen is None else find_degree_bars(answer, max(count - 1, 0), bar.scale, together)
        ),
    )


def degree_histogram(unit: Unit, epsilon: float, *, length: int) -> Measurement:
    """How many vertices have each degree, with Laplace noise on every entry.

    Guarantee:
        `DegreeHistogram`: l1 sensitivity 4 at edge level; 2 D + 1 at node level, after `bound_degrees`.

    Units:
        Vertices. Entries may be negative: clamping them would move their sum.
    """
    if isinstance(unit, Node):
        return bound_degrees(unit, epsilon, lambda u, e: laplace(_histogram(u), unit=u, epsilon=e), balanced=True)
    asked = laplace(DegreeHistogram(length), unit=unit, epsilon=epsilon)
    draw, alone = _curve("degree histogram", "degree", "vertices"), math.log(20)
    together = math.log(20 * max(length, 1)) / alone  # Laplace noise: bars of 95% that hold for all entries at once
    return replace(asked, draw=lambda answer, error: draw(answer, None if error is None else error * together))


def _histogram(unit: Node) -> DegreeHistogram:
    return DegreeHistogram(degree_bound(unit, "a degree histogram") + 1)


def cumulative_degrees(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """How many vertices have degree at most 0, 1, ...: increasing, and at edge level from the sorted sequence.

    Guarantee:
        Post-processing of `degree_sequence` (edge level) or of noise on `CumulativeDegrees` (node level).

    Units:
        Vertices. The error bar holds for all entries at once: at node level that of the largest noise, which isotonic
        regression does not raise; at edge level it is read off the bands of all degrees (`degree_bands`), so it comes
        with the answer. What a bound on degrees loses is not in it.
    """
    if isinstance(unit, Edge):
        sequence = degree_sequence(unit, epsilon, count=count)
        places = np.arange(max(count, 1)) + 0.5
        counts = sequence.map(lambda degrees: np.searchsorted(degrees, places).astype(np.float64))
        bar = laplace(SortedDegrees(count), unit=unit, epsilon=epsilon).error
        assert isinstance(bar, LaplaceError)
        return replace(
            counts, error=_cumulative_error(bar.scale), draw=_curve("cumulative degrees", "degree", "vertices")
        )
    return _apply_to_counts(unit, epsilon, lambda counts: counts, lambda width, _: width)


def _cumulative_error(scale: float) -> Callable[[float, Any], Any]:
    """The bar of a cumulative histogram that was read off degrees with noise of this scale."""

    def error(confidence: float, answer: object) -> Any:
        if answer is None:
            raise InvalidParameter("graphs.cumulative_without_forecast")
        return find_count_bars(np.asarray(answer, np.float64), scale, 1 - confidence)

    return error


def degree_distribution(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """The part of the vertices with degree at most 0, 1, ...: what a Kolmogorov-Smirnov distance compares.

    Guarantee:
        Edge level: post-processing of `cumulative_degrees`. Node level: post-processing of noise on
        `CumulativeDegrees`, after `bound_degrees`; the answer says how many vertices it was divided by.

    Units:
        Parts of all vertices. The error bar holds for all entries at once: with counts c_j within w and all vertices c
        within v of the truth, c_j / c is within (w + v) / (c - v) of it. At node level neighboring entries are
        averaged first, a third of the degree to both sides, and above a bound that was chosen (not declared) the
        distribution is extrapolated (`distribution_tail`): what that bends and what the bound loses are not in the bar.
    """
    if isinstance(unit, Edge):
        counts = cumulative_degrees(unit, epsilon, count=count)
        bar: Any = counts.error
        return replace(
            counts.map(lambda found: found / found[-1] if found[-1] > 0 else np.ones_like(found)),
            error=lambda confidence, answer: (
                bar(confidence, None if answer is None else answer * count) / max(count, 1)
            ),
            draw=_curve("degree distribution", "degree", "part of the vertices"),
        )
    assert isinstance(unit, Node)
    noisy = bound_degrees(unit, epsilon, _weighted_counts, balanced=True)
    return _clean_counts(noisy, _parts if unit.max_degree is not None else _all_parts, _ratio)


def _weight(bound: int) -> int:
    """How often all vertices are counted: a sixteenth of the sensitivity makes their noise the least of it."""
    return max(1, bound // 16)


def _weighted_counts(under: Node, price: float) -> Measurement:
    bound = degree_bound(under, "a degree distribution")
    return laplace(CumulativeDegrees(bound, _weight(bound)), unit=under, epsilon=price)


def _parts(counts: Any, bound: int) -> tuple[Any, float]:
    """A distribution, and how many vertices it is of, from counts whose last has a weight."""
    vertices = float(counts[-1]) / _weight(bound)
    return distribution(counts[:-1], vertices), max(vertices, 0.0)


def _all_parts(counts: Any, bound: int) -> tuple[Any, float]:
    parts, vertices = _parts(counts, bound)
    beyond = distribution_tail(counts[:-1], vertices, LARGEST_BOUND + 1)
    return np.append(parts[:-1], np.maximum(beyond, parts[-2])), vertices


def _ratio(width: float, answer: Any) -> float:
    if answer is None:
        return 1.0
    share = width / _weight(answer["max_degree"])
    return min(1.0, (width + share) / (answer["vertices"] - share)) if answer["vertices"] > share else 1.0


def _apply_to_counts(
    unit: Unit,
    epsilon: float,
    function: Callable[[Any], Any],
    bar: Callable[[float, Any], float] | None = None,
) -> Measurement:
    """A function of the private cumulative histogram at node level, made increasing; its bar, given that of counts."""
    assert isinstance(unit, Node)

    def build(under: Node, price: float) -> Measurement:
        counts = CumulativeDegrees(degree_bound(under, "a degree distribution"))
        return laplace(counts, unit=under, epsilon=price)

    def clean(noisy: Any, bound: int) -> tuple[Any, float]:
        del bound
        counts = monotone_counts(noisy)
        return function(counts), float(counts[-1])

    return _clean_counts(bound_degrees(unit, epsilon, build, balanced=True), clean, bar)


def _clean_counts(
    noisy: Measurement, clean: Callable[[Any, int], tuple[Any, float]], bar: Callable[[float, Any], float] | None
) -> Measurement:
    """Counts under a bound, post-processed; the bar of the result, given the one that all counts keep at once."""

    def add_vertices(answer: Any) -> Any:
        value, vertices = clean(answer["value"], answer["max_degree"])
        return {**answer, "value": value, "vertices": vertices}

    def error(confidence: float, answer: object) -> Any:
        assert noisy.error is not None
        assert bar is not None
        one = noisy.error(confidence, answer)  # of any one entry; all of them share what is missing to 1
        width = float(np.max(noisy.error(1 - (1 - confidence) / np.size(one), answer)))
        return bar(width, answer)

    draw = _curve("degrees at node level", "degree", "")
    return replace(
        noisy.map(add_vertices),
        error=None if bar is None else error,
        draw=lambda answer, error: draw(answer["value"], error),
    )


def _curve(title: str, across: str, up: str) -> Callable[[Any, Any], Any]:
    def draw(answer: object, error: object) -> Any:
        from mosha.graphs.data.picture import draw_curve  # noqa: PLC0415  (pictures are drawn when they are asked for)

        return draw_curve(answer, error, title=title, across=across, up=up)

    return draw
