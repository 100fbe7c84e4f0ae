"""One pass over words, table and values, compiled by numba: for large arrays, where numba is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["add_sure"]


@njit(cache=True)
def add_sure(
    drawn: NDArray[np.uint32],
    start: NDArray[np.int32],
    sure: int,
    mask: int,
    values: NDArray[np.int64],
    unsure: NDArray[np.int64],
) -> int:
    """Add the points of sure slots to the values; note the places of all others, and return how many they are."""
    count = 0
    for i in range(drawn.size):
        slot = drawn[i] >> np.uint32(16)
        if slot < sure:
            values[i] += np.int64(start[slot]) | np.int64(drawn[i] & np.uint32(mask))
        else:
            unsure[count] = i
            count += 1
    return count
