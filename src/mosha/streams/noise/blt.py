"""Buffered linear Toeplitz encoders: C(z) = prod(1 - h_i z) / prod(1 - t_i z), a few numbers of state for any horizon.

The zeros and poles interlace, 1 > t_1 > h_1 > t_2 > ... > t_k > h_k > 0, and are kept as their distances from one,
tau_i = 1 - t_i and eta_i = 1 - h_i, so that a pole within 2**-40 of one loses no digits.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer

__all__ = ["MOST_BUFFERS", "Buffers", "design", "find_design"]

Vector = NDArray[np.float64]
MOST_BUFFERS = 8
LONGEST = 1 << 40


@dataclass(frozen=True)
class Buffers:
    """The poles and zeros of one encoder, as distances from one; both increase and interlace.

    Guarantee:
        Interlacing makes all residues positive: c_0 = 1 and c_j = sum alpha_i t_i^j (j >= 1) are positive and fall, and
        so do b_j = beta_0 + sum beta_i h_i^j of A C^-1, A the running sum. (Sign of alpha_i: each of the factors
        t_i - h_m and t_i - t_m with m < i is negative, as many of one as of the other; likewise for beta_i.)

    >>> buffers = design(1024, 3)
    >>> round(math.sqrt(buffers.encoder_square(1024)) * math.sqrt(buffers.decoder_square(1024)), 3)
    3.278
    """

    tau: tuple[float, ...]
    eta: tuple[float, ...]

    def __post_init__(self) -> None:
        order = [distance for pair in zip(self.tau, self.eta, strict=True) for distance in pair]
        if not order or order != sorted(set(order)) or not 2.0**-43 < order[0] <= order[-1] < 1:
            raise InvalidParameter("streams.poles_interlace")
        if any((distance * 2.0**60) % 1 for distance in order):
            raise InvalidParameter("streams.poles_off_grid")

    def __len__(self) -> int:
        return len(self.tau)

    def residues(self) -> Vector:
        """alpha_i with c_j = sum alpha_i t_i^j for j >= 1."""
        return _known_residues(self.tau, self.eta)

    def decoder_residues(self) -> tuple[float, Vector]:
        """beta_0 and beta_i with (A C^-1)_j = beta_0 + sum beta_i h_i^j."""
        tau, eta = np.array(self.tau), np.array(self.eta)
        first, others = _decoder_residues(tau, eta)
        return float(first), others

    def encoder_square(self, steps: int) -> float:
        """The sum of c_j^2 over j < steps: the squared norm of a column with so many entries."""
        return float(self.encoder_squares(np.array([steps], np.float64))[0])

    def encoder_squares(self, steps: Vector) -> Vector:
        """The same for many lengths at once."""
        tau, alpha = np.array(self.tau), self.residues()
        weights = np.multiply.outer(alpha, alpha).ravel()
        rates = np.log1p(-tau)
        sums = np.add.outer(rates, rates).ravel()
        powers = np.maximum(steps - 1, 0)[:, None]
        # sum over 1 <= j <= m of e^(s j) = e^s (1 - e^(s m)) / (1 - e^s)
        terms = np.exp(sums) * np.expm1(sums * powers) / np.expm1(sums)
        return np.asarray(1.0 + terms @ weights)

    def encoder_squares_from(self, steps: int, count: int) -> Vector:
        """The same for the lengths steps, steps + 1, ...: one more squared coefficient each."""
        start = self.residues() * np.exp(steps * np.log1p(-np.array(self.tau)))
        coefficients = start @ _powers(self.tau, count)
        sums = np.zeros(count)
        np.cumsum(coefficients[:-1] ** 2, out=sums[1:])
        sums += self.encoder_square(steps)
        return sums

    def decoder_square(self, steps: int) -> float:
        """The sum of b_j^2 over j < steps: the variance of the last running sum, per unit of noise."""
        beta, weights = self.decoder_residues()
        rates = np.log1p(-np.array(self.eta))
        sums = np.add.outer(rates, rates)
        count = max(steps - 1, 0)
        pairs = np.exp(sums) * np.expm1(sums * count) / np.expm1(sums)
        singles = np.exp(rates) * np.expm1(rates * count) / np.expm1(rates)
        return float(1 + count * beta**2 + 2 * beta * (weights @ singles) + weights @ pairs @ weights)

    def coefficients(self, steps: int) -> Vector:
        """c_0, ..., c_(steps-1)."""
        powers = np.exp(np.multiply.outer(np.arange(steps), np.log1p(-np.array(self.tau))))
        coefficients = powers @ self.residues()
        coefficients[0] = 1.0
        return np.asarray(coefficients)


@lru_cache(maxsize=16)
def _powers(tau: tuple[float, ...], count: int) -> Vector:
    """t_i^j for j < count, a row for each i."""
    return np.asarray(np.exp(np.multiply.outer(np.log1p(-np.array(tau)), np.arange(count))))


@lru_cache(maxsize=64)
def _known_residues(tau: tuple[float, ...], eta: tuple[float, ...]) -> Vector:
    return _residues(np.array(tau), np.array(eta))


def _residues(tau: Vector, eta: Vector) -> Vector:
    """Of one encoder, or of many at once: the last axis runs over the buffers."""
    gaps = tau[..., None, :] - tau[..., :, None] + np.eye(tau.shape[-1])  # t_i - t_m, row i; 1 on the diagonal
    return np.asarray(np.prod(eta[..., None, :] - tau[..., :, None], axis=-1) / np.prod(gaps, axis=-1) / (1 - tau))


def _decoder_residues(tau: Vector, eta: Vector) -> tuple[Vector, Vector]:
    gaps = eta[..., None, :] - eta[..., :, None] + np.eye(eta.shape[-1])
    others = np.prod(tau[..., None, :] - eta[..., :, None], axis=-1) / np.prod(gaps, axis=-1) / -eta
    return np.asarray(np.prod(tau / eta, axis=-1)), np.asarray(others)


def _place_on_grid(logs: Vector) -> Buffers:
    """Poles and zeros at distances exp(-sums of gaps), on the grid of 2**-60; `logs` are the logarithms of the gaps."""
    distances = np.rint(np.exp(-np.cumsum(np.exp(logs))[::-1]) * 2.0**60) * 2.0**-60
    return Buffers(tuple(distances[0::2].tolist()), tuple(distances[1::2].tolist()))


def _objectives(logs: Vector, steps: int) -> Vector:
    """For each row of `logs`: the logarithm of squared encoder norm times squared decoder norm."""
    distances = np.exp(-np.cumsum(np.exp(logs), axis=1)[:, ::-1])
    tau, eta = distances[:, 0::2], distances[:, 1::2]
    alpha, (beta, betas) = _residues(tau, eta), _decoder_residues(tau, eta)
    count = steps - 1
    encoder = 1 + np.einsum("mi,mij,mj->m", alpha, _geometric(_pairs(np.log1p(-tau)), count), alpha)
    rates = np.log1p(-eta)
    decoder = 1 + count * beta**2 + 2 * beta * np.einsum("mi,mi->m", betas, _geometric(rates, count))
    decoder += np.einsum("mi,mij,mj->m", betas, _geometric(_pairs(rates), count), betas)
    return np.asarray(np.log(encoder) + np.log(decoder))


def _pairs(rates: Vector) -> Vector:
    return np.asarray(rates[:, :, None] + rates[:, None, :])


def _geometric(rates: Vector, count: int) -> Vector:
    """The sum of exp(rate j) over 1 <= j <= count."""
    return np.asarray(np.exp(rates) * np.expm1(rates * count) / np.expm1(rates))


def _with_slope(logs: Vector, steps: int) -> tuple[float, Vector]:
    """The objective and its slope by differences, all points in one go."""
    width = 1e-6
    points = np.vstack([logs, logs + width * np.eye(logs.size), logs - width * np.eye(logs.size)])
    with np.errstate(all="ignore"):
        values = _objectives(points, steps)
    if not np.all(np.isfinite(values)):
        return 1e3, np.zeros(logs.size)
    above, below = values[1 : 1 + logs.size], values[1 + logs.size :]
    return float(values[0]), (above - below) / (2 * width)


@lru_cache(maxsize=256)
def design(horizon: int, buffers: int) -> Buffers:
    """The poles and zeros whose largest error over `horizon` steps is the least there is, to five digits.

    Any parameters are private: the price is computed from them, so that an optimiser that stops early costs accuracy
    and nothing else.

    Units:
        `horizon` in steps, at most 2**40; `buffers` is how many numbers of state, at most 8.

    >>> len(design(100, 2))
    2
    """
    from scipy.optimize import minimize  # noqa: PLC0415  (planning alone needs it)

    steps, count = positive_integer("horizon", horizon), positive_integer("buffers", buffers)
    if count > MOST_BUFFERS or steps > LONGEST:
        raise InvalidParameter("streams.design_too_large", buffers=MOST_BUFFERS)
    deepest = math.log(max(4.0, 2.0 * steps))
    found: list[tuple[float, Buffers]] = []
    for first in (0.12, 0.3):
        gaps = np.full(2 * count, (deepest - first) / (2 * count - 0.5))
        gaps[0] = first
        options: Any = {"maxiter": 250, "maxfun": 200, "ftol": 1e-10, "gtol": 1e-8}
        tried = minimize(_with_slope, np.log(gaps), (steps,), method="L-BFGS-B", jac=True, options=options)
        with suppress(InvalidParameter):
            found.append((float(tried.fun), _place_on_grid(tried.x)))
            break
    if not found:
        raise InvalidParameter("streams.too_many_buffers", parameter="buffers")
    return min(found, key=lambda pair: pair[0])[1]


@lru_cache(maxsize=256)
def find_design(horizon: int, buffers: int) -> Buffers:
    """The design for the next power of two of steps, which is made once; the price is that of the exact horizon.

    >>> find_design(1000, 2) is find_design(1024, 2)
    True
    """
    rounded = 1 << max(4, (horizon - 1).bit_length())
    return find_design(rounded, buffers) if rounded != horizon else design(rounded, buffers)
