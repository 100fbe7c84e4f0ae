"""Who is drawn for a step: the draw, its price and how far one unit then moves a sum, as one object for each rule.

Poisson        every unit by a coin of its own
FixedSize      a given number of units, without replacement
Shuffled       every unit in one batch of each epoch, chosen at random
CyclicPoisson  groups of units take turns, and every unit of the group is drawn by a coin of its own
TakingTurns    every unit once in a period, in a place that its own name decides
Everybody      all units, always
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import FixedSizeSampled
from mosha.core.measurement import Rng
from mosha.core.number import positive, positive_integer
from mosha.core.unit import Neighbors
from mosha.noise import bernoulli_places, choose_places, uniform

__all__ = [
    "CyclicPoisson",
    "Everybody",
    "FixedSize",
    "FreshSampling",
    "Poisson",
    "Sampling",
    "Shuffled",
    "TakingTurns",
    "shuffle",
]

Indices = NDArray[np.int64]


def shuffle(values: Indices, rng: Rng) -> Indices:
    """The values in a uniformly random order: sorted by 64-bit words, drawn anew if two are equal.

    Distinct words are equally likely in every order, so the order is exactly uniform.
    """
    while True:
        words = np.frombuffer(rng.bytes(8 * len(values)), np.uint64)
        order = words.argsort()
        ranked = words[order]
        if (ranked[1:] != ranked[:-1]).all():
            return values[order]


class Sampling(ABC):
    """A rule that decides who takes part in a step.

    Guarantee:
        If the sums of one step over all units of neighboring data sets differ by at most `moves` contributions, and
        `event` is the price of releasing such a sum, then `price(event, steps, population)` is the price of `steps`
        of them over the units that this rule draws. Each rule says why.

    Fields:
        neighbors: the relation that the price holds for.
        moves: by how many contributions the sums of two neighbors can differ.
    """

    neighbors: ClassVar[Neighbors] = Neighbors.ADD_REMOVE
    moves: ClassVar[int] = 1

    @abstractmethod
    def expected_size(self, population: int) -> float:
        """The expected number of units in a step, of the `population` that was planned with."""

    def price_step(self, event: Event, population: int) -> Event:
        """The price of `event` on the units of one step, of a declared `population`."""
        del population
        return event

    def participations(self, steps: int) -> int:
        """The number of prices of one step that this many steps cost: at most, how often a unit can take part."""
        return steps

    def price(self, event: Event, *, steps: int, population: int) -> Event:
        """The price of `event` in every one of this many steps."""
        return self.price_step(event, population) * self.participations(steps)


class FreshSampling(Sampling):
    """A rule whose draw in one step needs no memory of the draws before it."""

    @abstractmethod
    def places(self, present: Sequence[Hashable], population: int, number: int, rng: Rng) -> Indices:
        """The places, in `present`, of the units of step `number` (from 1), of a declared `population`, by `rng`."""

    def draw(self, present: Sequence[Hashable], population: int, number: int, rng: Rng) -> list[Hashable]:
        """The units of step `number` themselves."""
        return [present[place] for place in self.places(present, population, number, rng).tolist()]


@dataclass(frozen=True)
class Poisson(FreshSampling):
    """Each unit takes part with probability `rate`, independently of the others.

    Guarantee:
        One unit more or less changes nobody else's coin, so this is the sample that `Sampled` prices, whatever the
        number of units. The sums of neighbors differ by one contribution.

    >>> Poisson(0.1).expected_size(1000)
    100.0
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))
        if self.rate > 1:
            raise InvalidParameter("core.not_a_rate", parameter="rate", value=self.rate)

    def expected_size(self, population: int) -> float:
        return self.rate * population

    def places(self, present: Sequence[Hashable], population: int, number: int, rng: Rng) -> Indices:
        del population, number
        return bernoulli_places(self.rate, len(present), rng=rng)

    def price_step(self, event: Event, population: int) -> Event:
        del population
        return event.sample(self.rate)


@dataclass(frozen=True)
class FixedSize(FreshSampling):
    """Exactly `size` of the planned units, without replacement; neighbors replace one unit by another.

    Guarantee:
        With fewer units present than planned, the missing places are drawn like any other and add nothing, so nobody is
        drawn more often than size / population, which is what `FixedSizeSampled` prices. With more units present,
        everybody is drawn less often. All subsets are equally likely. The sums of neighbors differ by two
        contributions.

    >>> FixedSize(10)
    FixedSize(size=10)
    """

    size: int
    neighbors = Neighbors.REPLACE_ONE
    moves = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", positive_integer("size", self.size))

    def expected_size(self, population: int) -> float:
        self._check(population)
        return float(self.size)

    def places(self, present: Sequence[Hashable], population: int, number: int, rng: Rng) -> Indices:
        del number
        self._check(population)
        chosen = choose_places(self.size, max(len(present), population), rng=rng)
        return chosen[chosen < len(present)]

    def price_step(self, event: Event, population: int) -> Event:
        self._check(population)
        return FixedSizeSampled(event, self.size, population)

    def _check(self, population: int) -> None:
        if self.size > population:
            raise InvalidParameter(
                "mechanisms.round_above_population", parameter="size", size=self.size, population=population
            )


@dataclass(frozen=True)
class Shuffled(Sampling):
    """Each unit is in one of the `batches` of every epoch, chosen uniformly and independently of the others.

    Guarantee:
        Given the places of all units, which do not depend on the data, a unit changes one step of every epoch; a
        mixture over places is no easier to tell apart than the worst of them. So there is no amplification, and
        `steps` steps cost ceil(steps / batches) prices.

    Fields:
        batches: the number of batches in an epoch.
        repeated: whether a unit keeps its place in all epochs, so that it takes part exactly `batches` steps apart.

    >>> Shuffled(10).participations(25)
    3
    """

    batches: int
    repeated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "batches", positive_integer("batches", self.batches))

    def expected_size(self, population: int) -> float:
        return population / self.batches

    def participations(self, steps: int) -> int:
        return -(-steps // self.batches)

    def assign(self, population: int, rng: Rng) -> Indices:
        """The batch of each unit of `population` in one epoch, from `rng` (private: it says who is in which batch)."""
        return uniform(self.batches, population, rng=rng)


@dataclass(frozen=True)
class CyclicPoisson(Sampling):
    """Each unit is in one of `groups`, chosen once; groups take turns, and its units are drawn by coins.

    Guarantee:
        Given the groups of all units, which do not depend on the data, a unit can be drawn in one of `groups` steps, by
        a coin of rate * groups that nobody else's depends on, and in no other: so `steps` steps cost
        ceil(steps / groups) prices of `Sampled`. A mixture over groups is no easier to tell apart than the worst.

    Fields:
        rate: the share of all units in a step, on average.
        groups: how many groups there are; rate * groups is at most one.

    >>> CyclicPoisson(0.01, 8).participations(100), CyclicPoisson(0.01, 8).expected_size(1000)
    (13, 10.0)
    """

    rate: float
    groups: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))
        object.__setattr__(self, "groups", positive_integer("groups", self.groups))
        if self.rate * self.groups > 1:
            raise InvalidParameter("core.not_a_rate", parameter="rate", value=self.rate * self.groups)

    @property
    def turns(self) -> Shuffled:
        """Which group has its turn, as batches that are the same in every epoch."""
        return Shuffled(self.groups, repeated=True)

    def expected_size(self, population: int) -> float:
        return self.rate * population

    def draw_from(self, group: Indices, rng: Rng) -> Indices:
        """The units of a group that take part."""
        return group[bernoulli_places(self.rate * self.groups, len(group), rng=rng)]

    def price_step(self, event: Event, population: int) -> Event:
        return Poisson(self.rate * self.groups).price_step(event, population)

    def participations(self, steps: int) -> int:
        return -(-steps // self.groups)


@dataclass(frozen=True)
class TakingTurns(FreshSampling):
    """Each unit takes part once in `period` steps, in a place that its own name decides.

    For units that cannot be drawn at random. Nothing is secret about who takes part.

    Guarantee:
        A unit's place is a hash of its name: it depends on no other unit, so one unit more or less changes the sums of
        its own steps alone. There are at most ceil(steps / period) of them, `period` apart.

    >>> TakingTurns(10).participations(25)
    3
    """

    period: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", positive_integer("period", self.period))

    def expected_size(self, population: int) -> float:
        return population / self.period

    def places(self, present: Sequence[Hashable], population: int, number: int, rng: Rng) -> Indices:
        del population, rng
        turn = (number - 1) % self.period
        return np.array([i for i, name in enumerate(present) if self.place(name) == turn], np.int64)

    def place(self, name: Hashable) -> int:
        """The place of a unit in the period."""
        digest = hashlib.sha256(repr(name).encode("utf-8", "backslashreplace")).digest()
        return int.from_bytes(digest[:16]) % self.period

    def participations(self, steps: int) -> int:
        return -(-steps // self.period)


@dataclass(frozen=True)
class Everybody(FreshSampling):
    """All units take part in each step: no randomness, no discount.

    >>> Everybody().expected_size(7)
    7.0
    """

    def expected_size(self, population: int) -> float:
        return float(population)

    def places(self, present: Sequence[Hashable], population: int, number: int, rng: Rng) -> Indices:
        del population, number, rng
        return np.arange(len(present))
