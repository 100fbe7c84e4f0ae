"""Columns as cells: every row has one cell in every column, decided by public statements and the row's own values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosha.connect.language.cases import Case, when
from mosha.connect.language.expression import Expression, col, lit, null
from mosha.connect.language.schema import LARGEST_INTEGER, Schema, Type
from mosha.core.errors import InvalidParameter, Unbounded
from mosha.mechanisms.residuals.axis import Axis, binary_axis, flat_axis, tree_of_groups

__all__ = [
    "MOST_CELLS",
    "Between",
    "Bins",
    "CodedColumn",
    "Hierarchy",
    "Keys",
    "NarrowedColumn",
    "coded_column",
    "coded_keys",
]

MOST_CELLS = 10_000
"""A column with more cells than this would be noise alone."""

USUAL_BINS = 100
Labels = NDArray[np.object_]
Keys = Mapping[str, Sequence[object] | Literal["from_data"]]
Between = Mapping[str, tuple[object, object]]
Bins = Mapping[str, int | Sequence[float]]
Hierarchy = Mapping[str, Mapping[object, object]]
Wholes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column and its cells.

    Fields:
        name: the column.
        kind: its type.
        labels: what each cell is called; the last is None where missing values are a cell of their own.
        edges: for numbers and dates, the ends of the cells: cell i is [edges[i], edges[i + 1]); None for keys.
        groups: for a declared hierarchy, the number of each cell's group.
        missing: whether missing (and unlisted) values are a cell of their own; otherwise such rows are left out.
    """

    name: str
    kind: Type
    labels: tuple[object, ...]
    edges: tuple[float, ...] | None = None
    groups: tuple[int, ...] | None = None
    missing: bool = True

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def known_cells(self) -> int:
        """How many cells there are besides that of missing values."""
        return self.size - self.missing

    @property
    def is_ordered(self) -> bool:
        """Whether neighboring cells are near each other: numbers and dates."""
        return self.edges is not None or all(
            isinstance(label, int | float) and not isinstance(label, bool) for label in self.labels[: self.known_cells]
        )

    def axis(self, kind: str = "cells") -> Axis:
        """The tree that its marginals are measured on."""
        if self.groups is not None and kind == "hierarchy":
            return tree_of_groups(self.groups)
        return binary_axis(self.size) if kind in {"ranges", "prefixes"} else flat_axis(self.size)

    @cached_property
    def code(self) -> Expression:
        """The number of a row's cell, from 0; NULL where the row is left out."""
        other: Expression = lit(self.known_cells) if self.missing else null(Type.INTEGER)
        return self._code_of_bins(other) if self.edges is not None else self._code_of_keys(other)

    def _code_of_keys(self, other: Expression) -> Expression:
        keys, column = self.labels[: self.known_cells], col(self.name)
        if not keys:
            return when(column.is_null(), 0).else_(0)
        whole = self.kind is Type.INTEGER and all(isinstance(key, int) for key in keys)
        if whole and list(keys) == list(range(keys[0], keys[0] + len(keys))):  # type: ignore[operator, call-overload]
            return when(column.between(keys[0], keys[-1]), column - keys[0]).else_(other)
        case: Case | None = None
        for place, key in enumerate(keys):
            case = when(column == key, place) if case is None else case.when(column == key, place)
        assert case is not None
        return case.else_(other)

    def _code_of_bins(self, other: Expression) -> Expression:
        assert self.edges is not None
        value: Expression = col(self.name)
        if self.kind.temporal:
            value = value.days_since(lit(_EPOCH if self.kind is Type.DATE else datetime(1970, 1, 1)))  # noqa: DTZ001
        widths = np.diff(self.edges)
        if np.ptp(widths) <= 1e-9 * abs(widths[0]):
            place = ((value.clamp(self.edges[0], self.edges[-1]) - self.edges[0]) / float(widths[0])).floor()
            last = self.known_cells - 1
            return when(value.is_null(), other).when(place < 0, 0).when(place > last, last).else_(place)
        case = when(value.is_null(), other)
        for cell, edge in enumerate(self.edges[1:-1]):
            case = case.when(value < edge, cell)
        return case.else_(self.known_cells - 1)

    def encode(self, values: Sequence[object]) -> Wholes:
        """The cells of public values, as the engine would find them; never used for private ones."""
        if self.edges is None:
            places = {label: place for place, label in enumerate(self.labels)}
            return np.array([places.get(value, self.known_cells if self.missing else -1) for value in values], np.int64)
        found = np.full(len(values), self.known_cells if self.missing else -1, np.int64)
        for row, value in enumerate(values):
            if value is not None and value == value:  # noqa: PLR0124  (NaN is missing)
                number = (value - _EPOCH).days if isinstance(value, date) else float(value)  # type: ignore[arg-type]
                found[row] = min(
                    max(int(np.searchsorted(self.edges, number, side="right")) - 1, 0), self.known_cells - 1
                )
        return found

    def decode(self, cells: Wholes, places: NDArray[np.float64]) -> Labels:
        """A value for each cell; numbers and dates at `places` (from 0 to 1) inside of theirs."""
        if self.edges is None:
            labels = np.empty(self.size, object)
            labels[:] = self.labels
            return np.asarray(labels[cells], object)
        lows, highs = self.ends_of(np.minimum(cells, self.known_cells - 1))
        numbers = lows + places * (highs - lows)
        if self.kind is not Type.REAL:
            numbers = np.minimum(np.floor(numbers), np.ceil(highs) - 1)
        found = numbers.astype(object)
        if self.kind is Type.INTEGER:
            found = np.array([int(number) for number in numbers], object)
        elif self.kind.temporal:
            found = np.array([self._moment(int(number)) for number in numbers], object)
        found[cells == self.known_cells] = None
        return np.asarray(found, object)

    def ends_of(self, cells: Wholes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where cells of numbers or dates begin and end."""
        edges = np.array(self.edges, np.float64)
        return edges[cells], edges[cells + 1]

    def _moment(self, days: int) -> date:
        day = _EPOCH + timedelta(days=days)
        return day if self.kind is Type.DATE else datetime(day.year, day.month, day.day)  # noqa: DTZ001


@dataclass(frozen=True, eq=False)
class NarrowedColumn(CodedColumn):
    """A column of synthetic rows that lie in a range: values of a cell that the range cuts stay inside of it."""

    low: float = -math.inf
    high: float = math.inf

    def ends_of(self, cells: Wholes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of the cells, and of the range where it cuts them; cells outside of it keep their own."""
        lows, highs = super().ends_of(cells)
        meets = (lows < self.high) & (highs > self.low)
        return np.where(meets, np.maximum(lows, self.low), lows), np.where(meets, np.minimum(highs, self.high), highs)


_EPOCH = date(1970, 1, 1)


def coded_column(
    name: str,
    schema: Schema,
    *,
    keys: Sequence[object] | None,
    between: tuple[object, object] | None,
    bins: int | Sequence[float] | None,
    hierarchy: Mapping[object, object] | None,
    missing: bool,
) -> CodedColumn:
    """The cells of a column, from what is publicly known about it."""
    kind = schema[name]
    if keys is None and kind is Type.BOOLEAN:
        keys = (False, True)
    if keys is not None:
        return coded_keys(name, kind, keys, hierarchy, missing=missing)
    if between is None and not isinstance(bins, Sequence):
        code = "synth.no_range" if kind.numeric or kind.temporal else "synth.no_keys"
        raise Unbounded(code, parameter="between" if kind.numeric or kind.temporal else "keys", column=name)
    if not (kind.numeric or kind.temporal):
        raise InvalidParameter("synth.range_of_text", parameter="between", column=name, kind=str(kind))
    edges = _edges(name, kind, between, bins)
    labels = [_interval(kind, a, b) for a, b in itertools.pairwise(edges)]
    groups = _groups(labels, hierarchy, missing=missing)
    return CodedColumn(name, kind, (*labels, *([None] if missing else [])), tuple(edges), groups, missing)


def coded_keys(
    name: str, kind: Type, keys: Sequence[object], hierarchy: Mapping[object, object] | None, *, missing: bool
) -> CodedColumn:
    """A column by a list of its values."""
    if isinstance(keys, str | bytes) or not hasattr(keys, "__iter__"):
        raise InvalidParameter("synth.keys_not_listed", parameter="keys", column=name)
    few = list(itertools.islice(keys, MOST_CELLS + 2))
    if len(few) > MOST_CELLS + 1:
        cells = len(keys) if hasattr(keys, "__len__") else len(few)
        raise InvalidParameter("synth.too_many_cells", parameter="keys", column=name, cells=cells, most=MOST_CELLS)
    plain = [key.item() if isinstance(key, np.generic) else key for key in few]
    missing = missing or None in plain
    try:
        listed = list(dict.fromkeys(key for key in plain if key is not None))
    except TypeError:
        raise InvalidParameter("synth.keys_not_listed", parameter="keys", column=name) from None
    if not listed:
        raise InvalidParameter("synth.keys_empty", parameter="keys", column=name)
    if len(listed) > MOST_CELLS:
        raise InvalidParameter(
            "synth.too_many_cells", parameter="keys", column=name, cells=len(listed), most=MOST_CELLS
        )
    if kind is Type.INTEGER and all(isinstance(key, int) for key in listed):
        listed.sort()
    groups = _groups(listed, hierarchy, missing=missing)
    return CodedColumn(name, kind, (*listed, *([None] if missing else [])), None, groups, missing)


def _groups(
    labels: Sequence[object], hierarchy: Mapping[object, object] | None, *, missing: bool
) -> tuple[int, ...] | None:
    """The number of each cell's group; cells that the hierarchy does not name are groups of their own."""
    if hierarchy is None:
        return None
    names = [hierarchy.get(label, ("own", label)) for label in labels] + ([("own", None)] if missing else [])
    numbers = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return tuple(numbers[name] for name in names)


def _edges(name: str, kind: Type, between: object, bins: int | Sequence[float] | None) -> list[float]:
    if isinstance(bins, Sequence):
        marks = [_number(name, mark) for mark in bins]
        if len(marks) < 2 or any(a >= b for a, b in itertools.pairwise(marks)):
            raise InvalidParameter("synth.edges_not_ascending", parameter="bins", column=name)
        return marks
    try:
        low, high = (_number(name, mark) for mark in between)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InvalidParameter("synth.not_a_range", parameter="between", column=name) from None
    if not low < high:
        raise InvalidParameter("synth.range_reversed", parameter="between", column=name, low=low, high=high)
    if kind is Type.REAL:
        count = USUAL_BINS if bins is None else _count(name, bins)
        return [low + (high - low) * i / count for i in range(count + 1)]
    first, after = math.floor(low), math.floor(high) + 1
    width = max(1, -(-(after - first) // (USUAL_BINS if bins is None else _count(name, bins))))
    count = -(-(after - first) // width)
    return [float(first + width * i) for i in range(count + 1)]


def _count(name: str, bins: object) -> int:
    if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MOST_CELLS:
        raise InvalidParameter("synth.bins_not_counted", parameter="bins", column=name, most=MOST_CELLS)
    return bins


def _number(name: str, mark: object) -> float:
    if isinstance(mark, datetime):
        return float((mark.date() - _EPOCH).days)
    if isinstance(mark, date):
        return float((mark - _EPOCH).days)
    if (
        isinstance(mark, bool)
        or not isinstance(mark, int | float | np.number)
        or not abs(float(mark)) < LARGEST_INTEGER
    ):
        raise InvalidParameter("synth.not_a_range", parameter="between", column=name)
    return float(mark)


def _interval(kind: Type, low: float, high: float) -> str | int:
    """What a cell is called: the whole number that it holds, or an interval."""
    if kind.temporal:
        first, last = (_EPOCH + timedelta(days=int(days)) for days in (low, high - 1))
        return first.isoformat() if first == last else f"{first.isoformat()} to {last.isoformat()}"
    if kind is Type.INTEGER and high == low + 1:
        return int(low)
    return f"[{low:.12g}, {high:.12g})"
