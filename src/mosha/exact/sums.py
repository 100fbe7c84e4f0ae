"""Sums of numbers and of vectors, each row bounded first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, Unbounded
from mosha.core.number import positive, positive_integer
from mosha.core.options import MissingNumber, choose
from mosha.core.unit import Neighbors, Unit
from mosha.exact.bounding import keep_at_most, read_rows, rows_per_unit, to_numbers
from mosha.exact.clip import check_order, clip_numbers, clip_vectors
from mosha.exact.grid import check_bounds, grid_for, power_of_two, round_to_grid, sum_steps
from mosha.exact.statistic import RenamedMethods, Sensitivity, Steps, root_up, sum_sensitivity

__all__ = ["ClippedSum", "VectorSum"]


@dataclass(frozen=True, kw_only=True)
class ClippedSum(RenamedMethods):
    """The sum of a column, every value first clamped into [low, high] and rounded to the grid.

    `missing` says what a value that is no number (NaN, None, text) stands for: "drop", which adds nothing, or the
    "low", "middle" or "high" of the range. Infinities are clamped like any value. `grid` is a power of two;
    by default 2**27 to 2**28 steps reach the larger bound.

    Guarantee:
        Clamping and rounding are monotone and done value by value, so a row adds a whole number of steps
        between round(low / grid) and round(high / grid), or 0 where missing values are dropped.
        `sum_sensitivity` with these bounds holds: m max(|low|, |high|) when a unit with at most m rows is added
        or removed, the length of the reachable interval when it is replaced. Integer sums have no order.

    Units:
        `between` and `grid` are in the unit of the column, the sensitivity is in grid steps.

    >>> from mosha.core.unit import Row
    >>> days = ClippedSum(between=(0, 30), grid=1)
    >>> days.evaluate([3, 99, float("nan")], Row()).tolist(), days.sensitivity(Row(at_most=5)).l1
    ([33], 150)
    """

    between: tuple[float, float]
    column: str | None = None
    missing: MissingNumber = "drop"
    grid: float = 0.0
    labels: ClassVar[None] = None

    def __post_init__(self) -> None:
        low, high = check_bounds("sum", self.between)
        object.__setattr__(self, "between", (low, high))
        magnitude = max(abs(low), abs(high))
        grid = power_of_two("grid", self.grid) if self.grid else grid_for(magnitude)
        if magnitude > grid * 2.0**50:
            raise InvalidParameter("exact.grid_too_fine", parameter="grid")
        object.__setattr__(self, "grid", grid)
        choose("missing", self.missing, MissingNumber)

    def _range(self) -> tuple[int, int]:
        low, high = round_to_grid(np.array(self.between), self.grid).tolist()
        return (min(low, 0), max(high, 0)) if self.missing == "drop" else (low, high)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        return sum_sensitivity(*self._range(), unit)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        values, persons = read_rows(data, unit, self.column)
        steps = self._steps(to_numbers(values))
        if persons is not None:
            steps = steps[keep_at_most(rows_per_unit(unit), persons, steps)]
        return sum_steps(steps, max(map(abs, self._range())))

    def _steps(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        low, high = self.between
        stand_in = {"drop": 0.0, "low": low, "middle": low / 2 + high / 2, "high": high}[self.missing]
        return round_to_grid(np.where(np.isnan(values), stand_in, clip_numbers(values, low, high)), self.grid)


@dataclass(frozen=True, kw_only=True)
class VectorSum(RenamedMethods):
    """The sum of vectors, every one first shortened to a norm of at most `norm`.

    `order` 2 clips the Euclidean norm (for Gaussian noise), 1 the sum of absolute values (for Laplace noise). A row
    with a NaN or an infinity counts as zero.

    Guarantee:
        A row adds an integer vector whose norm is at most b = floor(norm / grid) steps (`clip_vectors`), a unit
        with m rows at most m b in that norm. Added or removed: that bounds f(D) - f(D'); replaced: twice that.
        The other norms follow: |x|_inf <= |x|_2 <= |x|_1 <= sqrt(d) |x|_2, span <= 2 |x|_inf, and by
        |x|_i - |x|_j <= sqrt(2) |x|_2 also span <= sqrt(2) |x|_2 and span <= |x|_1.

    Units:
        `norm` and `grid` are in the unit of the vectors, the sensitivity is in grid steps.

    >>> from mosha.core.unit import Row
    >>> steps = VectorSum(norm=10, coordinates=2, grid=1)
    >>> steps.evaluate([[30, 40], [1, 0]], Row()).tolist(), steps.sensitivity(Row()).l2
    ([7, 8], 10.0)
    """

    norm: float
    coordinates: int
    order: int = 2
    column: str | None = None
    grid: float = 0.0

    def __post_init__(self) -> None:
        if self.norm is None:
            raise Unbounded("exact.no_norm", parameter="norm")
        norm = positive("norm", self.norm)
        check_bounds("vector sum", (0, norm))
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "coordinates", positive_integer("coordinates", self.coordinates))
        check_order(self.order)
        object.__setattr__(self, "grid", power_of_two("grid", self.grid) if self.grid else grid_for(norm))
        if not 1 <= norm / self.grid <= 2.0**30:
            raise InvalidParameter("exact.grid_of_vectors", parameter="grid")

    @property
    def labels(self) -> tuple[int, ...]:
        return tuple(range(self.coordinates))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        replaced = unit.neighbors is Neighbors.REPLACE_ONE
        step = int(self.norm / self.grid) * rows_per_unit(unit) * (2 if replaced else 1)
        d = self.coordinates
        l1 = step if self.order == 1 else int(root_up(d * step**2))
        span = step if d == 1 else min(2 * step, l1, int(root_up(2 * step**2)))
        return Sensitivity(l0=d, l1=l1, l2=root_up(step**2), linf=step, span=span)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        values, persons = read_rows(data, unit, self.column)
        steps = clip_vectors(
            to_numbers(values, width=self.coordinates), int(self.norm / self.grid), self.order, self.grid
        )
        if persons is not None:
            steps = steps[keep_at_most(rows_per_unit(unit), persons, steps)]
        return sum_steps(steps, int(self.norm / self.grid))
