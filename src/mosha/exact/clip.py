"""Clipping: what bounds a row's contribution, and an honest word on what it costs.

The bias that clipping caused in one data set is a private fact about it. Three honest ways to learn about it: pay for
`Clipped(between=...)`, a count of the values below and above the bounds (`ClippedVectors` for vectors); forecast it
with `clipping_bias` on *public* values; or compare two paid answers with different bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive, positive_integer
from mosha.core.unit import Unit
from mosha.exact.bounding import keep_at_most, read_rows, rows_per_unit, to_numbers
from mosha.exact.counts import Histogram
from mosha.exact.grid import check_bounds, grid_for, round_to_grid, sum_steps
from mosha.exact.statistic import RenamedMethods, Sensitivity, Steps, sum_sensitivity

__all__ = ["Clipped", "ClippedVectors", "check_order", "clip_numbers", "clip_vectors", "clipping_bias"]


def clip_numbers(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Each value moved to the nearest point of [low, high]; NaN stays NaN."""
    return np.clip(values, low, high)


def check_order(order: object) -> None:
    if order not in (1, 2):
        raise InvalidParameter("exact.unknown_order", parameter="order")


def clip_vectors(vectors: NDArray[np.float64], norm: int, order: int, grid: float) -> NDArray[np.int64]:
    """Each row as whole steps whose l1 or l2 norm is at most `norm` steps, exactly.

    Guarantee:
        The norm of every row of the result is at most `norm`: it is checked in integers (which 64 bits hold,
        as `norm` <= 2**30 and coordinates are at most `norm`), and rows that fail are shortened towards
        zero, which at last leaves the zero vector. A row is handled by itself; one with a NaN or an infinity
        has no direction and becomes zero.

    >>> clip_vectors(np.array([[3.0, 4.0], [0.3, 0.4]]), norm=10, order=2, grid=0.1).tolist()
    [[6, 8], [3, 4]]
    """
    steps = np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, 0.0)
    peak = np.abs(steps).max(axis=1, keepdims=True, initial=0.0)
    unit = np.divide(steps, peak, out=np.zeros_like(steps), where=peak > 0)  # no square can overflow
    length = np.maximum(np.linalg.norm(unit, order, axis=1, keepdims=True), 1.0)
    steps = unit * np.minimum(np.minimum(peak, norm * grid) / grid, norm / length)
    clipped = round_to_grid(steps, 1.0)
    for shrink in (1.0, 1.0 - 2.0**-30, 1.0 - 2.0**-20, 0.5, 0.0):
        long = _norm_power(clipped, order) > norm**order
        if not long.any():
            break
        clipped[long] = np.trunc(steps[long] * shrink).astype(np.int64)
    return clipped


def _norm_power(steps: NDArray[np.int64], order: int) -> NDArray[np.uint64]:
    """|row|_1, or |row|_2 squared, in integers; large enough to be refused where 64 bits end."""
    sizes = np.abs(steps).astype(np.uint64) ** np.uint64(order)
    totals = sizes.sum(axis=1, dtype=np.uint64)
    rough = sizes.astype(np.float64).sum(axis=1)
    return np.where(rough < 2.0**63, totals, np.uint64(2**64 - 1))


@dataclass(frozen=True, kw_only=True)
class Clipped(RenamedMethods):
    """How many values lie below and above the bounds: the paid-for report on what clipping did.

    Guarantee:
        A histogram of two public keys, "below" and "above"; see `Histogram`.

    >>> from mosha.core.unit import Row
    >>> Clipped(between=(0, 10)).evaluate([-5, 3, 11, 99], Row()).tolist()
    [1, 2]
    """

    between: tuple[float, float]
    column: str | None = None
    grid: ClassVar[float] = 1.0
    labels: ClassVar[tuple[str, str]] = ("below", "above")

    def __post_init__(self) -> None:
        object.__setattr__(self, "between", check_bounds("clipping", self.between))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        return Histogram(keys=self.labels).sensitivity(unit)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        values, persons = read_rows(data, unit, self.column)
        column = to_numbers(values)
        side = np.where(column < self.between[0], 0, np.where(column > self.between[1], 1, 2)).astype(np.int64)
        if persons is not None:
            side = side[keep_at_most(rows_per_unit(unit), persons, side)]
        return np.bincount(side, minlength=3)[:2].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class ClippedVectors(RenamedMethods):
    """How many vectors are longer than `norm`, or hold something that is no number: what `VectorSum` changes.

    Guarantee:
        A row counts 0 or 1, by itself: `sum_sensitivity` with these bounds holds, m for a unit with m rows.

    >>> from mosha.core.unit import Row
    >>> ClippedVectors(norm=5, coordinates=2).evaluate([[3, 4], [6, 8], [None, 1]], Row()).tolist()
    [2]
    """

    norm: float
    coordinates: int
    order: int = 2
    column: str | None = None
    grid: ClassVar[float] = 1.0
    labels: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", positive("norm", self.norm))
        object.__setattr__(self, "coordinates", positive_integer("coordinates", self.coordinates))
        check_order(self.order)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        return sum_sensitivity(0, 1, unit)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        values, persons = read_rows(data, unit, self.column)
        vectors = to_numbers(values, width=self.coordinates)
        finite = np.asarray(np.isfinite(vectors).all(axis=1, keepdims=True))
        shares = np.where(finite, vectors, 0.0) / self.norm / 2  # where this overflows, the vector is too long
        long = ~finite[:, 0] | (np.abs(shares).max(axis=1) > 0.5)
        shares[long] = 0.0  # no square can overflow
        long |= np.linalg.norm(shares, self.order, axis=1) > 0.5
        steps = long.astype(np.int64)
        if persons is not None:
            steps = steps[keep_at_most(rows_per_unit(unit), persons, steps)]
        return sum_steps(steps, 1)


def clipping_bias(
    public: ArrayLike, *, between: tuple[float, float] | None = None, norm: float | None = None, order: int = 2
) -> Any:
    """The mean of clipped values minus the mean of the values, for *public* values like the private ones.

    `public` is a sample: of last year's published data, or drawn from a distribution that is assumed. On private
    values the answer would be a release nobody paid for. With `norm`, the values are vectors, and so is the bias.

    Args:
        public: a public sample of values, or of vectors.
        between: the range (low, high) that values are clamped into; or
        norm: the norm that vectors are clipped to.
        order: which norm: 1 or 2.

    >>> clipping_bias([0, 10, 20, 50], between=(0, 30))
    -5.0
    >>> clipping_bias([[3, 4], [30, 40]], norm=5).tolist()
    [-13.5, -18.0]
    """
    if (between is None) == (norm is None):
        raise InvalidParameter("exact.bias_of_what")
    vectors = np.atleast_2d(
        to_numbers(public, width=_width(public)) if norm is not None else to_numbers(public)[:, None]
    )
    vectors = vectors[np.isfinite(vectors).all(axis=1)]
    if vectors.size == 0:
        raise InvalidParameter("exact.no_public_values", parameter="public")
    if norm is None:
        low, high = check_bounds("clipping", between)
        return float((clip_numbers(vectors, low, high) - vectors).mean())
    check_order(order)
    grid = grid_for(positive("norm", norm))
    return (clip_vectors(vectors, int(norm / grid), order, grid) * grid - vectors).mean(axis=0)


def _width(public: ArrayLike) -> int:
    shape = np.shape(public)
    if len(shape) != 2:
        raise InvalidParameter("exact.public_not_vectors", parameter="public")
    return int(shape[1])
