"""The encoder of correlated noise: the square root of the prefix sums, cut to a band and rounded to 2**-12.

C is lower triangular and constant along diagonals, with c_0 = 1 and c_j = c_(j-1) (2j - 1) / (2j) for j < bands: the
coefficients of (1 - x)^(-1/2), so that C C is the matrix of prefix sums where nothing is cut off. What is
released is C x + z for the sums x and noise z; the update is C^-1 (C x + z) = x + C^-1 z, computed from what
was released alone. Coefficients are whole multiples of 2**-12, so that C x is exact on integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

from mosha.core.number import positive_integer

__all__ = ["STEPS", "coefficients", "column_norm"]

STEPS = 1 << 12


def coefficients(bands: int) -> list[int]:
    """c_j in units of 1 / STEPS.

    >>> coefficients(4)
    [4096, 2048, 1536, 1280]
    """
    found = [Fraction(1)]
    for j in range(1, positive_integer("bands", bands)):
        found.append(found[-1] * (2 * j - 1) / (2 * j))
    return [round(c * STEPS) for c in found]


def column_norm(bands: int) -> float:
    """The norm of a whole column of C; those at the end of a training are cut off and shorter.

    >>> column_norm(1)
    1.0
    """
    squares = sum(c * c for c in coefficients(bands))
    return math.sqrt(squares) / STEPS
