"""What all plans and trainings say in the same words, checked before anything is paid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.number import non_negative, positive, positive_integer

__all__ = ["MOST", "check_terms", "counted", "first_weights", "rounds_so_far"]

MOST = 1 << 40
"""No plan has more rounds, clients or weights."""


def counted(name: str, value: Any, *, at_most: int = MOST) -> int:
    """A whole number from one to `at_most`.

    >>> counted("rounds", 10)
    10
    """
    number = positive_integer(name, value)
    if number > at_most:
        raise InvalidParameter(f"{name} must be at most {at_most}. Nothing was spent.")
    return number


def rounds_so_far(rounds: Any, of: int) -> int:
    """How many of the rounds of a plan are over."""
    if isinstance(rounds, bool) or not isinstance(rounds, int) or not 0 <= rounds <= of:
        raise InvalidParameter(f"rounds must be a whole number from 0 to the {of} rounds of the plan.")
    return rounds


def check_terms(plan: Any) -> None:
    """Bring rounds, clients, the pull of FedProx, period and noise of a plan into their types, or refuse them."""
    found: dict[str, Any] = {name: counted(name, getattr(plan, name)) for name in ("rounds", "clients")}
    found["proximal"] = non_negative("proximal", plan.proximal)
    if plan.period is not None:
        found["period"] = counted("period", plan.period)
    if plan.noise_multiplier is not None:
        found["noise_multiplier"] = positive("noise_multiplier", plan.noise_multiplier)
    for name, value in found.items():
        object.__setattr__(plan, name, value)
    if isinstance(plan.outer, type) or not all(callable(getattr(plan.outer, do, None)) for do in ("begin", "advance")):
        raise InvalidParameter("outer must be an optimiser such as FedAvg() or FedAdam().")


def first_weights(initial: Any) -> NDArray[np.float64]:
    """The weights to begin with, as a copy."""
    try:
        given = np.asarray(initial)
        weights = given.astype(np.float64) if given.dtype.kind in "fiu" else np.empty(0)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.ndim != 1 or weights.size == 0 or not np.isfinite(weights).all():
        raise InvalidParameter("initial weights must be a flat array of finite numbers. Nothing was spent.")
    return weights
