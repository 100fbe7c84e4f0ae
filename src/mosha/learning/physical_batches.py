"""How many units pass through a model at once: public numbers, from the declared batch size and the shapes of the data.

Every physical batch is filled up to one size, or to a smaller one where rows were seen to be computed alike in both (A1
of `rounding.md`), so sizes are sought at which few rows are filled.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

__all__ = ["MOST_ROWS", "USUAL_ROWS", "choose_size", "choose_smaller_size"]

USUAL_ROWS = 128
"""Rows at once where nobody said how many, and no model was looked at."""

MOST_ROWS = 320
"""Rows at once that are chosen for a model that is small enough: what rounding takes of the clip grows with their
square, and is two percent here."""

FINEST = 8  # sizes are multiples of so many rows, and a physical batch takes as long to begin as they take: assumed
FEW = 4  # the same where few rows fit at once, each of which takes longer: assumed
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
    >>> choose_size(16, 7, random=True), choose_size(4, 7, random=True)  # a row takes long where few fit at once
    (7, 5)
    """
    deviation = math.sqrt(batch) if random else 0.0
    largest = math.ceil(batch + DEVIATIONS * deviation)
    step, beginning = _find_step(most), FINEST if most >= 2 * FINEST else FEW
    sizes = {min(most, step * -(-size // step)) for size in range(min(step, most), min(most, largest) + step)}

    def cost(size: int) -> float:
        """The expected number of rows, and what beginning costs."""
        pieces = 1.0
        for number in range(1, -(-largest // size)):
            more = 1 - NormalDist(batch, deviation).cdf(number * size + 0.5) if random else float(number * size < batch)
            pieces += more
        return pieces * (size + beginning)

    return min(sorted(sizes, reverse=True), key=cost)


def _find_step(size: int) -> int:
    """Of what sizes are multiples: where few rows fit at once each of them takes long."""
    return FINEST if size >= 2 * FINEST else 1


@cache
def choose_smaller_size(batch: float, full: int) -> int | None:
    """The second size that saves most rows where a batch of about `batch` units, cut into `full` ones, leaves a rest.

    Args:
        batch: the batch size that was declared; sizes of batches vary as those of Poisson sampling do.
        full: the usual size of physical batches.

    >>> choose_smaller_size(32, 40), choose_smaller_size(256, 288), choose_smaller_size(16, 8)
    (32, 264, 4)
    """
    drawn = NormalDist(batch, math.sqrt(batch))
    pieces = range(math.ceil((batch + DEVIATIONS * math.sqrt(batch)) / full) + 1)

    def count_saved_rows(size: int) -> float:
        likely = sum(drawn.cdf(n * full + size + 0.5) - drawn.cdf(n * full + 0.5) for n in pieces)
        return likely * (full - size)

    step = _find_step(full)
    return max(range(step, full, step), key=count_saved_rows, default=None)
