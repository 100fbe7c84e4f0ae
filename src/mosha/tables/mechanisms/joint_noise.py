"""Noise for several sums at once, group by group: a box for pure epsilon, an ellipsoid for Gaussian noise.

A *channel* is one integer for each group (a count, a sum from the middle, a sum of squares). All channels of a release
share one weight for each person, so that a person moves them together: by at most `reach_j * c_g` in channel j
and group g, where c_g >= 0 and the norm of c over groups is at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Event, compose
from mosha.core.events import DiscreteGaussian, DiscreteLaplace, Pure
from mosha.core.measurement import Rng
from mosha.core.number import strict_probability
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import LARGEST_SCALE, box_noise, discrete_gaussian, discrete_laplace
from mosha.noise.parameters import enlarge_scale

__all__ = ["REACH", "BoxNoise", "GaussianNoise", "JointNoise", "imitate"]

FINE = 1 << 10
REACH = 1 << 26
"""Where a box or Gaussian noise is used, every channel is counted in parts of so much of its reach."""

EXACT = 1 << 10
"""A channel of at most this reach is counted in whole parts under Gaussian noise: nothing is rounded."""

HELD = 1 << 59
"""Channels are held within this size before and after noise (see `joint_noise.md`)."""

_MORE = 1 + 2.0**-20
"""More than the rounding of floats and the slack of scales, where a bound on a probability is computed."""

FINE_SHAPE, ROUGH_SHAPE, FEW_GROUPS = 64, 8, 64
"""Coefficients of a width are rounded up to so many steps: to fine ones for a few groups, to rough ones for many.

The cells that a correlation looks at count as groups.
"""


NoiseKind = Literal["laplace", "box", "gaussian"]


class JointNoise(Protocol):
    """Noise on `channels` of at most `groups` groups, whose price does not depend on how far the channels reach."""

    @property
    def event(self) -> Event: ...

    @property
    def channels(self) -> int: ...

    @property
    def shared(self) -> bool:
        """Whether one unit's shares of all reaches together are bounded, in place of the greatest of them."""

    @property
    def kind(self) -> NoiseKind:
        """What the noise is called."""

    def add(self, exact: NDArray[np.generic], reach: Sequence[int], rng: Rng) -> NDArray[np.float64]:
        """The exact integers (a row for each group, a column for each channel) with noise, in the same units."""

    def deviation(self, reach: float) -> float:
        """Standard deviation of the noise on a channel with this reach."""

    def exceed(self, reach: int, size: float) -> float:
        """An upper bound on the chance that the noise on a channel with this reach is at least `size`."""

    def __hash__(self) -> int:
        """Equal noises are one key."""

    def width(self, terms: Sequence[object], confidence: float) -> Any:
        """A w with P(|sum of terms_j * noise_j| <= w) >= confidence; a term is a coefficient times a reach."""


Reach = int | Fraction


def _in_parts(exact: NDArray[np.generic], reach: Sequence[Reach]) -> NDArray[np.int64]:
    """Each channel in whole parts of reach / REACH, rounded down, held within HELD."""
    columns = [_divide(exact[:, j], REACH * r.denominator, r.numerator) for j, r in enumerate(reach)]
    return np.stack(columns, axis=1)


def _in_units(parts: NDArray[np.int64], reach: Sequence[Reach]) -> NDArray[np.float64]:
    held = np.clip(parts, -HELD, HELD)
    columns = [_multiply(held[:, j], r.numerator, REACH * r.denominator) for j, r in enumerate(reach)]
    return np.stack(columns, axis=1)


def _hold(column: NDArray[np.generic]) -> NDArray[np.int64]:
    """The integers, held within HELD."""
    if column.dtype == np.int64:
        return np.asarray(np.clip(column, -HELD, HELD), np.int64)
    return np.array([min(max(n, -HELD), HELD) for n in column.tolist()], np.int64)


def _divide(column: NDArray[Any], factor: int, divisor: int) -> NDArray[np.int64]:
    """Each n * factor // divisor, held: in 64 bits where they suffice, else in Python's integers."""
    if column.dtype == np.int64 and divisor < 2**62 and factor * (_largest(column) + 1) < 2**62:
        return _hold(column * factor // divisor)
    return _hold(np.array([n * factor // divisor for n in column.tolist()], object))


def _multiply(column: NDArray[np.int64], factor: int, divisor: int) -> NDArray[np.float64]:
    """Each n * factor / divisor, rounded once: by doubles where one of their two steps is exact."""
    exact_steps = factor.bit_count() == 1 or divisor.bit_count() == 1
    if exact_steps and max(_largest(column), factor, divisor) < 2**53:
        return column.astype(np.float64) * float(factor) / float(divisor)
    return np.array([n * factor / divisor for n in column.tolist()], np.float64)


def _largest(column: NDArray[np.int64]) -> int:
    return max(int(column.max(initial=0)), -int(column.min(initial=0)))


def _reach_in_whole_parts(reach: int) -> Fraction:
    """The reach for which a part is the inverse of a whole number, if the channel's own is small."""
    return Fraction(REACH, REACH // reach) if reach <= EXACT else Fraction(reach)


def _check(scale: Fraction) -> None:
    if scale > LARGEST_SCALE:
        raise InvalidParameter("tables.budget_too_small")


@dataclass(frozen=True)
class BoxNoise:
    """The K-norm mechanism for the l1 sum over groups of the greatest channel: pure epsilon.

    Guarantee:
        epsilon-differential privacy for units that move channel j in group g by at most reach_j c_g, sum of
        c_g <= 1: `joint_noise.md`. One channel needs no box: discrete Laplace noise on its integers. With
        `shared`, units move channel j in group g by at most reach_j c_jg, all c_jg summing to 1 at most: the same.
    """

    epsilon: float
    channels: int
    groups: int
    shared: bool = False

    def __post_init__(self) -> None:
        _check(self._scale)
        if self.epsilon > REACH / FINE:
            raise InvalidParameter("tables.budget_too_large")

    @property
    def _rounded(self) -> int:
        """How many shifts grow by one where numbers are rounded to parts."""
        return self.groups * (self.channels if self.shared else 1)

    @property
    def _scale(self) -> Fraction:
        return enlarge_scale((REACH + self._rounded) / Fraction(self.epsilon))

    @property
    def _is_laplace(self) -> bool:
        return self.channels == 1 or self.shared

    @property
    def event(self) -> Event:
        if not self.channels:
            return NOTHING
        return DiscreteLaplace(laplace_multiplier(self.epsilon)) if self._is_laplace else Pure(self.epsilon)

    @property
    def kind(self) -> NoiseKind:
        return "laplace" if self._is_laplace else "box"

    def add(self, exact: NDArray[np.generic], reach: Sequence[int], rng: Rng) -> NDArray[np.float64]:
        if self.channels == 1 and reach[0] <= REACH:
            scale = enlarge_scale(Fraction(laplace_multiplier(self.epsilon)) * reach[0])
            noisy = np.clip(_hold(exact[:, 0]) + discrete_laplace(scale, len(exact), rng=rng), -HELD, HELD)
            return np.array(noisy, np.float64).reshape(-1, 1)
        if self._is_laplace:
            scale = enlarge_scale(Fraction(laplace_multiplier(self.epsilon)) * (REACH + self._rounded))
            return _in_units(_in_parts(exact, reach) + discrete_laplace(scale, exact.shape, rng=rng), reach)
        noise = box_noise(self._scale, [1] * self.channels, len(exact), rng=rng)
        return _in_units(_in_parts(exact, reach) + noise, reach)

    def deviation(self, reach: float) -> float:
        d = 1 if self.shared else self.channels
        return reach / self.epsilon * math.sqrt((d + 1) * (d + 2) / 3)

    def exceed(self, reach: int, size: float) -> float:
        if self.channels == 1 and reach <= REACH:
            scale = float(Fraction(laplace_multiplier(self.epsilon)) * reach) * _MORE
            return _MORE * math.exp(-size / scale) / (1 + math.exp(-1 / scale)) if size >= 1 else 1.0
        d, scale = 1 if self.shared else self.channels, float(self._scale) * _MORE
        point = np.array([(size * REACH / reach - 1) / scale])
        if point[0] <= d + 1:
            return 1.0
        beyond = _beyond(d + 1, point) - point / d * _beyond(d, point)
        return _MORE * math.exp(1 / scale) * float(beyond[0]) / 2

    def width(self, terms: Sequence[object], confidence: float) -> Any:
        tall = np.broadcast_arrays(*(np.abs(np.asarray(term, np.float64)) for term in terms))
        stacked = np.stack(tall, axis=-1)
        flat = stacked.reshape(-1, stacked.shape[-1])
        slack = 1 + 2.0 * (self._rounded + 2) / REACH
        if self.shared:
            return (_laplace_widths(flat, confidence) * slack / self.epsilon).reshape(stacked.shape[:-1])
        steps = FINE_SHAPE if len(terms) <= 2 or len(flat) <= FEW_GROUPS else ROUGH_SHAPE
        shapes, which = _shapes(flat, steps)
        each = np.array([_box_width(self.channels, shape, confidence) for shape in shapes])
        widths = each[which] * np.ascontiguousarray(flat.T).max(axis=0)
        return (widths * slack / self.epsilon).reshape(stacked.shape[:-1])


def imitate(noise: JointNoise, draws: int, channels: int) -> NDArray[np.float64]:
    """So many draws of the law of the noise on some channels of reach 1: the same ones every time, and nobody's noise.

    >>> imitate(BoxNoise(1.0, 1, 1), 3, 1).shape
    (3, 1)
    """
    generator, size = np.random.default_rng(draws), (draws, channels)
    if noise.kind == "gaussian":
        found = generator.normal(0, 1, size)
    elif noise.kind == "laplace":
        found = generator.laplace(0, math.sqrt(1 / 2), size)
    else:
        d = noise.channels
        radius = generator.gamma(d + 1, math.sqrt(3 / ((d + 1) * (d + 2))), (draws, 1))
        found = radius * generator.uniform(-1, 1, size)
    return np.asarray(found * noise.deviation(1.0), np.float64)


def _laplace_widths(scales: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """The quantile of |a X + b Y| for each pair of scales, X and Y independent Laplace variables, rounded up.

    P(|a X + b Y| > w) = (a**2 exp(-w / a) - b**2 exp(-w / b)) / (a**2 - b**2), which grows with b <= a. From 0.999 a
    on b counts as a, for which the limit is exp(-w / a) (1 + w / (2 a)). A row may also have a single scale.
    """
    strict_probability("confidence", confidence)
    if scales.shape[1] > 2:
        raise NotImplementedError
    wide = scales.max(axis=1)
    ratio = np.divide(scales.min(axis=1), wide, out=np.zeros_like(wide), where=wide > 0)
    ratio = np.zeros_like(wide) if scales.shape[1] == 1 else ratio
    near = ratio > 0.999
    safe = np.where(near | (ratio == 0), 0.5, ratio)
    low, high = np.zeros_like(wide), np.full_like(wide, 40.0 - 2 * math.log(1 - confidence))
    for _ in range(60):
        point = (low + high) / 2
        apart = (np.exp(-point) - safe**2 * np.exp(-point / safe)) / (1 - safe**2)
        missed = np.where(near, np.exp(-point) * (1 + point / 2), np.where(ratio == 0, np.exp(-point), apart))
        low, high = np.where(missed > 1 - confidence, point, low), np.where(missed > 1 - confidence, high, point)
    return np.asarray(high * wide, np.float64)


def _shapes(rows: NDArray[np.float64], steps: int) -> tuple[list[tuple[float, ...]], NDArray[np.int64]]:
    """Coefficients relative to the largest, rounded up to a few values, and which of them each row has.

    So a few widths serve many groups.
    """
    columns = np.ascontiguousarray(rows.T)  # as long as there are groups, and a few of them: quicker than short rows
    top = columns.max(axis=0)
    relative = np.ceil(np.divide(columns, top, out=np.ones_like(columns), where=top > 0) * steps).astype(np.int64)
    _, places, which = np.unique(_codes(relative.T, steps + 1), return_index=True, return_inverse=True)
    few = -np.sort(-relative[:, places].T, axis=1)
    return [tuple(n / steps for n in row if n > 0) for row in few.tolist()], which.reshape(-1)


def _codes(rows: NDArray[np.int64], base: int) -> NDArray[np.int64]:
    """A number for each row of numbers below `base`, the same for equal rows alone: sorted faster than rows are.

    >>> _codes(np.array([[2, 1], [0, 3], [2, 1]]), 4).tolist()
    [9, 3, 9]
    """
    codes, bound = np.zeros(len(rows), np.int64), 1
    for column in rows.T:
        if bound * base >= HELD:
            codes, bound = np.unique(codes, return_inverse=True)[1].reshape(-1), len(rows)
        codes, bound = codes * base + column, bound * base
    return codes


def _beyond(shape: int, points: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """P(a Gamma variable of this whole shape exceeds each point): e**-x times the sum of x**k / k!, k < shape."""
    terms = np.exp(-points)
    total = terms.copy()
    for k in range(1, shape):
        terms = terms * points / k
        total += terms
    return np.asarray(total, np.float64)


@lru_cache(maxsize=4096)
def _box_width(channels: int, shape: tuple[float, ...], confidence: float) -> float:
    """The quantile of r |sum of shape_i U_i|: r Gamma of shape channels + 1, U uniform on [-1, 1], rounded up.

    Each U is widened to whole cells, which makes the sum of such symmetric, unimodal variables no smaller (Birnbaum
    1948), and replaced by the middle of its cell, which is half a cell away at most: half a cell for each is added.
    """
    strict_probability("confidence", confidence)
    total = sum(shape)
    step = total / 512
    mass = np.ones(1)
    for part in shape:
        half = max(1, math.ceil(part / step))
        mass = np.convolve(mass, np.full(2 * half + 1, 1 / (2 * half + 1)))
    middle = len(mass) // 2
    sizes = (np.arange(middle + 1) + len(shape) / 2) * step
    weights = np.concatenate([mass[middle : middle + 1], 2 * mass[middle + 1 :]])
    low, high = 0.0, total * (4 * channels + 60 - 2 * math.log(1 - confidence))
    for _ in range(45):
        point = (low + high) / 2
        missed = float(np.sum(weights * _beyond(channels + 1, point / sizes)))
        low, high = (point, high) if missed > 1 - confidence else (low, point)
    return high


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise on every channel: a box of half-lengths `reach` fits the ellipsoid that is noised.

    Guarantee:
        For units that move channel j in group g by at most reach_j c_g, sum of c_g^2 <= 1, channel j counted in parts
        has l2 sensitivity REACH + sqrt(groups) and costs DiscreteGaussian(m sqrt(d)); the d channels compose to
        the price of one Gaussian of multiplier m (`joint_noise.md`). With `shared`, units move channel j in group g
        by at most reach_j c_jg, all c_jg^2 summing to 1 at most: one Gaussian of multiplier m on all numbers.
    """

    multiplier: float
    channels: int
    groups: int
    shared: bool = False

    def __post_init__(self) -> None:
        _check(self._sigma)
        if self._sigma < FINE:
            raise InvalidParameter("tables.budget_too_large")

    @property
    def _sensitivity(self) -> int:
        return REACH + math.isqrt(self.groups * (self.channels if self.shared else 1)) + 1

    @property
    def _each(self) -> float:
        return self.multiplier * math.sqrt(1 if self.shared else max(1, self.channels)) * (1 + 2.0**-30)

    @property
    def _sigma(self) -> Fraction:
        return enlarge_scale(Fraction(self._each) * self._sensitivity)

    @property
    def event(self) -> Event:
        if not self.channels:
            return NOTHING
        together, times = (self.groups * self.channels, 1) if self.shared else (self.groups, self.channels)
        return compose([(DiscreteGaussian(self._each, float(self._sensitivity), together), times)])

    @property
    def kind(self) -> NoiseKind:
        return "gaussian"

    def add(self, exact: NDArray[np.generic], reach: Sequence[int], rng: Rng) -> NDArray[np.float64]:
        sizes = [_reach_in_whole_parts(r) for r in reach]
        return _in_units(_in_parts(exact, sizes) + discrete_gaussian(self._sigma, exact.shape, rng=rng), sizes)

    def exceed(self, reach: int, size: float) -> float:
        parts = size * REACH / float(_reach_in_whole_parts(reach)) - 4
        return _MORE * math.erfc(parts / (float(self._sigma) * _MORE * math.sqrt(2))) / 2 if parts > 0 else 1.0

    def deviation(self, reach: float) -> float:
        return reach * self._each

    def width(self, terms: Sequence[object], confidence: float) -> Any:
        quantile = NormalDist().inv_cdf((1 + strict_probability("confidence", confidence)) / 2)
        tall = np.broadcast_arrays(*(np.asarray(term, np.float64) for term in terms))
        slack = (1 + 2.0**-9) * self._sensitivity / REACH
        return np.sqrt(np.sum(np.stack(tall, axis=-1) ** 2, axis=-1)) * self._each * quantile * slack
