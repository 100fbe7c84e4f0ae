"""What a promise means to an attacker: trade-off curves, advantage, success at a small false-alarm rate, beliefs.

An attacker decides from the releases whether a unit was in the data. A promise bounds every such attack: at a given
false-positive rate some false-negative rate is the least possible (f-differential privacy; Dong, Roth, Su 2022). All
numbers here err to the side of the attacker. Proofs are in `tradeoff.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, singledispatch

from mosha.accounting.measures import concentrated, gaussian
from mosha.accounting.numerics.normal import lower_quantile, tail
from mosha.accounting.numerics.price import bound_above
from mosha.core import guarantee
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Gaussian as Noise
from mosha.core.events import Matrix
from mosha.core.guarantee import Guarantee
from mosha.core.number import real, strict_probability

__all__ = ["TradeOff", "tradeoff"]

DOWN = 1 - 1e-12  # more than the rounding of any formula here
POINTS = 32  # of the curve of an event
FARTHEST = 1e-12  # the delta up to which that curve is followed
_ORDERS = tuple(1 + math.exp(x / 2) for x in range(-14, 20))


def _rate(name: str, value: float) -> float:
    number = real(name, value)
    if not 0 <= number <= 1:
        raise InvalidParameter("accounting.not_a_probability", parameter=name, value=number)
    return number


@dataclass(frozen=True)
class TradeOff:
    """The least false-negative rate of any attack, as a function of its false-positive rate.

    Guarantee:
        `profile(x)` bounds the largest P(S) - e^x Q(S) over all decisions S and both roles of P and Q. So an attack
        with false-positive rate a has a true-positive rate of at most e^x a + profile(x) and, exchanging the roles,
        a false-negative rate of at least e^-x (1 - profile(x) - a); for every x >= 0.

    >>> curve = tradeoff(guarantee.Gaussian(1))
    >>> round(curve(0.01), 6), round(curve.true_positive_rate(0.01), 6), round(curve.advantage(), 6)
    (0.907638, 0.092362, 0.382925)
    """

    profile: Callable[[float], float]
    closed_form: Callable[[float], float] | None = None
    largest_ratio: float = math.inf

    def __call__(self, false_positive_rate: float) -> float:
        """The least false-negative rate."""
        rate = _rate("false_positive_rate", false_positive_rate)
        missed = self.closed_form(rate) if self.closed_form is not None else self._miss_rate(rate)
        return min(1.0, max(0.0, missed * DOWN))

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """The largest share of members that an attack finds."""
        return min(1.0, bound_above(1 - self(false_positive_rate)))

    def advantage(self) -> float:
        """The largest difference between true- and false-positive rate; twice the gain over guessing.

        >>> round(tradeoff(guarantee.Pure(1)).advantage(), 9)
        0.462117157
        """
        return min(1.0, self.profile(0.0))

    def bayes_risk(self, prior: float) -> float:
        """The least probability of a wrong guess, for an attacker who at first believes in membership with `prior`.

        >>> round(tradeoff(guarantee.Pure(1)).bayes_risk(0.5), 9)
        0.268941421
        """
        belief = strict_probability("prior", prior)
        odds = abs(math.log(belief) - math.log1p(-belief))
        return max(0.0, min(belief, 1 - belief) * (1 - min(1.0, self.profile(odds * DOWN))) * DOWN)

    def posterior(self, prior: float, *, false_positive_rate: float) -> float:
        """The largest belief in membership after an alarm of an attack that raises false alarms at this rate.

        At a rate of zero this is the worst single outcome: one, unless the promise is pure.

        >>> round(tradeoff(guarantee.Pure(1)).posterior(0.01, false_positive_rate=0.0), 6)
        0.026724
        """
        belief = strict_probability("prior", prior)
        rate = _rate("false_positive_rate", false_positive_rate)
        ratio = self.largest_ratio if rate == 0 else min(self.largest_ratio, self.true_positive_rate(rate) / rate)
        return min(1.0, bound_above(1 / (1 + (1 - belief) / (belief * ratio)))) if math.isfinite(ratio) else 1.0

    def _miss_rate(self, rate: float) -> float:
        """The best of both bounds over x, by the golden section; every x is valid, so the search need not be exact."""
        falling = lambda x: 1 - self.profile(x) - math.exp(x) * rate
        rising = lambda x: math.exp(-x) * (1 - self.profile(x) - rate)
        high = min(700.0, -math.log(rate)) if rate > 0 else 700.0
        best = max(0.0, _maximize(falling, high))
        return max(best, _maximize(rising, -math.log(best) if best > 1e-9 else 20.0))


def _maximize(function: Callable[[float], float], high: float) -> float:
    golden = (math.sqrt(5) - 1) / 2
    low, best = 0.0, function(0.0)
    left, right = high - golden * (high - low), low + golden * (high - low)
    value_left, value_right = function(left), function(right)
    for _ in range(18):
        best = max(best, value_left, value_right)
        if value_left >= value_right:
            high, right, value_right = right, left, value_left
            left = high - golden * (high - low)
            value_left = function(left)
        else:
            low, left, value_left = left, right, value_right
            right = low + golden * (high - low)
            value_right = function(right)
    return max(best, value_left, value_right)


@singledispatch
def tradeoff(promise: Event | Guarantee) -> TradeOff:
    """The trade-off curve of an event, or of everything that keeps a guarantee.

    For an event it comes from the certified curve delta(epsilon) of the tight accountant.
    """
    raise InvalidParameter("accounting.no_tradeoff", parameter="promise", kind=type(promise).__name__)


@tradeoff.register
def _(promise: guarantee.Pure) -> TradeOff:
    return _approximate_curve(promise.epsilon, 0.0)


@tradeoff.register
def _(promise: guarantee.Approx) -> TradeOff:
    return _approximate_curve(promise.epsilon, promise.delta)


def _approximate_curve(epsilon: float, delta: float) -> TradeOff:
    """Randomized response but for a probability delta is the worst (Kairouz, Oh, Viswanath 2015)."""
    ratio = math.exp(epsilon) if epsilon < 700 else math.inf

    def miss_rate(rate: float) -> float:
        return max(1 - delta - ratio * rate if rate > 0 else 1 - delta, math.exp(-epsilon) * (1 - delta - rate))

    def profile(x: float) -> float:
        if x >= epsilon:
            return delta
        return bound_above(delta + (1 - delta) * -math.expm1(x - epsilon) / (1 + math.exp(-epsilon)))

    return TradeOff(profile, miss_rate, bound_above(ratio) if delta == 0 else math.inf)


@tradeoff.register
def _(promise: guarantee.Gaussian) -> TradeOff:
    return _normal(promise.mu, 0.0)


def _normal(mu: float, delta: float) -> TradeOff:
    def miss_rate(rate: float) -> float:
        rest = rate / (1 - delta)
        if rest <= 0 or rest >= 1:
            return 1 - delta if rest <= 0 else 0.0
        return (1 - delta) * tail(lower_quantile(rest) * (1 - math.copysign(1e-14, lower_quantile(rest))) + mu)

    return TradeOff(lambda x: delta + (1 - delta) * gaussian.delta(mu, x), miss_rate)


@tradeoff.register
def _(promise: guarantee.ZeroConcentrated) -> TradeOff:
    rho = promise.rho
    return TradeOff(lambda x: concentrated.delta_from_rho(rho, x), lambda rate: _concentrated_miss(rho, rate))


def _concentrated_miss(rho: float, rate: float) -> float:
    """A decision is post-processing: its two rates are no farther apart than rho a at any order a, either way."""
    if rho == 0 or rate in (0.0, 1.0):
        return 1 - rate
    low, high = 0.0, 1 - rate  # of the false-negative rate; low is impossible or zero, high is possible
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _is_possible(1 - middle, rate, rho) else (middle, high)
    return low


def _is_possible(hits: float, alarms: float, rho: float) -> bool:
    return all(_coin_divergence(hits, alarms, a) <= rho * a + 1e-12 for a in _ORDERS) and all(
        _coin_divergence(alarms, hits, a) <= rho * a + 1e-12 for a in _ORDERS
    )


def _coin_divergence(p: float, q: float, order: float) -> float:
    """The Rényi divergence of two coins."""
    if q in (0.0, 1.0):
        return 0.0 if p == q else math.inf
    heads = order * math.log(p) + (1 - order) * math.log(q) if p > 0 else -math.inf
    tails = order * math.log1p(-p) + (1 - order) * math.log1p(-q) if p < 1 else -math.inf
    top = max(heads, tails)
    return (top + math.log(math.exp(heads - top) + math.exp(tails - top))) / (order - 1)


@tradeoff.register
def _(promise: Event) -> TradeOff:
    from mosha.accounting import delta  # noqa: PLC0415
    from mosha.accounting.measures import pure  # noqa: PLC0415  (numerics only where an event asks for them)

    mu, failed = gaussian.mu(promise)
    if math.isfinite(mu) and all(isinstance(part, Noise | Matrix) for part, _ in promise.parts()):
        return _normal(mu, failed)
    epsilon = pure.epsilon(promise)
    ratio = bound_above(math.exp(epsilon)) if epsilon < 700 else math.inf
    return TradeOff(lambda x: delta(promise, x), lambda rate: _miss_rate_by_points(_points(promise), rate), ratio)


@lru_cache(maxsize=64)
def _points(event: Event) -> tuple[tuple[float, float], ...]:
    """Epsilons, denser near zero, with their deltas; each pair bounds every attack by itself."""
    from mosha.accounting import delta, epsilon  # noqa: PLC0415
    from mosha.accounting.measures import pure  # noqa: PLC0415

    top = min(pure.epsilon(event), epsilon(event, FARTHEST))
    if math.isinf(top):
        return ((0.0, min(1.0, delta(event, 0.0))),)
    points: list[tuple[float, float]] = []
    for k in range(POINTS + 1):
        x = top * (k / POINTS) ** 1.5
        own = delta(event, x) if x < pure.epsilon(event) else 0.0
        points.append((x, min(own, points[-1][1] if points else 1.0)))  # a delta holds at every larger epsilon
    return tuple(points)


def _miss_rate_by_points(points: tuple[tuple[float, float], ...], rate: float) -> float:
    return max(
        max(1 - delta - (math.exp(x) * rate if rate > 0 else 0.0), math.exp(-x) * (1 - delta - rate))
        for x, delta in points
    )
