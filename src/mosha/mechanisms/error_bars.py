"""Error bars: how far noise strays, from the exact tails of its distribution.

An error bar is a function (confidence, answer) -> half-width, as `Measurement.error` wants it, that also knows its
standard deviation: what `planning` turns around to find the least epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mosha.core.number import strict_probability

__all__ = ["GaussianError", "LaplaceError", "find_laplace_width", "gaussian_width", "laplace_tail", "laplace_width"]


def laplace_tail(scale: float, width: float) -> float:
    """P(|X| > width) for discrete Laplace X: 2 q^(w+1) / (1 + q), q = exp(-1 / scale), w = floor(width).

    >>> round(laplace_tail(10, 20), 4)
    0.1286
    """
    if width < 0:
        return 1.0
    return 2 * math.exp(-(math.floor(width) + 1) / scale) / (1 + math.exp(-1 / scale))


def laplace_width(scale: float, confidence: float) -> int:
    """The least whole number w with P(|X| <= w) >= confidence, for discrete Laplace X.

    Guarantee:
        Solving `laplace_tail` <= 1 - confidence for w gives w + 1 >= scale * ln(2 / ((1 + q)(1 - confidence)));
        the last line makes sure that rounding did not fall short (above 2**50 steps by one part in 2**48).

    >>> laplace_width(10, 0.95), laplace_width(1e-3, 0.95)
    (30, 0)
    """
    return find_laplace_width(scale, 1 - strict_probability("confidence", confidence))


def find_laplace_width(scale: float, missed: float) -> int:
    """The least whole number w with P(|X| > w) <= missed, for discrete Laplace X and a chance however small.

    >>> find_laplace_width(10, 0.05), find_laplace_width(10, 1e-30)
    (30, 691)
    """
    exact = scale * (math.log(2 / missed) - math.log1p(math.exp(-1 / scale)))
    width = max(0, math.ceil(exact * (1 + 2.0**-48)) - 1)
    while width > 0 and width < 2**50 and laplace_tail(scale, width - 1) <= missed:
        width -= 1
    return width


def gaussian_width(sigma: float, confidence: float) -> int:
    """A whole number w with P(|X| <= w) >= confidence for discrete Gaussian X; the least one for the continuous law.

    Guarantee:
        P(X >= w + 1) <= P(N >= w) for N normal with the same sigma (Canonne, Kamath, Steinke 2020), so
        the normal quantile, rounded up, covers. It is at most one step too wide.

    >>> gaussian_width(1000.0, 0.95)
    1960
    """
    missed = 1 - strict_probability("confidence", confidence)
    return math.ceil(-NormalDist().inv_cdf(missed / 2) * sigma * (1 + 2.0**-40))


@dataclass(frozen=True)
class LaplaceError:
    """The error bar of discrete Laplace noise with `scale` steps of size `grid` on each coordinate."""

    scale: float
    grid: float
    coordinates: int | None

    @property
    def standard_deviation(self) -> float:
        """Of each coordinate: sqrt(2 q) / (1 - q) steps, q = exp(-1 / scale)."""
        return math.sqrt(2 * math.exp(-1 / self.scale)) / -math.expm1(-1 / self.scale) * self.grid

    def __call__(self, confidence: float, answer: object = None) -> float | NDArray[np.float64]:
        del answer  # the noise is the same everywhere
        return _repeat_width(laplace_width(self.scale, confidence) * self.grid, self.coordinates)


@dataclass(frozen=True)
class GaussianError:
    """The error bar of discrete Gaussian noise with `sigma` steps of size `grid` on each coordinate."""

    sigma: float
    grid: float
    coordinates: int | None

    @property
    def standard_deviation(self) -> float:
        """Of each coordinate; the discrete law never has more than its parameter sigma."""
        return self.sigma * self.grid

    def __call__(self, confidence: float, answer: object = None) -> float | NDArray[np.float64]:
        del answer
        return _repeat_width(gaussian_width(self.sigma, confidence) * self.grid, self.coordinates)


def _repeat_width(width: float, coordinates: int | None) -> float | NDArray[np.float64]:
    return width if coordinates is None else np.full(coordinates, width)
