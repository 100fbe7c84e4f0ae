"""Public guesses that a forecast is made of, where the error depends on what the data alone know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive, positive_integer
from mosha.tables.parts.bounded_number import Measured, Range

__all__ = ["Guess"]


class Bounded(Protocol):
    """A limit on what one unit moves, declared or to be bought (`bounds.Limits`)."""

    @property
    def norm(self) -> int | None: ...

    @property
    def automatic(self) -> bool: ...


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

    def norm(self, limits: Bounded) -> int | None:
        """The declared limit, or the guess where one is to be bought."""
        if not limits.automatic:
            return limits.norm
        if self.at_most is None:
            raise InvalidParameter("tables.forecast_needs_at_most", parameter="at_most")
        return self.at_most

    def range(self, measured: Measured) -> Range:
        """The guessed range of a number whose range is to be bought."""
        name = getattr(measured.of, "name", repr(measured.of))
        found: Any = self.between.get(name)
        if found is None:
            raise InvalidParameter("tables.forecast_needs_range", parameter="between", column=name)
        return Measured.of_column("forecast", name, found).between
