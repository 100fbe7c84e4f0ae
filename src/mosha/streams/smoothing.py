"""Smoothing, grouping and order, as free post-processing with error bands that a controller can use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from mosha.core.canvas import draw_as_asked
from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, say
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive

__all__ = ["Band", "group", "rising", "smooth"]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Band:
    """Estimates (`values`) and their standard `deviations`, one for each step.

    >>> band = rising([1.0, 3.0, 2.0, 4.0])
    >>> band.values.tolist()
    [1.0, 2.5, 2.5, 4.0]
    """

    values: Vector
    deviations: Vector

    def interval(self, width: float = 1.96) -> tuple[Vector, Vector]:
        """The band of `width` standard deviations on either side."""
        return self.values - width * self.deviations, self.values + width * self.deviations

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None, width: float = 1.96,
    ) -> Figure:  # fmt: skip
        """The line over the steps with its band (needs the extra `plot`).

        Args:
            ax: axes of matplotlib to draw on.
            title: what stands above.
            unit: what the numbers are counted in.
            lang: "en" or "zh"; the chosen language where it is left out.
            width: so many deviations to each side.
        """
        from mosha.pictures import draw_band  # noqa: PLC0415  (pictures are drawn when they are asked for)

        def draw() -> Figure:
            footer = say("streams.picture_band", width=width, date=datetime.now(UTC).date().isoformat())
            return draw_band(self.values, width * self.deviations, across=say("streams.shown_step"), footer=footer)

        return cast("Figure", draw_as_asked(draw, ax=ax, title=title, unit=unit, lang=lang))


def _check_series(values: object, deviations: object) -> tuple[Vector, Vector]:
    try:
        series = np.asarray(values, np.float64)
        noise = np.broadcast_to(np.asarray(deviations, np.float64), series.shape)
    except (TypeError, ValueError, OverflowError):
        series, noise = np.zeros(0), np.zeros(0)
    if series.ndim != 1 or series.size == 0 or not np.all(np.isfinite(series)) or not np.all(noise > 0):
        raise InvalidParameter("streams.not_published_values", parameter="values")
    return series, noise


def _filter(series: Vector, noise: Vector, drift: float) -> tuple[Vector, Vector, Vector, float]:
    """A local level by Kalman's filter: estimates, variances before and after each step, and the log likelihood."""
    level, variance = float(series[0]), float(noise[0] ** 2)
    levels, before, after = np.empty_like(series), np.empty_like(series), np.empty_like(series)
    levels[0], before[0], after[0], likelihood = level, math.inf, variance, 0.0
    for t in range(1, series.size):
        ahead = variance + drift
        total = ahead + noise[t] ** 2
        surprise = series[t] - level
        likelihood -= (math.log(total) + surprise**2 / total) / 2
        gain = ahead / total
        level, variance = level + gain * surprise, ahead * (1 - gain)
        levels[t], before[t], after[t] = level, ahead, variance
    return levels, before, after, likelihood


@explain_wrong_calls
def smooth(values: object, deviations: object, *, drift: float | None = None, online: bool = False) -> Band:
    """A level that wanders, seen through noise of known size: Kalman's filter, or with all steps known the smoother.

    `drift` is the standard deviation of the level's own change a step; by default the likeliest one for these values.
    `online=True` uses for each step only what was published up to it, as a controller must.

    `values` are what was published, `deviations` those of their noise (one for each, or one for all).

    >>> rng = np.random.default_rng(1)
    >>> band = smooth(100 + rng.normal(0, 10, 400), 10.0)
    >>> bool(np.std(band.values) < 3), bool(band.deviations[-1] < 5)
    (True, True)
    """
    series, noise = _check_series(values, deviations)
    if drift is None:
        scale = float(np.mean(noise**2))
        grid = [scale * 10.0 ** (power / 4) for power in range(-28, 17)]
        square = max(grid, key=lambda trial: _filter(series, noise, trial)[3])
    else:
        square = positive("drift", drift) ** 2
    levels, before, after, _ = _filter(series, noise, square)
    if online:
        return Band(levels, np.sqrt(after))
    for t in range(series.size - 2, -1, -1):
        back = after[t] / before[t + 1]
        levels[t] += back * (levels[t + 1] - levels[t])
        after[t] += back**2 * (after[t + 1] - before[t + 1])
    return Band(levels, np.sqrt(np.maximum(after, 0.0)))


@explain_wrong_calls
def group(values: object, deviations: object, *, jump: float = 3.0) -> Band:
    """Means over runs of steps that stay together: a run ends where a value leaves its mean by `jump` deviations.

    `values` are what was published, `deviations` those of their noise (one for each, or one for all).

    >>> group([1.0, 1.2, 0.8, 9.0, 9.2], 0.3).values.round(1).tolist()
    [1.0, 1.0, 1.0, 9.1, 9.1]
    """
    series, noise = _check_series(values, deviations)
    estimates, widths, first = np.empty_like(series), np.empty_like(series), 0
    for t in range(1, series.size + 1):
        weights = 1 / noise[first:t] ** 2
        mean = float(np.sum(series[first:t] * weights) / np.sum(weights))
        away = math.inf if t == series.size else abs(series[t] - mean)
        if t == series.size or away > positive("jump", jump) * math.sqrt(noise[t] ** 2 + 1 / np.sum(weights)):
            estimates[first:t], widths[first:t] = mean, math.sqrt(1 / np.sum(weights))
            first = t
    return Band(estimates, widths)


@explain_wrong_calls
def rising(values: object, deviations: object = 1.0, *, at_least: float = 0.0) -> Band:
    """The nearest sequence that never falls and is never below `at_least`: what a running count must be.

    Pooling neighbors that are in the wrong order (isotonic regression) is never further from the truth, in the sum of
    weighted squares, than the values were; the band is that of the values.

    `values` are what was published, `deviations` those of their noise (one for each, or one for all).

    >>> rising([-1, 3, 2, 5]).values.tolist()
    [0.0, 2.5, 2.5, 5.0]
    """
    series, noise = _check_series(values, deviations)
    pools: list[tuple[float, float, int]] = []
    for value, width in zip(series, noise, strict=True):
        pool = (float(value), float(width**-2), 1)
        while pools and pools[-1][0] >= pool[0]:
            mean, weight, count = pools.pop()
            both = weight + pool[1]
            pool = ((mean * weight + pool[0] * pool[1]) / both, both, count + pool[2])
        pools.append(pool)
    levels = np.concatenate([np.full(count, mean) for mean, _, count in pools])
    return Band(np.maximum(levels, at_least), noise.copy())
