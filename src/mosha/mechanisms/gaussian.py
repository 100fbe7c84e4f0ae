"""Gaussian noise: zero-concentrated differential privacy for vectors of small l2 sensitivity."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mosha.accounting.measures import gaussian as normal
from mosha.accounting.numerics.price import round_down, round_up
from mosha.core.errors import InvalidParameter
from mosha.core.events import DiscreteGaussian
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, strict_probability
from mosha.core.unit import Unit
from mosha.exact.statistic import Statistic, Steps
from mosha.mechanisms.error_bars import GaussianError
from mosha.mechanisms.noisy_statistic import check_moving, find_given, noisy_step, title
from mosha.mechanisms.picture import make_drawing
from mosha.noise import LARGEST_SCALE, discrete_gaussian
from mosha.noise.parameters import enlarge_scale

__all__ = ["classic_multiplier", "discrete_multiplier", "gaussian", "gaussian_multiplier"]

FINE = 1 << 10
"""The noise has at least so many steps to its standard deviation, so that it is priced like the continuous one."""


@explain_wrong_calls
def gaussian(
    statistic: Statistic,
    *,
    unit: Unit,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    mu: float | None = None,
    sigma: float | None = None,
) -> Measurement:
    """A statistic plus discrete Gaussian noise on every coordinate, on a grid of at least 2**10 steps a sigma.

    Say how much by `epsilon` and `delta` (the least sigma there is: Balle and Wang 2018), by `rho`, by `mu`
    or by `sigma` itself.

    Guarantee:
        1/(2 nm^2)-zCDP, nm the event's noise multiplier: integers of l2 sensitivity D plus discrete Gaussian noise of
        parameter s >= nm D have Rényi divergences of order a at most a D^2 / (2 s^2) (Canonne, Kamath and Steinke
        2020; for vectors by independence and sum of squares). Making the grid finer multiplies exact
        numbers, D and s alike. That s >= 2**10 steps is priced like the normal law is the accountant's proof
        (`mosha.accounting`). Finite support: `clamping.md`.

    Units:
        `sigma` is in the unit of the statistic; `epsilon`, `delta`, `rho` and `mu` are pure numbers.

    Args:
        statistic: what is counted or summed, such as `Count()` or `Histogram(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the price as epsilon, together with `delta`; or
        delta: the probability that goes with epsilon; or
        rho: the price in zero-concentrated differential privacy; or
        mu: the price in Gaussian differential privacy; or
        sigma: the noise itself, in the unit of the statistic.

    >>> from mosha import Row
    >>> from mosha.mechanisms import Histogram
    >>> wards = gaussian(Histogram(keys=["A", "B", "C"]), unit=Row(), rho=0.02)
    >>> wards.event, wards.forecast(0.95)[0]
    (DiscreteGaussian(noise_multiplier=5.0, sensitivity=256.0, coordinates=3), np.float64(9.80078125))
    """
    statistic, unit = check_moving(statistic, unit)
    l2 = Fraction(statistic.sensitivity(unit).l2)
    chosen = find_given(epsilon=epsilon, rho=rho, mu=mu, sigma=sigma)
    if (delta is not None) != (chosen == "epsilon"):
        raise InvalidParameter("mechanisms.gaussian_budget")
    if chosen == "sigma":
        multiplier = round_down(Fraction(positive("sigma", sigma)) / Fraction(statistic.grid) / l2)
    else:
        multiplier = gaussian_multiplier(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    finer = _refinement(Fraction(positive("sigma over sensitivity", multiplier)) * l2)
    width = None if statistic.labels is None else len(statistic.labels)
    _check_size(Fraction(multiplier) * l2 * finer, title(statistic))
    if chosen in ("epsilon", "mu"):
        multiplier = discrete_multiplier(multiplier, float(l2 * finer), width or 1)
    drawn = enlarge_scale(Fraction(multiplier) * l2 * finer)
    _check_size(drawn, title(statistic))

    def noise(width: int, rng: Rng) -> Steps:
        return discrete_gaussian(drawn, width, rng=rng) if width > 1 else np.array([discrete_gaussian(drawn, rng=rng)])

    return Measurement(
        unit=unit,
        event=DiscreteGaussian(multiplier, float(l2 * finer), width or 1),
        step=noisy_step(statistic, unit, noise, finer),
        error=GaussianError(float(drawn), statistic.grid / finer, width),
        draw=make_drawing(f"{title(statistic)}, Gaussian noise", statistic.labels),
        name=f"gaussian({title(statistic)})",
        question=fingerprint(statistic, unit),
        delta=delta,
    )


def _check_size(sigma: Fraction, name: str) -> None:
    if sigma > LARGEST_SCALE:
        raise InvalidParameter("mechanisms.sigma_too_large", kind=name)


def _refinement(sigma: Fraction) -> int:
    """The least power of two that makes `sigma` at least 2**10 steps."""
    if sigma < Fraction(1, 1 << 20):
        raise InvalidParameter("mechanisms.noise_vanishes")
    return 1 << max(0, math.ceil(math.log2(FINE / sigma))) if sigma < FINE else 1


def gaussian_multiplier(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    mu: float | None = None,
) -> float:
    """The least noise multiplier of the normal law that keeps a budget: (epsilon, delta), rho or mu; rounded up.

    Guarantee:
        (epsilon, delta): the curve of Balle and Wang, turned around by `mosha.accounting.gaussian`, at a delta
        that leaves 2**-99 for what tells the discrete law from the normal one. The others: mu = 1 / nm, rho = mu^2 / 2.

    >>> gaussian_multiplier(rho=0.5), gaussian_multiplier(mu=0.25)
    (1.0, 4.0)
    >>> round(gaussian_multiplier(epsilon=1, delta=1e-5), 7), round(classic_multiplier(1, 1e-5), 7)
    (3.7306316, 4.8448053)
    """
    match find_given(epsilon=epsilon, rho=rho, mu=mu):
        case "rho":
            square = 1 / (2 * Fraction(positive("rho", rho)))
            root = math.sqrt(square)
            while Fraction(root) ** 2 < square:
                root = math.nextafter(root, math.inf)
            return positive("the noise multiplier", root)
        case "mu":
            return positive("1 / mu", round_up(1 / Fraction(positive("mu", mu))))
    delta = strict_probability("delta", delta)
    if delta < 2.0**-90:
        raise InvalidParameter("mechanisms.delta_too_small", parameter="delta")
    least = normal.noise_multiplier(positive("epsilon", epsilon), delta - 2.0**-99)
    return positive("the noise multiplier", least)


def discrete_multiplier(multiplier: float, sensitivity: float, coordinates: int) -> float:
    """The noise multiplier at which the discrete law is priced no higher than the normal one with `multiplier`.

    A hair more, where a standard deviation has 2**10 steps: one part in a million.

    >>> discrete_multiplier(4.0, 256.0, 1) / 4.0 < 1.00001
    True
    """
    target = round_down(1 / Fraction(multiplier) ** 2)
    found = multiplier
    while (price := normal.cost_of(DiscreteGaussian(found, sensitivity, coordinates)).amount) > target:
        found *= math.sqrt(price / target) * (1 + 2.0**-45)
    return found


@explain_wrong_calls
def classic_multiplier(epsilon: float, delta: float) -> float:
    """sqrt(2 ln(1.25 / delta)) / epsilon: for comparison only. More noise than needed, and unproved above epsilon 1.

    Args:
        epsilon: above zero.
        delta: a probability strictly between 0 and 1.

    >>> round(classic_multiplier(0.5, 1e-5), 3)
    9.69
    """
    return normal.classic_noise_multiplier(epsilon, delta)
