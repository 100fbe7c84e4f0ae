"""Noise as wide as the data at hand ask for, made smooth so that its width tells nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.events import Pure
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive, strict_probability
from mosha.core.unit import Unit
from mosha.exact.bounding import rows_per_unit
from mosha.exact.quantile import LocalStatistic
from mosha.exact.statistic import Steps
from mosha.mechanisms.noisy_statistic import title
from mosha.noise.cauchy import discrete_cauchy, find_cauchy_width

__all__ = ["check_local", "smooth_bound", "smooth_forecast", "smooth_sensitivity"]

LEAST_SCALE = 8
"""Steps. The normalising constant of discrete Cauchy noise is that of the continuous law from here on."""


def smooth_sensitivity(statistic: LocalStatistic, *, unit: Unit, epsilon: float) -> Measurement:
    """A number plus discrete Cauchy noise, scaled to its smooth sensitivity (Nissim, Raskhodnikova and Smith 2007).

    The noise is narrow where the data near the quantile are dense and wide where they are not. Its tails are heavy: now
    and then an answer is far off; answers are clamped into the declared range, which is free.

    Guarantee:
        epsilon-differential privacy, no delta: see `smooth_sensitivity.md`.

    Units:
        The answer is in the unit of the column. There is no error bar, for the width of the noise is private.

    Args:
        statistic: a statistic with local sensitivities, such as `Quantile(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon that a release costs.

    >>> from mosha import Row, noise
    >>> from mosha.mechanisms import Quantile
    >>> median = smooth_sensitivity(Quantile(at=0.5, between=(0, 100)), unit=Row(), epsilon=1)
    >>> answer, _ = median.step(None, list(range(101)) * 100, None, noise.SeededRandom(2))
    >>> median.event, abs(answer - 50) < 10
    (Pure(epsilon=1.0), True)
    """
    statistic = check_local(statistic, unit)
    epsilon = positive("epsilon", epsilon)
    if not 2.0**-20 <= epsilon <= 2.0**10:
        raise InvalidParameter("mechanisms.epsilon_of_smooth", parameter="epsilon")

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
        del ask
        exact, reaches = statistic.evaluate_with_reaches(data, unit)
        noisy = exact + discrete_cauchy(_scale(reaches, epsilon), rng=rng)
        return statistic.offset + min(max(noisy, 0), statistic.width) * statistic.grid, state

    return Measurement(
        unit=unit,
        event=Pure(epsilon),
        step=step,
        name=f"smooth_sensitivity({title(statistic)})",
        question=fingerprint(statistic, unit),
    )


def _scale(reaches: Steps, epsilon: float) -> Fraction:
    """The scale of the noise: half of epsilon pays for the shift, half for the change of scale and its rounding."""
    shift, decay = epsilon / 2, epsilon / 2 * (1 - 2.0**-20)
    return max(Fraction(smooth_bound(reaches, decay)) / Fraction(shift), Fraction(LEAST_SCALE))


def smooth_forecast(
    statistic: LocalStatistic, public: object, *, unit: Unit, epsilon: float, confidence: float
) -> float:
    """The half-width of the error bar that the answer would have on *public* data like the private ones.

    Args:
        statistic: a statistic with local sensitivities, such as `Quantile(...)`.
        public: public data that resemble the private ones.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon that a release costs.
        confidence: how often the error bar holds, such as 0.95.

    >>> from mosha import Row
    >>> from mosha.mechanisms import Quantile
    >>> ages = [18 + k % 71 for k in range(7100)]
    >>> median = Quantile(at=0.5, between=(0, 100))
    >>> round(smooth_forecast(median, ages, unit=Row(), epsilon=1, confidence=0.5), 3)
    0.0
    """
    statistic = check_local(statistic, unit)
    scale = _scale(statistic.evaluate_with_reaches(public, unit)[1], positive("epsilon", epsilon))
    return find_cauchy_width(float(scale), 1 - strict_probability("confidence", confidence)) * statistic.grid


def smooth_bound(reaches: Steps, decay: float) -> float:
    """The largest of exp(-decay k) A_k over all k, A_k constant beyond the last entry: the smooth sensitivity.

    Guarantee:
        A_k(D) <= A_(k+1)(D') makes it at most e^decay times that of any neighbor, but for rounding: A_k < 2**53 is
        exact as a float, and a term with decay k <= 64 is off by less than 2**-45, relative. Terms further out
        are below 2**-50 and drown in `LEAST_SCALE`.

    >>> smooth_bound(np.array([1, 2, 10]), 5.0)
    1.0
    """
    exponents = -decay * np.arange(reaches.size, dtype=np.float64)
    return float((np.exp(exponents) * reaches).max())


def check_local(statistic: object, unit: object) -> LocalStatistic:
    """The statistic itself, if it knows its local sensitivities, and the unit is one it can bound."""
    if not isinstance(statistic, LocalStatistic) or isinstance(statistic, type):
        raise InvalidParameter("mechanisms.no_local_sensitivity", parameter="statistic")
    if not isinstance(unit, Unit):
        raise InvalidParameter("mechanisms.no_unit", parameter="unit")
    rows_per_unit(unit)
    if not math.isfinite(statistic.grid) or statistic.width < 1:
        raise InvalidParameter("mechanisms.cannot_move", parameter="statistic")
    return statistic
