"""Columns of a table as bounded features, by a public schema: categories, steps and ranges, row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.number import real
from mosha.exact.bounding import to_numbers
from mosha.exact.grid import check_bounds
from mosha.learning.linear.rows import label_codes

__all__ = ["Categories", "Columns", "Cuts", "Range"]


@dataclass(frozen=True)
class Categories:
    """One indicator for each of the declared `values` of a `column`; any other value has none.

    >>> import numpy as np
    >>> Categories(["a", "b"]).features(np.array(["b", "c"], object)).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    values: tuple[Any, ...]

    def __init__(self, values: Sequence[object]) -> None:
        object.__setattr__(self, "values", tuple(values))
        if not self.values or len(set(self.values)) != len(self.values):
            raise InvalidParameter("learning.categories_declared")

    @property
    def width(self) -> int:
        return len(self.values)

    def features(self, column: object) -> NDArray[np.float64]:
        """One column of features for each value."""
        return _indicators(label_codes(column, self.values), self.width)


@dataclass(frozen=True)
class Cuts:
    """An indicator for each interval of a `column` between cuts `at`, the outer ones open; missing values have none.

    >>> import numpy as np
    >>> Cuts(18, 65).features(np.array([10.0, 70.0])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    at: tuple[float, ...]

    def __init__(self, *at: float) -> None:
        object.__setattr__(self, "at", tuple(real("cut", cut) for cut in at))
        if not self.at or any(a >= b for a, b in zip(self.at, self.at[1:], strict=False)):
            raise InvalidParameter("learning.cuts_increase", parameter="cuts")

    @property
    def width(self) -> int:
        return len(self.at) + 1

    def features(self, column: object) -> NDArray[np.float64]:
        """One column of features for each interval."""
        values = to_numbers(column)
        return _indicators(np.where(np.isnan(values), -1, np.searchsorted(self.at, values, side="right")), self.width)


@dataclass(frozen=True)
class Range:
    """A number from -1 to 1 for a `column` from `low` to `high`, as declared; missing values stand in the middle.

    >>> import numpy as np
    >>> Range(0, 10).features(np.array([0.0, 5.0, 20.0])).ravel().tolist()
    [-1.0, 0.0, 1.0]
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = check_bounds("a range", (self.low, self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def width(self) -> int:
        return 1

    def features(self, column: object) -> NDArray[np.float64]:
        """One column of features."""
        values = to_numbers(column)
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        scaled = (np.clip(values, self.low, self.high) - middle) / half
        return np.where(np.isnan(scaled), 0.0, scaled)[:, None]


Column: TypeAlias = Categories | Cuts | Range


def _indicators(codes: NDArray[np.intp], width: int) -> NDArray[np.float64]:
    found = np.zeros((codes.size, width))
    known = np.flatnonzero(codes >= 0)
    found[known, codes[known]] = 1.0
    return found


@dataclass(frozen=True)
class Columns:
    """A public schema: which `columns` a model reads, and how each becomes features.

    Guarantee:
        A row of `matrix` is a function of that row of the table and of the schema; its Euclidean norm is at most
        `norm`, as each column adds a vector of norm at most one.

    >>> schema = Columns({"sex": Categories(["f", "m"]), "age": Cuts(30, 60)})
    >>> schema.matrix({"sex": ["m", "?"], "age": [45, 99]}).tolist(), schema.norm
    ([[0.0, 1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]], 1.4142135623730951)
    """

    columns: tuple[tuple[str, Column], ...]

    def __init__(self, columns: Mapping[str, Column]) -> None:
        object.__setattr__(self, "columns", tuple(columns.items()))
        if not self.columns or not all(isinstance(c, Categories | Cuts | Range) for _, c in self.columns):
            raise InvalidParameter("learning.schema_of_columns")

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(column.width for _, column in self.columns)

    @property
    def norm(self) -> float:
        return math.sqrt(len(self.columns))

    @property
    def names(self) -> list[str]:
        """A name for each feature."""
        return [
            f"{name}[{i}]" if column.width > 1 else name for name, column in self.columns for i in range(column.width)
        ]

    @np.errstate(all="ignore")
    def matrix(self, table: Any) -> NDArray[np.float64]:
        """The features of a `table`: columns by name (a dict, a data frame)."""
        known = list(table.keys()) if hasattr(table, "keys") else list(getattr(table, "columns", []))
        missing = [name for name, _ in self.columns if name not in known]
        if missing:
            raise DataError("learning.no_such_column", column=missing[0])
        parts = [column.features(table[name]) for name, column in self.columns]
        if len({part.shape[0] for part in parts}) != 1:
            raise DataError("learning.columns_differ")
        return np.hstack(parts)
