"""What a release costs an account: exact integers, so that no sum depends on its order and no cent is lost.

Composition is written once: what a multiset of events costs, given what each of its parts costs. Every measure here
is additive: whoever runs a part that costs c1 and then, having seen its answer, a part that costs c2, has run
something that costs at most c1 + c2 (`rules.md`, lemma 1). So a composition costs the sum over its parts, and the
count of a part is multiplied in `fold` and nowhere else.

Where a price is worked out in floats, they err to the safe side only: an upper bound that was rounded to the nearest
float may lie below the truth, and a promise may not. Sums, products and quotients are rounded up exactly; whatever goes
through `math.exp`, `math.log` and friends (each good to a unit in the last place) is pushed outward by a margin that
covers a short formula: see `bound_above` and `bound_below`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from operator import add, le, sub
from typing import Protocol, Self, TypeVar

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.number import non_negative

__all__ = [
    "FREE", "NO_COST", "OUT_OF_REACH", "UNIT", "Additive", "Cost", "Price", "add_up", "as_float", "bound_above",
    "bound_below", "cover_prices", "divide_up", "fold", "most_expensive", "ratio_up", "round_down", "round_up",
    "times_up",
]  # fmt: skip

MARGIN = 64.0  # units in the last place: more than any formula here can lose (each has fewer than 30 operations)


def ratio_up(numerator: int, denominator: int) -> float:
    """The least float that is not below numerator / denominator (above zero); infinity where there is none.

    >>> ratio_up(1, 10), ratio_up(1, 3) > 1 / 3
    (0.1, True)
    """
    try:
        near = numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
    top, bottom = near.as_integer_ratio()
    return near if top * denominator >= numerator * bottom else math.nextafter(near, math.inf)


def round_up(exact: Fraction) -> float:
    """The least float that is not below `exact`; infinity where there is none.

    >>> round_up(Fraction(1, 10))
    0.1
    """
    return ratio_up(exact.numerator, exact.denominator)


def round_down(exact: Fraction) -> float:
    """The largest float that is not above `exact`.

    >>> round_down(Fraction(1, 10)) < 0.1
    True
    """
    return -round_up(-exact)


def add_up(first: float, second: float) -> float:
    """The sum, rounded up.

    >>> add_up(1.0, 1.0), add_up(0.1, 0.7) > 0.1 + 0.7
    (2.0, True)
    """
    if math.isinf(first) or math.isinf(second):
        return first + second
    (top, bottom), (up, down) = first.as_integer_ratio(), second.as_integer_ratio()
    return ratio_up(top * down + up * bottom, bottom * down)


def times_up(value: float, count: int) -> float:
    """`value * count`, rounded up.

    >>> times_up(0.1, 10), times_up(0.5, 4)
    (1.0000000000000002, 2.0)
    """
    if math.isinf(value):
        return value
    top, bottom = value.as_integer_ratio()
    return ratio_up(top * count, bottom)


def divide_up(numerator: float, denominator: float, *, power: int = 1) -> float:
    """(numerator / denominator)^power, rounded up.

    >>> divide_up(1, 10), divide_up(1, 10, power=2)
    (0.1, 0.01)
    """
    (top, bottom), (up, down) = numerator.as_integer_ratio(), denominator.as_integer_ratio()
    return ratio_up((top * down) ** power, (bottom * up) ** power)


def bound_above(value: float, *, scale: float = 0.0) -> float:
    """An upper bound on what `value` was computed for.

    `scale` is the largest term of a sum that may have cancelled.

    >>> bound_above(1.0) > 1.0, bound_above(0.0), bound_above(1.0, scale=1e6) - 1.0 > 1e-9
    (True, 0.0, True)
    """
    if not math.isfinite(value):
        return value
    size = max(abs(value), abs(scale))
    return value + MARGIN * math.ulp(size) if size else 0.0


def bound_below(value: float, *, scale: float = 0.0) -> float:
    """A lower bound on what `value` was computed for."""
    return -bound_above(-value, scale=scale)


class Additive(Protocol):
    """What can be added up and repeated."""

    def __add__(self, other: Self, /) -> Self: ...

    def __mul__(self, count: int, /) -> Self: ...


C = TypeVar("C", bound=Additive)


def fold(event: Event, one: Callable[[Event], C], nothing: C) -> C:
    """The cost of `event`, where `one` says what a part costs that is no composition."""
    total = nothing
    for part, count in event.parts():
        total = total + one(part) * count
    return total


@dataclass(frozen=True)
class Cost:
    """An amount in some measure, and the probability that the measure does not hold at all.

    Units:
        `amount` is in the unit of the measure (epsilon, rho, a Rényi divergence in nats, mu squared); infinite where
        the event has no price in it. `delta` is a probability.

    >>> Cost(0.5, 1e-6) * 2 + Cost(1.0)
    Cost(amount=2.0, delta=2e-06)
    """

    amount: float
    delta: float = 0.0

    def __add__(self, other: Self) -> Self:
        return type(self)(add_up(self.amount, other.amount), min(1.0, add_up(self.delta, other.delta)))

    def __mul__(self, count: int) -> Self:
        return type(self)(times_up(self.amount, count), min(1.0, times_up(self.delta, count)))

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.amount) and self.delta < 1


NO_COST = Cost(0.0)


def most_expensive(costs: list[Cost]) -> Cost:
    """What covers each of these costs.

    >>> most_expensive([Cost(1.0), Cost(0.5, 1e-6)])
    Cost(amount=1.0, delta=1e-06)
    """
    return Cost(max(c.amount for c in costs), max(c.delta for c in costs))


UNIT = 2**128
OUT_OF_REACH = UNIT * 2**65  # the price of what a way cannot pay at all: above every limit that has two ways


@dataclass(frozen=True)
class Price:
    """An amount in the measure of a rule, and a delta; both count units of 2^-128.

    A rule that adds up in two ways at once (`either.py`) keeps both sums: `amount` and `delta` are epsilons and deltas,
    `rho` and `rho_delta` the same payments in zero-concentrated privacy. Elsewhere the latter are zero.

    Guarantee:
        `Price.of` rounds up, sums and multiples are exact: no rounding ever makes a release cheaper.

    `a <= b` means that no part of `a` exceeds that of `b`.

    >>> Price.of(0.5) * 2 == Price.of(1.0), Price.of(0.1) * 10 <= Price.of(1.0)
    (True, False)
    """

    amount: int
    delta: int = 0
    rho: int = 0
    rho_delta: int = 0

    def __post_init__(self) -> None:
        for value in self.parts:
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidParameter("accounting.price_not_in_units")

    @property
    def parts(self) -> tuple[int, int, int, int]:
        return self.amount, self.delta, self.rho, self.rho_delta

    @classmethod
    def of(cls, amount: float, delta: float = 0.0) -> Self:
        """The price that covers these numbers."""
        return cls(_ceiling(non_negative("amount", amount)), _ceiling(non_negative("delta", delta)))

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, self.parts, other.parts))

    def __radd__(self, other: int) -> Self:
        return self if other == 0 else NotImplemented  # lets sum(prices) work

    def __sub__(self, other: Self) -> Self:
        return type(self)(*map(sub, self.parts, other.parts))

    def __mul__(self, count: int) -> Self:
        if isinstance(count, bool) or not isinstance(count, int):
            return NotImplemented
        return type(self)(*(part * count for part in self.parts))

    __rmul__ = __mul__

    def __le__(self, other: Self) -> bool:
        return all(map(le, self.parts, other.parts))

    def __ge__(self, other: Self) -> bool:
        return other <= self

    def as_floats(self) -> tuple[float, float]:
        """Amount and delta as floats, rounded up.

        >>> Price.of(0.25, 1e-6).as_floats()
        (0.25, 1e-06)
        """
        return as_float(self.amount), as_float(self.delta)

    def to_dict(self) -> dict[str, str]:
        """The price as decimal strings, which no JSON reader rounds.

        >>> Price.from_dict(Price.of(0.1, 1e-9).to_dict()) == Price.of(0.1, 1e-9)
        True
        """
        described = {"amount": str(self.amount), "delta": str(self.delta)}
        twice = {"rho": str(self.rho), "rho_delta": str(self.rho_delta)}
        return described | (twice if self.rho or self.rho_delta else {})

    @classmethod
    def from_dict(cls, stored: dict[str, object]) -> Self:
        """The price that `to_dict` described."""
        try:
            parts = [str(stored["amount"]), str(stored["delta"]), str(stored.get("rho", 0))]
            parts.append(str(stored.get("rho_delta", 0)))
        except (KeyError, TypeError, AttributeError):
            raise InvalidParameter("accounting.unknown_price_fields") from None
        if not all(part.isascii() and part.isdigit() for part in parts):
            raise InvalidParameter("accounting.unknown_price_fields")
        return cls(*map(int, parts))


def as_float(units: int) -> float:
    """So many units as a number, rounded up."""
    return round_up(Fraction(units, UNIT))


def _ceiling(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return -(-numerator * UNIT // denominator)


def cover_prices(prices: Iterable[Price]) -> Price:
    """The least price that is at least each of these, part by part.

    >>> cover_prices([Price.of(1.0), Price.of(0.5, 1e-6)]) == Price.of(1.0, 1e-6)
    True
    """
    top = FREE
    for price in prices:
        top = Price(*map(max, top.parts, price.parts))
    return top


FREE = Price(0, 0)
