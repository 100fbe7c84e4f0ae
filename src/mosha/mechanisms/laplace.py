"""Laplace noise: pure differential privacy for numbers and vectors of small l1 sensitivity."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mosha.accounting.numerics.price import round_down, round_up
from mosha.core.errors import InvalidParameter
from mosha.core.events import DiscreteLaplace
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive
from mosha.core.unit import Unit
from mosha.exact.statistic import Statistic, Steps
from mosha.mechanisms.error_bars import LaplaceError
from mosha.mechanisms.noisy_statistic import check_moving, find_given, noisy_step, title
from mosha.mechanisms.picture import make_drawing
from mosha.noise import LARGEST_SCALE, discrete_laplace
from mosha.noise.parameters import enlarge_scale

__all__ = ["laplace", "laplace_multiplier"]


@explain_wrong_calls
def laplace(
    statistic: Statistic, *, unit: Unit, epsilon: float | None = None, scale: float | None = None
) -> Measurement:
    """A statistic plus discrete Laplace noise, of scale (l1 sensitivity) / epsilon on every coordinate.

    Guarantee:
        1/nm-differential privacy, nm the event's noise multiplier and the scale s >= nm * l1 steps: moving f by v
        turns P(y) = prod C exp(-|y_i - f_i| / s) into at most exp(|v|_1 / s) P(y), as |y_i - f_i - v_i| >=
        |y_i - f_i| - |v_i|; f and f + v are integers, so C is the same. A single number that moves by j <= k steps
        is best told by a half-line, F(t) - e^x F(t - j), which grows with j: DiscreteLaplace(nm, k). For vectors
        DiscreteLaplace(nm) is charged: outputs that differ by exactly e^(1/nm), the worst of all. See `clamping.md`.

    Units:
        `scale` is in the unit of the statistic, `epsilon` a pure number; the answer is on the statistic's grid.

    Args:
        statistic: what is counted or summed, such as `Count()` or `Histogram(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon that a release costs; or
        scale: the noise itself, in the unit of the statistic.

    >>> from mosha import Row, noise
    >>> from mosha.mechanisms import Count
    >>> count = laplace(Count(), unit=Row(), epsilon=0.5)
    >>> count.event, count.forecast(0.95)
    (DiscreteLaplace(noise_multiplier=2.0, sensitivity=1), 6.0)
    >>> answer, _ = count.step(None, range(1000), None, noise.SeededRandom(7))
    >>> abs(answer - 1000) < 60
    True
    """
    statistic, unit = check_moving(statistic, unit)
    l1 = statistic.sensitivity(unit).l1
    if find_given(epsilon=epsilon, scale=scale) == "epsilon":
        multiplier = laplace_multiplier(positive("epsilon", epsilon))
    else:
        multiplier = round_down(Fraction(positive("scale", scale)) / Fraction(statistic.grid) / l1)
    if multiplier < 2.0**-30:
        raise InvalidParameter("mechanisms.noise_vanishes")
    drawn = enlarge_scale(Fraction(multiplier) * l1)
    if drawn > LARGEST_SCALE:
        raise InvalidParameter("mechanisms.scale_too_large", kind=title(statistic))

    def noise(width: int, rng: Rng) -> Steps:
        return discrete_laplace(drawn, width, rng=rng) if width > 1 else np.array([discrete_laplace(drawn, rng=rng)])

    number = statistic.labels is None
    return Measurement(
        unit=unit,
        event=DiscreteLaplace(multiplier, l1 if number else 1),
        step=noisy_step(statistic, unit, noise),
        error=LaplaceError(float(drawn), statistic.grid, None if number else len(statistic.labels or ())),
        draw=make_drawing(f"{title(statistic)}, Laplace noise", statistic.labels),
        name=f"laplace({title(statistic)})",
        question=fingerprint(statistic, unit),
    )


def laplace_multiplier(epsilon: float) -> float:
    """The least noise multiplier whose price, 1 / multiplier, is at most `epsilon` exactly.

    >>> laplace_multiplier(0.1)
    10.0
    """
    multiplier = round_up(1 / Fraction(positive("epsilon", epsilon)))
    return positive("1 / epsilon", multiplier)
