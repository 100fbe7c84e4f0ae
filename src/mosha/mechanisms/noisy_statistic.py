"""A statistic plus noise: the road that all additive mechanisms share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.core.unit import Unit
from mosha.exact.grid import LARGEST_STEPS, add_noise, to_units
from mosha.exact.statistic import Statistic, Steps, check_statistic

__all__ = ["Step", "check_moving", "exact_steps", "find_given", "noisy_step", "title"]

Step: TypeAlias = Callable[[object, object, object, Rng], tuple[object, object]]


def check_moving(statistic: object, unit: object) -> tuple[Statistic, Unit]:
    """The statistic and the unit, if the unit can move the statistic at all.

    A statistic that nobody moves is public. Selling it would be a release for nothing, and one mistake in what the
    neighbors are would make it a leak; so it is refused.
    """
    checked = check_statistic(statistic)
    if not isinstance(unit, Unit):
        raise InvalidParameter("mechanisms.no_unit", parameter="unit")
    if checked.sensitivity(unit).l1 == 0:
        raise InvalidParameter("mechanisms.does_not_move", kind=title(statistic), change=unit.describe())
    return checked, unit


def find_given(**arguments: float | None) -> str:
    """The name of the one argument that was given."""
    given = [name for name, value in arguments.items() if value is not None]
    if len(given) != 1:
        raise InvalidParameter("mechanisms.give_one", names=list(arguments))
    return given[0]


def title(statistic: object) -> str:
    return type(statistic).__name__


def exact_steps(statistic: Statistic, data: object, unit: Unit, finer: int = 1) -> Steps:
    """The exact statistic in steps that are `finer` times as fine (a power of two), held so that noise fits."""
    steps = np.asarray(statistic.evaluate(data, unit))
    width = 1 if statistic.labels is None else len(statistic.labels)
    if steps.shape != (width,) or steps.dtype != np.int64:
        raise InvalidParameter("mechanisms.wrong_shape", kind=title(statistic), width=width)
    return np.clip(steps, -(LARGEST_STEPS // finer), LARGEST_STEPS // finer) * finer


def noisy_step(statistic: Statistic, unit: Unit, noise: Callable[[int, Rng], Steps], finer: int = 1) -> Step:
    """The step of a measurement: exact statistic, plus noise, in the unit of the data."""
    width = 1 if statistic.labels is None else len(statistic.labels)

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
        del ask
        steps = add_noise(exact_steps(statistic, data, unit, finer), noise(width, rng))
        answer = to_units(steps, statistic.grid / finer)
        return (answer if statistic.labels is not None else answer[0].item()), state

    return step
