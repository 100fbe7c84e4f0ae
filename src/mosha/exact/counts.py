"""How many: rows, and rows for each of a public list of keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.unit import Neighbors, Unit
from mosha.exact.bounding import keep_at_most, read_rows, rows_per_unit, to_array, to_numbers
from mosha.exact.grid import check_bounds, sum_steps
from mosha.exact.statistic import RenamedMethods, Sensitivity, Steps, root_up, sum_sensitivity

__all__ = ["Count", "Histogram"]


@dataclass(frozen=True, kw_only=True)
class Count(RenamedMethods):
    """The number of rows, or of rows whose value lies in `between` (both ends count; NaN is in no range).

    Guarantee:
        A row counts 1, or 0 or 1 with `between`, so `sum_sensitivity` with these bounds holds: m when a unit with
        at most m rows is added or removed. Under replacement all rows together move by m - 1 only, which is
        nothing for m = 1: the number of rows is then public, and the noise factories refuse to sell it. (Rows
        that were filtered beforehand are not all rows: count those with `between` or a `Histogram`.)

    >>> from mosha.core.unit import Row
    >>> Count().evaluate([3, 1, 4], Row()).tolist(), Count(between=(2, 9)).evaluate([3, 1, 4], Row()).tolist()
    ([3], [2])
    >>> Count().sensitivity(Row(neighbors="replace-one")).l1
    0
    """

    between: tuple[float, float] | None = None
    column: str | None = None
    grid: ClassVar[float] = 1.0
    labels: ClassVar[None] = None

    def __post_init__(self) -> None:
        if self.between is not None:
            object.__setattr__(self, "between", check_bounds("count", self.between))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        return sum_sensitivity(1 if self.between is None else 0, 1, unit)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        values, persons = read_rows(data, unit, self.column, any_column=self.between is None)
        if self.between is None:
            ones = np.ones(len(to_array(values)), np.int64)
        else:
            column = to_numbers(values)
            ones = ((column >= self.between[0]) & (column <= self.between[1])).astype(np.int64)
        if persons is not None:
            ones = ones[keep_at_most(rows_per_unit(unit), persons, ones)]
        return sum_steps(ones, 1)


@dataclass(frozen=True, kw_only=True)
class Histogram(RenamedMethods):
    """The number of rows for each of `keys`, a public list; rows with another key count nowhere.

    Guarantee:
        A unit with at most m rows adds a vector u >= 0 with |u|_1 <= m. Added or removed: |u|_0 <= min(m, K) and
        |u|_2, |u|_inf, span <= m. Replaced: u - v with both of that kind; as u, v >= 0 the products
        u_i v_i only shorten it, so |u - v|_2^2 <= |u|_2^2 + |v|_2^2 <= 2 m^2, |u - v|_1 <= 2 m,
        |u - v|_inf <= m and span <= 2 m. With a single key u and v are numbers in [0, m].

    >>> from mosha.core.unit import Row
    >>> wards = Histogram(keys=["A", "B"])
    >>> wards.evaluate(["A", "B", "A", "C"], Row()).tolist()
    [2, 1]
    >>> wards.sensitivity(Row()).l1, wards.sensitivity(Row(neighbors="replace-one")).l1
    (1, 2)
    """

    keys: Sequence[object]
    column: str | None = None
    grid: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        given: Any = self.keys
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise InvalidParameter("exact.keys_not_a_list", parameter="keys")
        keys = tuple(key.item() if isinstance(key, np.generic) else key for key in given)
        try:
            distinct = len(set(keys))
        except TypeError:
            raise InvalidParameter("exact.keys_not_hashable", parameter="keys") from None
        if not keys or distinct != len(keys):
            raise InvalidParameter("exact.keys_not_distinct", parameter="keys")
        object.__setattr__(self, "keys", keys)

    @property
    def labels(self) -> tuple[object, ...]:
        return tuple(self.keys)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        rows, several = rows_per_unit(unit), len(self.keys) > 1
        if unit.neighbors is Neighbors.ADD_REMOVE or not several:
            monotone = unit.neighbors is Neighbors.ADD_REMOVE
            l0 = min(rows, len(self.keys))
            return Sensitivity(l0=l0, l1=rows, l2=root_up(rows**2), linf=rows, span=rows, monotone=monotone)
        l0, l2 = min(2 * rows, len(self.keys)), root_up(2 * rows**2)
        return Sensitivity(l0=l0, l1=2 * rows, l2=l2, linf=rows, span=2 * rows)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        values, persons = read_rows(data, unit, self.column)
        codes = self._codes(to_array(values))
        if persons is not None:
            codes = codes[keep_at_most(rows_per_unit(unit), persons, codes)]
        return np.bincount(codes, minlength=len(self.keys) + 1)[: len(self.keys)].astype(np.int64)

    @cached_property
    def _places(self) -> dict[object, int]:
        return {key: code for code, key in enumerate(self.keys)}

    @cached_property
    def _numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """The keys in ascending order and the position of each, if all of them are whole numbers of 64 bits."""
        if not all(type(key) is int and -(2**63) <= key < 2**63 for key in self.keys):
            return None
        numbers = np.array(self.keys, np.int64)
        places = np.argsort(numbers)
        return numbers[places], places

    def _codes(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """The position of each row's key, or the number of keys for a row that counts nowhere."""
        if values.ndim != 1:
            raise DataError("exact.not_one_key_per_row")
        where, elsewhere = self._places, len(self.keys)
        if values.dtype.kind == "i" and self._numbers is not None:
            numbers, places = self._numbers
            at = np.minimum(np.searchsorted(numbers, values), elsewhere - 1)
            return np.where(numbers[at] == values, places[at], elsewhere)
        unique, inverse = _find_distinct(values)
        codes = np.array([_find(where, value, elsewhere) for value in unique], np.int64)
        return codes[inverse] if inverse is not None else codes


def _find_distinct(values: NDArray[np.generic]) -> tuple[list[Any], NDArray[np.intp] | None]:
    """The values once each, where sorting finds them; an array of mixed objects is taken as it is."""
    if values.dtype.kind == "O" or values.size == 0:
        return values.tolist(), None
    unique, inverse = np.unique(values, return_inverse=True)
    return unique.tolist(), inverse


def _find(where: dict[object, int], value: object, elsewhere: int) -> int:
    try:
        return where.get(value, elsewhere)
    except Exception:  # noqa: BLE001  (what cannot be hashed or compared is no key, and must not be heard)
        return elsewhere
