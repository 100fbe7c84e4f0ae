"""A number with bounds, on a public grid: what sums, means and quantiles are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mosha.connect.language.checking import is_number, type_of
from mosha.connect.language.expression import Expression, as_expression, col
from mosha.connect.language.schema import Schema, Type
from mosha.connect.language.value import Clamped
from mosha.core.errors import DataError, InvalidParameter, Unbounded
from mosha.core.number import real

__all__ = ["AUTOMATIC", "TO_BE_BOUGHT", "Measured", "Range", "declared_range_key", "numeric"]

FINENESS = 18
AUTOMATIC = "automatic"
TO_BE_BOUGHT = " in a range to be bought"
Range = tuple[float, float]


def numeric(column: object) -> Expression:
    """A column by its name, or an expression."""
    return col(column) if isinstance(column, str) else as_expression(column)


def _range(between: Any) -> Range | None:
    if between is None:
        return None
    if isinstance(between, str) and between == AUTOMATIC:
        return None
    try:
        low, high = between
    except (TypeError, ValueError):
        raise InvalidParameter("tables.range_not_pair", parameter="between") from None
    low, high = real("low", low), real("high", high)
    if not low < high:
        raise InvalidParameter("tables.range_reversed", parameter="between", low=low, high=high)
    if max(abs(low), abs(high)) > 2.0**31 * (high - low) or not 2.0**-30 <= high - low <= 2.0**60:
        raise InvalidParameter("tables.range_unusable", parameter="between")
    return low, high


def declared_range_key(of: Expression) -> str:
    """The key of a number whose range the table's declaration is to tell."""
    return f"{of!r} in its declared range"


@dataclass(frozen=True, eq=False)
class Measured:
    """A number with declared bounds, seen from the middle of its range on a public grid of 2**18 steps.

    `bounds` is None where a range is yet to be bought, or (`awaited`) to be found in the table's declaration.
    """

    name: str
    of: Expression
    bounds: Range | None
    awaited: bool = False

    @staticmethod
    def of_column(name: str, column: object, between: object) -> Measured:
        of = numeric(column)
        shown = column if isinstance(column, str) else of
        return Measured(f"{name}({shown!r})", of, _range(between), awaited=between is None)

    @property
    def automatic(self) -> bool:
        return self.bounds is None and not self.awaited

    @property
    def between(self) -> Range:
        """The range; where it is yet to be bought, one that stands for it until then."""
        return (0.0, 1.0) if self.bounds is None else self.bounds

    def fill_ranges(self, ranges: Mapping[str, Range]) -> Measured:
        """With the range that was bought or declared."""
        if self.key not in ranges:
            return self
        return replace(self, bounds=_range(ranges[self.key]), awaited=False)

    @property
    def exponent(self) -> int:
        """The grid is 2**-exponent, with 2**17 to 2**18 steps in half the range."""
        return FINENESS - math.frexp(self.between[1] / 2 - self.between[0] / 2)[1]

    @property
    def grid(self) -> float:
        return math.ldexp(1.0, -self.exponent)

    @property
    def middle(self) -> int:
        """The middle of the range in grid units."""
        return math.floor((self.between[0] / 2 + self.between[1] / 2) / self.grid + 0.5)

    @property
    def centred(self) -> Clamped:
        return Clamped(self.of, self.between, exponent=self.exponent, center=self.middle)

    @property
    def plain(self) -> Clamped:
        return Clamped(self.of, self.between, exponent=self.exponent)

    @property
    def key(self) -> str:
        """What tells it from others."""
        if self.awaited:
            return declared_range_key(self.of)
        if self.bounds is None:
            return f"{self.of!r}{TO_BE_BOUGHT}"
        return f"{self.of!r} in [{self.bounds[0]:.17g}, {self.bounds[1]:.17g}]"

    def check(self, schema: Schema) -> None:
        if self.awaited:
            type_of(self.of, schema)  # a column that is not there is the first thing to say
            raise Unbounded("tables.needs_range", parameter="between", aggregate=self.name)
        if not is_number(self.of, schema):
            kind = type_of(self.of, schema)
            code = "tables.boolean_needs_cast" if kind is Type.BOOLEAN else "tables.needs_number"
            raise DataError(code, aggregate=self.name, text=repr(self.of), kind=str(kind))
