"""How the parts of one release share its budget.

Guarantee:
    Parts whose shares sum to at most 1 cost together at most the budget. Pure parts: epsilons add. Gaussian parts with
    shares w_i, W together, have the multipliers m sqrt(W / w_i), where one Gaussian of multiplier m costs
    (W epsilon, delta): squares of 1 / multiplier add up to 1 / m^2, so that all of them cost what that one does. The
    two kinds add by basic composition. Under rho a pure part of share w has epsilon^2 / 2 <= w rho, a choice of
    bounded range epsilon^2 / 8 <= w rho, and a Gaussian part 1 / (2 multiplier^2) <= w rho.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from mosha.accounting.numerics.rounding import round_down
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.number import positive
from mosha.mechanisms.gaussian import gaussian_multiplier

__all__ = ["choice_epsilon", "noise_multiplier", "pure_epsilon"]


def pure_epsilon(budget: Budget, share: float) -> float:
    """The epsilon of a pure part with this share of the budget.

    >>> pure_epsilon(Budget(epsilon=1), 0.5), round(pure_epsilon(Budget(rho=0.5), 1.0), 9)
    (0.5, 1.0)
    """
    if budget.epsilon is not None:
        return positive("epsilon of a part", round_down(Fraction(budget.epsilon) * Fraction(share)))
    return positive("epsilon of a part", math.sqrt(2 * _rho(budget) * share) * (1 - 2.0**-50))


def choice_epsilon(budget: Budget, share: float) -> float:
    """The epsilon of a choice of bounded range (an exponential mechanism) with this share of the budget.

    >>> choice_epsilon(Budget(epsilon=1), 0.5), round(choice_epsilon(Budget(rho=0.5), 1.0), 9)
    (0.5, 2.0)
    """
    if budget.epsilon is not None:
        return pure_epsilon(budget, share)
    return positive("epsilon of a part", math.sqrt(8 * _rho(budget) * share) * (1 - 2.0**-50))


def noise_multiplier(budget: Budget, share: float, *, gaussian: float) -> float:
    """The noise multiplier of a Gaussian part with this share, all Gaussian parts together having `gaussian`."""
    if budget.epsilon is None:
        return gaussian_multiplier(rho=round_down(Fraction(_rho(budget)) * Fraction(share)))
    together = _multiplier(pure_epsilon(budget, gaussian), budget.delta)
    return together * math.sqrt(max(1.0, gaussian / share)) * (1 + 2.0**-50)


def _rho(budget: Budget) -> float:
    if budget.rho is None:
        raise InvalidParameter("tables.budget_in_mu", parameter="mu")
    return budget.rho


@lru_cache(maxsize=256)
def _multiplier(epsilon: float, delta: float) -> float:
    return gaussian_multiplier(epsilon=epsilon, delta=delta)
