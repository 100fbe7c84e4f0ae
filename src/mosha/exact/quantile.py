"""Medians and other quantiles: little sensitivity on most data, a lot on a few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.number import strict_probability
from mosha.core.unit import Unit
from mosha.exact.bounding import keep_at_most, read_rows, rows_per_unit, to_numbers
from mosha.exact.clip import clip_numbers
from mosha.exact.grid import check_bounds, grid_for, power_of_two, round_to_grid
from mosha.exact.statistic import RenamedMethods, Steps

__all__ = ["LocalStatistic", "Quantile"]


@runtime_checkable
class LocalStatistic(Protocol):
    """A number that knows how far it could move, for the data at hand and for data ever further away.

    `evaluate_with_reaches` of `data` for a `unit` is (f, A) in whole steps: the number, and an array with

        |f(D) - f(D')| <= A[0](D)        for all neighbors D' of D,
        A[k](D) <= A[k + 1](D')          for all neighbors and all k,

    whose last entry, `width`, is the most that f can move anywhere and stands for all k beyond. In the unit of the
    data the number is offset + grid * f.

    >>> isinstance(Quantile(at=0.5, between=(0, 100), grid=1), LocalStatistic)
    True
    """

    @property
    def grid(self) -> float: ...

    @property
    def offset(self) -> float: ...

    @property
    def width(self) -> int: ...

    def evaluate_with_reaches(self, data: object, unit: Unit) -> tuple[int, Steps]:
        """The number in grid steps, and how far it could move, for data ever further away."""
        ...


@dataclass(frozen=True, kw_only=True)
class Quantile(RenamedMethods):
    """The value below which a share `at` of the rows lies (0.5: the median), clamped into [low, high].

    Of n values, sorted, it is number floor(at * n) + 1; of none, the middle of the range. Missing values are left out.

    Guarantee:
        Let x_i be the sorted values, low for i < 1 and high for i > n, and r the rank. One row added, removed or
        replaced moves ranks by at most one: x_(r+j-1) <= x'_(r'+j) <= x_(r+j+1) for all j (add: x'_i is x_(i-1) or
        x_i or between, and r' is r or r + 1; remove: the same backwards; replace: x_(i-1) <= x'_i <= x_(i+1), r' = r).
        A unit with m rows is m such steps, so |f - f'| <= A_0 and A_k(D) <= A_(k+1)(D') for
        A_k = x_(r+(k+1)m) - x_(r-(k+1)m). With no rows at all, A_0 is the whole range.

    Units:
        `between` and `grid` are in the unit of the column; f, counted from low, and A are in grid steps.

    >>> from mosha.core.unit import Row
    >>> Quantile(at=0.5, between=(0, 10), grid=1).evaluate_with_reaches([3, 1, 4, 1, 5], Row())
    (3, array([ 3,  4, 10, 10, 10, 10]))
    """

    at: float
    between: tuple[float, float]
    column: str | None = None
    grid: float = 0.0
    labels: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", strict_probability("at", self.at))
        low, high = check_bounds("quantile", self.between)
        object.__setattr__(self, "between", (low, high))
        grid = power_of_two("grid", self.grid) if self.grid else grid_for(high - low)
        if not 1 <= (high - low) / grid <= 2.0**40:
            raise InvalidParameter("exact.grid_of_quantile", parameter="grid")
        object.__setattr__(self, "grid", grid)

    @property
    def offset(self) -> float:
        return self.between[0]

    @property
    def width(self) -> int:
        return int(np.rint((self.between[1] - self.between[0]) / self.grid))

    @np.errstate(all="ignore")
    def evaluate_with_reaches(self, data: object, unit: Unit) -> tuple[int, Steps]:
        """The quantile in grid steps from the low end, and how far it could move: as private as the data."""
        values, persons = read_rows(data, unit, self.column)
        column = to_numbers(values)
        present = ~np.isnan(column)
        above = np.where(present, clip_numbers(column, *self.between), self.offset) - self.offset
        steps = np.clip(round_to_grid(above, self.grid), 0, self.width)
        if persons is not None:
            rows = np.stack([steps, present.astype(np.int64)], axis=1)
            present &= keep_at_most(rows_per_unit(unit), persons, rows)
        steps = np.sort(steps[present])
        top, bottom = self.at.as_integer_ratio()  # a float product could skip a rank
        rank = top * steps.size // bottom + 1
        value = int(steps[rank - 1]) if steps.size else self.width // 2
        return value, self._reaches(steps, rank, rows_per_unit(unit))

    def _reaches(self, steps: Steps, rank: int, rows: int) -> Steps:
        padded = np.concatenate([[0], steps, [self.width]])
        away = rows * np.arange(1, -(-steps.size // rows) + 2)
        upper = padded[np.minimum(rank + away, steps.size + 1)]
        lower = padded[np.maximum(rank - away, 0)]
        return np.asarray(upper - lower)
