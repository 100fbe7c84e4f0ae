"""Who takes part in a round, and what choosing them does to the price."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import FixedSizeSampled
from mosha.core.number import positive, positive_integer
from mosha.core.randomness import Rng
from mosha.core.unit import Client, Neighbours
from mosha.noise import bernoulli, uniform

__all__ = ["Everybody", "FixedSize", "Poisson", "Sampling", "TakingTurns"]


class Sampling(Protocol):
    """A rule that draws the clients of one round, from secure randomness, with the price that goes with it.

    Fields:
        unit: which neighbours the price is for.
        moves: how many clipped updates apart the sums of two neighbours can be.
    """

    @property
    def unit(self) -> Client: ...

    @property
    def moves(self) -> int: ...

    def expected(self, clients: int) -> float:
        """The expected number of participants when `clients` were planned with."""

    def draw(self, present: Sequence[Hashable], clients: int, number: int, rng: Rng) -> list[Hashable]:
        """The clients of round `number`, out of those that are present."""

    def priced(self, event: Event, clients: int) -> Event:
        """What `event` on the clients of one round costs."""

    def paid_rounds(self, rounds: int) -> int:
        """In how many of so many rounds one client can be met."""


@dataclass(frozen=True)
class Poisson:
    """Each client takes part with probability `rate`, whoever else does.

    Guarantee:
        One client more or less changes nobody else's coin, so this is the sample that `Sampled` prices, whatever the
        number of clients. Sums of neighbours differ by one clipped update.

    >>> Poisson(0.1).expected(1000)
    100.0
    """

    rate: float
    unit = Client()
    moves = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))
        if self.rate > 1:
            raise InvalidParameter(f"rate must lie in (0, 1], got {self.rate:g}.")

    def expected(self, clients: int) -> float:
        return self.rate * clients

    def draw(self, present: Sequence[Hashable], clients: int, number: int, rng: Rng) -> list[Hashable]:
        del clients, number
        if not present:
            return []
        chosen = bernoulli(self.rate, len(present), rng=rng)
        return [present[i] for i in np.flatnonzero(chosen).tolist()]

    def priced(self, event: Event, clients: int) -> Event:
        del clients
        return event.sampled(self.rate)

    def paid_rounds(self, rounds: int) -> int:
        return rounds


@dataclass(frozen=True)
class FixedSize:
    """Exactly `size` of the planned clients, without replacement; neighbours replace one client by another.

    Guarantee:
        With fewer clients present than were planned with, the missing places are drawn like any other and send nothing,
        so that nobody is drawn more often than size / clients, which is what `FixedSizeSampled` prices. With more
        present, everybody is drawn less often. Sums of neighbours differ by two clipped updates.
    """

    size: int
    unit = Client(neighbours=Neighbours.REPLACE_ONE)
    moves = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", positive_integer("size", self.size))

    def expected(self, clients: int) -> float:
        self._check(clients)
        return float(self.size)

    def draw(self, present: Sequence[Hashable], clients: int, number: int, rng: Rng) -> list[Hashable]:
        del number
        self._check(clients)
        places = list(range(max(len(present), clients)))
        for i in range(self.size):  # Fisher and Yates, as far as it is needed
            j = i + uniform(len(places) - i, rng=rng)
            places[i], places[j] = places[j], places[i]
        return [present[place] for place in sorted(places[: self.size]) if place < len(present)]

    def priced(self, event: Event, clients: int) -> Event:
        self._check(clients)
        return FixedSizeSampled(event, self.size, clients)

    def paid_rounds(self, rounds: int) -> int:
        return rounds

    def _check(self, clients: int) -> None:
        if self.size > clients:
            raise InvalidParameter(f"a round of {self.size} clients needs as many: {clients} were planned with.")


@dataclass(frozen=True)
class Everybody:
    """All clients take part in each round: no randomness, no discount.

    >>> Everybody().expected(7)
    7.0
    """

    unit = Client()
    moves = 1

    def expected(self, clients: int) -> float:
        return float(clients)

    def draw(self, present: Sequence[Hashable], clients: int, number: int, rng: Rng) -> list[Hashable]:
        del clients, number, rng
        return list(present)

    def priced(self, event: Event, clients: int) -> Event:
        del clients
        return event

    def paid_rounds(self, rounds: int) -> int:
        return rounds


@dataclass(frozen=True)
class TakingTurns:
    """Each client takes part once in `period` rounds, in a place that its own name decides.

    For federations whose clients cannot be drawn at random. Nothing is secret about who takes part.

    Guarantee:
        A client's place is a hash of its name: it depends on no other client, so that one client more or less changes
        the sums of its own rounds alone. There are at most ceil(rounds / period) of them, `period` apart.

    >>> TakingTurns(10).paid_rounds(25)
    3
    """

    period: int
    unit = Client()
    moves = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", positive_integer("period", self.period))

    def expected(self, clients: int) -> float:
        return clients / self.period

    def draw(self, present: Sequence[Hashable], clients: int, number: int, rng: Rng) -> list[Hashable]:
        del clients, rng
        return [client for client in present if self.place(client) == (number - 1) % self.period]

    def place(self, client: Hashable) -> int:
        """The place of a client in the period."""
        name = hashlib.sha256(repr(client).encode("utf-8", "backslashreplace")).digest()
        return int.from_bytes(name[:16]) % self.period

    def priced(self, event: Event, clients: int) -> Event:
        del clients
        return event

    def paid_rounds(self, rounds: int) -> int:
        return -(-rounds // self.period)
