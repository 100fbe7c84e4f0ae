"""Sums of losses: the tilted Fourier transform, with every error bounded.

The law of a sum of independent losses is a convolution. Multiplying each mass by e^(theta l) first moves the weight of
the sum to where delta is decided, so that the rounding of the transform is small against the answer and not only
against one: the answer keeps its relative accuracy at any delta. The budget of all errors is in `convolution.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mosha.accounting.losses.lattice import Lattice
from mosha.accounting.losses.loss import UNIT, Array, Law

__all__ = ["Kernel", "Sum", "convolve"]

Spectrum = npt.NDArray[np.complexfloating]

SMALL = 42.0  # e^-SMALL of the largest weight is not worth summing; it is charged as an error instead
DROPPED = math.log(1e-40)  # Fourier coefficients below this are not worth their multiplication


@dataclass(frozen=True)
class Kernel:
    """The curve of what is composed exactly with a sum of losses: nothing at all, or a normal part with this mu.

    >>> Kernel(0.0).log_delta(np.array([-1.0, 1.0]))[0].round(6)
    array([-0.458675,      -inf])
    """

    mu: float

    def log_delta(self, epsilons: Array) -> tuple[Array, Array]:
        """The logarithm of the curve at real `epsilons` of either sign, and a bound on its error."""
        if self.mu == 0:
            with np.errstate(divide="ignore"):
                value = np.log(-np.expm1(np.minimum(epsilons, 0.0)))
            return value, np.full(len(epsilons), 8 * UNIT)
        return self._normal_curve(epsilons)

    def weights(self, first: float, step: float, count: int, theta: float, sign: float) -> Array:
        """The numbers e^(theta x) delta(x) / peak at x = first, first - step, ..., too large or too small by `sign`.

        Where nothing is composed, delta(x) = 1 - e^x, and both factors are geometric sequences.
        """
        if self.mu:
            x = first - step * np.arange(count, dtype=np.float64)
            log_delta, error = self.log_delta(x)
            return np.asarray(np.exp(np.minimum(log_delta + theta * x - self.log_peak(theta), 0.0) + sign * error))
        tilt = _geometric(theta * first - self.log_peak(theta), -theta * step, count)
        fall = 1 - _geometric(first, -step, count)
        return np.asarray(tilt * np.maximum(fall, 0.0) * (1 + sign * 1e-12) + sign * 16 * UNIT * tilt)

    def _normal_curve(self, epsilons: Array) -> tuple[Array, Array]:
        from scipy.special import erfcx, ndtr  # noqa: PLC0415  (loaded when a normal law is met, not before)

        near = epsilons / self.mu - self.mu / 2
        far = near + self.mu
        right = np.maximum(near, -6.0)
        first, second = erfcx(right / math.sqrt(2)), erfcx(np.maximum(far, right) / math.sqrt(2))
        gap = np.maximum(first - second, 1e-300)
        tail = np.log(gap / 2) - right * right / 2
        tail_error = 64 * UNIT * (first + second) / gap + 4 * UNIT * right * right
        body = ndtr(-near) - np.exp(np.minimum(epsilons, 50.0)) * ndtr(-far)
        body = np.maximum(body, 1e-300)
        body_error = 64 * UNIT * (1 + np.abs(epsilons)) / body
        use_tail = near >= -6.0
        return np.where(use_tail, tail, np.log(body)), np.where(use_tail, tail_error, body_error)

    def shift(self, far: float) -> float:
        """By how much epsilon may have been displaced in `log_delta`, for epsilons up to `far`."""
        return 0.0 if self.mu == 0 else 8 * UNIT * (far + self.mu * self.mu)

    def log_peak(self, theta: float) -> float:
        """A bound on the logarithm of sup over x of e^(theta x) delta(x)."""
        hard = -math.log1p(theta) - theta * math.log1p(1 / theta)
        return hard + theta * (theta + 1) * self.mu * self.mu / 2

    def reach(self, theta: float) -> tuple[float, float]:
        """The range of x outside which e^(theta x) delta(x) is below e^-SMALL of the bound on its peak.

        delta(x) <= 1, and delta(x) <= e^(log_peak(tau) - tau x) for every tau: with tau = theta -+ sqrt(2 SMALL) / mu.
        """
        low = (self.log_peak(theta) - SMALL) / theta
        if self.mu == 0:
            return low, 0.0
        move = math.sqrt(2 * SMALL) / self.mu
        high = (SMALL + self.log_peak(theta + move) - self.log_peak(theta)) / move
        if theta > move:
            low = max(low, -(SMALL + self.log_peak(theta - move) - self.log_peak(theta)) / move)
        return low, high


def _geometric(first: float, rate: float, count: int) -> Array:
    """The numbers e^(first + rate j) for j < count, by one product each; a relative error below 1e-13."""
    block = math.isqrt(max(count - 1, 0)) + 1
    with np.errstate(under="ignore"):
        coarse = np.exp(first + rate * block * np.arange(-(-count // block), dtype=np.float64))
        fine = np.exp(rate * np.arange(block, dtype=np.float64))
        return np.asarray((coarse[:, None] * fine).ravel()[:count])


@dataclass(frozen=True)
class Sum:
    """The law of a sum of losses, tilted by e^(theta l - log_scale), on a window of the lattice, and its errors.

    `noise` bounds the root of the sum of squares of the absolute errors of `mass`; `relative` a common relative error;
    `outside` the tilted mass that lies outside the window and may have been folded into it; `shift` the displacement
    of all losses together; `infinite` the mass at infinity.
    """

    first: int
    step: float
    mass: Array
    theta: float
    log_scale: float
    noise: float
    relative: float
    outside: float
    shift: float
    infinite: float

    def delta(self, epsilon: float, kernel: Kernel, *, above: bool) -> float:
        """The curve of the sum composed with `kernel`, never below it (`above`) or never above it."""
        sign = 1.0 if above else -1.0
        found, lost, exponent = self._parts(epsilon, kernel, sign)
        value = found * (1 + sign * self.relative) + sign * lost
        if math.isnan(value):
            return 1.0 if above else 0.0
        finite = math.exp(min(exponent + math.log(value), 0.0)) if value > 0 else 0.0
        return min(self.infinite + finite, 1.0)

    def doubt(self, epsilon: float, kernel: Kernel) -> float:
        """The share of rounding and folding in the curve at this epsilon."""
        found, lost, _ = self._parts(epsilon, kernel, 1.0)
        return lost / found if found > lost else 1.0

    def _parts(self, epsilon: float, kernel: Kernel, sign: float) -> tuple[float, float, float]:
        """The tilted sum, a bound on its absolute error, and the logarithm of the scale of both."""
        at = epsilon - sign * (self.shift + kernel.shift(abs(epsilon) + self.step * len(self.mass)))
        start, stop = self._visible_range(at, kernel)
        top = kernel.log_peak(self.theta)
        weight = kernel.weights(at - self.step * (self.first + start), self.step, stop - start, self.theta, sign)
        found = float((weight * np.maximum(self.mass[start:stop], 0.0)).sum())
        lost = self.noise * math.sqrt(float((weight * weight).sum())) + self.outside + math.exp(-SMALL)
        exponent = self.log_scale + top - self.theta * at
        exponent += sign * 16 * UNIT * (abs(self.log_scale) + abs(top) + abs(self.theta * at) + len(self.mass))
        return found, lost, exponent

    def _visible_range(self, epsilon: float, kernel: Kernel) -> tuple[int, int]:
        """The part of the window where the weight is neither zero nor below e^-SMALL of its peak."""
        low, high = kernel.reach(self.theta)
        start = math.ceil(max((epsilon - high) / self.step, -1e15)) - self.first
        stop = math.ceil(min((epsilon - low) / self.step, 1e15)) - self.first + 1
        return min(max(start, 0), len(self.mass)), min(max(stop, 0), len(self.mass))


def convolve(laws: Sequence[tuple[Law, int]], lattice: Lattice, *, long: bool = False) -> Sum:
    """The law of the sum of all losses, each law on `lattice` and taken its number of times.

    With `long`, the transforms are made in long doubles: slower, with less noise.
    """
    first, size, step, theta = lattice.first, lattice.size, lattice.step, lattice.theta
    real = np.longdouble if long else np.float64
    unit = float(np.finfo(real).eps) / 2
    spectrum = np.ones(size // 2 + 1, dtype=np.result_type(real, np.complex64))
    log_scale, noise, relative, count = 0.0, 0.0, 0.0, 0
    fourier = 8 * unit * math.log2(size)
    moments, bottom, top = [0.0, 0.0], 0, 0
    for law, times in laws:
        tilted, log_mass, around, error = _tilt(law, theta, lattice.chernoff)
        folded = _fold(tilted, law.first, size)
        own = np.fft.rfft(folded.astype(real, copy=False))
        noise += times * fourier * math.sqrt(float((folded * folded).sum()))
        spectrum *= _power(own, times)
        log_scale += times * log_mass
        relative += times * error
        count += times
        support = np.flatnonzero(law.mass)
        bottom += times * (law.first + int(support[0]))
        top += times * (law.first + int(support[-1]))
        moments = [moment + times * own_moment for moment, own_moment in zip(moments, around, strict=True)]
    mass = np.roll(np.fft.irfft(spectrum, size).astype(np.float64), -(first % size))
    growth = math.exp(noise * math.sqrt(size)) if noise * math.sqrt(size) < 1 else math.inf
    noise = (
        noise * growth
        + (fourier + 4 * UNIT * (count + len(laws))) * math.sqrt(float((mass * mass).sum()))
        + 1e-39 * len(laws)
    )
    low, high = lattice.chernoff
    below = moments[0] - log_scale + (theta - low) * step * first if bottom < first else -math.inf
    last = first + size - 1
    beyond = moments[1] - log_scale - (high - theta) * step * last if top > last else -math.inf
    outside = sum(math.exp(min(x + 0.01 + 1e-12 * count, 0.0)) for x in (below, beyond))
    infinite = -math.expm1(sum(times * math.log1p(-min(law.infinite, 0.5)) for law, times in laws))
    shift = sum(times * law.shift for law, times in laws) + 8 * UNIT * step * (abs(first) + size)
    return Sum(first, step, mass, theta, log_scale, noise, math.expm1(relative + UNIT), outside, shift, infinite)


def _tilt(law: Law, theta: float, others: tuple[float, float]) -> tuple[Array, float, tuple[float, float], float]:
    """The law times e^(theta l), scaled to one; ln E e^(theta l), also for the other thetas; an error of every mass."""
    with np.errstate(divide="ignore"):
        logs = np.log(law.mass)
    losses = law.losses

    def scale_to_one(tilt: float) -> tuple[Array, float]:
        exponents = logs + tilt * losses
        top = float(exponents.max())
        exponents -= top
        with np.errstate(under="ignore"):
            weights = np.exp(exponents, out=exponents)
        scale = float(weights.sum())
        weights /= scale
        return weights, top + math.log(scale)

    below, above = scale_to_one(others[0])[1], scale_to_one(others[1])[1]
    weights, log_mass = scale_to_one(theta)
    far = theta * law.step * max(abs(law.first), abs(law.first + len(law.mass)))
    return weights, log_mass, (below, above), UNIT * (16 + 2 * (745 + far))


def _fold(mass: Array, first: int, size: int) -> Array:
    """The masses at their lattice points modulo `size`."""
    start = first % size
    padded = np.zeros(-(-(start + len(mass)) // size) * size)
    padded[start : start + len(mass)] = mass
    return np.asarray(padded.reshape(-1, size).sum(axis=0))


def _power(spectrum: Spectrum, count: int) -> Spectrum:
    """The power by squaring: a relative error of at most 4 units a factor; what falls below 1e-40 is dropped."""
    if count == 1:
        return spectrum
    seen = np.flatnonzero(np.abs(spectrum) > math.exp(DROPPED / count))
    base = spectrum[seen]
    power = base if count & 1 else np.ones_like(base)
    while count := count >> 1:
        base = base * base
        if count & 1:
            power = power * base
    result = np.zeros_like(spectrum)
    result[seen] = power
    return result
