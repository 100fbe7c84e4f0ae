"""Rényi divergences of Gaussian noise on a Poisson sample, at whole and fractional orders, and under replacement.

The moment E[(1 - q + q L)^a], L = e^(mu z - mu^2/2), z standard normal. Whole orders are a binomial sum (Mironov,
Talwar, Zhang 2019). At other orders the trapezoid rule on the whole line is used: its error falls exponentially
because the integrand is analytic in the strip |Im z| < pi / mu. Proofs are in `subsampling.md`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.accounting.measures.mixture import (
    added_log_moment,
    interpolate,
    log_binomials,
    log_one_plus,
    replaced_log_moment,
    sum_up,
)
from mosha.accounting.numerics.normal import tail
from mosha.accounting.numerics.price import bound_above

__all__ = ["sampled_gaussian", "sampled_gaussian_replaced"]

Array = NDArray[np.float64]
DIGITS = 90.0  # natural logarithm of the trapezoid's relative error
REACH = 39.0  # standard deviations; the normal density beyond is below the smallest float


@lru_cache(maxsize=4096)
def sampled_gaussian(mu: float, rate: float, order: float) -> float:
    """The Rényi divergence of Poisson-sampled Gaussian noise; add or remove, whichever is worse.

    >>> round(sampled_gaussian(1 / 1.1, 0.004, 32.0), 9)
    7.523567937
    """
    divergence = lambda k: k * mu * mu / 2
    if order == int(order):
        return bound_above(added_log_moment(int(order), rate, divergence) / (order - 1))
    whole = interpolate(order, lambda k: added_log_moment(k, rate, divergence))
    if order * mu * mu + (REACH + 1) * mu > 690:  # L would overflow
        return whole
    return min(bound_above(_trapezoid(mu, rate, order) / (order - 1)), whole)


def _trapezoid(mu: float, rate: float, order: float) -> float:
    """log(1 + integral of the normal density times (1+u)^a - 1 - a u), u = q (L - 1), rounded up."""
    width = min(0.95 * math.pi / mu, math.sqrt(2 * DIGITS))
    step = 2 * math.pi * width / (DIGITS + width * width / 2)
    z = np.arange(-REACH, order * mu + REACH + step, step)
    u = rate * np.expm1(mu * z - mu * mu / 2)
    shift = max(0.0, float(np.max(order * np.log1p(u) - z * z / 2)))
    scaled = step / math.sqrt(2 * math.pi) * float(np.sum(_weighted_remainder(u, order, -z * z / 2 - shift)))
    error = 4 * math.exp(-DIGITS) * (scaled + (2 + 2 * order * rate) * math.exp(-shift))
    return log_one_plus([shift + math.log(scaled * (1 + 1e-12) + error)])


def _weighted_remainder(u: Array, order: float, log_weight: Array) -> Array:
    """((1+u)^a - 1 - a u) e^log_weight, which is never negative, without cancellation."""
    weight = np.exp(log_weight)
    logarithm = np.log1p(u)
    grown = np.exp((order - 1) * logarithm + logarithm + log_weight)
    plain = np.where(
        (order - 1) * logarithm > 1,
        grown - (1 + order * u) * weight,
        ((1 + u) * np.expm1(np.minimum(1.0, (order - 1) * logarithm)) - (order - 1) * u) * weight,
    )
    small = np.where(np.abs(u) * max(order, 1.0) < 0.05, u, 0.0)
    series, term = np.zeros_like(u), order * small
    for k in range(2, 14):
        term = term * small * ((order - k + 1) / k)
        series = series + term
    return np.maximum(0.0, np.where(small != 0.0, series * weight, plain))


@lru_cache(maxsize=4096)
def sampled_gaussian_replaced(mu: float, rate: float, order: float) -> float:
    """The same where one unit is replaced by another, for Poisson and for fixed-size samples without replacement.

    >>> round(sampled_gaussian_replaced(0.5, 0.01, 8.0) / sampled_gaussian(0.5, 0.01, 8.0), 2)
    1.38
    """
    divergence = lambda k: k * mu * mu / 2

    def log_moment(k: int) -> float:
        general = replaced_log_moment(k, rate, divergence)
        return min(general, _upper_half(k, mu, rate))

    return interpolate(order, log_moment)


def _upper_half(order: int, mu: float, rate: float) -> float:
    """Both remainders on L > 1 alone: E[L^k; L > 1] = E[L^k] tail(mu/2 - k mu)."""
    if mu < 0.05:
        return math.inf  # the differences below cancel
    below, even = tail(mu / 2), tail(-mu / 2)
    log_rate, log_rest = math.log(rate), math.log1p(-rate)

    def remainder(k: int) -> float:
        """The logarithm of E[L^k - 1 - k (L - 1); L > 1]."""
        log_moment = k * (k - 1) * mu * mu / 2 + math.log(tail(mu / 2 - k * mu))
        linear = below + k * (even - below)
        return 1e-12 + (log_moment + math.log1p(-linear * math.exp(-log_moment)) if log_moment < 600 else log_moment)

    binomials = log_binomials(order)
    logs = [sum_up(binomials[k], k * log_rate, (order - k) * log_rest, remainder(k)) for k in range(2, order + 1)]
    return log_one_plus([*logs, sum_up(binomials[2], 2 * log_rate, remainder(2))])
