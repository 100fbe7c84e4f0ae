"""Models that ask several times: each step a statistic of one fixed sensitivity, chosen from earlier answers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mosha.accounting.numerics.price import round_down
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.measurement import Measurement, Rng
from mosha.core.unit import Unit
from mosha.exact.statistic import Sensitivity, Steps
from mosha.learning.linear.descent import gaussian_budget
from mosha.mechanisms import gaussian, laplace
from mosha.models.paying import Price, noise_deviation
from mosha.models.sums.row_sums import Floats, RowSums

__all__ = ["StepNoise", "share_price"]


@dataclass(frozen=True)
class _Chosen:
    """A sum that is handed in with the data: of the width and the sensitivity of `like`, or refused."""

    like: RowSums

    @property
    def grid(self) -> float:
        return 1.0

    @property
    def labels(self) -> tuple[int, ...]:
        return self.like.labels

    def sensitivity(self, unit: Unit) -> Sensitivity:
        return self.like.sensitivity(unit)

    def evaluate(self, data: object, unit: Unit) -> Steps:
        assert isinstance(data, tuple)
        chosen, examples = data
        assert chosen.sensitivity(unit) == self.like.sensitivity(unit)
        found: Steps = chosen.evaluate(examples, unit)
        return found


@dataclass(frozen=True, eq=False)
class StepNoise:
    """Noise for `steps` sums of one sensitivity.

    Guarantee:
        Each step is `laplace` or `gaussian` on a sum of the same sensitivity, so its event is the same whichever sum
        was chosen, and adaptive composition adds the events up.
    """

    measurement: Measurement
    steps: int

    @staticmethod
    def plan(like: RowSums, unit: Unit, price: Price, steps: int) -> StepNoise:
        """`price` is that of one step."""
        chosen = _Chosen(like)
        if price.is_pure:
            return StepNoise(laplace(chosen, unit=unit, epsilon=price.epsilon), steps)
        return StepNoise(gaussian(chosen, unit=unit, rho=price.rho, mu=price.mu), steps)

    @property
    def event(self) -> Event:
        return self.measurement.event * self.steps

    @property
    def deviation(self) -> float:
        return noise_deviation(self.measurement)

    def ask(self, sums: RowSums, examples: object, rng: Rng) -> Floats:
        """The noisy sum."""
        value, _ = self.measurement.step(None, (sums, examples), None, rng)
        return np.asarray(value, np.float64)


def share_price(price: Price, shares: Sequence[float]) -> list[Price]:
    """A price in parts: shares of epsilon, or of mu squared (rho is that too), which sum to at most 1.

    >>> share_price(Price(epsilon=1.0), [0.5, 0.25])
    [Price(epsilon=0.5, delta=None, rho=None, mu=None), Price(epsilon=0.25, delta=None, rho=None, mu=None)]
    """
    exact = [Fraction(share) for share in shares]
    if price.is_pure and price.epsilon is not None:
        return [Price(epsilon=round_down(Fraction(price.epsilon) * share)) for share in exact]
    if price.rho is not None:
        return [Price(rho=round_down(Fraction(price.rho) * share)) for share in exact]
    whole = gaussian_budget(epsilon=price.epsilon, delta=price.delta, mu=price.mu)
    parts = [whole * math.sqrt(share) * (1 - 2.0**-40) for share in exact]
    if any(part <= 0 for part in parts):
        raise InvalidParameter("models.nothing_to_share")
    return [Price(mu=part) for part in parts]
