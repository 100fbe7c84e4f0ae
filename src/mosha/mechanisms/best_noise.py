"""Laplace or Gaussian: whichever has the smaller error for the dimension, the norms and the budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mosha.accounting.measures import concentrated
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, probability
from mosha.core.options import NoiseName
from mosha.core.unit import Unit
from mosha.exact.statistic import Statistic
from mosha.mechanisms.gaussian import gaussian
from mosha.mechanisms.laplace import laplace
from mosha.mechanisms.noisy_statistic import find_given

__all__ = ["NoiseChoice", "additive", "best_noise"]


@dataclass(frozen=True)
class NoiseChoice:
    """Which `noise` was taken, the `reason`, and both standard deviations (infinite where one is not to be had).

    `measurement` has that noise; `laplace` and `gaussian` are the deviations.

    >>> from mosha.core.unit import Row
    >>> from mosha.exact.counts import Count
    >>> choice = best_noise(Count(), unit=Row(), epsilon=1.0, delta=1e-6)
    >>> choice.noise, choice.laplace < choice.gaussian
    ('laplace', True)
    """

    measurement: Measurement
    noise: NoiseName
    laplace: float
    gaussian: float
    reason: str


@explain_wrong_calls
def best_noise(
    statistic: Statistic,
    *,
    unit: Unit,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
) -> NoiseChoice:
    """The additive noise with the smaller standard deviation at (epsilon, delta), or at rho, and why.

    Laplace noise grows with the l1 sensitivity and needs no delta; Gaussian noise grows with the l2 sensitivity and
    with sqrt(log(1 / delta)). The choice is made from public numbers alone, before any data is read.

    Guarantee:
        That of `laplace` resp. `gaussian`.

    Units:
        Standard deviations are in the unit of the statistic, for each coordinate.

    Args:
        statistic: what is counted or summed, such as `Count()` or `Histogram(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the price as epsilon, together with `delta`; or
        delta: the probability that goes with epsilon (0 for none); or
        rho: the price in zero-concentrated differential privacy.

    >>> from mosha import Row
    >>> from mosha.mechanisms import Count, VectorSum
    >>> print(best_noise(Count(), unit=Row(), epsilon=1, delta=1e-6).reason)
    Laplace: standard deviation 1.36 against 4.22 of Gaussian noise (l1 sensitivity 1, l2 sensitivity 1, 1 number)
    >>> best_noise(VectorSum(norm=1, coordinates=100), unit=Row(), epsilon=1, delta=1e-6).noise
    'gaussian'
    """
    if (find_given(epsilon=epsilon, rho=rho) == "epsilon") != (delta is not None):
        raise InvalidParameter("mechanisms.budget_for_either")
    candidates: dict[NoiseName, Callable[[], Measurement]]
    if rho is not None:
        candidates = {
            "laplace": lambda: laplace(statistic, unit=unit, epsilon=_epsilon_at(statistic, unit, rho)),
            "gaussian": lambda: gaussian(statistic, unit=unit, rho=rho),
        }
    else:
        candidates = {"laplace": lambda: laplace(statistic, unit=unit, epsilon=epsilon)}
        if probability("delta", delta) >= 2.0**-90:
            candidates["gaussian"] = lambda: gaussian(statistic, unit=unit, epsilon=epsilon, delta=delta)
    found: dict[NoiseName, Measurement] = {}
    problem = InvalidParameter("mechanisms.no_noise")
    for name, make in candidates.items():
        try:
            found[name] = make()
        except InvalidParameter as error:
            problem = error
    if not found:
        raise problem
    deviations = {name: _deviation(found.get(name)) for name in ("laplace", "gaussian")}
    noise = min(found, key=lambda name: deviations[name])
    reason = _reason(noise, deviations, statistic, unit)
    return NoiseChoice(found[noise], noise, deviations["laplace"], deviations["gaussian"], reason)


def _epsilon_at(statistic: Statistic, unit: Unit, rho: float) -> float:
    """The largest epsilon, to one part in a million, at which Laplace noise costs at most `rho`."""

    def cost(epsilon: float) -> float:
        return concentrated.rho(laplace(statistic, unit=unit, epsilon=epsilon).event)[0]

    low = high = math.sqrt(2 * positive("rho", rho))
    while cost(low) > rho:
        low /= 2
    while cost(high) <= rho:
        low, high = high, high * 2
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle) <= rho else (low, middle)
    return low


@explain_wrong_calls
def additive(
    statistic: Statistic,
    *,
    unit: Unit,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
) -> Measurement:
    """A statistic with the better of Laplace and Gaussian noise: the measurement that `best_noise` takes.

    Args:
        statistic: what is counted or summed, such as `Count()` or `Histogram(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the price as epsilon, together with `delta`; or
        delta: the probability that goes with epsilon (0 for none); or
        rho: the price in zero-concentrated differential privacy.

    >>> from mosha import Row
    >>> from mosha.mechanisms import Count
    >>> additive(Count(), unit=Row(), epsilon=1, delta=1e-6).name
    'laplace(Count)'
    """
    return best_noise(statistic, unit=unit, epsilon=epsilon, delta=delta, rho=rho).measurement


def _deviation(measurement: Measurement | None) -> float:
    error: Any = None if measurement is None else measurement.error
    return math.inf if error is None else float(error.standard_deviation)


def _reason(noise: str, deviations: dict[str, float], statistic: Statistic, unit: Unit) -> str:
    sensitivity, other = statistic.sensitivity(unit), "gaussian" if noise == "laplace" else "laplace"
    numbers = 1 if statistic.labels is None else len(statistic.labels)
    against = f"{deviations[other]:.3g} of {other.capitalize()} noise"
    if math.isinf(deviations[other]):
        against = f"no {other.capitalize()} noise at this budget"
    return (
        f"{noise.capitalize()}: standard deviation {deviations[noise]:.3g} against {against} "
        f"(l1 sensitivity {sensitivity.l1 * statistic.grid:.3g}, l2 sensitivity {sensitivity.l2 * statistic.grid:.3g}, "
        f"{numbers} number{'s' if numbers > 1 else ''})"
    )
