"""A clip that follows a quantile of the norms, which is asked for privately."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive, strict_probability

__all__ = ["AdaptiveClip"]

_SMALLEST, _LARGEST = 2.0**-40, 2.0**40  # an adaptive clip stays between them


@dataclass(frozen=True, kw_only=True)
class AdaptiveClip:
    """A clip that moves towards a quantile of the norms (Andrew, Thakkar, McMahan, Ramaswamy 2021).

    Each contribution has one more coordinate, a bit that says whether its norm was within the clip; sum and bits are
    noised together.

    Guarantee:
        `follow` is a function of the clip in force and of a noisy count: it sees no data, so the next clip is
        post-processing. The clip in force when a step begins scales the contributions and the noise of that step.

    Fields:
        start: the clip of the first step.
        quantile: the share of contributions that should be within the clip.
        rate: how fast the clip moves: after each step it is multiplied by exp(-rate (share within - quantile)).
        count_noise: standard deviation of the noisy number of contributions within the clip; by default a twentieth of
            the expected number. The less, the more noise on the sum.

    >>> AdaptiveClip(start=1.0, quantile=0.5, rate=0.2).follow(1.0, share_within=1.0) < 1.0
    True
    """

    start: float
    quantile: float = 0.5
    rate: float = 0.2
    count_noise: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", positive("start", self.start))
        if not 1e-30 <= self.start <= 1e30:
            raise InvalidParameter("mechanisms.start_out_of_range", parameter="start")
        object.__setattr__(self, "quantile", strict_probability("quantile", self.quantile))
        object.__setattr__(self, "rate", positive("rate", self.rate))
        if self.count_noise is not None:
            object.__setattr__(self, "count_noise", positive("count_noise", self.count_noise))

    def follow(self, clip: float, share_within: float) -> float:
        """The clip after a step in which the (noisy) share `share_within` of contributions was within `clip`."""
        share = min(max(share_within, 0.0), 1.0)
        return min(max(clip * math.exp(-self.rate * (share - self.quantile)), _SMALLEST), _LARGEST)
