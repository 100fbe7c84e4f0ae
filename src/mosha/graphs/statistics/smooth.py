"""Smooth sensitivity of subgraph counts with an uneven split: a little epsilon for the scale, most for the shift."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from mosha.accounting.numerics.price import round_down
from mosha.core.errors import InvalidParameter
from mosha.core.events import Approx, Pure
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive, probability, strict_probability
from mosha.core.unit import Unit
from mosha.graphs.data.graph import AnyGraph
from mosha.graphs.statistics.spread import (
    SPREAD_SHARE,
    Numbers,
    draw_spread,
    find_doubt,
    picture,
    read_width,
    spread_event,
)
from mosha.graphs.statistics.subgraphs import SubgraphCount
from mosha.mechanisms.error_bars import find_laplace_width
from mosha.mechanisms.smooth_sensitivity import LEAST_SCALE, smooth_bound
from mosha.noise import LARGEST_SCALE
from mosha.noise.cauchy import discrete_cauchy, find_cauchy_width
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


@dataclass(frozen=True)
class Scales:
    """Noise by the width of a graph: Laplace's, or Cauchy's (heavy), scaled to the smooth sensitivity.

    Guarantee:
        See `smooth.md`: the scale is smooth in the graph. It grows with the width, and so does the noise.
    """

    statistic: SubgraphCount
    shift: float
    decay: float
    heavy: bool

    def scale(self, widths: tuple[int, ...]) -> Fraction:
        """The scale of the noise, in subgraphs."""
        length = min(self.statistic.cap + 1, math.ceil(64 / self.decay) + 1)
        bound = smooth_bound(self.statistic.reaches(widths, length), self.decay * _HAIR)  # type: ignore[arg-type]
        least = max(Fraction(bound), Fraction(self.statistic.reach(widths, 0)))
        return max(least / Fraction(self.shift), Fraction(LEAST_SCALE))

    def find_scale(self, width: int) -> float:
        """The scale where all widths are this one."""
        return float(self.scale((width,) * self.statistic.parts))

    def reach(self, width: int, doubt: float) -> float:
        """A half-width that the noise at this width exceeds with a chance of `doubt` at most."""
        wide = self.find_scale(width)
        return find_cauchy_width(wide, doubt) if self.heavy else float(find_laplace_width(wide, doubt))

    def exceed(self, width: int, bars: Numbers) -> Numbers:
        """The chance that the noise at this width exceeds each of these half-widths, or a little more."""
        wide = self.find_scale(width)
        if self.heavy:
            return np.asarray(2 / math.pi * np.arctan2(wide, bars - 1))
        return np.asarray(2 * np.exp(-(np.floor(bars) + 1) / wide) / (1 + math.exp(-1 / wide)))


@lru_cache(maxsize=256)
def _find_doubt(noise: Scales, share: float, confidence: float) -> float:
    return find_doubt(noise, noise.statistic.cap, share, confidence)


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

    noise_of = Scales(statistic, shift, decay, heavy=not delta)

    def step(state: object, data: AnyGraph, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        exact, widths = statistic.evaluate(data), statistic.widths(data)
        wide = noise_of.scale(widths)
        noise = int(unbounded_laplace(wide, 1, rng=rng)[0]) if delta else discrete_cauchy(wide, rng=rng)
        value = min(max(exact + noise, 0), statistic.most)
        return {"value": value, "spread": draw_spread(widths, share, rng)}, state

    def error(confidence: float, answer: object) -> float:
        doubt = _find_doubt(noise_of, share, strict_probability("confidence", confidence))
        return noise_of.reach(read_width(answer, statistic.cap), doubt)

    return Measurement(
        unit=unit,
        event=(Approx(rest, delta) if delta else Pure(rest)) + spread_event(share),
        step=step,
        error=error,
        draw=picture(type(statistic).__name__),
        name=f"smooth({type(statistic).__name__})",
        question=fingerprint(statistic, unit, dilation),
    )
