"""Public guesses that a forecast is made of, where the error depends on what the data alone know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive, positive_integer
from mosha.tables.parts.bounded_number import Measured, Range
from mosha.tables.parts.bounds import Limits

__all__ = ["Guess"]


@dataclass(frozen=True)
class Guess:
    """How many rows a group has, how many a person counts for, and the ranges of columns: guesses, all public."""

    rows: float | None = None
    at_most: int | None = None
    between: Mapping[str, Range] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rows is not None:
            positive("rows", self.rows)
        if self.at_most is not None:
            positive_integer("at_most", self.at_most)

    def norm(self, limits: Limits) -> int | None:
        """The declared limit, or the guess where one is to be bought."""
        if not limits.automatic:
            return limits.norm
        if self.at_most is None:
            raise InvalidParameter(
                "the error depends on how much one person may contribute, which is to be chosen from the data: "
                "declare it (Person(column, at_most=...)), or guess it: forecast(..., at_most=...), or plan(...)."
            )
        return self.at_most

    def range(self, measured: Measured) -> Range:
        """The guessed range of a number whose range is to be bought."""
        name = getattr(measured.of, "name", repr(measured.of))
        found: Any = self.between.get(name)
        if found is None:
            raise InvalidParameter(
                f"the error depends on the range of {name!r}, which is to be chosen from the data: guess it, "
                f"forecast(..., between={{{name!r}: (low, high)}}), and the same for plan(...)."
            )
        return Measured.of_column("forecast", name, found).between
