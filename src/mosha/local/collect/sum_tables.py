"""Tables of noisy counts, as secure aggregation opens them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mosha.local.collect.prefix_tree import LevelTables

__all__ = ["SumTables"]

_NORMAL = 1.4826  # the standard deviation of a normal law over its median absolute deviation
_MEDIAN = math.sqrt(math.pi / 2)  # the deviation of a median over that of a mean


class SumTables(LevelTables):
    """How many people are in each bucket, with noise; everybody is in each level and row.

    What a bucket holds without a popular value (noise, and other values) is learned from the table itself: its
    median and its median absolute deviation, which a few popular values do not move.

    >>> import numpy as np
    >>> tables = SumTables(np.concatenate([np.arange(-50.0, 50.0), [900.0]]).reshape(1, 1, -1))
    >>> tables.mean.tolist()
    [[0.0]]
    """

    def __init__(self, counts: NDArray[np.float64]) -> None:
        self.supports = counts
        self.mean = np.median(counts, axis=2)
        spread = _NORMAL * np.median(np.abs(counts - self.mean[:, :, None]), axis=2)
        self.variance = np.maximum(spread, 1e-9) ** 2

    def chance(self, supports: NDArray[np.float64], first: NDArray[np.int64]) -> NDArray[np.float64]:
        """The upper tail of the normal law, of the worst row as often as there are rows.

        Other people's values make tails that are heavier than normal, so the rows have to say it each on its own.
        """
        mean, spread = self.describe_noise(first, len(self.mean) - 1)
        return np.asarray(ndtr((mean - supports) / spread).max(axis=0) ** len(supports))

    def estimate(
        self, supports: NDArray[np.float64], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The median of the rows, each the mean of its levels: a collision in one row moves it little."""
        levels, rows = self.mean.shape
        pooled = levels - first
        mean, variance = (self.sum_levels(part, first, levels - 1) for part in (self.mean, self.variance))
        wide = np.sqrt(variance.mean(axis=0) / rows) / pooled
        return np.median((supports - mean) / pooled, axis=0), wide * (_MEDIAN if rows > 2 else 1.0)
