"""Tickets that were used before, in a memory of fixed size: a Bloom filter."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter

__all__ = ["Tickets"]

_PROBES = 8


class Tickets:
    """Which tickets have been seen: never forgets one, and takes a fresh one for seen now and then.

    A ticket is a random number that a device sends beside its report, once. A fresh ticket is refused by mistake with
    probability about (1 - e^(-8 n / bits))^8 after n of them: one in a million at n = bits / 41.

    >>> tickets = Tickets(1 << 16)
    >>> tickets.take_new([b"one", b"two", b"one"]).tolist(), tickets.take_new([b"two"]).tolist()
    ([True, True, False], [False])
    """

    def __init__(self, bits: int, seen: NDArray[np.uint8] | None = None) -> None:
        if bits < 64 or bits & (bits - 1):
            raise InvalidParameter("local.ticket_memory", parameter="ticket_bits")
        self.bits = bits
        self.seen = np.zeros(bits // 8, np.uint8) if seen is None else seen

    def take_new(self, tickets: Sequence[bytes]) -> NDArray[np.bool_]:
        """Which of these tickets were not seen before; all of them are seen now."""
        if any(not isinstance(ticket, bytes) for ticket in tickets):
            raise InvalidParameter("local.ticket_not_bytes", parameter="tickets")
        return np.array([self._record(ticket) for ticket in tickets], np.bool_)

    def _record(self, ticket: bytes) -> bool:
        code = int.from_bytes(hashlib.blake2b(ticket, digest_size=16).digest(), "little")
        step, place, fresh = code >> 64 | 1, code, False
        for _ in range(_PROBES):
            byte, bit = place % self.bits >> 3, 1 << (place & 7)
            if not int(self.seen[byte]) & bit:
                fresh = True
                self.seen[byte] |= np.uint8(bit)
            place += step
        return fresh

    def merge(self, other: Tickets) -> None:
        """All that either has seen."""
        if other.bits != self.bits:
            raise InvalidParameter("local.ticket_memories_differ")
        self.seen |= other.seen
