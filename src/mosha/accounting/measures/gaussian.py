"""Gaussian differential privacy: no easier than telling N(0, 1) from N(mu, 1) (Dong, Roth, Su 2022).

Squares of mu add. The curve delta(epsilon) is exact (Balle and Wang 2018) and everything is rounded to the
pessimistic side, with a relative error of at most 1e-12 down to a delta of 1e-300. Proofs are in `gaussian.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import singledispatch

from mosha.accounting.measures import pure
from mosha.accounting.measures.group import cover_group
from mosha.accounting.numerics.normal import lower_quantile, scaled_tail, scaled_tail_fall, tail
from mosha.accounting.numerics.price import NO_COST, Cost, bound_above, divide_up, fold, most_expensive, round_up
from mosha.core.event import Event
from mosha.core.events import (
    Approx,
    DiscreteGaussian,
    Failure,
    FixedSizeSampled,
    Gaussian,
    Group,
    Matrix,
    Parallel,
    Plan,
    Renyi,
    Sampled,
    Tree,
    ZeroConcentrated,
)
from mosha.core.number import non_negative, positive, strict_probability

__all__ = ["classic_noise_multiplier", "delta", "epsilon", "log_delta", "mu", "mu_from_epsilon", "noise_multiplier"]

TINY = math.ulp(0.0)

# Gauss-Legendre nodes and weights on [-1, 1]; the error on an interval of length 1/4 is far below rounding.
_NODES = (0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363)
_WEIGHTS = (0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763)


def _difference(near: float, far: float, mu: float) -> float:
    """scaled_tail(near) - scaled_tail(far) for near >= -1, without cancellation."""
    if mu >= 0.25:
        return scaled_tail(near) - scaled_tail(far)
    middle, half = (near + far) / 2, mu / 2
    falls = (
        weight * (scaled_tail_fall(middle - half * node) + scaled_tail_fall(middle + half * node))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True)
    )
    return half * math.fsum(falls)


def _arguments(mu: float, epsilon: float) -> tuple[float, float]:
    """Both epsilon / mu - mu / 2 and epsilon / mu + mu / 2, correctly rounded."""
    ratio, half = Fraction(epsilon) / Fraction(mu), Fraction(mu) / 2
    return _to_float(ratio - half), _to_float(ratio + half)


def _to_float(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def log_delta(mu: float, epsilon: float) -> float:
    """The logarithm of delta at `epsilon` of the Gaussian mechanism; not rounded, an absolute error below 1e-12.

    With a = epsilon/mu - mu/2 and b = a + mu, delta = tail(a) - e^epsilon tail(b), and because
    b^2 - a^2 = 2 epsilon this is e^(-a^2/2) (scaled_tail(a) - scaled_tail(b)).

    >>> round(log_delta(1.0, 40.0), 6)
    -788.423413
    """
    near, far = _arguments(mu, epsilon)
    if near >= -1:
        difference = _difference(near, far, mu) if math.isfinite(near) else 0.0
        return math.log(difference) - near * near / 2 if difference > 0 else -math.inf
    if near < -38:
        return 0.0
    return math.log(tail(near) - math.exp(-near * near / 2) * scaled_tail(far))


def delta(mu: float, epsilon: float) -> float:
    """The least delta at `epsilon` of everything that is mu-Gaussian-private, rounded up.

    >>> round(delta(1.0, 1.0), 10), round(delta(0.5, 1.0), 12)
    (0.1269367375, 0.006829594983)
    """
    mu, epsilon = non_negative("mu", mu), non_negative("epsilon", epsilon)
    if mu == 0:
        return 0.0
    logarithm = log_delta(mu, epsilon)
    margin = 2e-14 * (1 + abs(logarithm) / 24)  # e^(-a^2/2) inherits the rounding of a, times a^2
    return min(1.0, math.nextafter(math.exp(logarithm) * (1 + margin), math.inf))


def epsilon(mu: float, delta: float) -> float:
    """The least epsilon at `delta` of everything that is mu-Gaussian-private, rounded up.

    >>> round(epsilon(1.0, 1e-5), 7), round(epsilon(1 / 5, 1e-9), 9)
    (4.3771781, 1.104040263)
    """
    mu, target = non_negative("mu", mu), strict_probability("delta", delta)
    if mu == 0 or _delta(mu, 0.0) <= target:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(-2 * math.log(target))
    goal = math.log(target)
    found = _find_crossing(lambda e: goal - log_delta(mu, e), 0.0, high)
    step = math.ulp(found)
    while _delta(mu, found) > target:
        found, step = found + step, 2 * step
    return found


def mu_from_epsilon(epsilon: float, delta: float) -> float:
    """The largest mu whose delta at `epsilon` is at most `delta`, rounded down.

    >>> round(1 / mu_from_epsilon(1.0, 1e-5), 7)
    3.7306316
    """
    epsilon, target = non_negative("epsilon", epsilon), strict_probability("delta", delta)
    goal = math.log(target)
    excess: Callable[[float], float] = lambda mu: log_delta(mu, epsilon) - goal
    spread = math.sqrt(-2 * goal)
    low = epsilon / (spread + math.sqrt(spread**2 / 4 + epsilon / 2))  # there tail(a) is still below delta
    low = max(low, target)  # at epsilon 0 delta is about mu / 2.5
    high = 2 * low
    while excess(high) < 0:
        low, high = high, 2 * high
    found = _find_crossing(excess, low, high)
    step = math.ulp(found)
    while found > 0 and _delta(found, epsilon) > target:
        found, step = found - step, 2 * step
    return max(0.0, found)


def noise_multiplier(epsilon: float, delta: float) -> float:
    """The least noise multiplier of a Gaussian that is (epsilon, delta)-private, rounded up (Balle and Wang 2018).

    >>> round(noise_multiplier(0.1, 1e-6), 6)
    36.30469
    """
    mu = mu_from_epsilon(epsilon, delta)
    return round_up(1 / Fraction(mu)) if mu > 0 else math.inf


def classic_noise_multiplier(epsilon: float, delta: float) -> float:
    """sqrt(2 ln(1.25/delta)) / epsilon: the textbook formula, proved for epsilon <= 1 only; for comparison.

    >>> round(classic_noise_multiplier(1.0, 1e-5), 6)
    4.844805
    """
    epsilon, delta = positive("epsilon", epsilon), strict_probability("delta", delta)
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


_delta = delta


def _find_crossing(increasing: Callable[[float], float], low: float, high: float) -> float:
    """About where a smooth increasing function crosses zero in [low, high] (Anderson and Björck's false position)."""
    value_low, value_high = increasing(low), increasing(high)
    if value_high <= 0:
        return high
    for turn in range(200):
        if high - low <= 4 * math.ulp(max(abs(low), abs(high))):
            break
        middle = (low + high) / 2
        if turn % 8 != 7 and math.isfinite(value_low):  # now and then a bisection, so that it ends in any case
            guess = high - value_high * (high - low) / (value_high - value_low)
            middle = guess if low < guess < high else middle
        value = increasing(middle)
        if value == 0:
            return middle
        if value < 0:
            shrink = 1 - value / value_low if math.isfinite(value_low) else 0.5
            low, value_low, value_high = middle, value, value_high * (shrink if shrink > 0 else 0.5)
        else:
            shrink = 1 - value / value_high
            high, value_high, value_low = middle, value, value_low * (shrink if shrink > 0 else 0.5)
    return low


def mu(event: Event) -> tuple[float, float]:
    """The (mu, delta) of `event`: mu-Gaussian-private but for a probability delta; mu is infinite where there is none.

    >>> mu(Gaussian(10) * 100), mu(ZeroConcentrated(0.5))
    ((1.0..., 0.0), (inf, 0.0))
    """
    cost = cost_of(event)
    return (bound_above(math.sqrt(cost.amount)) if math.isfinite(cost.amount) else math.inf), cost.delta


def cost_of(event: Event) -> Cost:
    """The square of mu, and delta, of `event`, rounded up."""
    return fold(event, _price_one, NO_COST)


def mu_of_pure(epsilon: float) -> float:
    """The mu at which telling two normal numbers apart is no harder than telling answers of randomized response.

    Guarantee:
        Both trade-off curves are convex from (0, 1) to (1, 0) and symmetric; that of randomized response has one
        corner, (c, c) with c = 1 / (1 + e^epsilon), so the other lies below it if tail(mu / 2) <= c.

    >>> round(mu_of_pure(1.0), 6)
    1.232035
    """
    if epsilon == 0:
        return 0.0
    if epsilon > 500:  # tail(x) <= e^(-x^2/2) / 2 <= c
        return bound_above(2 * math.sqrt(2 * epsilon)) if math.isfinite(epsilon) else math.inf
    if epsilon < 1e-4:  # mu = sqrt(pi/2) epsilon (1 - 0.018 epsilon^2 + ...)
        return bound_above(epsilon * math.sqrt(math.pi / 2) * (1 + epsilon * epsilon))
    return -2 * lower_quantile(1 / (1 + math.exp(epsilon))) * (1 + 1e-9)


def _from_pure(event: Event) -> Cost:
    cost = pure.cost_of(event)
    root = mu_of_pure(cost.amount)
    return Cost(round_up(Fraction(root) ** 2) if math.isfinite(root) else math.inf, cost.delta)


@singledispatch
def _price_one(event: Event) -> Cost:
    return _from_pure(event)


@_price_one.register(ZeroConcentrated)
@_price_one.register(Renyi)
@_price_one.register(Approx)
@_price_one.register(Sampled)
@_price_one.register(FixedSizeSampled)
def _(event: Event) -> Cost:
    return _from_pure(event)


@_price_one.register
def _(event: Gaussian) -> Cost:
    return Cost(divide_up(1.0, event.noise_multiplier, power=2))


@_price_one.register
def _(event: Matrix) -> Cost:
    return Cost(divide_up(event.sensitivity, event.noise_multiplier, power=2))


@_price_one.register
def _(event: Tree) -> Cost:
    if event.noise == "laplace":
        return _from_pure(event)
    return _price_one(Gaussian(event.noise_multiplier)) * event.levels


@_price_one.register
def _(event: DiscreteGaussian) -> Cost:
    return rounded_gaussian(event.noise_multiplier, event.sensitivity, event.coordinates)


def rounded_gaussian(noise_multiplier: float, sensitivity: float, coordinates: int) -> Cost:
    """Discrete Gaussian noise as a rounded Gaussian of slightly less noise, but for a probability of 2^-100.

    Proved in `gaussian.md`, lemma 2; infinite where the grid is too coarse for it.

    >>> rounded_gaussian(10.0, 1000.0, 5).amount
    0.0100000...
    """
    exponent = 100 * math.log(2) + math.log(5 * coordinates)
    smoothing = Fraction(exponent) / Fraction(19.7392)  # r^2, where 2 pi^2 > 19.7392
    left = Fraction(noise_multiplier) ** 2 - smoothing / Fraction(sensitivity) ** 2
    return Cost(round_up(1 / left), 2.0**-100) if left > 0 else Cost(math.inf)


@_price_one.register
def _(event: Parallel) -> Cost:
    return most_expensive([cost_of(e) for e in event.events])


@_price_one.register
def _(event: Group) -> Cost:
    whole = cover_group(event.event, event.size)
    if whole is not None:
        return cost_of(whole)
    inner = cost_of(event.event)
    own = inner * event.size**2 if inner.delta == 0 else Cost(math.inf)
    return min(own, _from_pure(event), key=lambda cost: (cost.amount, cost.delta))


@_price_one.register
def _(event: Failure) -> Cost:
    inner = cost_of(event.event)
    return Cost(inner.amount, pure.add_failure(event.probability, inner.delta))


@_price_one.register
def _(event: Plan) -> Cost:
    own = cost_of(event.event)
    if own.delta > 0:
        return _from_pure(event)
    return min(own, _from_pure(event), key=lambda cost: (cost.amount, cost.delta))
