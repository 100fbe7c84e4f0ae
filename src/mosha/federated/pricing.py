"""What all plans share about their price: the least noise for a promise, sold as one piece."""

from __future__ import annotations

from collections.abc import Callable

from mosha import accounting
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Plan

__all__ = ["chosen_noise", "least_noise", "sold"]


def least_noise(whole: Callable[[float], Event], *, epsilon: float, delta: float) -> float:
    """The least noise multiplier at which an account that has (epsilon, delta) left can pay for `whole(noise)`.

    Guarantee:
        The price that an account would charge was worked out, and is at most epsilon.
    """
    noise = accounting.calibrate(whole, epsilon=epsilon, delta=delta)
    while accounting.epsilon(whole(noise), delta) > epsilon:  # its tolerance is another one than that of the search
        noise *= 1 + 2e-5
    return noise


def sold(whole: Event, delta: float | None) -> Event:
    """The price of a plan: one piece at its delta, or round by round where it has none."""
    return Plan(whole, delta) if delta else whole


def chosen_noise(noise: float | None) -> float:
    """The noise multiplier, or a sentence about what is missing."""
    if noise is None:
        raise InvalidParameter(
            "this plan has no noise yet: say noise_multiplier=..., or calibrate(epsilon=..., delta=...). "
            "Nothing was spent."
        )
    return noise
