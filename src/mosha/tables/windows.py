"""How wide a window around a released quantile holds enough rows: error bars in the unit of the column.

Guarantee:
    Around the point m, `reached[j]` is the weight of all rows on one side within ladder[j] of it. The score of window j
    is minus the distance of a public target from [reached[j - 1], reached[j]]. A row of weight w moves each end by
    0 or w, in one direction, so distances move by at most w, up or down: scores move within a range of 2 w, and the
    choice with the scale 2 W / epsilon loses epsilon w / W. The two sides of one point share no row, so both choices
    together are one exponential mechanism of range epsilon (as in `points`); windows of several quantiles compose.

    Coverage. Let the rank of m be off by at most R1, and each choice by at most R2 (its regret), the target being
    R1 + R2 and one row. Then the chosen window holds more than R1 on its side, or ends where the range does. If the
    true quantile lay beyond it, all rows in it would lie between m and the true quantile: more than R1 of them, which
    contradicts the rank of m.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mosha.core.randomness import Rng
from mosha.mechanisms.grid import enlarged
from mosha.noise import exponential_choice

__all__ = ["CONFIDENCE", "MISSED", "distances", "ladder", "window"]

CONFIDENCE = 0.95
"""What the windows are made for: a rank that is off (0.02), and two choices that are (0.015 each)."""

MISSED = (0.02, 0.015)


def ladder(size: int) -> NDArray[np.int64]:
    """Widths in grid steps, four for each doubling, up to the whole range."""
    steps = np.unique(np.round(2 ** (np.arange(4 * size.bit_length() + 1) / 4)).astype(np.int64))
    return np.append(steps[steps < size], size)


def window(
    cells: NDArray[np.int64],
    counts: NDArray[np.int64],
    point: int,
    span: tuple[int, int],
    target: int,
    scale: Fraction,
    rng: Rng,
) -> int:
    """The half-width of a window around `point`, in grid steps: the wider of its two sides.

    Args:
        cells: where rows lie, ascending.
        counts: their weights.
        point: what was released.
        span: the first and the last cell of the range.
        target: how much weight each side should hold.
        scale: of the choice, for a range of scores of 1.
        rng: randomness.
    """
    widths = ladder(span[1] - span[0] + 1)
    upto = np.concatenate([[0], np.cumsum(counts)])
    before = int(upto[np.searchsorted(cells, point, side="left")])
    after = int(upto[np.searchsorted(cells, point, side="right")])
    left = before - upto[np.searchsorted(cells, point - widths, side="left")]
    right = upto[np.searchsorted(cells, point + widths, side="right")] - after
    return max(_side(widths, reached, target, scale, rng) for reached in (left, right))


def _side(widths: NDArray[np.int64], reached: NDArray[np.int64], target: int, scale: Fraction, rng: Rng) -> int:
    chosen = exponential_choice(-distances(reached, target), enlarged(scale * 2), rng=rng)
    return int(widths[chosen])


def distances(reached: NDArray[np.int64], target: int) -> NDArray[np.int64]:
    """How far the target is from what each window adds; the last one ends with the range and holds all there is."""
    inner = np.concatenate([[0], reached[:-1]])
    distance = np.maximum(np.maximum(inner - target, target - reached), 0)
    distance[-1] = max(int(inner[-1]) - target, 0)
    return np.asarray(distance, np.int64)
