"""The two numbers of a mean: the sum of values measured from the middle of their range, and their count."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mosha.core.options import MissingValue, choose
from mosha.core.unit import Neighbors, Unit
from mosha.exact.bounding import keep_at_most, read_rows, rows_per_unit, to_numbers
from mosha.exact.clip import clip_numbers
from mosha.exact.grid import check_bounds, grid_for, round_to_grid, sum_steps
from mosha.exact.statistic import RenamedMethods, Steps

__all__ = ["SumAndCount"]


@dataclass(frozen=True, kw_only=True)
class SumAndCount(RenamedMethods):
    """(sum of clamped values minus the middle of the range, number of values), the pair that makes a mean.

    Measured from the middle c = (low + high) / 2, a value is at most h = (high - low) / 2 away: a unit that comes or
    goes moves the sum by h a row and not by max(|low|, |high|). A value that is no number is left out of both
    (`missing="drop"`), or counts as the middle (`missing="middle"`).

    Guarantee:
        A row adds (s, 1) with |s| <= h steps, or (0, 0); a unit with m rows adds (s, n) with |s| <= h n, n <= m.
        Added or removed: the pair moves within the box |s| <= m h, |n| <= m (`widths`). Replaced: the difference
        of two such pairs, |s| <= 2 m h, and |n| <= m, or m - 1 where every row counts (1 <= n <= m on both sides).

    Units:
        The sum is in steps of `grid`, the count in rows.

    >>> from mosha.core.unit import Row
    >>> ages = SumAndCount(between=(0, 100))
    >>> total, count = ages.evaluate([30, 40, 500, None], Row())
    >>> ages.middle + ages.grid * total / count  # the middle is 50, the third value clamped to 100
    np.float64(56.66666666...)
    """

    between: tuple[float, float]
    column: str | None = None
    missing: MissingValue = "drop"

    def __post_init__(self) -> None:
        object.__setattr__(self, "between", check_bounds("mean", self.between))
        choose("missing", self.missing, ("drop", "middle"))

    @property
    def middle(self) -> float:
        return self.between[0] / 2 + self.between[1] / 2

    @property
    def grid(self) -> float:
        return grid_for(self.between[1] / 2 - self.between[0] / 2)

    @property
    def half(self) -> int:
        """How many steps a value can be from the middle, at most 2**28."""
        return math.ceil((self.between[1] / 2 - self.between[0] / 2) / self.grid)

    def widths(self, unit: Unit) -> tuple[int, int]:
        """How far one unit moves the sum, in steps, and the count, in rows."""
        rows = rows_per_unit(unit)
        if unit.neighbors is Neighbors.ADD_REMOVE:
            return rows * self.half, rows
        return 2 * rows * self.half, rows - (self.missing != "drop")

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The sum in steps from the middle, and the count: as private as the data."""
        values, persons = read_rows(data, unit, self.column)
        column = to_numbers(values)
        missing = np.isnan(column)
        centred = np.where(missing, 0.0, clip_numbers(column, *self.between) - self.middle)
        pairs = np.empty((column.size, 2), np.int64)
        pairs[:, 0] = np.clip(round_to_grid(centred, self.grid), -self.half, self.half)
        pairs[:, 1] = ~missing if self.missing == "drop" else 1
        if persons is not None:
            pairs = pairs[keep_at_most(rows_per_unit(unit), persons, pairs)]
        return sum_steps(pairs, self.half)
