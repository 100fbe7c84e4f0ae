"""The loops over bits of many reports, compiled (the extra `fast`); `loops` says when they are worth loading.

Each takes random words that were drawn before and is a function of them: nothing in here draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["even_out", "look_up_words", "split_values"]

Array = np.ndarray[Any, Any]
_ONE, _NONE = np.uint64(1), np.uint64(0)
_EVERY = ~_NONE
_PAIRS, _FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_EIGHTS, _SUM = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)
_SHIFTS = (np.uint64(2), np.uint64(4), np.uint64(56))


@njit(cache=True)
def look_up_words(
    words: Array, quick: Array, rare: object, table: Array, unsure: object, found: Array, places: Array
) -> Any:
    """`found` becomes what `quick` says of each word; how many were unsure, whose places are noted."""
    count = 0
    for i in range(len(words)):
        value = quick[words[i]]
        found[i] = value
        if value == rare and table[words[i]] == unsure:
            places[count] = i
            count += 1
    return count


@njit(cache=True)
def split_values(first: Array, second: Array, values: Array, size: int, sets: Array, missing: Array) -> None:
    """The values but one's own, parted into four by two coins each: `sets` becomes the part that is evened soonest.

    `missing` says how many values are wanted, and then how many still are. Which part is taken depends on how large the
    four are and on nothing else of the coins. Taking a value out takes more tries than adding one: 8 to 3 or so.
    """
    many = sets.shape[1]
    tail = np.uint64(size % 64)
    end = (_ONE << tail) - _ONE if tail else _EVERY
    for row in range(len(values)):
        home, own = values[row] >> 6, ~(_ONE << np.uint64(values[row] & 63))
        ones = others = both = 0
        for j in range(many):
            mask = (end if j == many - 1 else _EVERY) & (own if j == home else _EVERY)
            x, y = first[row, j] & mask, second[row, j] & mask
            ones += _count(x)
            others += _count(y)
            both += _count(x & y)
        wanted, neither = missing[row], size - 1 - ones - others + both
        best, one, two = wanted - both, _NONE, _NONE
        for part, held in enumerate((ones - both, others - both, neither)):
            lacks = wanted - held
            better = (3 * lacks if lacks > 0 else -8 * lacks) < (3 * best if best > 0 else -8 * best)
            best = lacks if better else best
            one = (_EVERY if part else _NONE) if better else one
            two = (_NONE if part == 1 else _EVERY) if better else two
        missing[row] = best
        for j in range(many):
            mask = (end if j == many - 1 else _EVERY) & (own if j == home else _EVERY)
            sets[row, j] = (first[row, j] ^ one) & (second[row, j] ^ two) & mask


@njit(cache=True)
def even_out(
    sets: Array, values: Array, held: Array, missing: Array, others: int, pool: Array, bits: Any, row: int
) -> Any:
    """Values at random, but one's own, are taken in or out of each set until none is missing; one's own, where held.

    Reads words of so many bits from the pool, each a uniform value by Lemire's method, which leaves out some words.
    Where the pool ends before the work does, answers the row to go on with: all else stands in `sets` and `missing`.
    """
    place, last = 0, len(pool)
    low = (np.int64(1) << bits) - 1
    surplus = (low + 1) % others
    while row < len(values):
        steps, own = abs(missing[row]), values[row]
        absent = np.uint64(missing[row] > 0)  # whether values that are absent are taken in, or others out
        while steps:
            if place == last:
                missing[row] = steps if absent else -steps
                return row
            product = np.int64(pool[place]) * others
            place += 1
            drawn = product >> bits
            drawn += drawn >= own
            home, shift = drawn >> 6, np.uint64(drawn & 63)
            word = sets[row, home]
            fits = np.uint64((product & low) >= surplus) & ((word >> shift) & _ONE ^ absent)
            sets[row, home] = word ^ (fits << shift)
            steps -= np.int64(fits)
        missing[row] = 0
        sets[row, own >> 6] |= np.uint64(held[row]) << np.uint64(own & 63)
        row += 1
    return row


@njit(cache=True)
def _count(word: Any) -> Any:
    """How many bits are set: in pairs, in fours, in eights, in all."""
    word -= (word >> _ONE) & _PAIRS
    word = (word & _FOURS) + ((word >> _SHIFTS[0]) & _FOURS)
    word = (word + (word >> _SHIFTS[1])) & _EIGHTS
    return np.int64((word * _SUM) >> _SHIFTS[2])
