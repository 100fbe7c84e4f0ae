"""The pass over an answer that makes a gradient of it, compiled by numba, where it is installed."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["scale"]


@njit(cache=True)
def scale(steps: NDArray[np.int64], factor: float, flat: NDArray[np.float32]) -> None:
    """Write all steps times the factor, both rounded to single precision; from first to last, one at a time.

    `flat` may be the first half of the memory of the steps: no entry is written over that was not read before.
    """
    single = np.float32(factor)
    for i in range(flat.size):
        flat[i] = np.float32(steps[i]) * single
