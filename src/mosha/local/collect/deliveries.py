"""Files of reports that were counted before, as far as they had come: one that has grown is counted from there on."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

__all__ = ["Deliveries", "Delivery", "bound_coincidence"]

_CHANCE = -40 * math.log(2)  # natural logarithm of 2^-40


@dataclass(frozen=True)
class Delivery:
    """The beginning of a file that was counted: its length in bytes, its SHA-256, and the hash of the file's name.

    `alone` says that chance cannot have made another file that begins like it: then it is known by any name.
    """

    length: int
    digest: str
    name: str
    alone: bool


class Deliveries:
    r"""Which files were counted, and how far.

    A file is known if it begins with what was counted under its name. Under another name it is known only where chance
    cannot have made two files alike: the few short reports of two devices often are.

    >>> seen = Deliveries()
    >>> seen.note(b"VwE=\nVwI=\n", "monday.txt")
    >>> seen.count_known(b"VwE=\nVwI=\nVwA=\n", "monday.txt"), seen.count_known(b"VwE=\nVwI=\n", "tuesday.txt")
    (10, 0)
    """

    def __init__(self) -> None:
        self._seen: set[Delivery] = set()

    def count_known(self, data: bytes, name: str) -> int:
        """How many bytes at the beginning of the file were counted before."""
        own, running, done, found = _hash_name(name), hashlib.sha256(), 0, 0
        view = memoryview(data)
        for delivery in sorted(self._seen, key=lambda delivery: delivery.length):
            if delivery.length > len(data):
                break
            running.update(view[done : delivery.length])
            done = delivery.length
            if running.hexdigest() == delivery.digest and (delivery.alone or delivery.name == own):
                found = done
        return found

    def note(self, data: bytes, name: str) -> None:
        """All of these bytes are counted now. Shorter beginnings stay known: an old copy is not counted again."""
        if data:
            alone = bound_coincidence(data) < _CHANCE
            self._seen.add(Delivery(len(data), hashlib.sha256(data).hexdigest(), _hash_name(name), alone))

    def overlaps(self, other: Deliveries) -> bool:
        """Whether both have counted some of the same files, as far as can be told."""
        beginnings = {(seen.length, seen.digest) for seen in self._seen if seen.alone}
        return bool(self._seen & other._seen) or any((o.length, o.digest) in beginnings for o in other._seen)

    def merge(self, other: Deliveries) -> None:
        """All that either has counted."""
        self._seen |= other._seen

    def to_list(self) -> list[list[Any]]:
        """As plain data."""
        return sorted([seen.length, seen.digest, seen.name, seen.alone] for seen in self._seen)

    @staticmethod
    def from_list(rows: list[list[Any]]) -> Deliveries:
        """What `to_list` gave."""
        found = Deliveries()
        found._seen = {
            Delivery(int(length), str(digest), str(name), bool(alone)) for length, digest, name, alone in rows
        }
        return found


def bound_coincidence(data: bytes) -> float:
    r"""The natural logarithm of a bound on the probability that another file has these very lines.

    Whatever lines the other file has, if they came in an order by chance each order is as likely: n lines of which c_i
    are alike have n! / (c_1! c_2! ...) orders.

    >>> round(math.exp(-bound_coincidence(b"a\na\nb\nc\n")))
    12
    """
    counts = Counter(line for line in data.splitlines() if line)
    orders = math.lgamma(counts.total() + 1) - sum(math.lgamma(count + 1) for count in counts.values())
    return -orders


def _hash_name(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:32]
