"""Coefficients of correlated noise that leave the least noise in sums over steps, for one length of a run.

Of all encoders of some length, price and error follow from a column alone: the price from its norm, the error from the
decoder. What is minimized is their product (Choquette-Choo et al. 2023). A public choice: no data is looked at.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.core.number import positive_integer
from mosha.mechanisms.plans.correlated import SCALE, Coefficients, encoder

__all__ = ["mean_error", "optimized_encoder"]

Vector = NDArray[np.float64]


def _decode(column: Vector, values: Vector) -> Vector:
    """The first entries of C^-1 applied to the values."""
    from scipy.signal import lfilter  # noqa: PLC0415  (planning alone needs it)

    return np.asarray(lfilter([1.0], column, values))


def mean_error(coefficients: Coefficients, steps: int) -> float:
    """The error of sums from the first step on (root mean square over all of them), for noise of deviation one.

    >>> mean_error((SCALE,), 3) == math.sqrt((1 + 2 + 3) / 3)
    True
    """
    left = _decode(np.array(coefficients) / SCALE, np.ones(steps))  # what the noise of one step adds later on
    return math.sqrt(float(np.arange(steps, 0, -1) @ np.square(left)) / steps)


@lru_cache(maxsize=64)
def optimized_encoder(bands: int, steps: int) -> Coefficients:
    """The column of so many bands with the least norm times error of sums over so many steps, the first one SCALE.

    Found by descent from the root of summing, and rounded to multiples of 1 / SCALE; where that is no better, the root.

    >>> optimized_encoder(1, 100) == (SCALE,)
    True
    >>> best, root = optimized_encoder(8, 100), encoder(8)
    >>> mean_error(best, 100) * math.hypot(*best) < 0.97 * mean_error(root, 100) * math.hypot(*root)
    True
    """
    from scipy.optimize import minimize  # noqa: PLC0415  (planning alone needs it)

    root, weights = encoder(bands), np.arange(positive_integer("steps", steps), 0, -1.0)
    if bands == 1:
        return root

    def cost(rest: Vector) -> tuple[float, Vector]:
        """The logarithm of the squared product, and its gradient."""
        column = np.concatenate([[1.0], rest])
        left = _decode(column, np.ones(steps))
        again = _decode(column, left)
        error, norm = float(weights @ np.square(left)), float(column @ column)
        slope = [-2 * float((weights * left)[k:] @ again[: max(0, steps - k)]) for k in range(1, bands)]
        return math.log(error * norm), np.array(slope) / error + 2 * rest / norm

    start = np.array(root[1:]) / SCALE
    found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * (bands - 1))
    best = (SCALE, *(round(c * SCALE) for c in found.x))
    return min((best, root), key=lambda column: mean_error(column, steps) * math.hypot(*column))
