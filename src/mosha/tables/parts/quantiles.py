"""Quantiles: the exponential mechanism over the points of a fine public grid, whose gaps are the data's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mosha.connect.engines.source import answer, explain
from mosha.connect.language.expression import Expression, grid
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import NormBound, Unbounded
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Exponential, Pure
from mosha.core.number import real, strict_probability
from mosha.core.randomness import Rng
from mosha.mechanisms.choice import exponential_regret
from mosha.tables.parts.additive import Aggregate
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.bought_range import SHARE_FOR_RANGES, RangeChoice, range_note
from mosha.tables.parts.bounded_number import Measured, Range
from mosha.tables.parts.bounds import Limits, limits_of
from mosha.tables.parts.key_values import as_engines_do
from mosha.tables.parts.norm_choice import NormChoice, bounded_note
from mosha.tables.parts.part import Columns, Frame, Noisy, within
from mosha.tables.parts.quantile_width import CONFIDENCE, noise_scales, window
from mosha.tables.parts.rank_choice import descend, rank_errors
from mosha.tables.parts.shares import choice_epsilon, pure_epsilon

__all__ = ["Quantile", "QuantilesPart", "maximum", "median", "minimum", "quantile"]

POINTS = 20
_CELL = "cell of the grid"


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

    @property
    def cell(self) -> Expression:
        return grid(self.measured.of, self.measured.between, self.exponent)


def quantile(column: Any, at: float, *, between: Any = None, bars: str = "rows") -> Quantile:
    """The quantile `at` (0.5: the median) of a column whose values are clamped into [low, high].

    Its error bar is a number of rows, which costs nothing; bars="values" buys one in the unit of the column instead,
    with half of the budget.
    """
    share = real("at", at)
    if bars not in ("rows", "values"):
        raise InvalidParameter("tables.quantile_bars", parameter="bars")
    if not 0 <= share <= 1:
        raise InvalidParameter("tables.quantile_share", parameter="at")
    nearest = Fraction(share).limit_denominator(1000)
    return Quantile(Measured.of_column("quantile", column, between), nearest, in_values=bars == "values")


def median(column: Any, *, between: Any = None, bars: str = "rows") -> Quantile:
    """The median of a column whose values are clamped into [low, high]."""
    return quantile(column, 0.5, between=between, bars=bars)


def minimum(column: Any, *, between: Any = None, bars: str = "rows") -> Quantile:
    """About the least value: the quantile at 0.01, because the least value itself is one person's secret."""
    return quantile(column, 0.01, between=between, bars=bars)


def maximum(column: Any, *, between: Any = None, bars: str = "rows") -> Quantile:
    """About the largest value: the quantile at 0.99, because the largest value itself is one person's secret."""
    return quantile(column, 0.99, between=between, bars=bars)


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
            choice = NormChoice.plan(budget, share, 1, frame.most_groups, twice=limits.twice)
            left -= choice.share
        if any(q.measured.automatic for q in aggregates.values()):
            ranges = RangeChoice.plan(budget, share * SHARE_FOR_RANGES, 1)
            left -= SHARE_FOR_RANGES
        levels = _levels(len({q.at for q in aggregates.values()}))
        wide = None
        if windows := len({q.at for q in aggregates.values() if q.in_values}):
            left /= 2
            wide = pure_epsilon(budget, share * left / windows)
        return QuantilesPart(aggregates, limits, choice_epsilon(budget, share * left / levels), choice, ranges, wide)

    def fill_ranges(self, ranges: Mapping[str, Any]) -> QuantilesPart:
        """With the range that was bought."""
        bought = {key: (float(low), float(high)) for key, (low, high) in ranges.items()}
        return replace(self, aggregates={name: q.fill_ranges(bought) for name, q in self.aggregates.items()})

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

    def question(self, frame: Frame, norm: int | None) -> Aggregation:
        """How many rows each group has in each cell of the grid, a person's rows weighing at most `norm` together."""
        _, bits = self._weight(norm)
        cell = self._first.cell
        relation = within(frame, frame.relation.where(~cell.is_null()))
        bound = NormBound(1, {"rows": norm}, bits) if self.limits.by_person and norm else Unbounded()
        return Aggregation(relation, (*frame.keys, (_CELL, cell)), (("rows", Rows()),), bound=bound)

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> Noisy:
        del key
        norm, ranges, asked = self.limits.norm, {}, self
        if self.choice is not None:
            norm = self.choice.choose(frame, frame.keys, Rows(), {1: lambda bound: bound / self.epsilon}, rng).norm
        if self.ranges is not None:
            measured = self._first.measured
            ranges = {measured.key: list(self.ranges.choose(frame, measured, self.limits, rng))}
            asked = self.fill_ranges(ranges)
        totals = answer(asked.question(frame, norm))
        weight, bits = self._weight(norm)
        cells = np.asarray(totals.keys[-1]).astype(np.int64)
        counts = np.asarray(totals["rows"]).astype(np.int64)
        owner = _owners(frame, totals.keys[:-1], len(cells))
        order = np.lexsort((cells, owner))
        ends = np.searchsorted(owner[order], np.arange(frame.groups + 1))
        found: list[list[float]] = []
        around: list[list[float]] = []
        for group in range(frame.groups):
            mine = order[ends[group] : ends[group + 1]]
            points = asked.points(cells[mine], counts[mine], weight, rng)
            found.append([math.ldexp(points[share], -asked._first.exponent) for share in self._shares])  # noqa: SLF001
            around.append(asked.around(cells[mine], counts[mine], points, weight, rng))
        return {
            "points": found, "norm": norm, "weight": weight / (1 << bits), "ranges": ranges, "windows": around,
        }  # fmt: skip

    def points(self, cells: NDArray[np.int64], counts: NDArray[np.int64], weight: int, rng: Rng) -> dict[Fraction, int]:
        """The quantiles of one group, in grid steps."""
        low, high = self._first.points
        scale = Fraction(weight) / Fraction(self.epsilon)
        points: dict[Fraction, int] = {}
        descend(cells, counts, (low, high), self._shares, (Fraction(0), Fraction(1)), scale, points, rng)
        return points

    def around(
        self,
        cells: NDArray[np.int64],
        counts: NDArray[np.int64],
        points: Mapping[Fraction, int],
        weight: int,
        rng: Rng,
    ) -> list[float]:
        """The half-widths of the windows around the quantiles of one group that have them."""
        if self.wide is None:
            return []
        found = []
        for share in self._windows:
            scales = noise_scales(weight, share, self.wide)
            wide = window(cells, counts, share, points[share], self._first.points, scales, rng) + 1
            found.append(math.ldexp(wide, -self._first.exponent))
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
        greater one the bar is the whole range. A forecast is in rows, for windows are data.
        """
        asked = self.fill_ranges(noisy.get("ranges", {}))._first  # noqa: SLF001
        rows = self._rank_errors(asked.points, float(noisy["weight"]), confidence)
        groups, windows = len(noisy["points"]), noisy.get("windows")
        bars = {name: np.full(groups, rows[q.at]) for name, q in self.aggregates.items()}
        whole = asked.measured.between[1] - asked.measured.between[0]
        for name, q in self.aggregates.items():
            if q.in_values and windows is not None:
                found = np.array([window[self._windows.index(q.at)] for window in windows], np.float64)
                bars[name] = np.minimum(found, whole) if confidence <= CONFIDENCE else np.full(groups, whole)
        return bars

    def assume(self, frame: Frame, guess: Guess) -> Noisy:
        norm = guess.norm(self.limits)
        weight, bits = self._weight(norm)
        return {"points": [[0.0] * len(self._shares)] * frame.groups, "weight": weight / (1 << bits)}

    def notes(self, noisy: Noisy) -> list[str]:
        notes = []
        if in_rows := [name for name, q in self.aggregates.items() if not q.in_values]:
            notes.append(
                f"The error bars of {', '.join(in_rows)} are in rows between the answer and the true quantile; "
                "bars='values' buys them in the unit of the column."
            )
        if self._windows:
            notes.append("Half of the budget of the quantiles bought error bars of 95% in the unit of the column.")
        extreme = [name for name, q in self.aggregates.items() if q.at in (Fraction(1, 100), Fraction(99, 100))]
        if extreme:
            notes.append(f"{', '.join(extreme)}: the quantile at 0.01 or 0.99, in place of the extreme value itself.")
        if self.limits.by_person:
            notes.append(bounded_note(f"{noisy['norm']} rows", self.choice))
        return notes + [range_note(key, found) for key, found in noisy["ranges"].items()]

    def sql(self, frame: Frame) -> str:
        return explain(self.question(frame, self.limits.norm or 1))


def _levels(quantiles: int) -> int:
    """How deep a balanced tree of so many quantiles is."""
    return quantiles.bit_length()


def _owners(frame: Frame, keys: Sequence[Any], rows: int) -> NDArray[np.int64]:
    """The place of each row's group among the groups that are shown, -1 for others."""
    if not frame.keys:
        return np.zeros(rows, np.int64)
    place = {as_engines_do(group): i for i, group in enumerate(frame.only or ())}
    groups = zip(*(column.tolist() for column in keys), strict=True)
    return np.array([place.get(group, -1) for group in groups], np.int64)


def columns_of(quantiles: Mapping[str, Quantile]) -> Iterable[dict[str, Quantile]]:
    """The quantiles of each column by themselves: they share one grid."""
    found: dict[str, dict[str, Quantile]] = {}
    for name, asked in quantiles.items():
        found.setdefault(asked.measured.key, {})[name] = asked
    return found.values()
