"""Compiled look-ups of owners: whose each value of a foreign key is, as an array that begins at the least key.

Guarantee:
    `place = key - low` may wrap in 64 bits, and yet 0 <= place < size only where key = low + place, which is no larger
    than the largest key that is listed. So two keys never share a place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mosha.connect.kernels.column_kernels import Array, Whole

__all__ = ["NOBODY", "list_owners", "look_up"]

NOBODY, SEVERAL = -1, -2


@njit(cache=True)
def list_owners(keys: Array, persons: Array, least: Any, owners: Array) -> None:
    """Enter rows into owners[key - low]: the code of the one person whose rows have the key; else NOBODY or SEVERAL.

    `least` are the least key, low, and the least label of a person, which has code 0.
    """
    low, first = least
    for i in range(len(keys)):
        place, person = keys[i] - low, np.int32(persons[i] - first)
        if owners[place] == NOBODY:
            owners[place] = person
        elif owners[place] != person:
            owners[place] = SEVERAL


@njit(cache=True)
def look_up(keys: Array, owners: Array, low: Whole, persons: Array) -> int:
    """Fill `persons` with the owner of each key, below zero where there is not exactly one; how many have none."""
    lost, size = 0, len(owners)
    for i in range(len(keys)):
        place = np.int64(keys[i]) - low
        owner = owners[place] if 0 <= place < size else NOBODY
        persons[i] = owner
        lost += owner < 0
    return lost
