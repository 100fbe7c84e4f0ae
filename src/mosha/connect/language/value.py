"""What is summed: exact integers with public bounds.

A value is an integer for each row (for `Persons`: for each person and group). A missing value contributes 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from mosha.connect.language.cases import Case
from mosha.connect.language.checking import type_of
from mosha.connect.language.expression import Expression, as_expression, grid, lit
from mosha.connect.language.schema import Schema
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.fingerprint import stored_as, write_fields
from mosha.core.names.calls import renamed_argument

__all__ = ["Clamped", "Persons", "Product", "Rows", "Value"]


@dataclass(frozen=True, eq=False)
class Value:
    """The root: `low` and `high` bound the integer of one row, zero included because NULL contributes zero.

    >>> isinstance(Rows(), Value)
    True
    """

    @property
    def low(self) -> int:
        raise NotImplementedError

    @property
    def high(self) -> int:
        raise NotImplementedError

    @property
    def magnitude(self) -> int:
        """The largest possible |value| of one row."""
        return max(-self.low, self.high)

    @property
    def expression(self) -> Expression:
        """The INTEGER of one row, never NULL."""
        raise NotImplementedError

    @property
    def needs(self) -> tuple[Expression, ...]:
        """Expressions each of which makes the value 0 where it is missing."""
        return ()

    def follows(self, count: Value) -> bool:
        """Whether |value| <= magnitude * `count` in every row, so that a bound on the count bounds the value."""
        if not isinstance(count, Rows):
            return False
        return count.of is None or repr(count.of) in {repr(needed) for needed in self.needs}

    def check(self, schema: Schema) -> None:
        """Refuse a value that no table of this `schema` has."""
        type_of(self.expression, schema)


@dataclass(frozen=True, eq=False)
class Rows(Value):
    """One for each row; with `of`, one for each row in which that expression is not missing.

    >>> Rows()
    Rows(of=None)
    """

    of: Expression | None = None

    @property
    def needs(self) -> tuple[Expression, ...]:
        return () if self.of is None else (self.of,)

    @property
    def low(self) -> int:
        return 0

    @property
    def high(self) -> int:
        return 1

    @property
    def expression(self) -> Expression:
        return lit(1) if self.of is None else Case(((self.of.is_null(), lit(0)),), lit(1))


@renamed_argument(centre="center")
@dataclass(frozen=True, eq=False)
class Clamped(Value):
    """`of` clamped into `between` and put on the grid of multiples of 2**-`exponent`, minus `center` grid units.

    Guarantee:
        The integer lies in [g(low) - center, g(high) - center] or is 0, with g of `expression.grid`.

    Units:
        One grid unit is 2**-exponent in the unit of the expression.

    >>> from mosha.connect.language.expression import col
    >>> Clamped(col("days"), (0, 30), exponent=4).high
    480
    """

    of: Expression
    between: tuple[float, float]
    exponent: int = field(kw_only=True)
    center: int = field(default=0, kw_only=True, metadata=stored_as("centre"))
    __repr__ = write_fields

    def __post_init__(self) -> None:
        grid(self.of, self.between, self.exponent, center=self.center)

    @property
    def needs(self) -> tuple[Expression, ...]:
        return (self.of,)

    def _point(self, value: float) -> int:
        return math.floor(value * 2.0**self.exponent + 0.5) - self.center

    @property
    def low(self) -> int:
        return min(0, self._point(float(self.between[0])))

    @property
    def high(self) -> int:
        return max(0, self._point(float(self.between[1])))

    @property
    def known(self) -> Expression:
        """The integer where the number is known, NULL where it is missing."""
        return grid(self.of, self.between, self.exponent, center=self.center)

    @property
    def expression(self) -> Expression:
        return self.known.coalesce(0)


@dataclass(frozen=True, eq=False)
class Product(Value):
    """The product of the values `first` and `second` of the same row; 0 if either is missing.

    >>> from mosha.connect import col
    >>> days, cost = (Clamped(col(name), (0, 10), exponent=0) for name in ("days", "cost"))
    >>> Product(days, cost).high
    100
    """

    first: Clamped
    second: Clamped

    def __post_init__(self) -> None:
        if self.first.magnitude * self.second.magnitude >= 2**62:
            raise InvalidParameter("connect.product_too_large")

    @property
    def needs(self) -> tuple[Expression, ...]:
        return self.first.needs + self.second.needs

    def _corners(self) -> list[int]:
        a, b = self.first, self.second
        return [x * y for x in (a.low, a.high) for y in (b.low, b.high)]

    @property
    def low(self) -> int:
        return min(self._corners())

    @property
    def high(self) -> int:
        return max(self._corners())

    @property
    def expression(self) -> Expression:
        return self.first.expression * self.second.expression


@dataclass(frozen=True, eq=False)
class Persons(Value):
    """One for each person who has a row in the group.

    >>> Persons()
    Persons()
    """

    @property
    def low(self) -> int:
        return 0

    @property
    def high(self) -> int:
        return 1

    @property
    def expression(self) -> Expression:
        return lit(1)


def check_values(values: Any, schema: Schema) -> tuple[tuple[str, Value], ...]:
    """The named values of a question, checked against the schema."""
    pairs = tuple(values.items()) if hasattr(values, "items") else tuple(values)
    if not pairs:
        raise InvalidParameter("connect.nothing_to_sum")
    if len({name for name, _ in pairs}) < len(pairs):
        raise InvalidParameter("connect.value_name_twice")
    for name, value in pairs:
        if not isinstance(value, Value):
            raise InvalidParameter("connect.not_a_bounded_value", parameter=str(name))
        value.check(schema)
    return pairs


def check_keys(keys: Any, schema: Schema) -> tuple[tuple[str, Expression], ...]:
    """The named keys of a question, checked against the schema."""
    pairs = tuple(keys.items()) if hasattr(keys, "items") else tuple(keys)
    checked = tuple((name, as_expression(expression)) for name, expression in pairs)
    if len({name for name, _ in checked}) < len(checked):
        raise DataError("connect.key_name_twice")
    for _, expression in checked:
        type_of(expression, schema)
    return checked
