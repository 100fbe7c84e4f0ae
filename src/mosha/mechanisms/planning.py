"""From an accuracy to the least epsilon, and back: before anything is spent.

For one kind of noise there are closed forms; for any other measurement `plan` searches. "Standard deviation at most 10"
is `standard_deviation=10`, "P(|noise| > 100) < 0.01" is `within=100, confidence=0.99`, "within 5% with 95% confidence"
is `within=0.05 * a public guess of the answer, confidence=0.95`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosha.accounting.measures import gaussian as normal
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.number import positive, strict_probability
from mosha.mechanisms.error_bars import LaplaceError, gaussian_width, laplace_tail, laplace_width
from mosha.mechanisms.gaussian import gaussian_multiplier

__all__ = [
    "gaussian_deviation",
    "gaussian_epsilon",
    "gaussian_within",
    "laplace_deviation",
    "laplace_epsilon",
    "laplace_exceeds",
    "laplace_within",
    "plan",
]

_UP = 1 + 2.0**-40  # more than the rounding of the short formulas below


def laplace_deviation(sensitivity: float, epsilon: float, *, grid: float = 1.0) -> float:
    """The standard deviation of discrete Laplace noise on a grid.

    >>> round(laplace_deviation(1, 0.1), 3)
    14.136
    """
    return LaplaceError(_scale(sensitivity, epsilon, grid), grid, None).standard_deviation


def laplace_within(sensitivity: float, epsilon: float, confidence: float, *, grid: float = 1.0) -> float:
    """The half-width that the noise stays within with this confidence.

    >>> laplace_within(1, 0.1, 0.95)
    30.0
    """
    return laplace_width(_scale(sensitivity, epsilon, grid), confidence) * grid


def laplace_exceeds(sensitivity: float, epsilon: float, width: float, *, grid: float = 1.0) -> float:
    """P(|noise| > width).

    >>> round(laplace_exceeds(1, 0.1, 29), 4)
    0.0523
    """
    return laplace_tail(_scale(sensitivity, epsilon, grid), width / grid)


def laplace_epsilon(
    sensitivity: float,
    *,
    standard_deviation: float | None = None,
    within: float | None = None,
    confidence: float | None = None,
    grid: float = 1.0,
) -> float:
    """The least epsilon at which discrete Laplace noise on a grid is so accurate.

    Guarantee:
        With u = epsilon * grid / sensitivity = 1 / scale, the variance is 1 / (2 sinh(u / 2)^2) steps, solved for u;
        and P(|noise| > w steps) = 2 e^(-(w + 1) u) / (1 + e^-u) falls in u, found by bisection. Rounded up.

    >>> round(laplace_epsilon(1, standard_deviation=10), 4), round(laplace_epsilon(1, within=100, confidence=0.99), 4)
    (0.1413, 0.0458)
    """
    steps = _steps(sensitivity, grid)
    if _accuracy_kind(standard_deviation, within, confidence) == "standard_deviation":
        deviation = positive("standard_deviation", standard_deviation) / grid
        return 2 * math.asinh(1 / (math.sqrt(2) * deviation)) * steps * _UP
    width, missed = positive("within", within) / grid, 1 - strict_probability("confidence", confidence)
    low, high = 0.0, (math.log(2) - math.log(missed)) / (math.floor(width) + 1)
    for _ in range(100):
        middle = (low + high) / 2
        enough = middle > 0 and laplace_tail(1 / middle, width) <= missed
        low, high = (low, middle) if enough else (middle, high)
    return high * steps * _UP


def gaussian_deviation(sensitivity: float, epsilon: float, delta: float) -> float:
    """The standard deviation of Gaussian noise that keeps (epsilon, delta), Balle and Wang's calibration.

    >>> round(gaussian_deviation(1, 1, 1e-5), 4)
    3.7306
    """
    return positive("sensitivity", sensitivity) * gaussian_multiplier(epsilon=epsilon, delta=delta)


def gaussian_within(sensitivity: float, epsilon: float, delta: float, confidence: float) -> float:
    """The half-width that the noise stays within with this confidence.

    >>> round(gaussian_within(1, 1, 1e-5, 0.95), 2)
    7.31
    """
    deviation = gaussian_deviation(sensitivity, epsilon, delta)
    return gaussian_width(2.0**30, confidence) * deviation / 2.0**30


def gaussian_epsilon(
    sensitivity: float,
    *,
    delta: float,
    standard_deviation: float | None = None,
    within: float | None = None,
    confidence: float | None = None,
) -> float:
    """The least epsilon at which Gaussian noise that keeps (epsilon, delta) is so accurate.

    Guarantee:
        mu = sensitivity / sigma is (epsilon, delta)-private at the epsilon of Balle and Wang, rounded up. Four parts in
        a million of sigma are left for the grid: `gaussian` at this epsilon keeps the accuracy.

    >>> round(gaussian_epsilon(1, delta=1e-5, standard_deviation=3.7306316), 4)
    1.0
    """
    sensitivity = positive("sensitivity", sensitivity)
    if _accuracy_kind(standard_deviation, within, confidence) == "standard_deviation":
        sigma = positive("standard_deviation", standard_deviation)
    else:
        quantile = gaussian_width(2.0**30, strict_probability("confidence", confidence)) / 2.0**30
        sigma = positive("within", within) / (quantile + 2.0**-10)
    return normal.epsilon(sensitivity / sigma * (1 + 4e-6), strict_probability("delta", delta))


def plan(
    factory: Callable[[float], Measurement],
    *,
    standard_deviation: float | None = None,
    within: float | None = None,
    confidence: float | None = None,
    like: object = None,
    part: str | None = None,
) -> float:
    """The least epsilon, to one part in a million, at which `factory(epsilon)` is so accurate; nothing is spent.

    Two demands at once (`standard_deviation` beside `within` with `confidence`) are both satisfied.

    The widest error bar counts where an answer has several; `part` names one where they have names. `like` is a public
    guess of the answer, for error bars that depend on it, as that of a mean does on the count.

    >>> from mosha import Row
    >>> from mosha.mechanisms import Count, laplace, mean
    >>> round(plan(lambda e: laplace(Count(), unit=Row(), epsilon=e), standard_deviation=10), 4)
    0.1413
    >>> both = lambda e: laplace(Count(), unit=Row(), epsilon=e)
    >>> round(plan(both, standard_deviation=10, within=100, confidence=0.99), 4)
    0.1413
    >>> ages = lambda e: mean(between=(0, 100), unit=Row(), epsilon=e)
    >>> guess = {"mean": 40.0, "count": 10_000.0, "sum": 400_000.0}
    >>> round(plan(ages, within=0.05 * 40, confidence=0.95, like=guess, part="mean"), 4)
    0.0106
    """
    if standard_deviation is not None and within is not None:
        one = plan(factory, standard_deviation=standard_deviation, like=like, part=part)
        return max(one, plan(factory, within=within, confidence=confidence, like=like, part=part))
    kind = _accuracy_kind(standard_deviation, within, confidence)
    target = positive(kind, standard_deviation if kind == "standard_deviation" else within)

    def enough(epsilon: float) -> bool:
        measurement = factory(epsilon)
        if kind == "standard_deviation":
            return _deviation(measurement) <= target
        if measurement.error is None:
            raise InvalidParameter("mechanisms.no_error_bar", measurement=measurement.name)
        return _widest_bar(measurement.error(strict_probability("confidence", confidence), like), part) <= target

    low, high = _bracket(enough)
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _bracket(enough: Callable[[float], bool]) -> tuple[float, float]:
    """Two epsilons, of which the larger is enough and the smaller is not (or cannot be had)."""
    epsilon = 1.0
    if enough(epsilon):
        while epsilon > 2.0**-40 and _is_possible(enough, epsilon / 2):
            epsilon /= 2
        return epsilon / 2, epsilon
    while not _is_possible(enough, epsilon):
        epsilon *= 2
        if epsilon > 2.0**20:
            raise InvalidParameter("mechanisms.accuracy_out_of_reach")
    return epsilon / 2, epsilon


def _is_possible(enough: Callable[[float], bool], epsilon: float) -> bool:
    try:
        return enough(epsilon)
    except InvalidParameter:  # an epsilon so small or large that there is no such noise
        return False


def _deviation(measurement: Measurement) -> float:
    error: Any = measurement.error
    if not hasattr(error, "standard_deviation"):
        raise InvalidParameter("mechanisms.no_deviation", measurement=measurement.name)
    return float(error.standard_deviation)


def _widest_bar(bars: ArrayLike | dict[str, float], part: str | None) -> float:
    if isinstance(bars, dict):
        if part not in bars:
            raise InvalidParameter("mechanisms.unknown_part", parameter="part", parts=list(bars))
        return float(bars[part])
    return float(np.max(bars))


def _accuracy_kind(standard_deviation: float | None, within: float | None, confidence: float | None) -> str:
    if standard_deviation is not None and within is None and confidence is None:
        return "standard_deviation"
    if standard_deviation is None and within is not None and confidence is not None:
        return "within"
    raise InvalidParameter("mechanisms.no_accuracy")


def _steps(sensitivity: float, grid: float) -> int:
    """How many steps of the grid one unit moves the number: whole ones, for the number lives on the grid."""
    return max(1, math.ceil(positive("sensitivity", sensitivity) / positive("grid", grid) * (1 - 2.0**-50)))


def _scale(sensitivity: float, epsilon: float, grid: float) -> float:
    return _steps(sensitivity, grid) / positive("epsilon", epsilon)
