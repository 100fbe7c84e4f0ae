"""The error bar of a share that is a noisy sum over a noisy count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from mosha.core.number import strict_probability

__all__ = ["ShareError"]


@dataclass(frozen=True)
class ShareError:
    """The half-width of a share that is a noisy sum S over a noisy count N, both with noise of one deviation.

    Guarantee:
        The true share x, from -1 to 1, has |S - x N| within the noise of S - x N, whose deviation is at most sqrt(2)
        times theirs (Fieller); so S / N is off by at most that over N, and half of it on the scale from 0 to 1.

    >>> round(ShareError(5.0)(0.95, {"accuracy": 0.9, "clients": 1000.0}), 4)
    0.0069
    """

    deviation: float

    def __call__(self, confidence: float, answer: Mapping[str, float] | None = None) -> float:
        level = strict_probability("confidence", confidence)
        if answer is None or answer["clients"] < 1:
            return 1.0
        width = NormalDist().inv_cdf((1 + level) / 2) * self.deviation * math.sqrt(2) * (1 + 2.0**-9)
        return min(1.0, width / 2 / answer["clients"])
