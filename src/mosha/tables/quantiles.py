"""Quantiles: the exponential mechanism over the points of a fine public grid, whose gaps are the data's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.connect.aggregation import Aggregation
from mosha.connect.bounding import NormBound, Unbounded
from mosha.connect.expression import Expression, grid
from mosha.connect.relation import Relation
from mosha.connect.schema import Schema
from mosha.connect.source import answer, explain
from mosha.connect.value import Rows
from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Event
from mosha.core.events import Exponential
from mosha.core.number import real, strict_probability
from mosha.core.randomness import Rng
from mosha.mechanisms.choice import exponential_regret
from mosha.mechanisms.grid import enlarged
from mosha.noise import exponential_choice, uniform
from mosha.tables.aggregates import Aggregate, Measured
from mosha.tables.bounds import Limits, NormChoice, limits_of
from mosha.tables.budget import Budget
from mosha.tables.part import Frame
from mosha.tables.sums import SHARE_FOR_BOUNDS, chosen_norm

__all__ = ["Quantile", "QuantilesPart", "maximum", "median", "minimum", "quantile"]

POINTS = 20
_CELL = "cell of the grid"


@dataclass(frozen=True, eq=False)
class Quantile(Aggregate):
    """The value below which a share `at` of the rows lies, within [low, high]."""

    measured: Measured
    at: Fraction

    def check(self, schema: Schema) -> None:
        self.measured.check(schema)

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


def quantile(column: Any, at: float, *, between: tuple[float, float]) -> Quantile:
    """The quantile `at` (0.5: the median) of a column whose values are clamped into [low, high]."""
    share = real("at", at)
    if not 0 <= share <= 1:
        raise InvalidParameter("a quantile is asked at a share from 0 to 1.")
    return Quantile(Measured.of_column("quantile", column, between), Fraction(share).limit_denominator(1000))


def median(column: Any, *, between: tuple[float, float]) -> Quantile:
    """The median of a column whose values are clamped into [low, high]."""
    return quantile(column, 0.5, between=between)


def minimum(column: Any, *, between: tuple[float, float]) -> Quantile:
    """About the least value: the quantile at 0.01, because the least value itself is one person's secret."""
    return quantile(column, 0.01, between=between)


def maximum(column: Any, *, between: tuple[float, float]) -> Quantile:
    """About the largest value: the quantile at 0.99, because the largest value itself is one person's secret."""
    return quantile(column, 0.99, between=between)


@dataclass(frozen=True, eq=False)
class QuantilesPart:
    """Quantiles of one column: the middle one first, then those on either side within the rows that remain.

    Guarantee:
        Let one unit add rows of weight w_g to group g, sum of w_g <= W. The score of point t in a group is minus the
        distance of at * n from the ranks [below(t), up_to(t)]; a row of weight w moves it by at most
        max(at, 1 - at) w. The exponential mechanism with scale 2 max(at, 1 - at) W / epsilon loses
        epsilon w_g / W in group g, epsilon in all groups together. On the next level the rows are split at
        the points already released; each row is in one piece, so all pieces of a level together lose epsilon again.
        A level of the tree is one event Exponential(epsilon): for several groups its range is epsilon all the same.
    """

    aggregates: Mapping[str, Quantile]
    limits: Limits
    epsilon: float
    choice: NormChoice | None

    @staticmethod
    def plan(frame: Frame, aggregates: Mapping[str, Quantile], budget: Budget, share: float) -> QuantilesPart:
        limits = limits_of(frame.unit, frame.relation, persons=False)
        if limits.truncation is not None:
            rows, groups, per_group = limits.truncation
            norm = groups * per_group if rows is None else min(rows, groups * per_group)
            limits = Limits(norm=norm, by_person=True, twice=limits.twice)
        choice = None
        if limits.automatic:
            choice = NormChoice(budget.epsilon_of(share * SHARE_FOR_BOUNDS), limits.twice)
            share *= 1 - SHARE_FOR_BOUNDS
        levels = _levels(len({q.at for q in aggregates.values()}))
        epsilon = _level_epsilon(budget, share, levels)
        return QuantilesPart(aggregates, limits, epsilon, choice)

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
        levels = Exponential(self.epsilon) * _levels(len(self._shares))
        return levels + (self.choice.event if self.choice else NOTHING)

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
        relation = _within(frame, frame.relation.where(~cell.is_null()))
        bound = NormBound(1, {"rows": norm}, bits) if self.limits.by_person and norm else Unbounded()
        return Aggregation(relation, (*frame.keys, (_CELL, cell)), (("rows", Rows()),), bound=bound)

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> dict[str, Any]:
        del key
        norm = self.limits.norm
        if self.choice is not None:
            norm = chosen_norm(frame, self.choice, Rows(), 1, lambda bound: bound / self.epsilon, rng)
        totals = answer(self.question(frame, norm))
        weight, bits = self._weight(norm)
        cells = np.asarray(totals.keys[-1]).astype(np.int64)
        counts = np.asarray(totals["rows"]).astype(np.int64)
        place = {group: i for i, group in enumerate(frame.only or ((),))}
        groups = (
            zip(*(column.tolist() for column in totals.keys[:-1]), strict=True) if frame.keys else [()] * len(cells)
        )
        owner = np.array([place.get(group, -1) for group in groups], np.int64)
        found: list[list[float]] = []
        for group in range(frame.groups):
            mine = owner == group
            order = np.argsort(cells[mine], kind="stable")
            found.append(self._quantiles(cells[mine][order], counts[mine][order], weight, rng))
        return {"points": found, "norm": norm, "weight": weight / (1 << bits)}

    def _quantiles(self, cells: NDArray[np.int64], counts: NDArray[np.int64], weight: int, rng: Rng) -> list[float]:
        low, high = self._first.points
        scale = Fraction(weight) / Fraction(self.epsilon)
        points: dict[Fraction, int] = {}
        _descend(cells, counts, (low, high), self._shares, (Fraction(0), Fraction(1)), scale, points, rng)
        return [math.ldexp(points[share], -self._first.exponent) for share in self._shares]

    def answers(self, noisy: Mapping[str, Any]) -> dict[str, Any]:
        table = np.array(noisy["points"], np.float64)
        place = {share: i for i, share in enumerate(self._shares)}
        low, high = self._first.measured.between
        return {name: np.clip(table[:, place[q.at]], low, high) for name, q in self.aggregates.items()}

    def errors(self, noisy: Mapping[str, Any], confidence: float) -> dict[str, Any]:
        """In rows: between the answer and the true quantile lie at most so many, with this confidence."""
        levels = _levels(len(self._shares))
        low, high = self._first.points
        level = 1 - (1 - strict_probability("confidence", confidence)) / levels
        regret = exponential_regret(high - low + 1, level) * levels
        rows = regret * 2 * float(noisy["weight"]) / self.epsilon
        groups = len(noisy["points"])
        return {name: np.full(groups, rows * float(max(q.at, 1 - q.at))) for name, q in self.aggregates.items()}

    def assumed(self, frame: Frame, rows: float | None) -> dict[str, Any]:
        del rows
        if self.limits.automatic:
            raise InvalidParameter("the error depends on a bound that is yet to be chosen: declare it for a forecast.")
        weight, bits = self._weight(self.limits.norm)
        return {"points": [[0.0] * len(self._shares)] * frame.groups, "weight": weight / (1 << bits)}

    def notes(self, noisy: Mapping[str, Any]) -> list[str]:
        del noisy
        notes = [f"The error bars of {', '.join(self.names)} are in rows between the answer and the true quantile."]
        extreme = [name for name, q in self.aggregates.items() if q.at in (Fraction(1, 100), Fraction(99, 100))]
        if extreme:
            notes.append(f"{', '.join(extreme)}: the quantile at 0.01 or 0.99, in place of the extreme value itself.")
        return notes

    def sql(self, frame: Frame) -> str:
        return explain(self.question(frame, self.limits.norm or 1))


def _level_epsilon(budget: Budget, share: float, levels: int) -> float:
    """The epsilon of one level: under rho, epsilon^2 / 8 each (bounded range), else epsilons add."""
    if budget.rho is not None:
        return math.sqrt(8 * budget.rho * share / levels) * (1 - 2.0**-50)
    return budget.epsilon_of(share / levels)


def _levels(quantiles: int) -> int:
    """How deep a balanced tree of so many quantiles is."""
    return quantiles.bit_length()


def _within(frame: Frame, relation: Relation) -> Relation:
    """The rows that can lie in a public group (each key column on its own: a superset, which is as private)."""
    if frame.only is None:
        return relation
    for place, (_, expression) in enumerate(frame.keys):
        values = [key[place] for key in frame.only]
        present = [value for value in dict.fromkeys(values) if value is not None]
        allowed = expression.is_in(*present) if present else expression.is_null()
        relation = relation.where(allowed | expression.is_null() if None in values and present else allowed)
    return relation


def _descend(
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
    point = _choose(cells, counts, span, relative, scale, rng)
    points[share] = point
    cut = int(np.searchsorted(cells, point, side="left"))
    left = (cells[:cut], counts[:cut], (span[0], point), shares[:middle], (part[0], share))
    right = (cells[cut:], counts[cut:], (point, span[1]), shares[middle + 1 :], (share, part[1]))
    for side in (left, right):
        _descend(*side, scale, points, rng)


def _choose(
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
    target = top * total
    edges = np.concatenate([[span[0] - 1], cells, [span[1] + 1]])
    ranks = np.concatenate([[0], upto]) * bottom
    gaps = np.maximum(np.diff(edges) - 1, 0)
    at_points = -np.maximum(np.maximum(bottom * (upto - counts) - target, target - bottom * upto), 0)
    in_gaps = -np.abs(ranks - target)
    scores = np.concatenate([at_points, in_gaps]).astype(np.int64)
    weights = np.concatenate([np.ones(cells.size, np.int64), gaps])
    sensitivity = 2 * max(top, bottom - top)
    chosen = exponential_choice(scores, enlarged(scale * sensitivity), weights=weights, rng=rng)
    if chosen < cells.size:
        return int(cells[chosen])
    gap = chosen - cells.size
    return int(edges[gap]) + 1 + int(uniform(int(gaps[gap]), rng=rng))


def columns_of(quantiles: Mapping[str, Quantile]) -> Iterable[dict[str, Quantile]]:
    """The quantiles of each column by themselves: they share one grid."""
    found: dict[str, dict[str, Quantile]] = {}
    for name, asked in quantiles.items():
        found.setdefault(asked.measured.key, {})[name] = asked
    return found.values()
