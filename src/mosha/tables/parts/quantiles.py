"""Quantiles: the exponential mechanism over the points of a fine public grid, whose gaps are the data's own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mosha.connect.engines.source import answer, answer_in_batches, explain
from mosha.connect.language.value import Clamped, Rows
from mosha.connect.plan.aggregation import NearRanks
from mosha.connect.plan.bounding import NormBound, Unbounded
from mosha.connect.plan.source import Totals
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Exponential, Pure
from mosha.core.language import make_note
from mosha.core.measurement import Rng
from mosha.core.number import strict_probability
from mosha.mechanisms.choice import exponential_regret
from mosha.noise import LARGEST_SCALE
from mosha.tables.mechanisms.quantile_width import (
    CONFIDENCE,
    find_windows,
    guess_rows,
    noise_scales,
    noisy_note,
    tallest_height,
)
from mosha.tables.mechanisms.rank_choice import (
    FARTHEST,
    MOST_GROUPS,
    Pieces,
    Ranked,
    descend,
    farthest_score,
    rank_errors,
)
from mosha.tables.parts.additive import Aggregate, fill_each
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.bought_range import EXTREMES, SHARE_FOR_RANGES, RangeChoice, range_note
from mosha.tables.parts.bounded_number import Measured, Range
from mosha.tables.parts.bounds import Limits, bounded_note, limits_of, name_bound
from mosha.tables.parts.norm_choice import NormChoice, thresholds
from mosha.tables.parts.part import Columns, Frame, Noisy, choice_epsilon, pure_epsilon
from mosha.tables.parts.shown_groups import GroupPlaces

__all__ = ["Quantile", "QuantilesPart"]

POINTS = 20
EVERYTHING = 1 << 100
MOST_CELLS = 1 << 33
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Quantile(Aggregate):
    """The value below which a share `at` of the rows lies, within [low, high]."""

    measured: Measured
    at: Fraction
    in_values: bool = False
    """Whether error bars in the unit of the column are bought, with half of the budget."""

    def numbers(self) -> tuple[Measured, ...]:
        return (self.measured,)

    def fill_ranges(self, ranges: Mapping[str, Range]) -> Self:
        return replace(self, measured=self.measured.fill_ranges(ranges))

    @property
    def exponent(self) -> int:
        """The grid of candidates has 2**19 to 2**20 points in the range."""
        return POINTS - math.frexp(self.measured.between[1] - self.measured.between[0])[1]

    @property
    def points(self) -> tuple[int, int]:
        """The first and the last candidate, in grid units."""
        low, high = (math.floor(edge * 2.0**self.exponent + 0.5) for edge in self.measured.between)
        return low, high


@dataclass(frozen=True, eq=False)
class QuantilesPart:
    """Quantiles of one column: the middle one first, then those on either side within the rows that remain.

    Guarantee:
        Let one unit add rows of weight w_g to group g, sum of w_g <= W. The first choices of all groups together are
        an exponential mechanism of range epsilon (`points`). On the next level the rows are split at the points
        already released; each row is in one piece, so the choices of a level are again Exponential(epsilon) together.
        Windows around a released point (`quantile_width.md`) cost Pure(wide) for each quantile that has them.
    """

    aggregates: Mapping[str, Quantile]
    limits: Limits
    epsilon: float
    choice: NormChoice | None
    ranges: RangeChoice | None = None
    wide: float | None = None

    @staticmethod
    def plan(frame: Frame, aggregates: Mapping[str, Quantile], budget: Budget, share: float) -> QuantilesPart:
        limits = limits_of(frame.unit, frame.relation, persons=False)
        if limits.truncation is not None:
            rows, groups, per_group = limits.truncation
            norm = groups * per_group if rows is None else min(rows, groups * per_group)
            limits = Limits(norm=norm, by_person=True, twice=limits.twice)
        choice, ranges, left = None, None, 1.0
        if limits.automatic:
            choice = NormChoice.plan(budget, share, 1, twice=limits.twice)
            left -= choice.share
        if any(q.measured.automatic for q in aggregates.values()):
            ranges = RangeChoice.plan(budget, share * SHARE_FOR_RANGES, 1)
            left -= SHARE_FOR_RANGES
        levels = _levels(len({q.at for q in aggregates.values()}))
        wide = None
        if windows := len({q.at for q in aggregates.values() if q.in_values}):
            left /= 2
            wide = pure_epsilon(budget, share * left / windows)
        each = choice_epsilon(budget, share * left / levels)
        part = QuantilesPart(aggregates, limits, each, choice, ranges, wide)
        if ranges is None and limits.norm is not None and frame.groups * part.most_cells(limits.norm) > MOST_CELLS:
            cells = part.most_cells(limits.norm)
            raise InvalidParameter("tables.too_many_cells", groups=frame.groups, cells=cells, spent="nothing")
        return part

    def fill_ranges(self, ranges: Mapping[str, Any]) -> QuantilesPart:
        """With the range that was bought."""
        return replace(self, aggregates=fill_each(self.aggregates, ranges))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.aggregates)

    @property
    def _first(self) -> Quantile:
        return next(iter(self.aggregates.values()))

    @property
    def _shares(self) -> list[Fraction]:
        return sorted({q.at for q in self.aggregates.values()})

    @property
    def event(self) -> Event:
        levels: Event = Exponential(self.epsilon) * _levels(len(self._shares))
        if self.wide is not None:
            levels += Pure(self.wide) * len(self._windows)
        bought = (stage.event for stage in (self.choice, self.ranges) if stage is not None)
        return sum(bought, start=levels)

    @property
    def _windows(self) -> list[Fraction]:
        """The quantiles that have a window."""
        return sorted({q.at for q in self.aggregates.values() if q.in_values})

    def _weight(self, norm: int | None) -> tuple[int, int]:
        """The weight of one unit in the engine's integers, and how many bits after the point those have."""
        twice = 2 if self.limits.twice else 1
        if not self.limits.by_person:
            assert self.limits.rows is not None
            return self.limits.rows * twice, 0
        assert norm is not None
        bits = max(0, 12 - norm.bit_length())
        return (norm << bits) * twice, bits

    @property
    def _size(self) -> int:
        """How many candidates there are."""
        low, high = self._first.points
        return high - low + 1

    def _reaches(self, weight: int) -> list[int]:
        """How far from each share cells must be known, in the weight of rows times the denominator of the share."""
        scale, shares = Fraction(weight) / Fraction(self.epsilon), self._shares
        widest = farthest_score(Fraction(1, 2), scale, self._size)  # of a choice whose regret is the scale
        reaches = []
        for share, times in rank_errors(shares).items():
            reach = math.ceil(widest * Fraction(times) * share.denominator * Fraction(513, 1024)) + 1
            if self.wide is not None and share in self._windows:
                scales = noise_scales(weight, share, self.wide)
                reach = max(reach, tallest_height(scales) + 1 if scales[1] <= LARGEST_SCALE else 0)
            reaches.append(min(reach, FARTHEST))
        return reaches

    def most_cells(self, norm: int | None) -> int:
        """How many cells of a group come back from the engine at most, where no row weighs less than a whole one."""
        weight, bits = self._weight(norm)
        pairs = zip(self._reaches(weight), self._shares, strict=True)
        return min(self._size, sum(2 * (reach // (share.denominator << bits)) + 3 for reach, share in pairs))

    def question(self, frame: Frame, norm: int | None, closer: int = 1) -> NearRanks:
        """How many rows each group has in the cells near the quantiles, a person's weighing at most `norm` together."""
        weight, bits = self._weight(norm)
        first = self._first
        cell = Clamped(first.measured.of, first.measured.between, exponent=first.exponent, center=first.points[0])
        relation = frame.relation.where(~cell.known.is_null())
        bound = NormBound(1, {"rows": norm}, bits) if self.limits.by_person and norm else Unbounded()
        near = tuple(
            (share.numerator, share.denominator, min(reach * closer, EVERYTHING))
            for share, reach in zip(self._shares, self._reaches(weight), strict=True)
        )
        return NearRanks(relation, frame.keys, only=frame.only, cell=cell, near=near, bound=bound)

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> Noisy:
        del key
        norm, ranges, asked = self.limits.norm, {}, self
        if self.choice is not None:
            norm = self.choice.choose(frame, frame.keys, Rows(), {1: lambda bound: bound / self.epsilon}, rng).norm
        if self.ranges is not None:
            measured = self._first.measured
            ranges = {measured.key: self.ranges.choose(frame, measured, self.limits, rng)}
            asked = self.fill_ranges(ranges)
        weight, bits = self._weight(norm)
        points, windows = asked.draw(frame, norm, rng)
        exponent = asked._first.exponent  # noqa: SLF001
        return {
            "points": np.ldexp((points + asked._first.points[0]).astype(np.float64), -exponent).tolist(),  # noqa: SLF001
            "norm": norm, "weight": weight / (1 << bits), "ranges": ranges,
            "windows": np.ldexp(windows.astype(np.float64), -exponent).tolist(),
        }  # fmt: skip

    def rehearse(self, frame: Frame, key: bytes, rng: Rng) -> None:
        """Ask with the least and the largest bound and range that can be bought, near and far from the quantiles."""
        del key, rng
        marks = thresholds()
        for between in EXTREMES if self.ranges is not None else (self._first.measured.between,):
            asked = self.fill_ranges({self._first.measured.key: between})
            for norm in (marks[0], marks[-1]) if self.choice is not None else (self.limits.norm,):
                for closer in (1, EVERYTHING):
                    answer_in_batches(asked.question(frame, norm, closer), lambda _: None)

    def draw(self, frame: Frame, norm: int | None, rng: Rng) -> tuple[Integers, Integers]:
        """The quantiles of all groups, in grid steps from the first, and the half-widths of the windows around them.

        Cells are asked for near the quantiles. That is too near where a choice strayed by more than one in 2**53 does;
        what was chosen stays, and the rest is chosen from a wider look. Groups come some at a time and are forgotten.
        """
        groups = frame.groups
        found = np.zeros((groups, len(self._shares)), np.int64), np.zeros((groups, len(self._windows)), np.int64)
        places, missing = GroupPlaces(frame), np.ones(groups, np.bool_)
        left: list[tuple[Integers, dict[Fraction, Integers]]] = []

        def choose(here: Integers, ranked: Ranked, points: dict[Fraction, Integers]) -> bool:
            done = self._choose(ranked, points, norm, rng)
            if done:
                found[0][here] = np.stack([points[share] for share in self._shares], axis=1)
                found[1][here] = self._around(ranked, points, norm, rng)
            return done

        def use(totals: Totals) -> None:
            here, ranked = _rank(places, totals)
            missing[here] = False
            for first, last in itertools.pairwise(ranked.cut_blocks()):
                some, points = here[first:last], dict[Fraction, Integers]()
                if not choose(some, ranked.take(first, last), points):
                    left.append((some, points))

        answer_in_batches(self.question(frame, norm), use)
        for some in np.split(np.flatnonzero(missing), range(MOST_GROUPS, int(missing.sum()), MOST_GROUPS)):
            choose(some, Ranked.empty(len(some)), {})
        closer = 1
        while left:
            closer *= 64
            here, ranked = _rank(places, answer(self.question(frame, norm, closer)))
            where = np.full(groups, -1)
            where[here] = np.arange(len(here))
            left = [(some, points) for some, points in left if not choose(some, ranked.pick(where[some]), points)]
        return found

    def _choose(self, ranked: Ranked, points: dict[Fraction, Integers], norm: int | None, rng: Rng) -> bool:
        """Choose what is not in `points` yet; whether everything could be."""
        scale = Fraction(self._weight(norm)[0]) / Fraction(self.epsilon)
        pieces = Pieces.from_ranked(ranked, (0, self._size - 1))
        return descend(pieces, self._shares, (Fraction(0), Fraction(1)), scale, points, self._size, rng)

    def _around(self, ranked: Ranked, points: Mapping[Fraction, Integers], norm: int | None, rng: Rng) -> Integers:
        """The half-widths of the windows around the quantiles of each group that have them."""
        found = np.zeros((len(ranked.starts) - 1, len(self._windows)), np.int64)
        for place, share in enumerate(self._windows):
            assert self.wide is not None
            scales, span = noise_scales(self._weight(norm)[0], share, self.wide), (0, self._size - 1)
            at = points[share]
            windows = find_windows(ranked.cells, ranked.counts, ranked.starts, share, at, span, scales, rng)
            found[:, place] = windows + 1
        return found

    def _rank_errors(self, span: tuple[int, int], weight: float, confidence: float) -> dict[Fraction, float]:
        """How far the rank of each quantile may be off, in the unit of `weight`."""
        level = 1 - (1 - strict_probability("confidence", confidence)) / _levels(len(self._shares))
        regret = exponential_regret(span[1] - span[0] + 1, level) * weight / self.epsilon
        return {share: regret * times for share, times in rank_errors(self._shares).items()}

    def answers(self, noisy: Noisy) -> Columns:
        asked = self.fill_ranges(noisy.get("ranges", {}))
        table = np.array(noisy["points"], np.float64)
        place = {share: i for i, share in enumerate(self._shares)}
        low, high = asked._first.measured.between  # noqa: SLF001
        return {name: np.clip(table[:, place[q.at]], low, high) for name, q in self.aggregates.items()}

    def errors(self, noisy: Noisy, confidence: float) -> Columns:
        """In rows: between the answer and the true quantile lie at most so many, with this confidence.

        In values where windows were bought: the true quantile lies in the window, with a confidence of 0.95; for a
        greater one the bar is the whole range. A forecast assumes that values are spread evenly over their range.
        """
        asked = self.fill_ranges(noisy.get("ranges", {}))._first  # noqa: SLF001
        rows = self._rank_errors(asked.points, float(noisy["weight"]), confidence)
        groups, windows = len(noisy["points"]), noisy.get("windows", noisy.get("guessed"))
        bars = {name: np.full(groups, rows[q.at]) for name, q in self.aggregates.items()}
        whole = asked.measured.between[1] - asked.measured.between[0]
        for name, q in self.aggregates.items():
            if q.in_values and windows is not None:
                found = np.array([window[self._windows.index(q.at)] for window in windows], np.float64)
                bars[name] = np.minimum(found, whole) if confidence <= CONFIDENCE else np.full(groups, whole)
        return bars

    def assume(self, frame: Frame, guess: Guess) -> Noisy:
        norm, measured = guess.norm(self.limits), self._first.measured
        ranges = {measured.key: list(guess.range(measured))} if self.ranges is not None else {}
        low, high = self.fill_ranges(ranges)._first.measured.between  # noqa: SLF001
        weight, bits = self._weight(norm)
        wide = self.wide or math.inf
        rows = [guess_rows(noise_scales(weight, at, wide), at.denominator << bits) for at in self._windows]
        windows = [(high - low) * min(1.0, each / (guess.rows or math.ulp(0.0))) for each in rows]
        return {
            "points": [[low] * len(self._shares)] * frame.groups, "norm": norm, "weight": weight / (1 << bits),
            "ranges": ranges, "guessed": [windows] * frame.groups,
        }  # fmt: skip

    def notes(self, noisy: Noisy) -> list[str]:
        notes: list[str] = []
        if in_rows := [name for name, q in self.aggregates.items() if not q.in_values]:
            notes.append(make_note("tables.note_bars_in_rows", names=", ".join(in_rows)))
        if self._windows:
            notes.append(make_note("tables.note_bars_bought"))
            low, high = self.fill_ranges(noisy["ranges"])._first.measured.between  # noqa: SLF001
            bars = self.errors(noisy, CONFIDENCE)
            for name in (name for name, q in self.aggregates.items() if q.in_values and noisy.get("windows")):
                notes += noisy_note(name, bars[name], high - low)
        extreme = [name for name, q in self.aggregates.items() if q.at in (Fraction(1, 100), Fraction(99, 100))]
        if extreme:
            notes.append(make_note("tables.note_extremes", names=", ".join(extreme)))
        if self.limits.by_person:
            notes.append(bounded_note(name_bound("rows", str(noisy["norm"])), self.choice))
        return notes + [range_note(key, found) for key, found in noisy["ranges"].items()]

    def sql(self, frame: Frame) -> str:
        norm = self.limits.norm or 1
        if self.ranges is not None:
            return explain(self.question(frame, norm))
        return f"-- at most {self.most_cells(norm):,} cells of a group come back\n{explain(self.question(frame, norm))}"


def _levels(quantiles: int) -> int:
    """How deep a balanced tree of so many quantiles is."""
    return quantiles.bit_length()


def _rank(places: GroupPlaces, totals: Totals) -> tuple[Integers, Ranked]:
    """(groups, their cells): those of which cells came, in the order of the frame, so that engines draw alike."""
    owners, sizes = places.find(totals.keys, len(totals))
    shown = owners >= 0
    here, inverse = np.unique(owners[shown], return_inverse=True)
    owner = np.full(len(owners), -1)
    owner[shown] = inverse
    cell, rows, upto, total = (totals[name] for name in ("cell", "rows", "upto", "total"))
    return here, Ranked.of(np.repeat(owner, sizes), cell, rows, upto, total, len(here))
