"""Rényi differential privacy: bounds on the Rényi divergence of a fixed order a > 1, the larger of both directions.

Divergences of one order add. Events that may fail with a probability delta carry it beside the divergence, which
then holds for what is left. Subsampling is in `subsampling.py`, proofs are in `renyi.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import singledispatch
from itertools import pairwise

from mosha.accounting.measures import concentrated, pure, subsampling
from mosha.accounting.measures.divergences import bounded_range, discrete_laplace, laplace, randomized_response
from mosha.accounting.measures.group import cover_group
from mosha.accounting.measures.selection import best_of
from mosha.accounting.numerics.price import (
    NO_COST,
    Cost,
    bound_above,
    bound_below,
    fold,
    most_expensive,
    round_down,
    round_up,
)
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Failure,
    FixedSizeSampled,
    Gaussian,
    Group,
    Laplace,
    Matrix,
    Parallel,
    Plan,
    RandomizedResponse,
    Renyi,
    Sampled,
    Selected,
    Shuffled,
    Tree,
    ZeroConcentrated,
)
from mosha.core.number import non_negative, positive, real, strict_probability

__all__ = [
    "ORDERS",
    "best_order",
    "divergence",
    "divergence_from_epsilon",
    "epsilon",
    "epsilon_from_divergence",
]

ORDERS = (*(1 + k / 10 for k in range(1, 100)), *map(float, range(11, 64)), 96.0, 128.0, 192.0, 256.0, 512.0, 1024.0)


def divergence(event: Event, order: float) -> float:
    """An upper bound on the Rényi divergence of `event`; infinite where there is none.

    >>> divergence(Gaussian(2), 8), round(divergence(Laplace(2), 2), 9)
    (1.0, 0.200303896)
    """
    cost = cost_of(event, order)
    return cost.amount if cost.delta == 0 else math.inf


def cost_of(event: Event, order: float) -> Cost:
    """Divergence and delta of `event` at `order`, rounded up."""
    if real("order", order) <= 1:
        raise InvalidParameter("accounting.order_too_small", parameter="order")
    return fold(event, lambda part: _price_one(part, order), NO_COST)


def epsilon_from_divergence(divergence: float, *, order: float, delta: float) -> float:
    """Epsilon at `delta` from one Rényi divergence, rounded up (Canonne, Kamath, Steinke 2020, proposition 12).

    >>> round(epsilon_from_divergence(0.2, order=16, delta=1e-6), 9)
    0.871656268
    """
    divergence, delta = non_negative("divergence", divergence), strict_probability("delta", delta)
    value, scale = _conversion(order, delta)
    return max(0.0, bound_above(divergence + value, scale=max(scale, divergence)))


def divergence_from_epsilon(epsilon: float, *, order: float, delta: float) -> float:
    """The largest divergence at `order` that is (epsilon, delta)-private, rounded down by 1e-12.

    >>> round(divergence_from_epsilon(0.8716562679, order=16, delta=1e-6), 9)
    0.2
    """
    epsilon, delta = positive("epsilon", epsilon), strict_probability("delta", delta)
    value, scale = _conversion(order, delta)
    return max(0.0, bound_below(epsilon - value, scale=max(scale, epsilon)) * (1 - 1e-12))


def _conversion(order: float, delta: float) -> tuple[float, float]:
    """ln(1 - 1/a) - ln(delta a) / (a - 1), and its largest term."""
    terms = (math.log1p(-1 / order), -math.log(delta) / (order - 1), -math.log(order) / (order - 1))
    return math.fsum(terms), max(map(abs, terms))


def best_order(rho: float, delta: float) -> float:
    """The order at which Gaussian noise of this rho converts best: where rho u^2 = ln(1/delta) - ln(1 + u), a = 1 + u.

    >>> round(best_order(0.05, 1e-6), 2)
    15.87
    """
    goal = -math.log(delta)
    low, high = 0.0, math.sqrt(goal) / math.sqrt(rho)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rho * middle**2 + math.log1p(middle) < goal else (low, middle)
    return 1 + max(high, 1e-6)


def epsilon(event: Event, delta: float, orders: Iterable[float] | None = None) -> float:
    """Epsilon at `delta`, by the best of `orders`; without them by the best order that a search finds.

    Guarantee:
        Each order alone is valid for a composition that is fixed in advance, hence their minimum is.

    >>> round(epsilon(Gaussian(1.1).sample(0.004) * 14100, 1e-5, orders=ORDERS), 6)
    2.420539
    """
    strict_probability("delta", delta)
    if orders is not None:
        return min((_epsilon_at_order(event, delta, real("orders", order)) for order in orders), default=math.inf)
    coarse = _scan_orders(event, delta)
    best = min(coarse, key=lambda order: coarse[order], default=2.0)
    if math.isinf(coarse.get(best, math.inf)):
        return min(_epsilon_at_order(event, delta, order) for order in ORDERS)
    step = math.exp(0.5)
    return min(coarse[best], _refine_order(event, delta, 1 + (best - 1) / step, 1 + (best - 1) * step))


def _scan_orders(event: Event, delta: float) -> dict[float, float]:
    """Epsilon at ever higher orders, until it has grown three times in a row."""
    values: dict[float, float] = {}
    grown, best = 0, math.inf
    for x in range(-6, 60):
        order = 1 + math.exp(x / 2)
        values[order] = _epsilon_at_order(event, delta, order)
        grown = grown + 1 if values[order] > best else 0
        best = min(best, values[order])
        if grown == 3 or (math.isinf(values[order]) and order > ORDERS[-1]):
            break
    return values


def _refine_order(event: Event, delta: float, low: float, high: float) -> float:
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    value_left, value_right = _epsilon_at_order(event, delta, left), _epsilon_at_order(event, delta, right)
    for _ in range(16):
        if value_left < value_right:
            high, right, value_right = right, left, value_left
            left = high - golden * (high - low)
            value_left = _epsilon_at_order(event, delta, left)
        else:
            low, left, value_left = left, right, value_right
            right = low + golden * (high - low)
            value_right = _epsilon_at_order(event, delta, right)
    return min(value_left, value_right)


def _epsilon_at_order(event: Event, delta: float, order: float) -> float:
    cost = cost_of(event, order)
    rest = round_down(Fraction(delta) - Fraction(cost.delta))
    if not cost.is_finite or rest <= 0:
        return math.inf
    return epsilon_from_divergence(cost.amount, order=order, delta=rest)


def _times_rho(order: float, rho: float) -> float:
    return round_up(Fraction(order) * Fraction(rho)) if math.isfinite(rho) else math.inf


def _choose_cheaper(*costs: Cost) -> Cost:
    return min(costs, key=lambda cost: (cost.amount, cost.delta))


def _from_pure(event: Event, order: float) -> Cost:
    cost = pure.cost_of(event)
    return Cost(randomized_response(cost.amount, order), cost.delta)


@singledispatch
def _price_one(event: Event, order: float) -> Cost:
    """What is (epsilon, delta)-private is randomized response but for a probability delta (`rules.md`, lemma 3)."""
    return _from_pure(event, order)


@_price_one.register(Gaussian)
@_price_one.register(DiscreteGaussian)
@_price_one.register(Matrix)
@_price_one.register(ZeroConcentrated)
def _(event: Event, order: float) -> Cost:
    return Cost(_times_rho(order, concentrated.cost_of(event).amount))


@_price_one.register
def _(event: Laplace, order: float) -> Cost:
    return Cost(laplace(1 / event.noise_multiplier, order))


@_price_one.register
def _(event: DiscreteLaplace, order: float) -> Cost:
    return Cost(discrete_laplace(1 / event.noise_multiplier, event.sensitivity, order))


@_price_one.register
def _(event: RandomizedResponse, order: float) -> Cost:
    return Cost(randomized_response(event.epsilon, order, event.categories))


@_price_one.register
def _(event: Exponential, order: float) -> Cost:
    return Cost(bounded_range(event.epsilon, order))


@_price_one.register
def _(event: Tree, order: float) -> Cost:
    return (
        _price_one((Gaussian if event.noise == "gaussian" else Laplace)(event.noise_multiplier), order) * event.levels
    )


@_price_one.register
def _(event: Renyi, order: float) -> Cost:
    """(a - 1) times the divergence is convex in the order a and zero at 1; the divergence itself does not fall."""
    points = [(1.0, 0.0), *((a, (a - 1) * v) for a, v in zip(event.orders, event.values, strict=True))]
    bounds = [v for a, v in zip(event.orders, event.values, strict=True) if a >= order]
    for (low, first), (high, second) in pairwise(points):
        if low < order < high:
            share = (order - low) / (high - low)
            bounds.append(bound_above(((1 - share) * first + share * second) / (order - 1)))
    return Cost(min(bounds, default=math.inf))


@_price_one.register
def _(event: Sampled, order: float) -> Cost:
    return subsampling.poisson(event, order, cost_of)


@_price_one.register
def _(event: FixedSizeSampled, order: float) -> Cost:
    return subsampling.fixed_size(event, order, cost_of)


@_price_one.register
def _(event: Selected, order: float) -> Cost:
    return _choose_cheaper(_from_pure(event, order), best_of(event, order, cost_of))


@_price_one.register
def _(event: Shuffled, order: float) -> Cost:
    from mosha.accounting.measures.shuffle import divergence as shuffled  # noqa: PLC0415  (SciPy only where it is needed)

    return Cost(shuffled(event.epsilon, event.people, order, spread=event.categories is not None))


@_price_one.register
def _(event: Parallel, order: float) -> Cost:
    return most_expensive([cost_of(e, order) for e in event.events])


@_price_one.register
def _(event: Group, order: float) -> Cost:
    whole = cover_group(event.event, event.size)
    if whole is not None:
        return cost_of(whole, order)
    rho = concentrated.cost_of(event)
    concentrated_cost = Cost(_times_rho(order, rho.amount), rho.delta)
    doublings = (event.size - 1).bit_length()
    inner = cost_of(event.event, max(order, 2.0) * 2**doublings)
    doubled = inner * 3**doublings if inner.delta == 0 else Cost(math.inf)  # Mironov 2017, proposition 2
    return _choose_cheaper(_from_pure(event, order), concentrated_cost, doubled)


@_price_one.register
def _(event: Failure, order: float) -> Cost:
    inner = cost_of(event.event, order)
    return Cost(inner.amount, pure.add_failure(event.probability, inner.delta))


@_price_one.register
def _(event: Plan, order: float) -> Cost:
    own = cost_of(event.event, order)
    return _choose_cheaper(own, _from_pure(event, order)) if own.delta == 0 else _from_pure(event, order)
