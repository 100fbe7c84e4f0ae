"""Composition, written once: what a multiset of events costs, given what each of its parts costs.

Every measure here is additive: whoever runs a part that costs c1 and then, having seen its answer, a part that costs
c2, has run something that costs at most c1 + c2 (`rules.md`, lemma 1). So a composition costs the sum over its parts,
and the count of a part is multiplied in this one line and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from mosha.accounting.numerics.rounding import add_up, times_up
from mosha.core.event import Event

__all__ = ["NO_COST", "Additive", "Cost", "fold", "most_expensive"]


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
