"""Compiled truncation to a few groups a person: the choice of the SQL plan, in two passes over rows in blocks.

A row is a word: 32 bits of its group's hash, 20 bits of the group's code, 12 bits that tell its person in the block;
its values stand beside it. A person has `most` places, each a word that counts rows in the low 12 bits. The first pass
keeps in them the smallest (hash, group) in order; the second adds the rows whose hash is not above the last place.

Guarantee:
    A word that once has left the places has `most` smaller ones above it, for good: so the places end with the smallest
    and count all their rows. The second pass adds as many rows as the places count unless another group shares the hash
    of the last place: then the flag is TIE, and the SQL plan decides by more bits. BUSY tells that a group has too many
    rows (counts stop at 4095, which is above every limit that comes here), and that rows must be chosen elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mosha.connect.kernels.column_kernels import BLOCK, Array, Whole, block_starts, missing_in
from mosha.connect.kernels.kernel import COUNT, KNOWN, PERSON

__all__ = ["FEW", "MOST_GROUPS", "MOST_ROWS", "into_words", "truncate_groups"]

FEW = 32  # so many places are looked through for each row
MOST_GROUPS = 2**20 - 1  # the last code is that of an empty place
MOST_ROWS = 2**12 - 2
TIE, BUSY = 1, 3
LOW = np.uint64((1 << BLOCK) - 1)
EMPTY = np.uint64(2**64 - 1)
ONE = np.uint64(1)
HALF = np.uint64(32)
TWELVE = np.uint64(BLOCK)


@njit(cache=True)
def into_words(rows: Any, people: Whole, words: Array, moved: Array) -> Array:
    """Fill words and moved from rows = (persons, groups, hashes, values), block after block; the starts of blocks.

    Values are one column of any type. What is filled comes from NumPy, whose memory is several times as fast to enter.
    """
    persons, groups, hashes, values = rows
    starts = block_starts(persons, people)
    place = starts.copy()
    for i in range(len(persons)):
        person = np.uint64(persons[i])
        k = place[person >> TWELVE]
        place[person >> TWELVE] = k + 1
        words[k] = (np.uint64(hashes[i]) << HALF) | (np.uint64(groups[i]) << TWELVE) | (person & LOW)
        moved[k] = values[i]
    return starts


@njit(cache=True)
def _merge_places(places: Array, first: Whole, last: Whole, word: Whole, spare: Any) -> None:
    """Two places (or the last and the spare) are of one group: one of them takes both counts, the others move up."""
    at = first
    while (places[at] ^ word) > LOW:
        at += 1
    twin = places[at + 1] if at < last else spare
    places[at] = (word & ~LOW) | min((places[at] & LOW) + (twin & LOW), LOW)
    for k in range(at + 1, last):
        places[k] = places[k + 1]
    if at < last:
        places[last] = spare


@njit(cache=True)
def _choose(words: Array, places: Array, most: Whole) -> None:
    """The first pass over a block. A row is let in by exchanges without a branch, so that nothing is guessed wrong."""
    places[:] = EMPTY
    for i in range(len(words)):
        word = words[i]
        first = np.int64(word & LOW) * most
        last = first + most - 1
        entering = (word & ~LOW) | ONE
        if entering > places[last] | LOW:
            continue
        known = False
        for k in range(first, last + 1):
            held = places[k]
            known |= (held ^ word) <= LOW
            places[k] = min(held, entering)
            entering = max(held, entering)
        if known:
            _merge_places(places, first, last, word, entering)


@njit(cache=True)
def _limits(places: Array, most: Whole, per_group: Whole, highest: Array) -> Any:
    """(how many rows the places count, flag); highest[p] is the largest hash that person p keeps."""
    count = np.int64(0)
    for person in range(len(highest)):
        first = person * most
        for k in range(first, first + most):
            if places[k] == EMPTY:
                break
            rows = np.int64(places[k] & LOW)
            if rows > per_group:
                return 0, BUSY
            count += rows
        highest[person] = places[first + most - 1] >> HALF
    return count, 0


@njit(cache=True)
def _keep_rows(words: Array, highest: Array, order: Array) -> Any:
    """The rows that stay, moved to the front of `order`; how many they are."""
    stay = np.int64(0)
    for i in range(len(words)):
        order[stay] = i
        stay += np.int64((words[i] >> HALF) <= highest[words[i] & LOW])
    return stay


@njit(cache=True)
def _group(word: Whole) -> Any:
    return np.int64((word >> TWELVE) & np.uint64(MOST_GROUPS))


@njit(cache=True)
def _add(words: Array, values: Array, order: Array, code: Whole, sums: Array) -> None:
    """Add one value of the rows that stay."""
    if code == COUNT:
        for k in range(len(order)):
            sums[_group(words[order[k]])] += 1
        return
    missing, column = missing_in(values), KNOWN - code if code <= KNOWN else code
    for k in range(len(order)):
        value = np.int64(values[order[k], column])
        if value != missing:
            sums[_group(words[order[k]])] += value if code >= 0 else np.int64(1)


@njit(cache=True)
def _add_persons(places: Array, sums: Array) -> None:
    for k in range(len(places)):
        if places[k] != EMPTY:
            sums[_group(places[k])] += 1


@njit(cache=True)
def truncate_groups(starts: Array, words: Array, values: Array, codes: Array, limits: Any, count: Whole) -> Any:
    """(a line of sums for each value, how many rows of each group stay, flag), from `into_words`.

    limits = (groups a person keeps, rows it may have in each); values has a line for each row; count is the number of
    groups. A flag tells that the sums are of no use.
    """
    most, per_group = limits
    sums, present = np.zeros((len(codes), count), np.int64), np.zeros(count, np.int64)
    largest = np.int64(0)
    for block in range(len(starts) - 1):
        largest = max(largest, starts[block + 1] - starts[block])
    order, highest = np.empty(largest, np.int32), np.empty(1 << BLOCK, np.uint64)
    places = np.empty(most << BLOCK, np.uint64)
    for block in range(len(starts) - 1):
        first, last = starts[block], starts[block + 1]
        if first == last:
            continue
        inside = words[first:last]
        _choose(inside, places, most)
        expected, flag = _limits(places, most, per_group, highest)
        if flag:
            return sums, present, flag
        stay = _keep_rows(inside, highest, order)
        if stay != expected:
            return sums, present, TIE
        _add(inside, values[first:last], order[:stay], COUNT, present)
        for j in range(len(codes)):
            if codes[j] == PERSON:
                _add_persons(places, sums[j])
            else:
                _add(inside, values[first:last], order[:stay], codes[j], sums[j])
    return sums, present, 0
