"""What two counts say about two probabilities at once: an exact confidence region for the pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mosha.audit.attacks.interval import at_least, at_most
from mosha.audit.claims.claim import Claim
from mosha.core.number import strict_probability

__all__ = ["Counts", "Explanation", "explain", "weights_for"]

_NORMAL = NormalDist()
_CORNERS = 512  # how finely the edge of the region is followed
_SIDES = 0.05  # the share of alpha that cuts off each of the two ends of the edge


@dataclass(frozen=True)
class Counts:
    """How often an event happened where it should be likely, and where it should not."""

    likely: int
    trials: int
    against: int
    trials_against: int


@dataclass(frozen=True)
class Explanation:
    """The least amount of a claim that explains two counts, and the pair of probabilities at which it does."""

    least: float
    p: float
    q: float


def explain(counts: Counts, claim: Claim, *, weights: tuple[float, float], alpha: float) -> Explanation:
    """The least amount of the claim's measure under which the counts are believable at level alpha.

    Guarantee:
        P(least > true amount) <= alpha, for weights chosen without the counts. Let U = P(X >= x; p) and
        V = P(Y <= y; q): independent, each P(U <= u) <= u, so z(U) = Phi^-1(1 - U) is stochastically at most normal
        and so is a z(U) + b z(V) with a^2 + b^2 = 1. The true (p, q) is excluded by a z(U) + b z(V) >= t, U <= s
        or V <= s with probability at most Phi(-t) + 2s = alpha. The rest is a region whose edge is a curve of
        Clopper-Pearson corners; between two corners `least` is taken at the worse coordinate of each.
    """
    from scipy.special import ndtr  # noqa: PLC0415  (scipy is loaded when it is needed)

    alpha = strict_probability("alpha", alpha) * (1 - 1e-9)  # more than the rounding of the levels below
    top = -_NORMAL.inv_cdf(_SIDES * alpha)
    edge = -_NORMAL.inv_cdf((1 - 2 * _SIDES) * alpha)
    a, b = _unit(weights)
    first = np.linspace(max((edge - b * top) / a, -top), top, _CORNERS)
    second = np.clip((edge - a * first) / b, -top, top)
    second[0] = top
    p = at_least(counts.likely, counts.trials, alpha=ndtr(-first[1:]))
    q = at_most(counts.against, counts.trials_against, alpha=ndtr(-second[:-1]))
    least = claim.least(p, q)
    worst = int(np.argmin(least))
    return Explanation(float(least[worst]), float(p[worst]), float(q[worst]))


def _unit(weights: tuple[float, float]) -> tuple[float, float]:
    """Weights of length one, neither of them zero; equal ones in the place of nonsense."""
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        weights = (1.0, 1.0)
    larger = max(weights)
    a, b = (max(weight / larger, 1e-3) for weight in weights)
    return a / math.hypot(a, b), b / math.hypot(a, b)


def weights_for(p: float, q: float, claim: Claim) -> tuple[float, float]:
    """The weights that are best for probabilities near p and q: how much the noise of each count moves `least`.

    A wrong guess costs power, not soundness.
    """
    p, q = min(max(p, 1e-9), 1 - 1e-9), min(max(q, 1e-9), 1 - 1e-9)
    step_p, step_q = 1e-3 * p * (1 - p), 1e-3 * q * (1 - q)
    corners = claim.least([p + step_p, p - step_p, p, p], [q, q, q + step_q, q - step_q])
    slope_p, slope_q = (corners[0] - corners[1]) / step_p, (corners[3] - corners[2]) / step_q
    return float(slope_p * math.sqrt(p * (1 - p))), float(slope_q * math.sqrt(q * (1 - q)))
