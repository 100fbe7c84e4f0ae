"""Square-root Toeplitz encoders, whole or cut to a band: for persons who come back, and as a yardstick."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["decoder", "lower_bound", "pattern_norm", "root_coefficients"]

Vector = NDArray[np.float64]


def root_coefficients(count: int) -> Vector:
    """c_j = (2j choose j) / 4^j, the coefficients of (1 - z)^(-1/2): they fall, and C C is the running sum.

    >>> root_coefficients(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    j = np.arange(1, count, dtype=np.float64)
    return np.concatenate([[1.0], np.cumprod(1 - 0.5 / j)])


def decoder(coefficients: Vector, horizon: int) -> Vector:
    """The first `horizon` coefficients of A C^-1, A the running sum: what the noise of one step adds later on."""
    from scipy.signal import lfilter  # noqa: PLC0415  (planning alone needs it)

    return np.asarray(lfilter([1.0], coefficients, np.ones(horizon)))


def pattern_norm(coefficients: Vector, horizon: int, most: int, apart: int) -> float:
    """The largest norm of C x over x with at most `most` entries of size 1, two of them `apart` steps or more.

    Guarantee:
        For coefficients that fall and are not negative it is reached at steps 0, apart, 2 apart, ...: <C e_s, C e_t> =
        sum over j < horizon - t of c_j c_(j+t-s) falls with t and with t - s. Of any other pattern t_0 < t_1 < ...,
        t_i >= i apart and t_j - t_i >= (j - i) apart, so each product is no larger; signs only lower the sum.

    >>> round(pattern_norm(root_coefficients(4), 16, 1, 1), 4)
    1.22
    """
    total = np.zeros(horizon)
    for i in range(min(most, math.ceil(horizon / apart))):
        length = min(coefficients.size, horizon - i * apart)
        total[i * apart : i * apart + length] += coefficients[:length]
    return math.sqrt(float(total @ total)) * (1 + 2.0**-40)


@lru_cache(maxsize=64)
def lower_bound(horizon: int) -> float:
    """The least error (root mean square) of any factorisation of running sums, per unit of noise: nuclear norm / T.

    >>> round(lower_bound(1024), 6)
    2.909584
    """
    j = np.arange(1, horizon + 1)
    return float(np.sum(0.5 / np.cos(j * np.pi / (2 * horizon + 1))) / horizon)
