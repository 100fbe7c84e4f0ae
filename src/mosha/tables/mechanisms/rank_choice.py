"""Points of a line by the ranks around them, for many groups at once: the exponential mechanism over points and gaps.

`rank_choice.md` proves what a choice costs, and that rows far from the rank that is sought need not be known singly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.measurement import Rng
from mosha.noise import exponential_choices, uniform_each
from mosha.noise.parameters import enlarge_scale

__all__ = ["FARTHEST", "MOST_GROUPS", "Pieces", "Ranked", "choose_points", "descend", "farthest_score", "rank_errors"]

Integers = NDArray[np.int64]
Span = tuple[Fraction, Fraction]
FARTHEST = 2**62
BLOCK = 1 << 18
MOST_GROUPS = 1 << 13
"""So many groups are chosen for together."""

RARE = 53 * math.log(2)
"""Beyond this many scales and the logarithm of the number of points, scores are all the same (`rank_choice.md`)."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """Rows of groups on a grid: the cells of group g are those from starts[g] on, ascending, with a weight above 0.

    A lump stands for all cells between its neighbors, whose weight is known only together.
    """

    cells: Integers
    counts: NDArray[Any]
    starts: Integers
    lumps: NDArray[np.bool_]

    @staticmethod
    def empty(groups: int) -> Ranked:
        """Groups without rows."""
        none = np.zeros(0, np.int64)
        return Ranked(none, none, np.zeros(groups + 1, np.int64), np.zeros(0, np.bool_))

    @staticmethod
    def of(
        owner: Integers, cell: Integers, rows: NDArray[Any], upto: NDArray[Any], total: NDArray[Any], groups: int
    ) -> Ranked:
        """From cells in any order, with the weight of each, of all cells up to it, and of its whole group."""
        if not _are_in_order(owner, cell):
            order = np.lexsort((cell, owner))
            order = order[owner[order] >= 0]
            owner, cell, rows, upto, total = owner[order], cell[order], rows[order], upto[order], total[order]
        begins, ends = np.ones(len(cell), np.bool_), np.ones(len(cell), np.bool_)
        begins[1:] = ends[:-1] = owner[1:] != owner[:-1]
        hidden = upto - rows
        np.subtract(hidden[1:], upto[:-1], out=hidden[1:], where=~begins[1:])
        under = np.flatnonzero(hidden > 0)
        hidden = hidden[under]
        above = np.flatnonzero(ends)
        above = above[total[above] > upto[above]]
        holes = np.where(begins[under], 0, cell[under - 1] + 1)
        # a lump under a cell stands before it, one above the last cell of a group behind it, before the next group
        lumped = np.concatenate([above + 1, under])
        places = np.argsort(lumped, kind="stable")
        at = lumped[places]
        cells = np.insert(cell.astype(np.int64, copy=False), at, np.concatenate([cell[above] + 1, holes])[places])
        counts = np.insert(rows, at, np.concatenate([total[above] - upto[above], hidden])[places])
        lumps = np.insert(np.zeros(len(cell), np.bool_), at, np.ones(len(at), np.bool_))
        sizes = np.bincount(owner, minlength=groups) + np.bincount(
            owner[np.concatenate([above, under])], minlength=groups
        )
        return Ranked(cells, counts, np.concatenate([[0], np.cumsum(sizes)]), lumps)

    def take(self, first: int, last: int) -> Ranked:
        """The groups from `first` to before `last`."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        starts = self.starts[first : last + 1] - begin
        return Ranked(self.cells[begin:end], self.counts[begin:end], starts, self.lumps[begin:end])

    def pick(self, groups: Integers) -> Ranked:
        """These groups, in this order; -1 is one without rows, such as one that was deleted meanwhile."""
        sizes = np.append(np.diff(self.starts), 0)[groups]
        ends = np.cumsum(sizes)
        places = np.arange(int(sizes.sum())) + np.repeat(self.starts[groups] - ends + sizes, sizes)
        return Ranked(self.cells[places], self.counts[places], np.concatenate([[0], ends]), self.lumps[places])

    def cut_blocks(self) -> list[int]:
        """Where to cut the groups: a block has about BLOCK cells, or MOST_GROUPS; the last ends with the last group."""
        cuts = np.searchsorted(self.starts, np.arange(0, int(self.starts[-1]), BLOCK), side="left").tolist()
        few = range(0, len(self.starts) - 1, MOST_GROUPS)  # groups without cells take room as well
        return sorted({0, *cuts, *few, len(self.starts) - 1})


@dataclass(frozen=True, eq=False)
class Pieces:
    """One piece of every group: its cells are numbers first to before last, its candidates low to high."""

    ranked: Ranked
    first: Integers
    last: Integers
    low: Integers
    high: Integers

    @staticmethod
    def from_ranked(ranked: Ranked, span: tuple[int, int]) -> Pieces:
        """All cells of every group."""
        low, high = (np.full(len(ranked.starts) - 1, edge, np.int64) for edge in span)
        return Pieces(ranked, ranked.starts[:-1], ranked.starts[1:], low, high)

    def split(self, points: Integers) -> tuple[Pieces, Pieces, bool]:
        """What lies below the points, what does not, and whether the weight of both is known."""
        cells, lumps = self.ranked.cells, self.ranked.lumps
        low, high = self.first.copy(), self.last.copy()
        while (searching := low < high).any():
            middle = (low + high) >> 1
            below = searching & (cells[np.minimum(middle, len(cells) - 1)] < points)
            low = np.where(below, middle + 1, low)
            high = np.where(searching & ~below, middle, high)
        inside, behind = low < self.last, low > self.first
        at = cells[np.where(inside, low, 0)] if len(cells) else points
        here = inside & (at == points)
        in_lump = here & lumps[np.where(here, low, 0)] if len(cells) else here
        after_lump = behind & ~here & lumps[np.where(behind, low - 1, 0)] if len(cells) else here
        known = not (in_lump | after_lump).any()
        return (
            Pieces(self.ranked, self.first, low, self.low, points),
            Pieces(self.ranked, low, self.last, points, self.high),
            known,
        )

    def ranks(self, share: Fraction) -> tuple[Integers, Integers, NDArray[Any], NDArray[Any]]:
        """(places, sizes, under, upto): the cells of all pieces, how many each has, and their ranks from the share.

        In the weight of rows times the denominator of the share: `under` counts the cells below, `upto` this one too.
        """
        counts, sizes = self.ranked.counts, self.last - self.first
        offsets = np.cumsum(sizes) - sizes
        places = np.arange(int(sizes.sum())) + np.repeat(self.first - offsets, sizes)
        mine = counts[places]
        top, bottom = share.numerator, share.denominator
        if mine.dtype == object or bottom * float(np.sum(mine, dtype=np.float64)) >= FARTHEST / 2:
            mine = mine.astype(object)  # 64 bits might not hold the ranks; Python's integers do
        running = np.concatenate([[0], np.cumsum(mine)])
        begin, end = running[offsets], running[offsets + sizes]
        base = np.repeat(begin * bottom + (end - begin) * top, sizes)
        return places, sizes, running[:-1] * bottom - base, running[1:] * bottom - base


def _are_in_order(owner: Integers, cell: Integers) -> bool:
    """Whether all cells have a group, and come group by group, ascending: then nothing needs to be sorted."""
    if not len(owner) or owner[0] < 0:
        return not len(owner)
    same = owner[1:] == owner[:-1]
    return bool(np.all(np.where(same, cell[1:] > cell[:-1], owner[1:] > owner[:-1])))


def farthest_score(share: Fraction, scale: Fraction, points: int) -> int:
    """Scores below minus this count as minus this: they are drawn with a probability of at most 2**-53 together.

    Units:
        In the weight of rows times the denominator of the share, as scores are.
    """
    sensitivity = 2 * max(share.numerator, share.denominator - share.numerator)
    return math.ceil(enlarge_scale(scale * sensitivity) * Fraction(math.log(points) + RARE) * Fraction(1025, 1024))


def choose_points(
    pieces: Pieces, share: Fraction, scale: Fraction, rng: Rng, *, points: int | None = None
) -> Integers | None:
    """One point of each piece: points that have the same score are one candidate, with their number as its weight.

    None where a lump lies so near to the rank that is sought that its cells would have to be known.

    Args:
        pieces: where to look.
        share: of the rows of a piece that are to lie below the point.
        scale: weight of a unit / epsilon.
        rng: randomness.
        points: how many points the whole grid has; those of the pieces by default.
    """
    places, sizes, under, upto = pieces.ranks(share)
    count = points or int((pieces.high - pieces.low).max(initial=0)) + 1
    most = min(farthest_score(share, scale, count), FARTHEST)
    if (pieces.ranked.lumps[places] & (upto > -most) & (under < most)).any():
        return None
    under, upto = (np.clip(ranks, -most, most).astype(np.int64) for ranks in (under, upto))
    begins, scores, weights, starts = _list_runs(pieces, pieces.ranked.cells[places], sizes, under, upto)
    sensitivity = 2 * max(share.numerator, share.denominator - share.numerator)
    chosen = exponential_choices(scores, starts, enlarge_scale(scale * sensitivity), weights=weights, rng=rng)
    return np.asarray(begins[chosen] + uniform_each(weights[chosen], rng=rng))


def _list_runs(
    pieces: Pieces, cells: Integers, sizes: Integers, under: Integers, upto: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """(first points, scores, numbers of points, where pieces begin) of runs of points that have the same score.

    A cell below the rank that is sought has the score of the gap after it, one above it that of the gap before it: they
    are one run. Each piece has a run before its first cell, one for each cell, and one behind the last.
    """
    offsets = np.cumsum(sizes) - sizes
    starts = np.concatenate([2 * np.arange(len(sizes)) + offsets, [len(cells) + 2 * len(sizes)]])
    at = np.arange(len(cells)) + np.repeat(2 * np.arange(len(sizes)) + 1, sizes)
    firsts, lasts = starts[:-1], starts[1:] - 1
    filled = sizes > 0
    head, tail = offsets[filled], (offsets + sizes - 1)[filled]
    begins, ends, scores = (np.empty(int(starts[-1]), np.int64) for _ in range(3))
    below, above = upto <= 0, under > 0
    before, after = np.empty_like(cells), np.empty_like(cells)
    before[1:], after[:-1] = cells[:-1], cells[1:]
    before[head], after[tail] = pieces.low[filled] - 1, pieces.high[filled] + 1
    begins[at] = np.where(above, before + 1, cells)
    ends[at] = np.where(below, after - 1, cells)
    scores[at] = np.minimum(np.minimum(upto, -under), 0)
    begins[firsts], ends[firsts], scores[firsts] = pieces.low, pieces.high, 0
    begins[lasts], ends[lasts], scores[lasts] = pieces.high + 1, pieces.high, 0
    ends[firsts[filled]], scores[firsts[filled]] = cells[head] - 1, -np.abs(under[head])
    begins[lasts[filled]] = np.where(below[tail], pieces.high[filled], cells[tail]) + 1
    scores[lasts[filled]] = -np.abs(upto[tail])
    return begins, scores, np.maximum(ends - begins + 1, 0), starts


def descend(
    pieces: Pieces,
    shares: Sequence[Fraction],
    part: Span,
    scale: Fraction,
    points: dict[Fraction, Integers],
    size: int,
    rng: Rng,
) -> bool:
    """Choose the middle share's quantile of these rows, then go on left and right of it.

    What is in `points` already stays as it is. False where cells would have to be known that are in lumps: `points` has
    then what could be chosen, and the rest can be chosen from a closer look.
    """
    if not shares:
        return True
    middle = len(shares) // 2
    share, width = shares[middle], part[1] - part[0]
    if share not in points:
        relative = (share - part[0]) / width if width else Fraction(1, 2)
        found = choose_points(pieces, relative, scale, rng, points=size)
        if found is None:
            return False
        points[share] = found
    if len(shares) == 1:
        return True
    left, right, known = pieces.split(points[share])
    if not known:
        return False
    return all(
        descend(piece, some, span, scale, points, size, rng)
        for piece, some, span in (
            (left, shares[:middle], (part[0], share)),
            (right, shares[middle + 1 :], (share, part[1])),
        )
    )


def rank_errors(
    shares: Sequence[Fraction],
    part: Span = (Fraction(0), Fraction(1)),
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
