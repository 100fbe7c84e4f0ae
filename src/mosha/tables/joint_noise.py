"""Noise for several sums at once, group by group: a box for pure epsilon, an ellipsoid for Gaussian noise.

A *channel* is one integer for each group (a count, a sum from the middle, a sum of squares). All channels of a release
share one weight for each person, so that a person moves them together: by at most `reach_j * c_g` in channel j
and group g, where c_g >= 0 and the norm of c over groups is at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event, compose
from mosha.core.events import DiscreteGaussian, DiscreteLaplace, Pure
from mosha.core.number import strict_probability
from mosha.core.randomness import Rng
from mosha.mechanisms.grid import enlarged
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import LARGEST_SCALE, box_noise, discrete_gaussian, discrete_laplace

__all__ = ["BoxNoise", "GaussianNoise", "JointNoise"]

SHELLS = 1 << 26
FINE = 1 << 10


class JointNoise(Protocol):
    """Noise on `channels` of at most `groups` groups, whose price does not depend on how far the channels reach."""

    @property
    def event(self) -> Event: ...

    def draw(self, reach: Sequence[int], groups: int, rng: Rng) -> NDArray[np.object_]:
        """Integers, a row for each group, a column for each channel, on the grid of the channels over `finer`."""

    def finer(self, reach: Sequence[int]) -> int:
        """How many times finer than the channels' own grid the noise is."""

    def deviation(self, reach: float) -> float:
        """Standard deviation of the noise on a channel with this reach."""

    def width(self, terms: Sequence[Any], confidence: float) -> Any:
        """A w with P(|sum of terms_j * noise_j| <= w) >= confidence; a term is a coefficient times a reach."""


@dataclass(frozen=True)
class BoxNoise:
    """The K-norm mechanism for the l1 sum over groups of the greatest channel: pure epsilon.

    Guarantee:
        Let a unit move channel j in group g by |v_jg| <= reach_j c_g, sum of c_g <= 1. In each group `box_noise` of
        scale s and widths reach_j / K has density proportional to exp(-N(z) / s), and the shift moves N by at most
        ceil(K c_g) <= K c_g + 1. Groups are independent: the ratio of densities is at most
        exp((K + G) / s), and s = (K + G) / epsilon for G groups. One channel needs no box: integers with l1
        sensitivity `reach` and discrete Laplace noise.
    """

    epsilon: float
    channels: int
    groups: int

    @property
    def event(self) -> Event:
        if self.channels == 1:
            return DiscreteLaplace(laplace_multiplier(self.epsilon))
        return Pure(self.epsilon)

    def finer(self, reach: Sequence[int]) -> int:
        del reach
        return 1

    def draw(self, reach: Sequence[int], groups: int, rng: Rng) -> NDArray[np.object_]:
        if self.channels == 1:
            scale = enlarged(Fraction(laplace_multiplier(self.epsilon)) * reach[0])
            self._check(scale)
            return discrete_laplace(scale, (groups, 1), rng=rng).astype(object)
        scale = enlarged((SHELLS + self.groups) / Fraction(self.epsilon))
        widths = [Fraction(r, SHELLS) for r in reach]
        self._check(scale * max(widths))
        return box_noise(scale, [_short(width) for width in widths], groups, rng=rng).astype(object)

    def _check(self, scale: Fraction) -> None:
        if scale > LARGEST_SCALE:
            raise InvalidParameter(
                "this epsilon is too small for what one person may contribute: the noise would leave 64-bit integers. "
                "Spend more, or bound a person's part more tightly."
            )

    def deviation(self, reach: float) -> float:
        d = self.channels
        return reach / self.epsilon * math.sqrt((d + 1) * (d + 2) / 3)

    def width(self, terms: Sequence[Any], confidence: float) -> Any:
        tall = np.broadcast_arrays(*(np.abs(np.asarray(term, np.float64)) for term in terms))
        stacked = np.stack(tall, axis=-1)
        flat = stacked.reshape(-1, stacked.shape[-1])
        widths = np.array([_box_width(self.channels, _shape(row), confidence) * row.max() for row in flat])
        slack = 1 + 2.0 * (self.groups + 2) / SHELLS
        return (widths * slack / self.epsilon).reshape(stacked.shape[:-1])


def _short(width: Fraction) -> Fraction:
    """A width at least as large with a denominator that `box_noise` takes: rounding up only makes the box larger."""
    bits = 20
    return Fraction(-(-width.numerator * (1 << bits) // width.denominator), 1 << bits)


def _shape(row: NDArray[np.float64]) -> tuple[float, ...]:
    """Coefficients relative to the largest, rounded up to 1/64, so that a few widths serve many groups."""
    top = row.max()
    if top == 0:
        return (1.0,)
    relative = np.ceil(row / top * 64) / 64
    return tuple(sorted(relative[relative > 0].tolist(), reverse=True))


@lru_cache(maxsize=4096)
def _box_width(channels: int, shape: tuple[float, ...], confidence: float) -> float:
    """The quantile of r |sum of shape_i U_i|: r Gamma of shape channels + 1, U uniform on [-1, 1], rounded up.

    The density of the sum of uniforms is built by convolution of cells, each moved to its outer edge.
    """
    from scipy.special import gammaincc  # noqa: PLC0415  (slow to import)

    strict_probability("confidence", confidence)
    cells = 256
    mass = np.ones(1)
    total = sum(shape)
    step = total / cells
    for part in shape:
        half = max(1, math.ceil(part / step))
        mass = np.convolve(mass, np.full(2 * half + 1, 1 / (2 * half + 1)))
    middle = len(mass) // 2
    sizes = np.arange(1, middle + 1) * step
    weights = 2 * mass[middle + 1 :]
    low, high = 0.0, total * (4 * channels + 60 - 2 * math.log(1 - confidence))
    for _ in range(60):
        point = (low + high) / 2
        missed = float(np.sum(weights * gammaincc(channels + 1, point / sizes)))
        low, high = (point, high) if missed > 1 - confidence else (low, point)
    return high


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise on every channel: a box of half-lengths `reach` fits the ellipsoid that is noised.

    Guarantee:
        Let a unit move channel j in group g by |v_jg| <= reach_j c_g, sum of c_g^2 <= 1. Channel j alone then has l2
        sensitivity reach_j, and with noise multiplier m sqrt(d) costs DiscreteGaussian(m sqrt(d)); the d channels
        compose to the price of one Gaussian of multiplier m.
    """

    multiplier: float
    channels: int
    groups: int

    @property
    def _each(self) -> float:
        return self.multiplier * math.sqrt(self.channels) * (1 + 2.0**-50)

    @property
    def event(self) -> Event:
        """Charged for the coarsest noise that `draw` makes: 2**10 steps a standard deviation."""
        each = DiscreteGaussian(self._each, FINE / self._each, self.groups)
        return compose([(each, self.channels)])

    def finer(self, reach: Sequence[int]) -> int:
        least = min(reach) * self._each
        return 1 << max(0, math.ceil(math.log2(2 * FINE / least))) if least < 2 * FINE else 1

    def draw(self, reach: Sequence[int], groups: int, rng: Rng) -> NDArray[np.object_]:
        finer = self.finer(reach)
        columns = []
        for r in reach:
            sigma = enlarged(Fraction(self._each) * r * finer)
            if sigma > LARGEST_SCALE:
                raise InvalidParameter(
                    "this budget is too small for what one person may contribute: the noise would leave 64-bit "
                    "integers. Spend more, or bound a person's part more tightly."
                )
            columns.append(discrete_gaussian(sigma, groups, rng=rng))
        return np.stack(columns, axis=-1).astype(object)

    def deviation(self, reach: float) -> float:
        return reach * self._each

    def width(self, terms: Sequence[Any], confidence: float) -> Any:
        quantile = NormalDist().inv_cdf((1 + strict_probability("confidence", confidence)) / 2)
        tall = np.broadcast_arrays(*(np.asarray(term, np.float64) for term in terms))
        return np.sqrt(np.sum(np.stack(tall, axis=-1) ** 2, axis=-1)) * self._each * quantile * (1 + 2.0**-9)


def as_columns(names: Sequence[str], noisy: NDArray[np.object_], finer: int) -> Mapping[str, NDArray[np.float64]]:
    """Noisy integers as floats in the channels' own grid units."""
    return {name: (noisy[:, j] / finer).astype(np.float64) for j, name in enumerate(names)}
