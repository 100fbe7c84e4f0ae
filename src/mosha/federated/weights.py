"""The clip: how long an update may be. Fixed, or following a quantile of the lengths that is asked for privately."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mosha.core.number import positive, strict_probability
from mosha.federated.clipping import clip_in_range

__all__ = ["AdaptiveClip", "Weights"]

_SMALLEST, _LARGEST = 1e-12, 1e12  # an adaptive clip stays within them


@dataclass(frozen=True, kw_only=True)
class AdaptiveClip:
    """A clip that moves towards a quantile of the lengths of updates (Andrew, Thakkar, McMahan, Ramaswamy 2021).

    Each client adds one bit, whether its update was within the clip, as one more coordinate of its vector; sum and bits
    are noised together. The clip that was in force when a round began scales that round's updates and noise.

    Fields:
        start: the clip of the first round.
        quantile: the share of clients whose update should be within the clip.
        rate: how fast the clip moves: after each round it is multiplied by exp(-rate (share within - quantile)).
        count_noise: standard deviation of the noisy number of clients within the clip; a twentieth of the expected
            cohort by default. The less, the more noise on the updates.

    >>> AdaptiveClip(start=1.0, quantile=0.5, rate=0.2).moved(1.0, share_within=1.0) < 1.0
    True
    """

    start: float
    quantile: float = 0.5
    rate: float = 0.2
    count_noise: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", clip_in_range(self.start))
        object.__setattr__(self, "quantile", strict_probability("quantile", self.quantile))
        object.__setattr__(self, "rate", positive("rate", self.rate))
        if self.count_noise is not None:
            object.__setattr__(self, "count_noise", positive("count_noise", self.count_noise))

    def moved(self, clip: float, share_within: float) -> float:
        """The clip after a round in which this (noisy) share of updates was within it."""
        share = min(max(share_within, 0.0), 1.0)
        return min(max(clip * math.exp(-self.rate * (share - self.quantile)), _SMALLEST), _LARGEST)


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Clients that count differently: a claimed weight is cut to `at_most`; `typical` is what is divided by.

    Guarantee:
        A client's clipped update is multiplied by min(claim, at_most) / at_most, between 0 and 1, whatever was
        claimed: the bound on its length stays. `typical` is public and enters the division alone.
    """

    at_most: float
    typical: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_most", positive("at_most", self.at_most))
        object.__setattr__(self, "typical", positive("typical", self.typical))

    def share(self, claim: float) -> float:
        """What a claim counts, as a share of `at_most`.

        >>> Weights(at_most=100, typical=50).share(1e6), Weights(at_most=100, typical=50).share(float("nan"))
        (1.0, 0.0)
        """
        return min(claim / self.at_most, 1.0) if claim > 0 else 0.0
