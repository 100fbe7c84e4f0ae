"""Sums of whole vectors, one for each example: what classic models are made of, and what one unit does to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError
from mosha.core.unit import Neighbors, Person, Unit
from mosha.exact.bounding import count_width, keep_at_most, rows_per_unit, to_array, to_numbers
from mosha.exact.statistic import Sensitivity, Steps, root_up

__all__ = [
    "BLOCK",
    "Examples",
    "Floats",
    "RowSums",
    "Wholes",
    "check_examples",
    "count_columns",
    "feature_names",
    "read_matrix",
]

BLOCK = 1 << 11
"""Examples that are handled at once; no result depends on it."""

Floats: TypeAlias = NDArray[np.float64]
Wholes: TypeAlias = NDArray[np.int64]
Examples: TypeAlias = tuple[object, object, object]
"""Features, targets (None where there are none), whose they are (None unless a Person is hidden)."""


class RowSums(ABC):
    """A sum over examples of whole vectors; what an example adds is a function of that example alone.

    Methods take `features` and `targets` as they were given, `rows` as `turn_rows` made them, the `noisy` sums that
    were released and the standard `deviation` of their noise. `ranges` are the declared ranges of the features,
    `classes` the declared labels, `bins` the equal parts of a range.

    Guarantee:
        `turn_rows` handles each example by itself, and `add_up` sums vectors of l1 norm at most `longest` and squared
        l2 norm at most `longest_square`. A unit with m examples moves the sum by at most m times either, twice that
        where it is replaced, by the triangle inequality. Sums are exact; `clamp_steps` moves nothing apart.
    """

    grid: ClassVar[float] = 1.0

    @property
    @abstractmethod
    def coordinates(self) -> int: ...

    @property
    @abstractmethod
    def longest(self) -> int:
        """The largest l1 norm of what one example adds, in steps."""

    @property
    @abstractmethod
    def longest_square(self) -> int:
        """The largest squared l2 norm of what one example adds."""

    @abstractmethod
    def turn_rows(self, features: object, targets: object) -> Wholes:
        """Whole numbers for each example, which decide what it adds (and which examples of a person are kept)."""

    @abstractmethod
    def add_up(self, rows: Wholes) -> Steps:
        """The exact sum over such rows."""

    @property
    def labels(self) -> tuple[int, ...]:
        return tuple(range(self.coordinates))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        return make_sensitivity(self, rows_per_unit(unit), unit)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        features, targets, persons = check_examples(data)
        rows = self.turn_rows(features, targets)
        if isinstance(unit, Person):
            if persons is None or len(to_array(persons)) != rows.shape[0]:
                raise DataError("models.whose_examples", parameter="persons")
            rows = rows[keep_at_most(rows_per_unit(unit), persons, rows)]
        return self.add_up(rows)


def make_sensitivity(sums: RowSums, rows: int, unit: Unit) -> Sensitivity:
    """What one unit with so many examples does to the sums."""
    times = rows * (2 if unit.neighbors is Neighbors.REPLACE_ONE else 1)
    largest = int(root_up(sums.longest_square * times**2)) + 1
    l1 = sums.longest * times
    return Sensitivity(
        l0=sums.coordinates,
        l1=l1,
        l2=root_up(sums.longest_square * times**2),
        linf=min(l1, largest),
        span=min(l1, 2 * largest),
    )


def check_examples(data: object) -> Examples:
    """The three parts of what is learnt from."""
    if not isinstance(data, tuple) or len(data) != 3:
        raise DataError("models.three_parts")
    return data


def read_matrix(features: object, width: int) -> Floats:
    """Features as floats, a row for each example; what is no number is NaN, one by one."""
    names = feature_names(features)
    if names is None:
        return to_numbers(features, width=width)
    if len(names) != width:
        raise DataError("models.features_of_each", parameter="X")
    return np.column_stack([to_numbers(features[name]) for name in names])  # type: ignore[index]


def feature_names(features: object) -> tuple[str, ...] | None:
    """The names of a frame's columns, which are public; None for an array."""
    names = getattr(features, "column_names", None)
    names = getattr(features, "columns", None) if names is None else names
    return None if names is None else tuple(names)


def count_columns(features: object) -> int:
    """How many features each example has: the shape of the data, which is public."""
    width = count_width(features)
    if width < 1:
        raise DataError("models.features_of_each", parameter="X")
    return width
