"""How wide a window around a released quantile holds the true one: error bars in the unit of the column.

Windows are tried from the widest to the narrowest, and the last one that passes is the bar. `quantile_width.md` proves
what that costs, and how often the bar holds the true quantile: whatever the rows are, and however the point was found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.randomness import Rng
from mosha.noise import LARGEST_SCALE
from mosha.noise.unbounded import unbounded_laplace

__all__ = [
    "CONFIDENCE",
    "count_passes",
    "heights",
    "ladder",
    "least_height",
    "noise_scales",
    "tallest_height",
    "window",
]

CONFIDENCE = 0.95
"""How often a window holds the true quantile, at least."""

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


def tallest_height(scales: Scales) -> int:
    """Heights above this count as this: such a window fails once in 10**13 times."""
    return least_height(scales) + math.ceil(64 * scales[1])


def heights(
    cells: NDArray[np.int64],
    counts: NDArray[np.int64],
    share: Fraction,
    point: int,
    span: tuple[int, int],
    most: int | None = None,
) -> list[int]:
    """By how much the rank of the quantile is inside of each window that does not hold the whole range.

    Units:
        In the weight of rows times the denominator of the share, at most `most` in either direction; the narrowest
        window comes first.
    """
    widths = ladder(span[1] - span[0] + 1)
    upto = np.concatenate([[0], np.cumsum(counts)])
    below = upto[np.searchsorted(cells, point - widths, side="left")].tolist()
    within = upto[np.searchsorted(cells, point + widths, side="right")].tolist()
    bottom, target = share.denominator, share.numerator * int(upto[-1])
    found = []
    for width, before, up_to in zip(widths.tolist(), below, within, strict=True):
        above = [bottom * up_to - target] if point + width < span[1] else []
        under = [target - bottom * before] if point - width > span[0] else []
        if sides := above + under:
            least = min(sides)
            found.append(least if most is None else max(min(least, most), -most))
    return found


def count_passes(sizes: Sequence[int], least: int, scales: Scales, rng: Rng) -> int:
    """How many of these heights reach the threshold, one after the other, before the first that does not."""
    (shift,) = unbounded_laplace(scales[0], 1, rng=rng).tolist()
    losses: list[Any] = unbounded_laplace(scales[1], len(sizes), rng=rng).tolist()
    for passed, (size, loss) in enumerate(zip(sizes, losses, strict=True)):
        if size - max(loss, -1 - loss) < least + shift:  # the fold makes Laplace noise geometric, from 0 on
            return passed
    return len(sizes)


def window(
    cells: NDArray[np.int64],
    counts: NDArray[np.int64],
    share: Fraction,
    point: int,
    span: tuple[int, int],
    scales: Scales,
    rng: Rng,
) -> int:
    """The half-width of a window around `point`, in grid steps, that holds the true quantile.

    Args:
        cells: where rows lie, ascending.
        counts: their weights.
        share: of the quantile.
        point: what was released.
        span: the first and the last cell of the range.
        scales: of the noise (`noise_scales`); where they leave 64 bits, the window is the whole range.
        rng: randomness.
    """
    widths = ladder(span[1] - span[0] + 1)
    if scales[1] > LARGEST_SCALE:
        return int(widths[-1])
    sizes = heights(cells, counts, share, point, span, tallest_height(scales))
    passed = count_passes(sizes[::-1], least_height(scales), scales, rng)
    return int(widths[len(sizes) - passed])
