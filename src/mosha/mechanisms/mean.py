"""Means: sum and count released together, with noise shaped like the box that one unit can move them in."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import DiscreteLaplace, Pure
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive
from mosha.core.options import MissingValue
from mosha.core.unit import Unit
from mosha.exact.grid import add_noise
from mosha.exact.statistic import Steps
from mosha.exact.sum_and_count import SumAndCount
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.mechanisms.mean_error import FINE, MeanError
from mosha.mechanisms.picture import draw_bars
from mosha.noise import LARGEST_SCALE, box_noise, discrete_laplace
from mosha.noise.parameters import enlarge_scale

__all__ = ["mean"]

_Noise: TypeAlias = Callable[[Steps, Rng], tuple[float, float]]

_WIDEST = 1 << 42  # what `box_noise` counts exactly: 2**14 rows a unit


@explain_wrong_calls
def mean(
    *,
    between: tuple[float, float],
    unit: Unit,
    epsilon: float,
    column: str | None = None,
    missing: MissingValue = "drop",
) -> Measurement:
    """The mean of a column, every value first clamped into [low, high]; with its sum and count.

    The answer is {"mean": ..., "sum": ..., "count": ...}. Noise on (sum from the middle, count) is drawn at once,
    uniform in a box of random size (the K-norm mechanism of Hardt and Talwar 2010). Half the variance of two
    Laplace releases that share the budget.

    Guarantee:
        epsilon-differential privacy: see `mean.md`. Under replacement with every row counting and one
        row a unit the count is public, and Laplace noise on the sum alone does it.

    Units:
        `between` and the mean are in the unit of the column.

    Args:
        between: the range (low, high) that values are clamped into.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon that a release costs.
        column: the column to average, if the data have several.
        missing: "drop" leaves missing values out, "middle" counts them as the middle of the range.

    >>> from mosha import Row, noise
    >>> ages = mean(between=(0, 100), unit=Row(), epsilon=1)
    >>> answer, _ = ages.step(None, [20, 30, 40] * 4000, None, noise.SeededRandom(1))
    >>> abs(answer["mean"] - 30) < 0.2, ages.error(0.95, answer)["mean"] < 0.1
    (True, True)
    """
    parts = SumAndCount(between=between, column=column, missing=missing)
    if not isinstance(unit, Unit):
        raise InvalidParameter("mechanisms.no_unit", parameter="unit")
    epsilon = positive("epsilon", epsilon)
    if epsilon > 1024:
        raise InvalidParameter("mechanisms.epsilon_of_mean", parameter="epsilon")
    widths = parts.widths(unit)
    noise, event = _box(widths, epsilon) if widths[1] else _interval(widths[0], epsilon)

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
        del ask
        return _estimate(parts, noise(parts.evaluate(data, unit), rng)), state

    return Measurement(
        unit=unit,
        event=event,
        step=step,
        error=MeanError(parts, widths, epsilon),
        draw=lambda answer, error: draw_bars(
            answer["mean"], error and error["mean"], title="mean, box noise", labels=None
        ),
        name="mean",
        question=fingerprint(parts, unit),
    )


def _box(widths: tuple[int, int], epsilon: float) -> tuple[_Noise, Event]:
    """Noise on the pair (sum in steps, count in 2**-20 rows) for a unit that moves it within a box."""
    sides = [Fraction(widths[0], FINE), Fraction(widths[1])]
    scale = enlarge_scale(FINE / Fraction(epsilon))
    if max(sides) * scale > LARGEST_SCALE or max(widths) > _WIDEST:
        raise InvalidParameter("mechanisms.too_many_rows")
    limits = [int((1 << 59) * side / max(Fraction(1), *sides)) for side in sides]

    def noise(exact: Steps, rng: Rng) -> tuple[float, float]:
        total = min(max(int(exact[0]), -limits[0]), limits[0])
        count = min(int(exact[1]) * FINE, limits[1])
        noisy = np.array([total, count]) + box_noise(scale, sides, rng=rng)
        total, count = np.clip(noisy, [-limit for limit in limits], limits).tolist()
        return total, count / FINE

    return noise, Pure(epsilon)


def _interval(width: int, epsilon: float) -> tuple[_Noise, Event]:
    """Noise on the sum alone, where the count is public."""
    multiplier = laplace_multiplier(epsilon)
    scale = enlarge_scale(Fraction(multiplier) * width)
    if scale > LARGEST_SCALE:
        raise InvalidParameter("mechanisms.epsilon_too_small", parameter="epsilon")

    def noise(exact: Steps, rng: Rng) -> tuple[float, float]:
        noisy = add_noise(exact[:1], np.array([discrete_laplace(scale, rng=rng)]))
        return float(noisy[0]), float(exact[1])

    return noise, DiscreteLaplace(multiplier, width)


def _estimate(parts: SumAndCount, noisy: tuple[float, float]) -> dict[str, float]:
    """Post-processing of the noisy pair alone."""
    total, count = noisy[0] * parts.grid, noisy[1]
    middle = parts.middle + total / count if count > 0 else parts.middle
    clamped = min(max(middle, parts.between[0]), parts.between[1])
    return {"mean": clamped, "sum": parts.middle * count + total, "count": count}
