"""What a count says about a probability: exact one-sided bounds (Clopper and Pearson 1934)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer

__all__ = ["at_least", "at_most", "rough_bounds"]


def _counts(successes: ArrayLike, trials: int) -> NDArray[np.float64]:
    trials = positive_integer("trials", trials)
    counts = np.asarray(successes)
    if counts.dtype.kind not in "iu" or np.any(counts < 0) or np.any(counts > trials):
        raise InvalidParameter("audit.impossible_counts", parameter="successes")
    return counts.astype(np.float64)


def _level(alpha: ArrayLike) -> NDArray[np.float64]:
    level = np.asarray(alpha, dtype=np.float64)
    if not np.all((level > 0) & (level < 1)):
        raise InvalidParameter("audit.not_strictly_between", parameter="alpha")
    return level


def at_least(successes: ArrayLike, trials: int, *, alpha: ArrayLike) -> Any:
    """The lower bound of a probability p after `successes` in `trials` independent trials.

    Guarantee:
        P(bound > p) <= alpha. The bound is the p' with P(Bin(n, p') >= k) = alpha (0 for k = 0), moved outward by
        more than the rounding of its computation. It grows with k, so bound(K) > p needs K >= k0, the least k
        with bound(k) > p, and P(Bin(n, p) >= k0) <= P(Bin(n, bound(k0)) >= k0) <= alpha.

    >>> round(at_least(50, 100, alpha=0.025), 4)
    0.3983
    """
    from scipy.special import betaincinv  # noqa: PLC0415  (scipy is loaded when it is needed)

    k = _counts(successes, trials)
    solved = betaincinv(np.maximum(k, 1), trials - k + 1, _level(alpha))
    bound = np.where(k > 0, np.maximum(solved - _slack(solved), 0.0), 0.0)
    return float(bound) if bound.ndim == 0 else bound


def at_most(successes: ArrayLike, trials: int, *, alpha: ArrayLike) -> Any:
    """The upper bound of a probability: P(bound < p) <= alpha, the mirror image of `at_least`.

    >>> at_most(0, 1000, alpha=0.05) < 3 / 1000
    True
    """
    from scipy.special import betainccinv  # noqa: PLC0415

    k = _counts(successes, trials)
    solved = betainccinv(k + 1, np.maximum(trials - k, 1), _level(alpha))
    bound = np.where(k < trials, np.minimum(solved + _slack(solved), 1.0), 1.0)
    return float(bound) if bound.ndim == 0 else bound


def _slack(solved: NDArray[np.floating]) -> NDArray[np.floating]:
    """Far above the rounding of the beta function, far below what a count can tell."""
    slack: NDArray[np.floating] = 1e-10 * np.minimum(solved, 1 - solved) + 4e-16 * solved
    return slack


def rough_bounds(
    rate: NDArray[np.float64], trials: float, *, deviations: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's quick interval: for choosing what to confirm, never for a verdict."""
    square = deviations**2 / trials
    middle = rate + square / 2
    half = np.sqrt(square * (rate * (1 - rate) + square / 4))
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
