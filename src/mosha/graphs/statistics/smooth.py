"""Smooth sensitivity of subgraph counts with an uneven split: a little epsilon for the scale, most for the shift."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from mosha.accounting.numerics.rounding import round_down
from mosha.core.errors import InvalidParameter
from mosha.core.events import Approx, Pure
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement
from mosha.core.number import positive, probability
from mosha.core.randomness import Rng
from mosha.core.unit import Unit
from mosha.graphs.data.graph import AnyGraph
from mosha.graphs.statistics.spread import SPREAD_SHARE, draw_spread, picture, split_confidence, spread_event, widen
from mosha.graphs.statistics.subgraphs import SubgraphCount
from mosha.mechanisms.error_bars import laplace_width
from mosha.mechanisms.smooth_sensitivity import LEAST_SCALE, smooth_bound
from mosha.noise import LARGEST_SCALE
from mosha.noise.cauchy import cauchy_width, discrete_cauchy
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["dilation_delta", "largest_decay", "smooth"]

DILATION = 0.1
"""The part of epsilon that pays for the change of the noise's scale."""

_STEEPEST = 2.0**-3
_HAIR = 1 - 2.0**-20


def dilation_delta(decay: float, shift: float, epsilon: float) -> float:
    """The delta of Laplace noise whose scale differs by e^decay at most and whose centre by `shift` scales.

    Guarantee:
        See `smooth.md`. For 0 < decay <= 1/8, decay <= epsilon - shift, and scales of at least 8 steps.

    >>> dilation_delta(0.012, 0.9, 1.0) < 1e-6 < dilation_delta(0.014, 0.9, 1.0)
    True
    """
    wider = math.expm1(decay)
    constant = decay * (1 - 1 / 384)
    near = math.exp(-min(700.0, (epsilon - shift + constant) / wider))
    far = math.exp(-min(700.0, (epsilon + shift + constant) / wider))
    return 0.625 * -math.expm1(-decay) * (near + far)


def largest_decay(shift: float, epsilon: float, delta: float) -> float:
    """The largest decay, to a part in a million, that `dilation_delta` allows."""
    low, high = 0.0, min(_STEEPEST, (epsilon - shift) * _HAIR)
    if dilation_delta(high, shift, epsilon) <= delta * _HAIR:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if dilation_delta(middle, shift, epsilon) <= delta * _HAIR else (low, middle)
    return low


def smooth(
    statistic: SubgraphCount, *, unit: Unit, epsilon: float, delta: float, dilation: float = DILATION
) -> Measurement:
    """A subgraph count with noise scaled to its smooth sensitivity: Laplace where delta > 0, Cauchy where it is zero.

    Guarantee:
        (epsilon, delta)-differential privacy when one edge is added or removed: see `smooth.md`.

    Units:
        Counts of subgraphs; `dilation` is the part of epsilon for the change of scale. Cauchy noise has heavy tails.

    >>> from mosha import Edge, noise
    >>> from mosha.graphs.data.graph import Graph
    >>> from mosha.graphs.statistics.subgraphs import TriangleCount
    >>> clique = Graph.of([(i, j) for i in range(40) for j in range(i)], vertices=40)
    >>> triangles = smooth(TriangleCount(40), unit=Edge(), epsilon=1, delta=1e-6)
    >>> answer, _ = triangles.step(None, clique, None, noise.SeededRandom(1))
    >>> abs(answer["value"] - 9880) < 2000
    True
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    if not 2.0**-20 <= epsilon <= 2.0**10 or 0 < delta < 2.0**-500 or not 0 < positive("dilation", dilation) < 1:
        raise InvalidParameter("graphs.smooth_budget")
    share = epsilon * SPREAD_SHARE
    rest = round_down(Fraction(epsilon) - Fraction(share))
    shift = rest * (1 - dilation)
    decay = largest_decay(shift, rest, delta) if delta else (rest - shift) * _HAIR
    if decay < 2.0**-22 or statistic.global_sensitivity / shift > LARGEST_SCALE:
        raise InvalidParameter("graphs.smooth_noise_too_large", parameter="epsilon")

    def scale(widths: tuple[int, ...]) -> Fraction:
        length = min(statistic.cap + 1, math.ceil(64 / decay) + 1)
        bound = smooth_bound(statistic.reaches(widths, length), decay * _HAIR)  # type: ignore[arg-type]
        return max(max(Fraction(bound), Fraction(statistic.reach(widths, 0))) / Fraction(shift), Fraction(LEAST_SCALE))

    def step(state: object, data: AnyGraph, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        exact, widths = statistic.evaluate(data), statistic.widths(data)
        wide = scale(widths)
        noise = int(unbounded_laplace(wide, 1, rng=rng)[0]) if delta else discrete_cauchy(wide, rng=rng)
        value = min(max(exact + noise, 0), statistic.most)
        return {"value": value, "spread": draw_spread(widths, share, rng)}, state

    def error(confidence: float, answer: object) -> float:
        of_width, of_noise = split_confidence(confidence)
        wide = float(scale(widen(answer, statistic, share, of_width)))
        return float(laplace_width(wide, of_noise)) if delta else cauchy_width(wide, of_noise)

    return Measurement(
        unit=unit,
        event=(Approx(rest, delta) if delta else Pure(rest)) + spread_event(share),
        step=step,
        error=error,
        draw=picture(type(statistic).__name__),
        name=f"smooth({type(statistic).__name__})",
        question=fingerprint(statistic, unit, dilation),
    )
