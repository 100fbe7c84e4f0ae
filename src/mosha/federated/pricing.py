"""What all plans share about their price: the noise that must be chosen first, and the whole as one piece."""

from __future__ import annotations

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Plan

__all__ = ["chosen_noise", "sold"]


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
