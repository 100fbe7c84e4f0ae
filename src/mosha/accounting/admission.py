"""What an admission rule is: a price for every event, a limit, and what the limit promises (`rules.md`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from mosha.accounting.measures import pure
from mosha.accounting.numerics.price import FREE, UNIT, Cost, Price, as_float, fold, round_down, round_up
from mosha.core.errors import InvalidParameter, Unpriced
from mosha.core.event import Event
from mosha.core.events import Plan, Pure
from mosha.core.guarantee import Approx, Guarantee
from mosha.core.language import Phrase, phrase
from mosha.core.number import positive, probability

__all__ = ["Converted", "Rule", "cover", "limit_units", "read_limit", "read_units"]

VERSION = 1
SLACK = Fraction(1, 2**51)  # see `limit_units`
LARGEST_PURE = 2.0**16


def limit_units(value: float | Fraction) -> int:
    """`value` as a limit in units: the last digit of a double is given, so that ten times 0.1 fit into 1.0.

    The double 0.1 exceeds a tenth by less than one part in 2^53, and the double of a limit may fall short by as much.
    A limit is therefore kept at value (1 + 2^-51). What an account promises is stated as `value`, to that part of the
    last digit (`rules.md`, *Rounding*).
    """
    exact = Fraction(value) * (1 + SLACK) * UNIT
    return exact.numerator // exact.denominator


def read_units(units: int, limit: float, kept: int | None = None) -> float:
    """So many units as a number, rounded up; within a limit, which is `kept` at so many units, no more than that limit.

    >>> read_units(limit_units(1.0), 1.0), read_units(limit_units(1.0), 0.5)
    (1.0, 1.0000000000000004)
    """
    number = as_float(units)
    return min(number, limit) if units <= (limit_units(limit) if kept is None else kept) else number


def read_limit(units: int) -> float:
    """The number that is kept as a limit of so many units.

    >>> read_limit(limit_units(0.1)), read_limit(limit_units(3e-7))
    (0.1, 3e-07)
    """
    return float(Fraction(units, UNIT) / (1 + SLACK))


def repeats_within(limit: Price, price: Price, spent: Price) -> int | None:
    """How often `price` fits into what is left of one limit; None where it is free."""
    if not spent <= limit:
        return 0
    rooms = zip(limit.parts, spent.parts, price.parts, strict=True)
    return min(((most - before) // part for most, before, part in rooms if part), default=None)


@dataclass(frozen=True)
class Rule(ABC):
    """The root of all rules: frozen, comparable, JSON.

    `returns_unused` says that steps of a run that were never started may be handed back (corollary 2 of `rules.md`).
    """

    name: ClassVar[str]
    returns_unused: ClassVar[bool] = True
    advice: ClassVar[str]  # the code of the sentence that says how to pay for an event without a price

    @property
    @abstractmethod
    def measure(self) -> str:
        """What amounts of this rule are amounts of."""

    @property
    @abstractmethod
    def limit(self) -> Price:
        """What may be spent in total."""

    def way(self, first: Price) -> str:
        """How the sums go on after a first payment of this price, where a rule can add up in several ways."""
        del first
        return ""

    def limits(self, way: str) -> tuple[Price, ...]:
        """What the sums are compared with: within one of these is within the limit."""
        del way
        return (self.limit,)

    def admits(self, total: Price, way: str) -> bool:
        """Whether so much may have been spent."""
        return any(total <= limit for limit in self.limits(way))

    def repeats(self, price: Price, way: str, spent: Price = FREE) -> int | None:
        """How often `price` can be paid when this much was spent; None where it is free.

        >>> from mosha.accounting.rules import rule_for
        >>> rule = rule_for(epsilon=1)
        >>> rule.repeats(rule.price(Event.kinds["Laplace"](10)), "")
        10
        """
        found = [repeats_within(limit, price, spent) for limit in self.limits(way)]
        return None if None in found else max(count for count in found if count is not None)

    @abstractmethod
    def promise(self) -> Guarantee:
        """What holds for everything the account will ever pay for, together."""

    @abstractmethod
    def spent_as(self, price: Price, way: str = "") -> Guarantee:
        """What spending this much, and no more, would promise: for display, the promise is `promise()`."""

    @abstractmethod
    def _cost(self, part: Event) -> Cost:
        """What one part costs in the measure of this rule."""

    def describe(self, way: str) -> Phrase:
        """What adds up, as a half-sentence for people."""
        del way
        return phrase("accounting.rule_adds_up", measure=self.measure)

    def amount_of(self, price: Price, way: str = "") -> float:
        """A price as one number of the measure, rounded up: for people, and never for a decision.

        >>> from mosha.accounting.rules import rule_for
        >>> rule_for(epsilon=1).amount_of(Price.of(0.1) * 10)
        1.0
        """
        del way
        return read_units(price.amount, self.amount_limit, self.limit.amount)

    def delta_of(self, price: Price) -> float:
        """The delta of a price, rounded up: for people."""
        return read_units(price.delta, self.delta_limit)

    @property
    def amount_limit(self) -> float:
        """The limit as the number that it was opened with: for people."""
        return float(getattr(self, self.measure))

    @property
    @abstractmethod
    def delta_limit(self) -> float:
        """How much of delta there is for events that carry one, as it was opened: for people."""

    def amount_left(self, spent: Price, way: str, delta: int = 0) -> float:
        """What a release with so many units of delta may still cost, as a number of the measure, rounded down.

        What the rounding of floats leaves over of a limit that is used up is nothing.
        """
        if spent.delta + delta > self.limits(way)[0].delta:
            return 0.0
        left = round_down(Fraction(self.amount_limit) - Fraction(spent.amount, UNIT))
        return left if left > self.amount_limit * 2.0**-49 else 0.0

    def left_as(self, spent: Price) -> Approx | None:
        """What is left as epsilon at the delta of the account, where the rule counts in another measure; for people."""
        del spent
        return None

    def price(self, event: Event) -> Price:
        """What `event` costs under this rule; Unpriced where it cannot be paid at all.

        >>> from mosha.accounting.rules import rule_for
        >>> rule_for(rho=0.5).price(Event.kinds["Gaussian"](10) * 100).as_floats()
        (0.5000000000000001, 0.0)
        """
        if not isinstance(event, Event):
            raise InvalidParameter("core.not_an_event", parameter="event", kind=type(event).__name__)
        return fold(event, self._part_price, FREE)

    def _part_price(self, part: Event) -> Price:
        return _price(self, part)

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain data; its meaning never changes."""
        return {"rule": self.name, "version": VERSION, **asdict(self)}


@lru_cache(maxsize=16384)
def _price(rule: Rule, part: Event) -> Price:
    cost = rule._cost(part)  # noqa: SLF001
    if not cost.is_finite:
        kind, advice = type(part).__name__, phrase(rule.advice)
        raise Unpriced("accounting.no_price", spent="nothing", kind=kind, measure=rule.measure, advice=advice)
    return cover(cost, part)


def cover(cost: Cost, part: Event) -> Price:
    """The price that covers what a part costs: a unit at least, where the square of something tiny came out as zero.

    >>> kinds = Event.kinds
    >>> cover(Cost(0.0), kinds["Laplace"](1e200)) == Price(1), cover(Cost(0.0), kinds["Pure"](0)) == FREE
    (True, True)
    """
    price = Price.of(cost.amount, cost.delta)
    return price if price.amount or _is_free(part) else Price(1, price.delta)


def _is_free(part: Event) -> bool:
    """Whether a part costs no epsilon at all; of a plan, whether what is planned does."""
    planned = part.event if isinstance(part, Plan) else part
    return pure.cost_of(planned).amount == 0


@dataclass(frozen=True)
class Converted(Rule):
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
    def _own_guarantee(self, amount: float) -> Guarantee:
        """The guarantee in the rule's own measure."""

    @property
    @abstractmethod
    def _own_limit(self) -> Guarantee:
        """The limit as it was opened, in the rule's own measure."""

    def _check(self) -> None:
        object.__setattr__(self, "delta", probability("delta", self.delta))
        object.__setattr__(self, "delta_for_events", probability("delta_for_events", self.delta_for_events))
        if self.delta == 0:
            if self.epsilon is not None or self.delta_for_events > 0:
                raise InvalidParameter("accounting.limit_without_delta", parameter="delta", measure=self.measure)
            return
        if self._conversion_delta <= 0:
            raise InvalidParameter("accounting.no_delta_left", parameter="delta_for_events")
        reached = self._epsilon(self.limit.as_floats()[0], self._conversion_delta)
        epsilon = reached * (1 + 1e-12) if self.epsilon is None else positive("epsilon", self.epsilon)
        object.__setattr__(self, "epsilon", epsilon)
        if reached > epsilon:
            raise InvalidParameter("accounting.limit_above_epsilon", parameter="epsilon", measure=self.measure)

    @cached_property
    def limit(self) -> Price:
        return Price(limit_units(self._amount), limit_units(self.delta_for_events))

    @property
    def amount_limit(self) -> float:
        return float(self._amount)

    @property
    def delta_limit(self) -> float:
        return self.delta_for_events

    @cached_property
    def _conversion_delta(self) -> float:
        return round_down(Fraction(self.delta) - Fraction(self.limit.delta, UNIT))

    def promise(self) -> Guarantee:
        if self.epsilon is None:
            return self._own_limit
        return Approx(self.epsilon, self.delta)

    def left_as(self, spent: Price) -> Approx | None:
        """All that is left, as one release would be read: epsilons of parts are more than that of their sum.

        >>> from mosha.accounting.rules import rule_for
        >>> rule = rule_for(epsilon=1, delta=1e-6, rule="zero-concentrated")
        >>> [round(rule.left_as(Price.of(rule.rho * part)).epsilon, 3) for part in (0, 0.5, 1)]
        [1.0, 0.691, 0.0]
        """
        if self.epsilon is None:
            return None
        if not spent.amount and not spent.delta:
            return Approx(self.epsilon, self.delta)  # as it was promised, and not a last digit less
        left = self.amount_left(spent, "")
        return Approx(min(self._epsilon(left, self._conversion_delta), self.epsilon) if left else 0.0, self.delta)

    def pure_left(self, left: float) -> float:
        """The largest epsilon of one release without a delta whose price is within `left`, rounded down.

        >>> from mosha.accounting.rules import rule_for
        >>> rule = rule_for(rho=0.5)
        >>> round(rule.pure_left(0.5), 3)
        1.044
        """
        low, high = 0.0, 1.0
        while high < LARGEST_PURE and self._cost(Pure(high)).amount <= left:
            low, high = high, 2 * high
        for _ in range(52):
            middle = (low + high) / 2
            low, high = (middle, high) if self._cost(Pure(middle)).amount <= left else (low, middle)
        return low

    def spent_as(self, price: Price, way: str = "") -> Guarantee:
        del way
        amount, within = price.as_floats()[0], price.amount <= self.limit.amount
        if self.epsilon is None:
            meant = self._own_guarantee(amount)
            return self._own_limit if within and not meant <= self._own_limit else meant
        if price.amount == 0:
            return Approx(0.0, self.delta_of(price))
        exact = round_up(Fraction(self._conversion_delta) + Fraction(price.delta, UNIT))
        delta = min(exact, self.delta) if price.delta <= self.limit.delta else exact
        return Approx(self._epsilon(amount, self._conversion_delta), delta)
