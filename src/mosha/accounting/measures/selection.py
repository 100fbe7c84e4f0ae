"""The best of a random number of runs (Papernot and Steinke 2022): the price of tuning hyperparameters.

The number of runs is drawn before any run and independently of the data; only the best run is released, or that there
was no run (which a Poisson number may be).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from mosha.accounting.numerics.price import Cost, bound_above
from mosha.core.event import Event
from mosha.core.events import Selected

__all__ = ["best_of", "stopping_probability"]

CostOf = Callable[[Event, float], Cost]


def best_of(event: Selected, order: float, cost_of: CostOf) -> Cost:
    """Divergence and delta of `event` at `order`.

    Guarantee:
        Truncated negative binomial, at least one run: theorem 2 of Papernot and Steinke, for every second order.
        Poisson, where "no run" is an outcome too: `_poisson_or_none`. A run that may fail with a probability d: given
        that none of the runs fails, the number of runs is again of the same family with a smaller mean (both bounds
        grow with it), and some run fails with probability at most mean d. Divergences do not fall with the order, so a
        bound at a higher order holds too.
    """
    return _at(event, max(order, _turning_order(event, cost_of)), cost_of)


def _at(event: Selected, order: float, cost_of: CostOf) -> Cost:
    inner = cost_of(event.event, order)
    delta = min(1.0, bound_above(inner.delta * event.mean)) if inner.delta else 0.0
    if not inner.is_finite:
        return Cost(math.inf, delta)
    run = lambda second: cost_of(event.event, second)
    if event.distribution == "poisson":
        best = bound_above(inner.amount + _poisson(event, order, run))
        return Cost(_poisson_or_none(event.mean, order, best), delta)
    extra = _price_second(event, cost_of)
    mean = bound_above(math.log(event.mean) / (order - 1), scale=1 / (order - 1))
    return Cost(max(0.0, bound_above(inner.amount + extra + mean, scale=inner.amount + extra + abs(mean))), delta)


def _poisson_or_none(mean: float, order: float, amount: float) -> float:
    """log(e^-mean + mean e^((order-1) amount)) / (order-1): a Poisson number of runs, which may be none.

    Guarantee:
        Let f(x) = e^(mean (x-1)), q the chance that a run ranks below y (ties are split by a uniform number, the
        same in both worlds). The best run is y with density p(y) f'(q), so E_Q (P/Q)^a is at most e^-mean, from
        "no run", plus E (p/p')^a times the largest f'(q)^a f'(q')^(1-a) = mean e^(mean ((a-1)(1-q') - a (1-q))).
        With e^epsilon = a / (a-1) a run has 1 - q' <= e^epsilon (1-q) + delta: that is mean e^(mean (a-1) delta)
        at most, and `amount` is the divergence of a run plus mean delta. In full: `renyi.md`.
    """
    power = (order - 1) * amount
    log_runs = math.log(mean) + power
    if log_runs > 0:
        value, scale = log_runs + math.log1p(math.exp(-mean - log_runs)), max(1.0, abs(math.log(mean)), power)
    else:
        value, scale = math.log1p(math.expm1(-mean) + mean * math.exp(power)), math.exp(log_runs) * (1 + power)
    return max(0.0, bound_above(value / (order - 1), scale=scale / (order - 1)))


@lru_cache(maxsize=1024)
def _price_second(event: Selected, cost_of: CostOf) -> float:
    return _negative_binomial(event, lambda second: cost_of(event.event, second))


@lru_cache(maxsize=1024)
def _turning_order(event: Selected, cost_of: CostOf) -> float:
    """About where the bound is least: below it log(mean) / (order - 1) dominates, and a higher order says more."""
    low, high = math.log(1e-3), math.log(1e4)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        first, second = _at(event, 1 + math.exp(left), cost_of), _at(event, 1 + math.exp(right), cost_of)
        low, high = (low, right) if first.amount <= second.amount else (left, high)
    return 1 + math.exp(low)


def _negative_binomial(event: Selected, run: Callable[[float], Cost]) -> float:
    """(1 + shape) times the least over b of (1 - 1/b) divergence(b) + log(1/gamma) / b; b = 1 is log(1/gamma)."""
    if event.mean == 1:
        return 0.0
    log_inverse = -math.log(stopping_probability(event.mean, event.shape))

    def value(second: float) -> float:
        cost = run(second)
        return (1 - 1 / second) * cost.amount + log_inverse / second if cost.is_finite else math.inf

    return bound_above((1 + event.shape) * min(log_inverse, _minimize(value)))


def _poisson(event: Selected, order: float, run: Callable[[float], Cost]) -> float:
    """The mean times the delta of one run at epsilon = log(1 + 1/(order-1)), by its best Rényi divergence."""
    epsilon = math.log1p(1 / (order - 1)) * (1 - 1e-15)

    def log_delta(second: float) -> float:
        cost = run(second)
        value = (second - 1) * (cost.amount - epsilon + math.log1p(-1 / second)) - math.log(second)
        return value if cost.is_finite else math.inf

    return bound_above(event.mean * math.exp(min(0.0, _minimize(log_delta) + 1e-12)))


def _minimize(value: Callable[[float], float]) -> float:
    """About the least value over all orders above 1; each is a valid bound, so the search need not be exact."""
    low, high = math.log(1e-3), math.log(1e4)
    coarse = [low + k * (high - low) / 32 for k in range(33)]
    values = [value(1 + math.exp(x)) for x in coarse]
    best = values.index(min(values))
    low, high = coarse[max(0, best - 1)], coarse[min(32, best + 1)]
    golden = (math.sqrt(5) - 1) / 2
    found = values[best]
    for _ in range(24):
        left, right = high - golden * (high - low), low + golden * (high - low)
        first, second = value(1 + math.exp(left)), value(1 + math.exp(right))
        found = min(found, first, second)
        low, high = (low, right) if first <= second else (left, high)
    return found


def stopping_probability(mean: float, shape: float) -> float:
    """The gamma of the truncated negative binomial of this mean, rounded down; shape 1 is geometric, 0 logarithmic.

    mean = shape (1 - gamma) / (gamma (1 - gamma^shape)), which falls from infinity to 1 as gamma grows to 1.

    >>> round(stopping_probability(10.0, 1.0), 12), round(stopping_probability(10.0, 0.0), 6)
    (0.1, 0.02...)
    """
    low, high = -700.0, 0.0  # of log gamma
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if _mean(middle, shape) < mean else (middle, high)
    return math.exp(low) * (1 - 1e-13)


def _mean(log_gamma: float, shape: float) -> float:
    """The mean at gamma = e^log_gamma."""
    left = -math.expm1(log_gamma)  # 1 - gamma
    if left == 0:
        return 1.0
    exponent = shape * log_gamma
    power = exponent / math.expm1(exponent) if abs(exponent) > 1e-12 else 1 - exponent / 2  # x / (e^x - 1)
    return left * math.exp(-log_gamma) * power / -log_gamma
