"""Randomness on the device: the operating system's bytes and exact draws, from the standard library alone."""

from __future__ import annotations

import os
from typing import NoReturn, final

from mosha.core.errors import InsecureRandomness, InvalidParameter
from mosha.core.measurement import Rng

__all__ = ["DeviceRandom", "draw_below", "draw_subset", "flip_coin"]


@final
class DeviceRandom:
    """The operating system's randomness, unbuffered: nothing to seed, to copy or to carry over a fork.

    >>> len(DeviceRandom().bytes(4)), DeviceRandom().secure
    (4, True)
    """

    __slots__ = ()

    @property
    def secure(self) -> bool:
        """True: an account accepts this generator."""
        return True

    def bytes(self, n: int, /) -> bytes:
        """`n` fresh bytes."""
        return os.urandom(n)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InsecureRandomness("local.generator_not_stored")


def draw_below(bound: int, rng: Rng) -> int:
    """0, 1, ..., bound - 1, each equally likely.

    Guarantee:
        Exact: words of just enough bits, each value equally likely; those from `bound` on are drawn again, which
        leaves the values below it equally likely. More than half are kept, so it ends.

    >>> draw_below(1, DeviceRandom())
    0
    """
    if bound < 1:
        raise InvalidParameter("local.nothing_to_draw", parameter="bound")
    bits = (bound - 1).bit_length()
    size = (bits + 7) // 8
    while (drawn := int.from_bytes(rng.bytes(size), "little") >> (8 * size - bits)) >= bound:
        pass
    return drawn


def flip_coin(top: int, bottom: int, rng: Rng) -> bool:
    """True with probability exactly top / bottom.

    >>> flip_coin(1, 1, DeviceRandom()), flip_coin(0, 1, DeviceRandom())
    (True, False)
    """
    return draw_below(bottom, rng) < top


def draw_subset(count: int, bound: int, rng: Rng) -> set[int]:
    """`count` of 0, 1, ..., bound - 1: every set of that size is equally likely.

    Guarantee:
        Floyd's method. By induction the first steps give a uniform set of m of 0, ..., j - 1; step j adds j itself with
        probability (m + 1) / (j + 1), which is the share of the sets of size m + 1 of 0, ..., j that hold j, and else a
        uniform other element: uniform again.

    >>> draw_subset(3, 3, DeviceRandom()) == {0, 1, 2}
    True
    """
    chosen: set[int] = set()
    for last in range(bound - count, bound):
        drawn = draw_below(last + 1, rng)
        chosen.add(last if drawn in chosen else drawn)
    return chosen
