"""One point of a line by the ranks around it: the exponential mechanism over points and gaps.

Guarantee:
    The score of point t is minus the distance of at * n from the ranks [below(t), up_to(t)]. A row of weight w that is
    added at x moves n by w, and the ranks of t by w where t > x, by 0 where t < x, by something between where
    t = x: the distance moves by at most max(at, 1 - at) w, up or down. So scores move within a range of
    2 max(at, 1 - at) w, and the choice with the scale 2 max(at, 1 - at) W / epsilon loses epsilon w / W.
    Choices for several groups or pieces, in which a unit has weights that sum to at most W, are independent: together
    they are one exponential mechanism on tuples, of range epsilon. Scores below -2**62 count as -2**62, whatever
    the data are: that brings two scores of a point no farther apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mosha.core.randomness import Rng
from mosha.exact.grid import enlarge_scale
from mosha.noise import exponential_choice, uniform

__all__ = ["choose_point", "descend", "rank_errors"]

FARTHEST = 2**62


def descend(
    cells: NDArray[np.int64],
    counts: NDArray[np.int64],
    span: tuple[int, int],
    shares: Sequence[Fraction],
    part: tuple[Fraction, Fraction],
    scale: Fraction,
    points: dict[Fraction, int],
    rng: Rng,
) -> None:
    """Release the middle share's quantile of these rows, then go on left and right of it."""
    if not shares:
        return
    middle = len(shares) // 2
    share, width = shares[middle], part[1] - part[0]
    relative = (share - part[0]) / width if width else Fraction(1, 2)
    point = choose_point(cells, counts, span, relative, scale, rng)
    points[share] = point
    cut = int(np.searchsorted(cells, point, side="left"))
    left = (cells[:cut], counts[:cut], (span[0], point), shares[:middle], (part[0], share))
    right = (cells[cut:], counts[cut:], (point, span[1]), shares[middle + 1 :], (share, part[1]))
    for side in (left, right):
        descend(*side, scale, points, rng)


def rank_errors(
    shares: Sequence[Fraction],
    part: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1)),
    ends: tuple[float, float] = (0, 0),
) -> dict[Fraction, float]:
    """How far ranks stray, in regrets: `descend` seeks a share of the rows between two points that stray themselves.

    With the share r of a piece whose ends stray by a and b, the rank strays by (1 - r) a + r b, and by the regret of a
    choice of scale 2 max(r, 1 - r).

    >>> rank_errors([Fraction(1, 2)])
    {Fraction(1, 2): 1.0}
    """
    if not shares:
        return {}
    middle = len(shares) // 2
    share, width = shares[middle], part[1] - part[0]
    relative = float((share - part[0]) / width) if width else 0.5
    own = (1 - relative) * ends[0] + relative * ends[1] + 2 * max(relative, 1 - relative)
    left = rank_errors(shares[:middle], (part[0], share), (ends[0], own))
    right = rank_errors(shares[middle + 1 :], (share, part[1]), (own, ends[1]))
    return left | {share: own} | right


def choose_point(
    cells: NDArray[np.int64],
    counts: NDArray[np.int64],
    span: tuple[int, int],
    share: Fraction,
    scale: Fraction,
    rng: Rng,
) -> int:
    """One point of the grid: each data point is a candidate, and each gap between two is one with its width."""
    bottom, top = share.denominator, share.numerator
    upto = np.cumsum(counts)
    total = int(upto[-1]) if counts.size else 0
    if bottom * total >= FARTHEST:  # 64 bits would not hold the ranks; Python's integers do
        counts, upto = counts.astype(object), upto.astype(object)
    target = top * total
    edges = np.concatenate([[span[0] - 1], cells, [span[1] + 1]])
    ranks = np.concatenate([[0], upto]) * bottom
    gaps = np.maximum(np.diff(edges) - 1, 0)
    at_points = -np.maximum(np.maximum(bottom * (upto - counts) - target, target - bottom * upto), 0)
    in_gaps = -np.abs(ranks - target)
    scores = np.maximum(np.concatenate([at_points, in_gaps]), -FARTHEST).astype(np.int64)
    weights = np.concatenate([np.ones(cells.size, np.int64), gaps])
    sensitivity = 2 * max(top, bottom - top)
    chosen = exponential_choice(scores, enlarge_scale(scale * sensitivity), weights=weights, rng=rng)
    if chosen < cells.size:
        return int(cells[chosen])
    gap = chosen - cells.size
    return int(edges[gap]) + 1 + int(uniform(int(gaps[gap]), rng=rng))
