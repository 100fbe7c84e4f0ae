"""Admission rules: what an account charges for an event, and what its limit promises.

A rule is fixed when the account is opened. Each is valid when an adversary chooses queries *and their prices* after
seeing all earlier answers, runs several of them at once, and stops when it likes: theorem 1 of `rules.md`. The tight
numerical accountant is not such a rule; it may price a `Plan`, whose parameters are fixed before it starts.

    PureRule                 epsilons add, and so do the deltas of events that carry one
    ZeroConcentratedRule     rhos add; the default where a delta is allowed
    RenyiRule                Rényi divergences of one order, fixed beforehand, add
    GaussianRule             squares of mu add; tight where all noise is Gaussian
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from mosha.accounting import concentrated, gaussian, pure, renyi
from mosha.accounting.composition import Cost, fold
from mosha.accounting.price import FREE, UNIT, Price
from mosha.accounting.rounding import above, below, round_down, round_up
from mosha.core.errors import InvalidParameter, Unpriced
from mosha.core.event import Event
from mosha.core.guarantee import Approx, Gaussian, Guarantee, Pure, ZeroConcentrated
from mosha.core.number import non_negative, positive, probability, real, strict_probability

__all__ = [
    "FREE",
    "GaussianRule",
    "Price",
    "PureRule",
    "RenyiRule",
    "Rule",
    "ZeroConcentratedRule",
    "from_dict",
    "rule_for",
]

VERSION = 1
SHARE_FOR_EVENTS = 0.1
SLACK = Fraction(1, 2**51)  # see `_limit`


def _limit(value: float | Fraction) -> int:
    """`value` as a limit in units: the last digit of a double is given, so that ten times 0.1 fit into 1.0.

    The double 0.1 exceeds a tenth by less than one part in 2^53, and the double of a limit may fall short by as much.
    A limit is therefore kept at value (1 + 2^-51), and what an account promises is computed from that.
    """
    exact = Fraction(value) * (1 + SLACK) * UNIT
    return exact.numerator // exact.denominator


@dataclass(frozen=True)
class Rule(ABC):
    """The root of all rules: frozen, comparable, JSON.

    `returns_unused` says that steps of a run that were never started may be handed back (corollary 2 of `rules.md`).
    """

    name: ClassVar[str]
    returns_unused: ClassVar[bool] = True
    advice: ClassVar[str]

    @property
    @abstractmethod
    def measure(self) -> str:
        """What amounts of this rule are amounts of."""

    @property
    @abstractmethod
    def limit(self) -> Price:
        """What may be spent in total."""

    @abstractmethod
    def promise(self) -> Guarantee:
        """What holds for everything the account will ever pay for, together."""

    @abstractmethod
    def spent_as(self, price: Price) -> Guarantee:
        """What spending this much, and no more, would promise: for display, the promise is `promise()`."""

    @abstractmethod
    def _cost(self, part: Event) -> Cost:
        """What one part costs in the measure of this rule."""

    def price(self, event: Event) -> Price:
        """What `event` costs under this rule; Unpriced where it cannot be paid at all.

        >>> rule_for(rho=0.5).price(Event.kinds["Gaussian"](10) * 100).as_floats()
        (0.5000000000000001, 0.0)
        """
        if not isinstance(event, Event):
            raise InvalidParameter(f"a price is asked for an event (see mosha.events), not {type(event).__name__}.")
        return fold(event, lambda part: _price(self, part), FREE)

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain data; its meaning never changes."""
        return {"rule": self.name, "version": VERSION, **asdict(self)}


@lru_cache(maxsize=16384)
def _price(rule: Rule, part: Event) -> Price:
    cost = rule._cost(part)  # noqa: SLF001
    if not cost.is_finite:
        raise Unpriced(
            f"{type(part).__name__} has no price in {rule.measure}: this account cannot pay for it. {rule.advice} "
            "Nothing was spent."
        )
    return Price.of(cost.amount, cost.delta)


_PLAN = "Sell it as one piece with a delta of its own: mosha.events.Plan(event, delta)."


@dataclass(frozen=True)
class PureRule(Rule):
    """Epsilons add and deltas add.

    >>> rule = PureRule(1.0)
    >>> rule.limit.as_floats(), print(rule.promise())
    epsilon 1
    ((1.0000000000000004, 0.0), None)
    """

    epsilon: float
    delta: float = 0.0
    name: ClassVar[str] = "pure"
    advice: ClassVar[str] = f"Use noise with a pure price (Laplace, randomized response, exponential). Or: {_PLAN}"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @property
    def measure(self) -> str:
        return "epsilon"

    @cached_property
    def limit(self) -> Price:
        return Price(_limit(self.epsilon), _limit(self.delta))

    def promise(self) -> Guarantee:
        return self.spent_as(self.limit)

    def spent_as(self, price: Price) -> Guarantee:
        epsilon, delta = price.as_floats()
        return Approx(epsilon, delta) if delta else Pure(epsilon)

    def _cost(self, part: Event) -> Cost:
        return pure.cost_of(part)


@dataclass(frozen=True)
class _Converted(Rule):
    """A rule whose measure is turned into (epsilon, delta) at the end.

    `delta` is split once: `delta_for_events` pays for events that carry a delta of their own, the rest is for the
    conversion. Without a delta the promise is made in the rule's own measure.
    """

    epsilon: float | None = None
    delta: float = 0.0
    delta_for_events: float = 0.0

    @property
    @abstractmethod
    def _amount(self) -> float | Fraction:
        """The limit in the rule's measure."""

    @abstractmethod
    def _epsilon(self, amount: float, delta: float) -> float:
        """Epsilon at `delta` of something that costs `amount`."""

    @abstractmethod
    def _own(self, amount: float) -> Guarantee:
        """The guarantee in the rule's own measure."""

    def _check(self) -> None:
        object.__setattr__(self, "delta", probability("delta", self.delta))
        object.__setattr__(self, "delta_for_events", probability("delta_for_events", self.delta_for_events))
        if self.delta == 0:
            if self.epsilon is not None or self.delta_for_events > 0:
                raise InvalidParameter(f"a limit in {self.measure} becomes an epsilon at a delta only: give delta.")
            return
        if self._conversion_delta <= 0:
            raise InvalidParameter("delta_for_events must be below delta: the conversion to epsilon needs the rest.")
        reached = self._epsilon(self.limit.as_floats()[0], self._conversion_delta)
        epsilon = reached * (1 + 1e-12) if self.epsilon is None else positive("epsilon", self.epsilon)
        object.__setattr__(self, "epsilon", epsilon)
        if reached > epsilon:
            raise InvalidParameter(f"a limit of this {self.measure} allows more than epsilon at this delta.")

    @cached_property
    def limit(self) -> Price:
        return Price(_limit(self._amount), _limit(self.delta_for_events))

    @cached_property
    def _conversion_delta(self) -> float:
        return round_down(Fraction(self.delta) - Fraction(self.limit.delta, UNIT))

    def promise(self) -> Guarantee:
        if self.epsilon is None:
            return self._own(self.limit.as_floats()[0])
        return Approx(self.epsilon, self.delta)

    def spent_as(self, price: Price) -> Guarantee:
        amount, delta = price.as_floats()
        if self.epsilon is None:
            return self._own(amount)
        if price.amount == 0:
            return Approx(0.0, delta)
        exact = Fraction(self._conversion_delta) + Fraction(price.delta, UNIT)
        return Approx(self._epsilon(amount, self._conversion_delta), round_up(exact))


@dataclass(frozen=True)
class ZeroConcentratedRule(_Converted):
    """Rhos add.

    >>> rule = rule_for(epsilon=3, delta=1e-6)
    >>> print(rule.promise(), "by", rule.measure, round(rule.rho, 4))
    epsilon 3, delta 1e-06 by rho 0.1836
    """

    rho: float = 0.0
    name: ClassVar[str] = "zero-concentrated"
    advice: ClassVar[str] = _PLAN

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

    def _own(self, amount: float) -> Guarantee:
        return ZeroConcentrated(amount)

    def _cost(self, part: Event) -> Cost:
        return concentrated.cost_of(part)


@dataclass(frozen=True)
class RenyiRule(_Converted):
    """Rényi divergences of one fixed order add; at least as good as rho for every event, equal for Gaussians.

    >>> rule = rule_for(epsilon=1, delta=1e-6, rule="renyi")
    >>> rule.measure, rule.price(Event.kinds["Laplace"](100)) * 400 <= rule.limit
    ('Rényi divergence of order 22.1775', True)
    """

    order: float = 0.0
    divergence: float = 0.0
    name: ClassVar[str] = "renyi"
    advice: ClassVar[str] = _PLAN

    def __post_init__(self) -> None:
        if real("order", self.order) <= 1:
            raise InvalidParameter("order must be above 1.")
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

    def _own(self, amount: float) -> Guarantee:
        raise AssertionError(amount)  # a Rényi rule always has a delta

    def _cost(self, part: Event) -> Cost:
        return renyi.cost_of(part, self.order)


@dataclass(frozen=True)
class GaussianRule(_Converted):
    """Squares of mu add.

    Pays for events that are Gaussian-private: Gaussian, matrix and tree noise, discrete Gaussians (which need a
    delta), and whatever is pure or (epsilon, delta)-private; groups and disjoint unions of those.

    >>> print(rule_for(mu=1).promise())
    mu 1 (Gaussian)
    """

    mu: float = 0.0
    name: ClassVar[str] = "gaussian"
    advice: ClassVar[str] = f"It is not Gaussian-private. {_PLAN}"

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
        return gaussian.epsilon(above(math.sqrt(amount)), delta)

    def _own(self, amount: float) -> Guarantee:
        return Gaussian(above(math.sqrt(amount)))

    def _cost(self, part: Event) -> Cost:
        return gaussian.cost_of(part)


_KINDS: dict[str, type[Rule]] = {k.name: k for k in (PureRule, ZeroConcentratedRule, RenyiRule, GaussianRule)}


def from_dict(stored: dict[str, Any]) -> Rule:
    """The rule that `to_dict` described.

    >>> rule = rule_for(epsilon=3, delta=1e-6)
    >>> from_dict(rule.to_dict()) == rule
    True
    """
    if not isinstance(stored, dict):
        raise InvalidParameter("this is not the description of a rule.")
    kind = _KINDS.get(str(stored.get("rule")))
    if kind is None or stored.get("version") != VERSION:
        raise InvalidParameter("this is not the description of a rule that this version of mosha knows.")
    arguments = {key: value for key, value in stored.items() if key not in ("rule", "version")}
    if set(arguments) != {f.name for f in fields(kind)}:
        raise InvalidParameter(f"the fields of this {kind.name!r} rule are not the known ones.")
    return kind(**arguments)


def rule_for(
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
    rule: str = "auto",
    delta_for_events: float | None = None,
) -> Rule:
    """The rule for a limit: epsilon alone is pure, epsilon with delta is zero-concentrated unless `rule` says else.

    Args:
        epsilon: the limit as (epsilon, delta), or one of
        rho: the limit in zero-concentrated, or
        mu: in Gaussian differential privacy; with a delta these promise (epsilon, delta) too.
        delta: zero, or the probability that the promise may fail with.
        rule: "auto", "pure", "zero-concentrated", "renyi" (its order is the best one for Gaussians) or "gaussian".
        delta_for_events: how much of delta is kept for events that carry their own; a tenth by default.

    >>> rule_for(epsilon=1), rule_for(epsilon=1, delta=1e-6).measure, rule_for(mu=1).measure
    (PureRule(epsilon=1.0, delta=0.0), 'rho', 'mu squared')
    """
    delta = probability("delta", delta)
    given = [name for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if value is not None]
    if len(given) != 1:
        raise InvalidParameter("a limit is said once: epsilon (with delta), rho or mu.")
    chosen = _chosen(given[0], delta, rule)
    if chosen is PureRule:
        if delta_for_events is not None:
            raise InvalidParameter("the pure rule keeps all of delta for events: leave delta_for_events out.")
        return PureRule(epsilon, delta)  # type: ignore[arg-type]
    share = delta * SHARE_FOR_EVENTS if delta_for_events is None else non_negative("delta_for_events", delta_for_events)
    split = {"delta": delta, "delta_for_events": share}
    if rho is not None:
        return ZeroConcentratedRule(rho=rho, **split)
    if mu is not None:
        return GaussianRule(mu=mu, **split)
    return _from_epsilon(chosen, positive("epsilon", epsilon), split)


def _chosen(given: str, delta: float, rule: str) -> type[Rule]:
    automatic = {"epsilon": "zero-concentrated" if delta else "pure", "rho": "zero-concentrated", "mu": "gaussian"}
    name = automatic[given] if rule == "auto" else rule
    if name not in _KINDS:
        raise InvalidParameter(f"rule must be one of auto, {', '.join(_KINDS)}.")
    if given != "epsilon" and name != automatic[given]:
        raise InvalidParameter(f"a limit in {given} is kept by the {automatic[given]} rule.")
    if name != "pure" and given == "epsilon" and delta == 0:
        raise InvalidParameter(f"epsilon with delta 0 is kept by the pure rule alone; the {name} rule needs a delta.")
    return _KINDS[name]


def _from_epsilon(kind: type[Rule], epsilon: float, split: dict[str, float]) -> Rule:
    left = round_down(Fraction(split["delta"]) - Fraction(_limit(split["delta_for_events"]), UNIT))
    if left <= 0:
        raise InvalidParameter("delta_for_events must be below delta: the conversion to epsilon needs the rest.")
    if kind is GaussianRule:
        mu = below(gaussian.mu_from_epsilon(epsilon, left) * (1 - 1e-12))
        return GaussianRule(mu=mu, epsilon=epsilon, **split)
    rho = concentrated.rho_from_epsilon(epsilon, left)
    if rho == 0:
        raise InvalidParameter("delta is too small for this epsilon: nothing could ever be paid for.")
    if kind is ZeroConcentratedRule:
        return ZeroConcentratedRule(rho=rho, epsilon=epsilon, **split)
    order = renyi.best_order(rho, left)
    divergence = renyi.divergence_from_epsilon(epsilon, order=order, delta=left)
    return RenyiRule(order=order, divergence=divergence, epsilon=epsilon, **split)
