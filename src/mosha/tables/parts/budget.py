"""What a release may cost: an epsilon, an epsilon with a delta, or a rho, and how its parts share it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mosha.accounting.numerics.rounding import round_down
from mosha.core.errors import InvalidParameter
from mosha.core.guarantee import Approx, Guarantee, Pure, ZeroConcentrated
from mosha.core.number import positive, probability
from mosha.mechanisms.gaussian import gaussian_multiplier

__all__ = ["Budget"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The price of one release, before it is cut into parts.

    Guarantee:
        Parts whose shares sum to at most 1 cost together at most the budget. Pure parts: epsilons add. Gaussian parts
        with shares w_i, W together, have the multipliers m sqrt(W / w_i), where one Gaussian of multiplier m costs
        (W epsilon, delta): squares of 1 / multiplier add up to 1 / m^2, so that all of them cost what that one does.
        The two kinds add by basic composition. Under rho a pure part of share w has epsilon^2 / 2 <= w rho, a choice of
        bounded range epsilon^2 / 8 <= w rho, and a Gaussian part 1 / (2 multiplier^2) <= w rho.

    >>> Budget(epsilon=1).epsilon_of(0.5), round(Budget(rho=0.5).epsilon_of(1.0), 9)
    (0.5, 1.0)
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidParameter(
                "a release costs epsilon=... (with or without delta=...), or rho=...: say one of them."
            )
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        else:
            object.__setattr__(self, "rho", positive("rho", self.rho))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @property
    def guarantee(self) -> Guarantee:
        """What the release as a whole promises."""
        if self.epsilon is None:
            return ZeroConcentrated(self.rho or 0.0)
        return Approx(self.epsilon, self.delta) if self.delta else Pure(self.epsilon)

    @property
    def allows_gaussian(self) -> bool:
        return self.rho is not None or self.delta > 0

    def epsilon_of(self, share: float) -> float:
        """The epsilon of a pure part with this share of the budget."""
        if self.epsilon is not None:
            return positive("epsilon of a part", round_down(Fraction(self.epsilon) * Fraction(share)))
        assert self.rho is not None
        return positive("epsilon of a part", math.sqrt(2 * self.rho * share) * (1 - 2.0**-50))

    def range_of(self, share: float) -> float:
        """The epsilon of a choice of bounded range (an exponential mechanism) with this share of the budget."""
        if self.rho is None:
            return self.epsilon_of(share)
        return positive("epsilon of a part", math.sqrt(8 * self.rho * share) * (1 - 2.0**-50))

    def multiplier_of(self, share: float, *, gaussian: float) -> float:
        """The noise multiplier of a Gaussian part with this share, all Gaussian parts together having `gaussian`."""
        if self.rho is not None:
            return gaussian_multiplier(rho=round_down(Fraction(self.rho) * Fraction(share)))
        together = _multiplier(self.epsilon_of(gaussian), self.delta)
        return together * math.sqrt(max(1.0, gaussian / share)) * (1 + 2.0**-50)

    def scaled(self, factor: float) -> Budget:
        """The same budget with epsilon (or rho) multiplied."""
        if self.epsilon is not None:
            return Budget(epsilon=self.epsilon * factor, delta=self.delta)
        assert self.rho is not None
        return Budget(rho=self.rho * factor, delta=self.delta)


@lru_cache(maxsize=256)
def _multiplier(epsilon: float, delta: float) -> float:
    return gaussian_multiplier(epsilon=epsilon, delta=delta)
