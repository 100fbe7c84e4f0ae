"""One way to release a stream: a mechanism, the law of its noise, its price and its predicted error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import DiscreteGaussian, DiscreteLaplace
from mosha.core.number import strict_probability
from mosha.exact.statistic import Statistic
from mosha.mechanisms.error_bars import find_laplace_width
from mosha.mechanisms.gaussian import discrete_multiplier, gaussian_multiplier
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import LARGEST_SCALE
from mosha.noise.parameters import enlarge_scale
from mosha.streams.bounding import Memory
from mosha.streams.noise.laplace_sums import MOST_NOISES, find_decayed_width, find_pair_width, find_width
from mosha.streams.noise.per_step import Increments
from mosha.streams.noise.tape import Law
from mosha.streams.noise.tree import SignedTree
from mosha.streams.presence import Presence
from mosha.streams.profile import Profile
from mosha.streams.readout import Decayed, Instant, Readout, Running, Sliding

__all__ = ["FINE", "Plan", "allows_gaussian", "gaussian_law", "laplace_law", "make_budget", "noise_multiplier"]

FINE = 1 << 10
"""A standard deviation of Gaussian noise has at least this many steps."""


def make_budget(*, epsilon: float | None, delta: float | None, rho: float | None, mu: float | None = None) -> Budget:
    """What a stream may spend: epsilon (pure), epsilon and delta, rho or mu.

    >>> make_budget(epsilon=1, delta=1e-6, rho=None)
    Budget(epsilon=1.0, delta=1e-06)
    """
    if delta and epsilon is None:
        raise InvalidParameter("streams.delta_without_epsilon", parameter="delta")
    return Budget(epsilon=epsilon, delta=delta or 0.0, rho=rho, mu=mu)


def allows_gaussian(budget: Budget) -> bool:
    """Whether Gaussian noise can keep it: a delta below 2**-90 is too small to calibrate for."""
    return budget.epsilon is None or budget.delta >= 2.0**-90


def noise_multiplier(budget: Budget) -> float:
    """The noise multiplier of Gaussian noise that keeps it."""
    return gaussian_multiplier(epsilon=budget.epsilon, delta=budget.delta or None, rho=budget.rho, mu=budget.mu)


def laplace_law(budget: Budget, sensitivity: int) -> tuple[Law, Event]:
    """Laplace noise for an l1 sensitivity in whole steps, and its price: 1 / multiplier <= epsilon."""
    assert budget.epsilon is not None
    multiplier = laplace_multiplier(budget.epsilon)
    scale = Fraction(multiplier) * sensitivity
    _check(scale, "laplace")
    return Law("laplace", scale), DiscreteLaplace(multiplier)


def gaussian_law(budget: Budget, sensitivity: float, coordinates: int) -> tuple[Law, Event]:
    """Gaussian noise for an l2 sensitivity in steps, and its price."""
    multiplier = noise_multiplier(budget)
    if sensitivity > 1 << 60:
        raise InvalidParameter("streams.sensitivity_too_large")
    if budget.rho is None:
        multiplier = discrete_multiplier(multiplier, sensitivity, coordinates)
    scale = enlarge_scale(Fraction(multiplier) * Fraction(sensitivity))
    _check(scale, "gaussian")
    return Law("gaussian", scale), DiscreteGaussian(multiplier, sensitivity, coordinates)


def _check(scale: Fraction, law: str) -> None:
    if scale > LARGEST_SCALE:
        raise InvalidParameter("streams.noise_too_large")
    if scale < (Fraction(1, 1 << 30) if law == "laplace" else FINE):
        raise InvalidParameter("streams.noise_vanishes")


@dataclass(frozen=True)
class Plan:
    """A mechanism with its noise, price and predicted error; `worth` is one step of noise in the unit of the data.

    `memory` counts the numbers that a running stream remembers for each series (persons and windows not included).
    """

    name: str
    statistic: Statistic
    presence: Presence
    readout: Readout
    horizon: int
    mechanism: Any
    law: Law
    event: Event
    profile: Profile
    worth: float

    @property
    def width(self) -> int:
        return 1 if self.statistic.labels is None else len(self.statistic.labels)

    @property
    def memory(self) -> int:
        return int(self.mechanism.memory)

    def deviation(self, step: int) -> float:
        """The standard deviation of what is published at a step (1 is the first), in the unit of the data."""
        return self.profile.at(step) * self._unit

    @property
    def largest_deviation(self) -> float:
        return self.profile.largest * self._unit

    @property
    def root_mean_square(self) -> float:
        """The predicted error over the whole horizon."""
        return self.profile.root_mean_square * self._unit

    @property
    def _unit(self) -> float:
        return self.law.deviation * self.worth

    def width_at(self, confidence: float, step: int | None = None, beside: float = 0.0) -> float:
        """Half the width of an error bar at a step, or of the widest one.

        With `beside`, of a sum with the same noise of another series, so many times as heavy.

        Gaussian noise has normal sums, one Laplace noise its exact quantile, and so have sums of equal Laplace noises
        (`laplace_sums`), and decayed ones. For other sums it is Bernstein's bound, or Chebyshev's where that is less:
        -log(1 - (b x)^2) <= x^2 (2 b^2) / (2 (1 - b x)), so P(|sum| > w) <= 2 exp(-w^2 / (2 (s^2 + b w))), s^2 the
        variance and b the scale of one of them; discrete noise of scale 1 or more has lighter tails still.
        """
        shape = self.profile.largest if step is None else self.profile.at(step)
        missed, scale = 1 - strict_probability("confidence", confidence), float(self.law.scale) * self.worth
        if self.law.noise == "gaussian":
            return -NormalDist().inv_cdf(missed / 2) * shape * scale * math.hypot(1, beside)
        if (count := round(shape**2)) <= MOST_NOISES and self._adds_equal_noises:
            return self._find_equal(count, missed, beside)
        if isinstance(self.mechanism, Increments) and isinstance(self.readout, Decayed):
            steps, other = step or self.horizon, math.ceil(16 * beside) / 16
            found = find_decayed_width(self.readout.factor, steps, float(self.law.scale), missed, other)
            if found is not None:
                return found * self.worth
        if beside:  # each of the two by itself
            return (1 + beside) * self.width_at(1 - missed / 2, step)
        doubt, deviation = math.log(2 / missed), shape * math.sqrt(2) * scale
        bernstein = scale * doubt + math.sqrt((scale * doubt) ** 2 + 2 * doubt * deviation**2)
        return min(bernstein, deviation / math.sqrt(missed))

    def _find_equal(self, count: int, missed: float, beside: float) -> float:
        """The bar of a sum of equal Laplace noises, and of as many more that are `beside` times as heavy."""
        scale = float(self.law.scale)
        if beside:
            return find_pair_width(count, math.ceil(16 * beside) / 16, scale, missed) * self.worth
        if count == 1:
            return find_laplace_width(scale, missed) * self.worth
        return find_width(count, scale, missed) * self.worth

    @property
    def _adds_equal_noises(self) -> bool:
        """Whether what is published holds whole noises, each once, as many as the variance says or fewer.

        A node of a tree is added or subtracted for as long as it is there, never both: what is made of the difference
        of two running sums holds a node once, or not at all.
        """
        return isinstance(self.mechanism, Increments | SignedTree) and isinstance(
            self.readout, Running | Sliding | Instant
        )


@dataclass(slots=True)
class StreamState:
    """A running stream: the mechanism's numbers, the readout's, and what is remembered of persons.

    `shown` is what was published last, where an answer is made of more numbers than it shows.
    """

    time: int
    inner: Any
    readout: Any
    memory: Memory
    tape: Any = None
    shown: Any = None


def to_data_unit(plan: Plan, value: Any) -> Any:
    """A value in the unit of the data: a number for one series, an array for several or for several steps."""
    grid = plan.statistic.grid
    if plan.statistic.labels is None and not isinstance(value, np.ndarray):
        return value if grid == 1.0 else float(value * grid)
    return np.asarray(value * grid if grid != 1.0 else value, dtype=np.float64)
