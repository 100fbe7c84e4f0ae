"""Zero-concentrated differential privacy: a Rényi divergence of at most rho a at every order a.

The measure most accounts are kept in: rhos add, adaptively, and Gaussian noise costs exactly 1 / (2 multiplier^2).
Events that may fail with a probability delta are *approximately* zero-concentrated (Bun and Steinke 2016, section 8).
Proofs are in `concentrated.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch

from mosha.accounting.measures import pure
from mosha.accounting.measures.divergences import exponential_beyond_linear, randomized_response, sinh_beyond_linear
from mosha.accounting.measures.group import cover_group
from mosha.accounting.numerics.price import NO_COST, Cost, bound_above, bound_below, divide_up, fold, most_expensive
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
    Plan,
    RandomizedResponse,
    Sampled,
    Shuffled,
    Tree,
    ZeroConcentrated,
)
from mosha.core.number import non_negative, positive, strict_probability

__all__ = ["delta_from_rho", "epsilon_from_rho", "rho", "rho_from_epsilon", "rho_of_pure"]


def rho(event: Event) -> tuple[float, float]:
    """The (rho, delta) of `event` as approximate zero-concentrated privacy; rho is infinite where there is none.

    >>> rho(Gaussian(10) * 100), rho(Exponential(0.1) * 100)
    ((0.5..., 0.0), (0.125..., 0.0))
    """
    cost = cost_of(event)
    return cost.amount, cost.delta


def cost_of(event: Event) -> Cost:
    """Rho and delta of `event`, rounded up."""
    return fold(event, _price_one, NO_COST)


def rho_of_pure(epsilon: float) -> float:
    """The number epsilon tanh(epsilon / 2), rounded up: the least rho of all that is epsilon-private.

    Guarantee:
        The worst is randomized response, with divergence (g(s^2) - g(1/4)) / (a - 1) at order a = s + 1/2, where
        g(u) = log cosh(epsilon sqrt(u)) is concave because tanh(x) / x falls. Hence it is at most
        g'(1/4) (s^2 - 1/4) / (a - 1) = a epsilon tanh(epsilon / 2), and comes as close as one likes when a tends to 1.

    >>> round(rho_of_pure(0.1), 6)
    0.004996
    """
    return bound_above(epsilon * math.tanh(epsilon / 2)) if math.isfinite(epsilon) else math.inf


def _lattice_excess(x: float) -> float:
    """1 - x / sinh(x), without cancellation."""
    return sinh_beyond_linear(x) / math.sinh(x) if x < pure.LARGE else 1.0


def _from_pure(event: Event) -> Cost:
    cost = pure.cost_of(event)
    return Cost(rho_of_pure(cost.amount), cost.delta)


def _choose_cheaper(first: Cost, second: Cost) -> Cost:
    """The smaller rho; of two equal ones the smaller delta."""
    return min(first, second, key=lambda cost: (cost.amount, cost.delta))


@singledispatch
def _price_one(event: Event) -> Cost:
    return _from_pure(event)


@_price_one.register(Gaussian)
@_price_one.register(DiscreteGaussian)  # in any dimension: Canonne, Kamath, Steinke 2020, theorem 14
def _(event: Gaussian | DiscreteGaussian) -> Cost:
    return Cost(divide_up(1.0, event.noise_multiplier, power=2) / 2)


@_price_one.register
def _(event: Matrix) -> Cost:
    return Cost(divide_up(event.sensitivity, event.noise_multiplier, power=2) / 2)


@_price_one.register
def _(event: Tree) -> Cost:
    return _price_one((Gaussian if event.noise == "gaussian" else Laplace)(event.noise_multiplier)) * event.levels


@_price_one.register
def _(event: Laplace) -> Cost:
    return Cost(rho_of_laplace(1 / event.noise_multiplier))


@_price_one.register
def _(event: DiscreteLaplace) -> Cost:
    return Cost(rho_of_discrete_laplace(1 / event.noise_multiplier, event.sensitivity))


@_price_one.register
def _(event: RandomizedResponse) -> Cost:
    return Cost(rho_of_randomized_response(event.epsilon, event.categories))


def rho_of_laplace(epsilon: float) -> float:
    """The least rho of Laplace noise, its Kullback-Leibler divergence epsilon + e^-epsilon - 1, rounded up.

    >>> round(rho_of_laplace(0.1), 9), round(rho_of_pure(0.1), 9)
    (0.004837418, 0.004995837)
    """
    return bound_above(exponential_beyond_linear(-epsilon))


def rho_of_discrete_laplace(epsilon: float, steps: int) -> float:
    """The least rho of discrete Laplace noise of scale steps / epsilon: its Kullback-Leibler divergence, rounded up.

    >>> round(rho_of_discrete_laplace(1.0, 1), 9), round(rho_of_discrete_laplace(1.0, 10**6), 9)
    (0.462117157, 0.367879441)
    """
    lattice = -math.expm1(-epsilon) * _lattice_excess(epsilon / steps)
    return bound_above(exponential_beyond_linear(-epsilon) + lattice)


def rho_of_randomized_response(epsilon: float, categories: int) -> float:
    """The Kullback-Leibler divergence, where no order costs more than that (`concentrated.md`); else by a search.

    >>> round(rho_of_randomized_response(1.0, 2), 9), round(rho_of_randomized_response(1.0, 100), 3)
    (0.462117157, 0.061)
    """
    e, others = epsilon, categories - 1
    if e > pure.LARGE:
        return rho_of_pure(e)
    if others <= 1 + 2 * math.exp(e / 2):
        return bound_above(e * math.expm1(e) / (math.exp(e) + others))
    return min(rho_of_pure(e), _least_rho(lambda a: randomized_response(e, a, categories), ceiling=e, step=1.05))


def _least_rho(divergence: Callable[[float], float], *, ceiling: float, step: float) -> float:
    """An upper bound, a little too large, on divergence(a) / a over all orders a > 1.

    Guarantee:
        (a - 1) divergence(a) is convex in a, so between two orders it is below its chord; the chord over a (a - 1) is
        largest at an end or where its derivative vanishes. Beyond ceiling / best the ratio is at most best.
    """
    low, below_low, best = 1.0, 0.0, 0.0
    high = 1 + (step - 1) / 16
    while low * best < ceiling:
        above_high = (high - 1) * divergence(high)
        slope = (above_high - below_low) / (high - low)
        best = max(best, _steepest_ratio(low, high, below_low - slope * low, slope))
        low, below_low, high = high, above_high, 1 + (high - 1) * step
    return bound_above(best, scale=best * 8)


def _steepest_ratio(low: float, high: float, offset: float, slope: float) -> float:
    """The largest (offset + slope a) / (a (a - 1)) for a in [low, high]; low may be 1, where the line is zero."""

    def ratio(a: float) -> float:
        return (offset + slope * a) / (a * (a - 1))

    candidates = [ratio(high), slope if low == 1 else ratio(low)]
    if slope > 0 and offset * (offset + slope) >= 0:
        root = math.sqrt(offset * (offset + slope))
        candidates += [ratio(a) for a in ((root - offset) / slope, (-root - offset) / slope) if low < a < high]
    return max(candidates)


@_price_one.register
def _(event: Shuffled) -> Cost:
    from mosha.accounting.measures.shuffle import LARGEST, divergence  # noqa: PLC0415  (SciPy only where it is needed)

    e, people = event.epsilon, event.people
    if e * e > LARGEST / 16:
        return _from_pure(event)
    spread = event.categories is not None
    within = lambda order: divergence(e, people, order, spread=spread) if order * e <= LARGEST else e
    return _choose_cheaper(_from_pure(event), Cost(_least_rho(within, ceiling=e, step=1.5)))


@_price_one.register
def _(event: Exponential) -> Cost:
    return Cost(bound_above(event.epsilon**2 / 8))


@_price_one.register
def _(event: ZeroConcentrated) -> Cost:
    return Cost(event.rho)


@_price_one.register
def _(event: Approx) -> Cost:
    return _from_pure(event)


@_price_one.register(Sampled)
@_price_one.register(FixedSizeSampled)
def _(event: Sampled | FixedSizeSampled) -> Cost:
    """A mixture is never farther apart than its parts; only the pure price shrinks with the sample."""
    inner = cost_of(event.event)
    if isinstance(event, FixedSizeSampled) and event.replacement:
        inner = cost_of(Group(event.event, event.size)) if inner.delta == 0 else Cost(math.inf)
    return _choose_cheaper(_from_pure(event), inner)


@_price_one.register
def _(event: Parallel) -> Cost:
    return most_expensive([cost_of(e) for e in event.events])


@_price_one.register
def _(event: Group) -> Cost:
    whole = cover_group(event.event, event.size)
    if whole is not None:
        return cost_of(whole)
    inner = cost_of(event.event)
    return _choose_cheaper(_from_pure(event), inner * event.size**2 if inner.delta == 0 else Cost(math.inf))


@_price_one.register
def _(event: Failure) -> Cost:
    inner = cost_of(event.event)
    return Cost(inner.amount, pure.add_failure(event.probability, inner.delta))


@_price_one.register
def _(event: Plan) -> Cost:
    own, sold = cost_of(event.event), _from_pure(event)
    if own.delta == 0:
        return _choose_cheaper(own, sold)
    return own if own.amount <= sold.amount and own.delta <= sold.delta else sold


def _epsilon_at(excess: float, rho: float, log_delta: float) -> tuple[float, float]:
    """Epsilon by the order 1 + excess (Canonne, Kamath, Steinke 2020, proposition 12), and its largest term."""
    terms = (rho * (1 + excess), -math.log1p(1 / excess), -(log_delta + math.log1p(excess)) / excess)
    return math.fsum(terms), max(map(abs, terms))


def epsilon_from_rho(rho: float, delta: float) -> float:
    """The epsilon at `delta` of everything that is rho-zero-concentrated; the tight conversion, rounded up.

    Guarantee:
        Every order is valid; the best one, 1 + u, is where the derivative rho - (ln(1/delta) - ln(1 + u)) / u^2 is
        zero, which is unique.

    >>> round(epsilon_from_rho(0.05, 1e-6), 9)
    1.471594751
    """
    rho, delta = non_negative("rho", rho), strict_probability("delta", delta)
    if rho == 0:
        return 0.0
    log_delta = math.log(delta)
    low, high = 0.0, math.sqrt(-log_delta) / math.sqrt(rho)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rho * middle**2 + math.log1p(middle) < -log_delta else (low, middle)
    value, scale = _epsilon_at(high, rho, log_delta)
    return max(0.0, bound_above(value, scale=scale))


def rho_from_epsilon(epsilon: float, delta: float) -> float:
    """The largest rho that is (epsilon, delta)-private by the tight conversion, rounded down by 1e-12.

    >>> round(rho_from_epsilon(1.471594751, 1e-6), 9)
    0.05
    """
    epsilon, delta = positive("epsilon", epsilon), strict_probability("delta", delta)
    log_delta = math.log(delta)
    low, high = -345.0, min(345.0, -log_delta)  # of the logarithm of the order's excess over 1
    for _ in range(100):
        middle = (low + high) / 2
        excess = math.exp(middle)
        best = max(0.0, -log_delta - math.log1p(excess)) / excess**2
        low, high = (middle, high) if _epsilon_at(excess, best, log_delta)[0] > epsilon else (low, middle)
    excess = math.exp(high)
    value, scale = _epsilon_at(excess, 0.0, log_delta)
    room = bound_below(epsilon - value, scale=max(epsilon, scale)) / (1 + excess)
    return max(0.0, room * (1 - 1e-12))


def delta_from_rho(rho: float, epsilon: float) -> float:
    """The delta at `epsilon` of everything that is rho-zero-concentrated, rounded up.

    >>> round(delta_from_rho(0.5, 5.221534445), 12)
    1e-06
    """
    rho, epsilon = non_negative("rho", rho), non_negative("epsilon", epsilon)
    if rho == 0:
        return 0.0
    low, high = -345.0, 345.0
    for _ in range(100):
        middle = (low + high) / 2
        excess = math.exp(middle)
        slope = rho * (1 + 2 * excess) - epsilon - math.log1p(1 / excess)
        low, high = (middle, high) if slope < 0 else (low, middle)
    excess = math.exp(low)
    terms = (excess * (rho * (1 + excess) - epsilon), -excess * math.log1p(1 / excess), -math.log1p(excess))
    logarithm = bound_above(math.fsum(terms), scale=excess * max(rho * (1 + excess), epsilon, 1.0))
    return min(1.0, math.nextafter(bound_above(math.exp(min(0.0, logarithm))), math.inf))
