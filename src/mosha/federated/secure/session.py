"""One round of secure aggregation as everybody knows it: who takes part, who is whose partner, what is enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.core.names.calls import renamed_argument
from mosha.core.number import positive_integer
from mosha.noise import uniform

__all__ = ["Session"]

_WIDEST = 1 << 30


@renamed_argument(neighbours="partners")
@dataclass(frozen=True)
class Session:
    """The public terms of one round; the server chooses them, every client checks them.

    Fields:
        label: tells this round from every other one; keys are bound to it.
        order: the members (numbers from 1), in the random order that makes the graph.
        partners: with how many others each shares masks and secrets (an even number), or all where there are fewer.
        threshold: how many of them must answer to open a mask: more than half.
        survivors: fewer than so many masked inputs are never opened.
        width: how many integers modulo 2**32 are summed.
        agreed: the fingerprint of the plan or question that noise and price come from; each client has its own copy.

    >>> from mosha import noise
    >>> Session.begin(range(1, 6), partners=4, survivors=3, width=2, rng=noise.secure()).width
    2
    """

    label: bytes
    order: tuple[int, ...]
    partners: int
    threshold: int
    survivors: int
    width: int
    agreed: str = ""

    def __post_init__(self) -> None:
        for name in ("partners", "threshold", "survivors", "width"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        if not all(type(member) is int for member in self.order) or self.width > _WIDEST:
            raise InvalidParameter("federated.members_not_numbers", parameter="members")
        if len(self.order) < 3 or len(set(self.order)) != len(self.order) or min(self.order) < 1:
            raise InvalidParameter("federated.too_few_members", parameter="members")
        if self.partners < 2:
            raise InvalidParameter("federated.too_few_partners", parameter="partners")
        if self.degree < self.threshold or 2 * self.threshold <= self.degree:
            raise InvalidParameter("federated.threshold_too_low", parameter="threshold", degree=self.degree)
        if not 2 <= self.survivors <= len(self.order):
            raise InvalidParameter("federated.survivors_of_members", parameter="survivors")

    @staticmethod
    @renamed_argument(neighbours="partners")
    def begin(
        members: Sequence[int],
        *,
        partners: int,
        survivors: int,
        width: int,
        rng: Rng,
        threshold: int | None = None,
        agreed: str = "",
    ) -> Session:
        """A session of `members` with a fresh label and random graph from `rng`; the threshold is the least allowed."""
        if not isinstance(members, Sequence) or not isinstance(rng, Rng):
            raise InvalidParameter("federated.round_without_members", parameter="members")
        order, partners = list(members), positive_integer("partners", partners)
        for i in range(len(order) - 1, 0, -1):
            j = uniform(i + 1, rng=rng)
            order[i], order[j] = order[j], order[i]
        needed = _degree(partners, len(order)) // 2 + 1 if threshold is None else threshold
        return Session(rng.bytes(16), tuple(order), partners, needed, survivors, width, agreed)

    @property
    def degree(self) -> int:
        """How many partners everybody has."""
        return _degree(self.partners, len(self.order))

    @cached_property
    def _place(self) -> dict[int, int]:
        return {member: place for place, member in enumerate(self.order)}

    def partners_of(self, member: int) -> list[int]:
        """The partners of `member`: the nearest on both sides of the ring of members. Being one is mutual.

        >>> Session(b"r", (1, 2, 3, 4, 5), 2, 2, 3, 1).partners_of(1)
        [2, 5]
        """
        here, size, reach = self._place[member], len(self.order), self.degree // 2
        if self.degree >= size - 1:
            return sorted(other for other in self.order if other != member)
        places = [(here + step) % size for step in range(-reach, reach + 1) if step]
        return sorted(self.order[place] for place in places)


def _degree(partners: int, members: int) -> int:
    return members - 1 if partners >= members - 1 else partners - partners % 2
