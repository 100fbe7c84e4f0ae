"""How much room the clip leaves for what single precision may round: a public number, proved in `rounding.md`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mosha.core.errors import InvalidParameter

__all__ = ["COARSE", "FINE", "Grid", "grid_of"]

UNIT = 2.0**-24  # half the distance from 1 to the next single-precision number
NORMS = 2.0**-11  # of a norm: more than its computation rounds away
MOVED = 2.0**-8  # of the clip: how far one row may depend on its place in a batch (assumption A1)
FINE = 21  # bits of the grid for a noise multiplier of about one
COARSE = 18  # the same where sums of several silos must fit into 32 bits; no grid is coarser
ENLARGED = 1 + Fraction(1, 1 << 20)


@dataclass(frozen=True)
class Grid:
    """The public grid of a training.

    Contributions are clipped to the norm `target` < 1, sums of a physical batch are cut to whole multiples of 2**-bits,
    and noise of `sigma` steps is added to whole numbers.
    """

    bits: int
    target: float
    sigma: Fraction


def grid_of(*, noise_multiplier: float, physical: int, coordinates: int, fine: int = FINE) -> Grid:
    """The grid for this noise, so many rows at once and so many coordinates.

    >>> grid_of(noise_multiplier=1.0, physical=128, coordinates=26_000).target > 0.99
    True
    """
    if not 2.0**-10 <= noise_multiplier <= 2.0**20:
        raise InvalidParameter("learning.noise_range", parameter="noise_multiplier")
    bits = max(fine, COARSE) - math.floor(math.log2(noise_multiplier))
    additions = physical + 8
    summed = additions * UNIT / (1 - additions * UNIT)
    lost = physical * 4 * summed + MOVED + 4 * math.sqrt(coordinates) * 2.0**-bits
    if lost > 0.25:
        raise InvalidParameter("learning.rounding_too_large")
    target = (1 - lost) * (1 - NORMS)
    return Grid(bits, target, Fraction(noise_multiplier) * (1 << bits) * ENLARGED)
