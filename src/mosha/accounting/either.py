"""The rule of an (epsilon, delta) account: it pays while *either* the plain sums *or* the concentrated sum allow it.

A few large releases are best counted by adding epsilons and deltas, many small ones by adding rhos. This rule keeps
both sums and admits while one of them is within its limit. Both may not have all of delta (`rules.md`, proposition 6),
so delta is divided once, by the first payment, which nobody could choose after seeing an answer:

    either          half of delta for the sums, two fifths for the conversion of rho, a tenth for deltas beside rho
    sums            all of delta for the sums, where the first payment could be repeated more often that way
    concentrated    all of delta for rho, where the first payment has no price in epsilon and delta at all
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

from mosha.accounting.admission import Rule, cover, limit_units, read_units
from mosha.accounting.measures import concentrated, pure
from mosha.accounting.numerics.price import OUT_OF_REACH, UNIT, Cost, Price, as_float, round_down, round_up
from mosha.core.errors import InvalidParameter, Unpriced
from mosha.core.event import Event
from mosha.core.guarantee import Approx, Guarantee
from mosha.core.language import Phrase, phrase
from mosha.core.number import positive, strict_probability

__all__ = ["LARGEST_EPSILON", "EitherRule"]

SHARE_FOR_SUMS, SHARE_FOR_EVENTS = Fraction(1, 2), Fraction(1, 10)
LARGEST_EPSILON = 2.0**64
ANY = 2**4096  # more than any sum: a way that does not look at this part of a price


@dataclass(frozen=True)
class EitherRule(Rule):
    """Epsilons and deltas add up, rhos add up, and one of the two sums has to stay within its limit.

    `delta_for_sums` and `delta_for_events` are the shares of delta in the way "either"; `rho` is what the rest of delta
    converts to epsilon there, `rho_alone` where the sums are given up and `delta_for_events` is the only share.

    >>> rule = EitherRule.of(1.0, 1e-6)
    >>> few, many = rule.price(Event.kinds["Laplace"](2)), rule.price(Event.kinds["Laplace"](50))
    >>> rule.way(few), rule.repeats(few, "either"), rule.repeats(many, "either")
    ('either', 2, 113)
    >>> rule.way(rule.price(Event.kinds["Approx"](1.0, 1e-6)))
    'sums'
    """

    epsilon: float
    delta: float
    delta_for_sums: float
    delta_for_events: float
    rho: float
    rho_alone: float
    name: ClassVar[str] = "either"
    advice: ClassVar[str] = "accounting.advice_plan"

    @staticmethod
    def of(epsilon: float, delta: float) -> EitherRule:
        """The rule that promises (epsilon, delta)."""
        epsilon, delta = positive("epsilon", epsilon), strict_probability("delta", delta)
        sums, events = round_down(Fraction(delta) * SHARE_FOR_SUMS), round_down(Fraction(delta) * SHARE_FOR_EVENTS)
        rests = _rest_of_delta(delta, sums, events), _rest_of_delta(delta, events)
        if min(rests) <= 0:
            raise InvalidParameter("accounting.delta_not_divisible", parameter="delta")
        rho, alone = (concentrated.rho_from_epsilon(epsilon, rest) for rest in rests)
        if rho == 0:
            raise InvalidParameter("accounting.delta_too_small", parameter="delta")
        return EitherRule(epsilon, delta, sums, events, rho, max(rho, alone))

    def __post_init__(self) -> None:
        for name in ("epsilon", "rho", "rho_alone"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        for name in ("delta", "delta_for_sums", "delta_for_events"):
            object.__setattr__(self, name, strict_probability(name, getattr(self, name)))
        if self.epsilon > LARGEST_EPSILON:
            raise InvalidParameter("accounting.epsilon_too_large", parameter="epsilon", largest=LARGEST_EPSILON)
        either, alone = self._limit_of_rho("either"), self._limit_of_rho("concentrated")
        reached = [
            concentrated.epsilon_from_rho(
                as_float(either), _rest_of_delta(self.delta, self.delta_for_sums, self.delta_for_events)
            ),
            concentrated.epsilon_from_rho(as_float(alone), _rest_of_delta(self.delta, self.delta_for_events)),
        ]
        if max(reached) > as_float(self.limit.amount):
            raise InvalidParameter("accounting.limit_above_epsilon", parameter="epsilon", measure="rho")

    @property
    def measure(self) -> str:
        return "epsilon"

    @cached_property
    def limit(self) -> Price:
        return Price(limit_units(self.epsilon), limit_units(self.delta))

    def _limit_of_rho(self, way: str) -> int:
        return limit_units(self.rho if way == "either" else self.rho_alone)

    def limits(self, way: str) -> tuple[Price, ...]:
        return self._limits.get(way, self._limits["either"])

    @cached_property
    def _limits(self) -> dict[str, tuple[Price, ...]]:
        epsilon, events = self.limit.amount, limit_units(self.delta_for_events)
        sums, half = (Price(epsilon, delta, ANY, ANY) for delta in (self.limit.delta, limit_units(self.delta_for_sums)))
        rho, alone = (Price(ANY, ANY, self._limit_of_rho(way), events) for way in ("either", "concentrated"))
        return {"sums": (sums,), "either": (half, rho), "concentrated": (alone,)}

    def way(self, first: Price) -> str:
        """Under which of the three ways this very payment could be repeated most often; "either" where it is equal."""
        if first.amount >= OUT_OF_REACH:
            return "concentrated"
        either, sums = (self.repeats(first, way) for way in ("either", "sums"))
        return "either" if either is None or sums is None or either >= sums else "sums"

    @property
    def delta_limit(self) -> float:
        return self.delta

    def promise(self) -> Guarantee:
        return Approx(self.epsilon, self.delta)

    def spent_as(self, price: Price, way: str = "") -> Guarantee:
        """The lesser reading that the way allows; the promise about adaptive spending is that of the limit."""
        if price.amount == 0:
            return Approx(0.0, self.delta_of(price))
        return Approx(*min(self._readings(price, way) or self._readings(price, "")))

    def _readings(self, price: Price, way: str) -> list[tuple[float, float]]:
        """Epsilon and delta by each of the sums that the way keeps to: within the account's delta, where one is."""
        found = []
        if way != "concentrated" and price.amount < OUT_OF_REACH:
            share = self.delta_for_sums if way == "either" else self.delta
            found.append((read_units(price.amount, self.epsilon), read_units(price.delta, share)))
        if way != "sums" and price.rho < OUT_OF_REACH:
            shares = (self.delta_for_events,) if way == "concentrated" else (self.delta_for_sums, self.delta_for_events)
            left = _rest_of_delta(self.delta, *shares)
            epsilon = concentrated.epsilon_from_rho(as_float(price.rho), left)
            within = price.rho <= self._limit_of_rho(way or "either")
            delta = round_up(Fraction(left) + Fraction(price.rho_delta, UNIT))
            found.append((min(epsilon, self.epsilon) if within else epsilon, delta))
        return [reading for reading in found if reading[1] <= self.delta] or found

    def describe(self, way: str) -> Phrase:
        return phrase(f"accounting.rule_either_{way}" if way in {"sums", "concentrated"} else "accounting.rule_either")

    def amount_of(self, price: Price, way: str = "") -> float:
        """The lesser reading that the way allows, as epsilon at the account's delta."""
        return min((epsilon for epsilon, _ in self._readings(price, way)), default=math.inf) if price.amount else 0.0

    def amount_left(self, spent: Price, way: str, delta: int = 0) -> float:
        """The largest epsilon of a release with so many units of delta that would still be admitted, rounded down."""
        with_delta = spent + Price(0, delta, 0, delta)
        rho = self.rho_alone if way == "concentrated" else self.rho
        left = max(_largest_epsilon(limit, with_delta, (self.epsilon, rho)) for limit in self.limits(way or "either"))
        return min(left, self.epsilon) if left > self.epsilon * 2.0**-49 else 0.0

    def _cost(self, part: Event) -> Cost:
        return pure.cost_of(part)

    def _part_price(self, part: Event) -> Price:
        return _price(part, self)


@lru_cache(maxsize=16384)
def _price(part: Event, rule: EitherRule) -> Price:
    sums, concentrated_cost = pure.cost_of(part), concentrated.cost_of(part)
    if not (sums.is_finite or concentrated_cost.is_finite):
        kind, advice = type(part).__name__, phrase(rule.advice)
        raise Unpriced("accounting.no_price_either_way", spent="nothing", kind=kind, advice=advice)
    return Price(*_units(sums, part), *_units(concentrated_cost, part))


def _units(cost: Cost, part: Event) -> tuple[int, int]:
    if not cost.is_finite or cost.amount > LARGEST_EPSILON:
        return OUT_OF_REACH, 0
    price = cover(cost, part)
    return price.amount, price.delta


def _largest_epsilon(limit: Price, spent: Price, opened: tuple[float, float]) -> float:
    """The largest epsilon that one limit still pays for, rounded down.

    Of `opened` = (epsilon, rho), the limits as they were promised: the digit that is given beside them is not told.
    """
    if not spent <= limit:
        return 0.0
    if limit.amount < ANY:
        return _subtract(opened[0], spent.amount)
    room = _subtract(opened[1], spent.rho)
    low, high = 0.0, room + 2 * math.sqrt(room) + 1e-300
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if concentrated.rho_of_pure(middle) <= room else (low, middle)
    return low


def _subtract(limit: float, units: int) -> float:
    """What a limit without its last digit leaves, rounded down."""
    return round_down(max(Fraction(0), Fraction(limit) - Fraction(units, UNIT)))


def _rest_of_delta(delta: float, *shares: float) -> float:
    """What the shares, as limits, leave of delta."""
    return round_down(Fraction(delta) - sum((Fraction(limit_units(share), UNIT) for share in shares), Fraction(0)))
