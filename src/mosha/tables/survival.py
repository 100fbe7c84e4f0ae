"""Survival curves (Kaplan and Meier) from released counts, with bands: post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import real, strict_probability
from mosha.core.showing import Card, Shown

__all__ = ["SurvivalCurve", "find_survival_curve"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class SurvivalCurve(Shown):
    """The share that survives each period (`values`), between `low` and `high`.

    >>> curve = find_survival_curve([10, 10], [0, 80], deviation=0)
    >>> curve.values.round(2).tolist()
    [0.9, 0.8]
    """

    values: Vector
    low: Vector
    high: Vector

    def __repr__(self) -> str:
        return f"SurvivalCurve({len(self.values):,} periods)"

    def make_card(self) -> Card:
        """Each period with the share that survives it, and the ends of its band."""
        heads = [say("tables.shown_period"), say("tables.shown_survivors"), say("tables.shown_band")]
        ends = zip(self.values.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        lines = [[f"{i:,}", f"{v:.3f}", f"{low:.3f} … {high:.3f}"] for i, (v, low, high) in enumerate(ends, 1)]
        return Card(title=say("tables.shown_survival"), heads=heads, lines=lines)


@explain_wrong_calls
def find_survival_curve(
    deaths: ArrayLike, leavers: ArrayLike, *, deviation: float, confidence: float = 0.95
) -> SurvivalCurve:
    """The survival curve of people who died, or left alive, in each period: the product of 1 - deaths / people at risk.

    Guarantee:
        Post-processing of released counts: free, and as private as they are. Each person is in one count (the period of
        the last visit, and how it ended), so that a histogram of both costs one person's sensitivity of 1.

    Units:
        Shares from 0 to 1. A band covers each period by itself and holds two kinds of doubt: that of the people studied
        (Greenwood's formula) and that of the noise, carried to first order through the logarithm of the curve.
        Noise that is not small against the people at risk breaks the first order: the curve is then wide, not sharp.

    Args:
        deaths: how many died in each period, with noise.
        leavers: how many were last seen alive in each period, with noise; in the last one, whoever was left.
        deviation: the standard deviation of the noise of each count; 0 for exact counts.
        confidence: of the band.

    >>> curve = find_survival_curve([10, 10, 10], [0, 0, 70], deviation=0)
    >>> curve.values.round(2).tolist(), bool(curve.low[-1] < 0.7 < curve.high[-1])
    ([0.9, 0.8, 0.7], True)
    """
    died, left = np.asarray(deaths, np.float64), np.asarray(leavers, np.float64)
    if died.ndim != 1 or died.size == 0 or died.shape != left.shape or not np.all(np.isfinite(died + left)):
        raise InvalidParameter("tables.not_survival_counts", parameter="leavers")
    noise, level = real("deviation", deviation), strict_probability("confidence", confidence)
    risk = np.maximum(np.cumsum((died + left)[::-1])[::-1], 1.0)
    died = np.clip(died, 0.0, risk - 0.5)
    alive = risk - died
    logs = np.cumsum(np.log(alive / risk))
    chance = np.cumsum(died / (risk * alive))
    width = NormalDist().inv_cdf(1 - (1 - level) / 2) * np.sqrt(chance + noise**2 * _sum_squares(died, risk, alive))
    values = np.exp(logs)
    return SurvivalCurve(values, np.exp(logs - width), np.minimum(np.exp(logs + width), 1.0))


def _sum_squares(died: Vector, risk: Vector, alive: Vector) -> Vector:
    """For each period, the squared slopes of the logarithm of the curve in all counts, added up.

    A count of period u is in the risk of all periods s <= u, with slope deaths / (risk * alive) in each; a death of
    period u takes 1 / alive away as well.
    """
    periods = died.size
    slopes = np.cumsum(died / (risk * alive))
    found = np.empty(periods)
    for last in range(periods):
        through = slopes[np.minimum(np.arange(periods), last)]
        of_deaths = through - np.where(np.arange(periods) <= last, 1 / alive, 0.0)
        found[last] = math.fsum(through**2) + math.fsum(of_deaths**2)
    return found
