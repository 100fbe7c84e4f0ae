"""Pure and approximate differential privacy by basic composition: epsilons add, deltas add.

Always valid, adaptively and for any event, and the loosest of all measures. Proofs of the less known lines are in
`pure.md`.
"""

from __future__ import annotations

import math
from functools import singledispatch

from mosha.accounting.numerics.price import (
    NO_COST,
    Cost,
    add_up,
    bound_above,
    divide_up,
    fold,
    most_expensive,
    times_up,
)
from mosha.core.event import Event
from mosha.core.events import (
    Approx,
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
    Pure,
    RandomizedResponse,
    Renyi,
    Sampled,
    Selected,
    Shuffled,
    SparseVector,
    Tree,
    ZeroConcentrated,
)
from mosha.core.names.deprecation import old_names

__all__ = ["amplify", "approx", "epsilon", "group_delta"]

__getattr__ = old_names(__name__, amplified="amplify")

LARGE = 700.0  # e^700 is still a float


def approx(event: Event) -> tuple[float, float]:
    """The (epsilon, delta) of `event` by basic composition; epsilon is infinite where there is none.

    >>> approx(Laplace(10) * 3 + Approx(0.25, 1e-6))
    (0.55..., 1e-06)
    """
    cost = cost_of(event)
    return cost.amount, cost.delta


def epsilon(event: Event) -> float:
    """The epsilon of `event` under pure differential privacy, infinite where there is none.

    >>> epsilon(RandomizedResponse(0.5) * 4), epsilon(Gaussian(10))
    (2.0, inf)
    """
    cost = cost_of(event)
    return cost.amount if cost.delta == 0 else math.inf


def cost_of(event: Event) -> Cost:
    """Epsilon and delta of `event`, rounded up."""
    return fold(event, price_one, NO_COST)


def amplify(epsilon: float, rate: float) -> float:
    """ln(1 + rate (e^epsilon - 1)), rounded up: what a sample of this rate leaves of epsilon.

    Guarantee:
        If (P, Q), and for replace-one also (P, O) and (O, Q), are (epsilon, delta)-close, then the mixtures
        (1-q) O + q P and (1-q) O + q Q are (amplified epsilon, q delta)-close, and so are they and O (`pure.md`).

    >>> amplify(1.0, 1.0), round(amplify(1.0, 0.01), 6)
    (1.0, 0.017037)
    """
    if rate >= 1 or math.isinf(epsilon):
        return epsilon
    if epsilon > LARGE:
        grown = epsilon + math.log(rate) + math.exp(math.log1p(-rate) - math.log(rate) - LARGE)
        return min(epsilon, bound_above(grown))
    return min(epsilon, bound_above(math.log1p(rate * math.expm1(epsilon))))


def group_delta(epsilon: float, delta: float, size: int) -> float:
    """The delta of k units at k epsilon: delta (e^(k epsilon) - 1) / (e^epsilon - 1), rounded up.

    Guarantee:
        P0(S) <= e^eps P1(S) + delta, P1(S) <= e^eps P2(S) + delta, ...: insert one into the next; the deltas are
        multiplied by 1, e^eps, ..., e^((k-1) eps), a geometric sum.

    >>> round(group_delta(0.5, 1e-7, 3), 16)
    5.367003099e-07
    """
    if delta == 0 or size == 1:
        return delta
    if epsilon == 0:
        return min(1.0, times_up(delta, size))
    if size * epsilon > LARGE:
        return 1.0
    return min(1.0, bound_above(delta * (math.expm1(size * epsilon) / math.expm1(epsilon))))


@singledispatch
def price_one(event: Event) -> Cost:
    """What one event costs; a kind that is not registered has no price here (`accounting.planned` adds plans)."""
    del event
    return Cost(math.inf)


@price_one.register(Gaussian)
@price_one.register(DiscreteGaussian)
@price_one.register(Matrix)
def _(event: Event) -> Cost:
    del event
    return Cost(math.inf)


@price_one.register(Laplace)
@price_one.register(DiscreteLaplace)
def _(event: Laplace | DiscreteLaplace) -> Cost:
    return Cost(divide_up(1.0, event.noise_multiplier))


@price_one.register(RandomizedResponse)
@price_one.register(Exponential)
@price_one.register(Pure)
@price_one.register(Shuffled)  # a shuffler only forgets
def _(event: RandomizedResponse | Exponential | Pure | Shuffled) -> Cost:
    return Cost(event.epsilon)


@price_one.register
def _(event: SparseVector) -> Cost:
    return Cost(add_up(event.threshold_epsilon, event.answer_epsilon))


@price_one.register
def _(event: Approx) -> Cost:
    return Cost(event.epsilon, event.delta)


@price_one.register
def _(event: ZeroConcentrated) -> Cost:
    return NO_COST if event.rho == 0 else Cost(math.inf)


@price_one.register
def _(event: Renyi) -> Cost:
    return NO_COST if min(event.values) == 0 else Cost(math.inf)  # some divergence is zero: equal distributions


@price_one.register
def _(event: Tree) -> Cost:
    if event.noise == "gaussian":
        return Cost(math.inf)
    return Cost(divide_up(1.0, event.noise_multiplier)) * event.levels


@price_one.register
def _(event: Sampled) -> Cost:
    inner = cost_of(event.event)
    return Cost(amplify(inner.amount, event.rate), bound_above(inner.delta * event.rate))


@price_one.register
def _(event: FixedSizeSampled) -> Cost:
    inner = cost_of(event.event)
    if not event.replacement:
        rate = divide_up(event.size, event.population)
        return Cost(amplify(inner.amount, rate), bound_above(inner.delta * rate))
    return _price_with_replacement(inner, event.size, event.population)


def _price_with_replacement(inner: Cost, size: int, population: int) -> Cost:
    """The unit is drawn k times with the binomial probability w_k; see `pure.md`, proposition 3."""
    if inner.delta > 0 or math.isinf(inner.amount):
        return Cost(math.inf)
    never = size * math.log1p(-1 / population) if population > 1 else -math.inf
    grown = size * math.log1p(math.expm1(inner.amount) / population) if inner.amount < LARGE else math.inf
    if grown > LARGE or never < -LARGE:
        return inner * size
    return Cost(min(times_up(inner.amount, size), bound_above(math.log1p(math.expm1(grown) * math.exp(-never)))))


@price_one.register
def _(event: Selected) -> Cost:
    inner = cost_of(event.event)
    if inner.delta > 0 or math.isinf(inner.amount):
        return Cost(math.inf)
    if event.distribution == "poisson":
        return Cost(bound_above(inner.amount + event.mean * math.tanh(inner.amount / 2)))
    return Cost(bound_above(inner.amount * (2 + event.shape)))


@price_one.register
def _(event: Parallel) -> Cost:
    return most_expensive([cost_of(e) for e in event.events])


@price_one.register
def _(event: Group) -> Cost:
    inner = cost_of(event.event)
    return Cost(times_up(inner.amount, event.size), group_delta(inner.amount, inner.delta, event.size))


@price_one.register
def _(event: Failure) -> Cost:
    inner = cost_of(event.event)
    return Cost(inner.amount, add_failure(event.probability, inner.delta))


def add_failure(probability: float, delta: float) -> float:
    """The delta if with probability p everything is revealed: p + (1 - p) delta, rounded up.

    >>> add_failure(0.5, 0.5), add_failure(0.0, 1e-6), add_failure(1e-6, 0.0)
    (0.75..., 1e-06, 1e-06)
    """
    if probability == 0 or delta == 0:
        return max(probability, delta)
    return min(1.0, bound_above(probability + (1 - probability) * delta))
