"""Admission rules: what an account charges for an event, and what its limit promises.

A rule is fixed when the account is opened. Each is valid when an adversary chooses queries *and their prices* after
seeing all earlier answers, runs several of them at once, and stops when it likes: theorem 1 of `rules.md`. The tight
numerical accountant is not such a rule; it may price a `Plan`, whose parameters are fixed before it starts.

    EitherRule               either the epsilons and deltas or the rhos stay within the limit; in `either.py`
    PureRule                 epsilons add, and so do the deltas of events that carry one; the default without a delta
    ZeroConcentratedRule     rhos add
    RenyiRule                Rényi divergences of one order, fixed beforehand, add
    GaussianRule             squares of mu add; tight where all noise is Gaussian
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from mosha.accounting.admission import VERSION, Converted, Rule, limit_units
from mosha.accounting.either import LARGEST_EPSILON, EitherRule
from mosha.accounting.measures import concentrated, gaussian, pure, renyi
from mosha.accounting.numerics.price import FREE, UNIT, Cost, Price, bound_above, bound_below, round_down
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.guarantee import Approx, Gaussian, Guarantee, Pure, ZeroConcentrated
from mosha.core.number import non_negative, positive, probability, real, strict_probability
from mosha.core.options import RuleName

__all__ = [
    "FREE",
    "EitherRule",
    "GaussianRule",
    "Price",
    "PureRule",
    "RenyiRule",
    "Rule",
    "ZeroConcentratedRule",
    "from_dict",
    "rule_for",
]

SHARE_FOR_EVENTS = 0.1


@dataclass(frozen=True)
class PureRule(Rule):
    """Epsilons add and deltas add.

    >>> rule = PureRule(1.0)
    >>> rule.promise(), rule.limit >= Price.of(0.1) * 10
    (Pure(epsilon=1.0), True)
    """

    epsilon: float
    delta: float = 0.0
    name: ClassVar[str] = "pure"
    advice: ClassVar[str] = "accounting.advice_pure"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @property
    def measure(self) -> str:
        return "epsilon"

    @cached_property
    def limit(self) -> Price:
        return Price(limit_units(self.epsilon), limit_units(self.delta))

    @property
    def delta_limit(self) -> float:
        return self.delta

    def promise(self) -> Guarantee:
        return Approx(self.epsilon, self.delta) if self.delta else Pure(self.epsilon)

    def spent_as(self, price: Price, way: str = "") -> Guarantee:
        epsilon, delta = self.amount_of(price, way), self.delta_of(price)
        return Approx(epsilon, delta) if delta else Pure(epsilon)

    def _cost(self, part: Event) -> Cost:
        return pure.cost_of(part)


@dataclass(frozen=True)
class ZeroConcentratedRule(Converted):
    """Rhos add.

    >>> rule = rule_for(epsilon=3, delta=1e-6, rule="zero-concentrated")
    >>> print(rule.promise(), "by", rule.measure, round(rule.rho, 4))
    epsilon 3, delta 1e-06 by rho 0.1836
    """

    rho: float = 0.0
    name: ClassVar[str] = "zero-concentrated"
    advice: ClassVar[str] = "accounting.advice_plan"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", positive("rho", self.rho))
        self._check()

    @property
    def measure(self) -> str:
        return "rho"

    @property
    def _amount(self) -> float:
        return self.rho

    def _epsilon(self, amount: float, delta: float) -> float:
        return concentrated.epsilon_from_rho(amount, delta)

    def _own_guarantee(self, amount: float) -> Guarantee:
        return ZeroConcentrated(amount)

    @property
    def _own_limit(self) -> Guarantee:
        return ZeroConcentrated(self.rho)

    def _cost(self, part: Event) -> Cost:
        return concentrated.cost_of(part)


@dataclass(frozen=True)
class RenyiRule(Converted):
    """Rényi divergences of one fixed order add; at least as good as rho for every event, equal for Gaussians.

    >>> rule = rule_for(epsilon=1, delta=1e-6, rule="renyi")
    >>> rule.measure, rule.price(Event.kinds["Laplace"](100)) * 400 <= rule.limit
    ('Rényi divergence of order 22.1775', True)
    """

    order: float = 0.0
    divergence: float = 0.0
    name: ClassVar[str] = "renyi"
    advice: ClassVar[str] = "accounting.advice_plan"

    def __post_init__(self) -> None:
        if real("order", self.order) <= 1:
            raise InvalidParameter("accounting.order_too_small", parameter="order")
        strict_probability("delta", self.delta)
        object.__setattr__(self, "order", float(self.order))
        object.__setattr__(self, "divergence", positive("divergence", self.divergence))
        self._check()

    @property
    def measure(self) -> str:
        return f"Rényi divergence of order {self.order:g}"

    @property
    def _amount(self) -> float:
        return self.divergence

    def _epsilon(self, amount: float, delta: float) -> float:
        return renyi.epsilon_from_divergence(amount, order=self.order, delta=delta)

    def _own_guarantee(self, amount: float) -> Guarantee:
        raise AssertionError(amount)  # a Rényi rule always has a delta

    @property
    def _own_limit(self) -> Guarantee:
        raise AssertionError(self.divergence)

    def _cost(self, part: Event) -> Cost:
        return renyi.cost_of(part, self.order)


@dataclass(frozen=True)
class GaussianRule(Converted):
    """Squares of mu add.

    Pays for events that are Gaussian-private: Gaussian, matrix and tree noise, discrete Gaussians (which need a
    delta), and whatever is pure or (epsilon, delta)-private; groups and disjoint unions of those.

    >>> print(rule_for(mu=1).promise())
    mu 1 (Gaussian)
    """

    mu: float = 0.0
    name: ClassVar[str] = "gaussian"
    advice: ClassVar[str] = "accounting.advice_gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive("mu", self.mu))
        self._check()

    @property
    def measure(self) -> str:
        return "mu squared"

    @property
    def _amount(self) -> Fraction:
        return Fraction(self.mu) ** 2

    def _epsilon(self, amount: float, delta: float) -> float:
        return gaussian.epsilon(bound_above(math.sqrt(amount)), delta)

    def _own_guarantee(self, amount: float) -> Guarantee:
        return Gaussian(bound_above(math.sqrt(amount)))

    @property
    def _own_limit(self) -> Guarantee:
        return Gaussian(self.mu)

    def _cost(self, part: Event) -> Cost:
        return gaussian.cost_of(part)


_KINDS: dict[str, type[Rule]] = {
    kind.name: kind for kind in (EitherRule, PureRule, ZeroConcentratedRule, RenyiRule, GaussianRule)
}


def from_dict(stored: dict[str, object]) -> Rule:
    """The rule that `to_dict` described.

    >>> rule = rule_for(epsilon=3, delta=1e-6)
    >>> from_dict(rule.to_dict()) == rule
    True
    """
    if not isinstance(stored, dict):
        raise InvalidParameter("accounting.not_a_rule")
    kind = _KINDS.get(str(stored.get("rule")))
    if kind is None or stored.get("version") != VERSION:
        raise InvalidParameter("accounting.unknown_rule")
    arguments = {key: value for key, value in stored.items() if key not in ("rule", "version")}
    if set(arguments) != {f.name for f in fields(kind)}:
        raise InvalidParameter("accounting.unknown_rule_fields", kind=kind.name)
    return kind(**arguments)


def rule_for(
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
    rule: RuleName = "auto",
    delta_for_events: float | None = None,
) -> Rule:
    """The rule for a limit: epsilon alone is pure; epsilon with delta adds up both ways unless `rule` says else.

    Args:
        epsilon: the limit as (epsilon, delta), or one of
        rho: the limit in zero-concentrated, or
        mu: in Gaussian differential privacy; with a delta these promise (epsilon, delta) too.
        delta: zero, or the probability that the promise may fail with.
        rule: "auto", or one that is to be kept to: "either", "pure", "zero-concentrated", "renyi" (its order is the
            best one for Gaussians), "gaussian".
        delta_for_events: how much of delta a rule that converts keeps for events that carry their own (a tenth by
            default); with "auto" this means the zero-concentrated rule.

    >>> rule_for(epsilon=1), rule_for(epsilon=1, delta=1e-6).name, rule_for(mu=1).measure
    (PureRule(epsilon=1.0, delta=0.0), 'either', 'mu squared')
    """
    delta = probability("delta", delta)
    given = [name for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if value is not None]
    if len(given) != 1:
        raise InvalidParameter("accounting.one_limit")
    default = "zero-concentrated" if delta_for_events is not None else "either"
    chosen = _choose_kind(given[0], delta, rule, default)
    if chosen in (PureRule, EitherRule):
        if delta_for_events is not None:
            raise InvalidParameter("accounting.rule_divides_delta", parameter="delta_for_events", rule=chosen.name)
        if chosen is EitherRule and positive("epsilon", epsilon) <= LARGEST_EPSILON:
            return EitherRule.of(epsilon, delta)  # type: ignore[arg-type]
        return PureRule(epsilon, delta)  # type: ignore[arg-type]
    share = delta * SHARE_FOR_EVENTS if delta_for_events is None else non_negative("delta_for_events", delta_for_events)
    split = {"delta": delta, "delta_for_events": share}
    if rho is not None:
        return ZeroConcentratedRule(rho=rho, **split)
    if mu is not None:
        return GaussianRule(mu=mu, **split)
    return _from_epsilon(chosen, positive("epsilon", epsilon), split)


def _choose_kind(given: str, delta: float, rule: str, default: str) -> type[Rule]:
    automatic = {"epsilon": default if delta else "pure", "rho": "zero-concentrated", "mu": "gaussian"}
    name = automatic[given] if rule == "auto" else rule
    if name not in _KINDS:
        raise InvalidParameter(
            "core.unknown_option", parameter="rule", options=[repr(kind) for kind in ("auto", *_KINDS)]
        )
    if given != "epsilon" and name != automatic[given]:
        raise InvalidParameter("accounting.other_rule", parameter="rule", limit=given, needed=automatic[given])
    if name != "pure" and given == "epsilon" and delta == 0:
        raise InvalidParameter("accounting.rule_needs_delta", parameter="delta", rule=name)
    return _KINDS[name]


def _from_epsilon(kind: type[Rule], epsilon: float, split: dict[str, float]) -> Rule:
    left = round_down(Fraction(split["delta"]) - Fraction(limit_units(split["delta_for_events"]), UNIT))
    if left <= 0:
        raise InvalidParameter("accounting.no_delta_left", parameter="delta_for_events")
    if kind is GaussianRule:
        mu = bound_below(gaussian.mu_from_epsilon(epsilon, left) * (1 - 1e-12))
        return GaussianRule(mu=mu, epsilon=epsilon, **split)
    rho = concentrated.rho_from_epsilon(epsilon, left)
    if rho == 0:
        raise InvalidParameter("accounting.delta_too_small", parameter="delta")
    if kind is ZeroConcentratedRule:
        return ZeroConcentratedRule(rho=rho, epsilon=epsilon, **split)
    order = renyi.best_order(rho, left)
    divergence = renyi.divergence_from_epsilon(epsilon, order=order, delta=left)
    return RenyiRule(order=order, divergence=divergence, epsilon=epsilon, **split)
