"""How wide a window around a released quantile holds the true one: error bars in the unit of the column.

Windows are tried from the widest to the narrowest, and the last one that passes is the bar. `quantile_width.md` proves
what that costs, and how often the bar holds the true quantile: whatever the rows are, and however the point was found.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.language import make_note
from mosha.core.measurement import Rng
from mosha.noise import LARGEST_SCALE
from mosha.noise.unbounded import unbounded_laplace

__all__ = [
    "CONFIDENCE",
    "count_failures",
    "find_windows",
    "guess_rows",
    "heights",
    "ladder",
    "least_height",
    "noise_scales",
    "noisy_note",
    "tallest_height",
]

CONFIDENCE = 0.95
"""How often a window holds the true quantile, at least."""

MUCH = 0.5
"""Of the range: an answer whose bar is as wide is mostly noise."""

WIDEST = 2.0**61
"""Sums of weights beyond this are Python's integers."""

Integers = NDArray[np.int64]
Scales = tuple[Fraction, Fraction]


def ladder(size: int) -> NDArray[np.int64]:
    """Half-widths in grid steps: none, then two for each doubling, up to the whole range.

    >>> ladder(10).tolist()
    [0, 1, 2, 3, 4, 6, 8, 10]
    """
    steps = np.unique(np.round(2 ** (np.arange(2 * size.bit_length() + 1) / 2)).astype(np.int64))
    return np.concatenate([[0], steps[steps < size], [size]])


def noise_scales(weight: int, share: Fraction, epsilon: float) -> Scales:
    """The scales of the noise on the threshold and on each height, for units that weigh at most `weight`.

    Guarantee:
        Heights move by at most weight * max(top, bottom - top), where share = top / bottom: see `quantile_width.md`.

    >>> noise_scales(1, Fraction(1, 2), 1.0)
    (Fraction(2, 1), Fraction(4, 1))
    """
    reach = weight * max(share.numerator, share.denominator - share.numerator)
    return 2 * reach / Fraction(epsilon), 4 * reach / Fraction(epsilon)


def least_height(scales: Scales) -> int:
    """The threshold: a window of height 0 reaches it with a probability of at most 1 - CONFIDENCE.

    Units:
        Heights and scales are in the weight of rows times the denominator of the share.
    """
    threshold, each = (float(1 / scale) for scale in scales)
    passing = math.expm1(-each) / math.expm1(-each - threshold) / (1 + math.exp(-threshold))
    return max(0, math.ceil(float(scales[0]) * math.log(passing / (1 - CONFIDENCE)) * (1 + 2.0**-40)))


def guess_rows(scales: Scales, weight: int) -> float:
    """About how many rows lie between a released quantile and the end of its window, each of which weighs `weight`."""
    return (least_height(scales) + float(scales[1])) / weight


def tallest_height(scales: Scales) -> int:
    """Heights above this count as this: such a window fails once in 10**10 times (`quantile_width.md`)."""
    return least_height(scales) + math.ceil(24 * scales[1])


def heights(
    cells: Integers,
    counts: NDArray[Any],
    starts: Integers,
    share: Fraction,
    points: Integers,
    span: tuple[int, int],
    most: int,
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """By how much the rank of the quantile is inside of each window, and which windows do not hold the whole range.

    Units:
        In the weight of rows times the denominator of the share, at most `most` in either direction; a row for each
        group, the narrowest window first.
    """
    groups, size = np.arange(len(starts) - 1), span[1] - span[0] + 1
    low, high = (points[:, None] + sign * ladder(size) for sign in (-1, 1))
    bottom = share.denominator
    wide = bottom * float(np.sum(counts, dtype=np.float64)) >= WIDEST
    upto = np.concatenate([[0], np.cumsum(counts.astype(object) if wide else counts)])
    places = np.repeat(groups, np.diff(starts)) * (size + 2) + _place(cells, span)
    first, last = upto[starts[:-1]][:, None], upto[starts[1:]][:, None]
    target = share.numerator * (last - first)
    within = upto[np.searchsorted(places, groups[:, None] * (size + 2) + _place(high, span), side="right")] - first
    below = upto[np.searchsorted(places, groups[:, None] * (size + 2) + _place(low, span), side="left")] - first
    above, under = bottom * within - target, target - bottom * below
    to_the_end, to_the_start = high >= span[1], low <= span[0]
    sizes = np.where(to_the_end, under, np.where(to_the_start, above, np.minimum(above, under)))
    return np.clip(sizes, -most, most), ~(to_the_end & to_the_start)


def _place(cells: Integers, span: tuple[int, int]) -> Integers:
    """Where cells lie in the range, from 1 on; what lies before it is 0, what lies behind it one more than its size."""
    return np.clip(cells - span[0] + 1, 0, span[1] - span[0] + 2)


def count_failures(
    sizes: NDArray[Any], tried: NDArray[np.bool_], least: int, scales: Scales, rng: Rng
) -> NDArray[np.int64]:
    """How many windows of each group are left, the narrowest first, when they are tried from the widest on.

    The first that does not reach the threshold ends it: it is the last one that is left. None is left if all pass.
    """
    shifts = unbounded_laplace(scales[0], len(sizes), rng=rng)[:, None]
    losses = unbounded_laplace(scales[1], sizes.size, rng=rng).reshape(sizes.shape)
    geometric = np.maximum(losses, -1 - losses)  # the fold makes Laplace noise geometric, from 0 on
    fails = tried & (sizes - geometric < least + shifts).astype(bool)
    return np.asarray(np.max(np.where(fails, np.arange(1, sizes.shape[1] + 1), 0), axis=1), np.int64)


def find_windows(
    cells: Integers,
    counts: NDArray[Any],
    starts: Integers,
    share: Fraction,
    points: Integers,
    span: tuple[int, int],
    scales: Scales,
    rng: Rng,
) -> NDArray[np.int64]:
    """The half-width of a window around the point of each group, in grid steps, that holds the true quantile.

    Args:
        cells: where rows lie, ascending; those of group g are from starts[g] to before starts[g + 1].
        counts: their weights.
        starts: of the groups.
        share: of the quantile.
        points: what was released.
        span: the first and the last cell of the range.
        scales: of the noise (`noise_scales`); where they leave 64 bits, the window is the whole range.
        rng: randomness.
    """
    widths = ladder(span[1] - span[0] + 1)
    if scales[1] > LARGEST_SCALE:
        return np.full(len(points), widths[-1])
    sizes, tried = heights(cells, counts, starts, share, points, span, tallest_height(scales))
    return widths[count_failures(sizes, tried, least_height(scales), scales, rng)]


def noisy_note(name: str, bars: NDArray[np.float64], whole: float) -> list[str]:
    """What an answer says where its bars are about as wide as the range: nothing was learned there.

    >>> noisy_note("median", np.array([3.0]), 4.0)
    ['median is mostly noise: its error bar takes half of the range or more. Ask with more epsilon or fewer groups.']
    """
    noisy, groups = int(np.sum(bars >= MUCH * whole)), len(bars)
    if not noisy:
        return []
    if groups == 1:
        return [make_note("tables.note_mostly_noise", name=name)]
    return [make_note("tables.note_mostly_noise_in", name=name, noisy=noisy, groups=groups)]
