"""How many units pass through a model at once: public numbers, from the declared batch size and the shapes of the data.

Every physical batch is filled up to one size (A1 of `rounding.md`), so a size is sought at which few rows are filled.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

__all__ = ["MOST_ROWS", "USUAL_ROWS", "choose_size"]

USUAL_ROWS = 128
"""Rows at once where nobody said how many, and no model was looked at."""

MOST_ROWS = 320
"""Rows at once that are chosen for a model that is small enough: what rounding takes of the clip grows with their
square, and is two percent here."""

BEGINNING = 8  # rows that could pass in the time that a physical batch takes to begin: assumed
DEVIATIONS = 6


@cache
def choose_size(batch: float, most: int, *, random: bool) -> int:
    """The size of physical batches at which batches of about `batch` units cost least, up to `most`.

    Args:
        batch: the batch size that was declared.
        most: the largest size.
        random: whether batches vary as those of Poisson sampling do.

    >>> choose_size(32, 128, random=True), choose_size(256, 320, random=True), choose_size(256, 128, random=False)
    (40, 288, 128)
    """
    deviation = math.sqrt(batch) if random else 0.0
    largest = math.ceil(batch + DEVIATIONS * deviation)
    sizes = {min(most, 8 * -(-size // 8)) for size in range(min(8, most), min(most, largest) + 8)}

    def cost(size: int) -> float:
        """The expected number of rows, and what beginning costs."""
        pieces = 1.0
        for number in range(1, -(-largest // size)):
            more = 1 - NormalDist(batch, deviation).cdf(number * size + 0.5) if random else float(number * size < batch)
            pieces += more
        return pieces * (size + BEGINNING)

    return min(sorted(sizes, reverse=True), key=cost)
