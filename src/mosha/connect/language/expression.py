"""A small language of scalar expressions whose meaning is the same on every engine.

Python operators build it; nothing is computed here:

>>> (col("days") > 3) & ~col("ward").is_null()
(("days" > 3) and (not ("ward" is_null)))

Every expression is total. No row can make an engine raise, for a raised error is an answer that nobody paid
for: what has no value is NULL (a quotient by zero, an overflow, text that is no number or too long). Constants that
some engine could not work with are refused when a call is built (`limits`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, overload

from mosha.connect.language.limits import MOST_PARTS, check_call, check_grid
from mosha.connect.language.operator import Operator
from mosha.connect.language.schema import Type, literal_type
from mosha.core.errors import InvalidParameter

__all__ = [
    "Call",
    "Case",
    "Column",
    "Expression",
    "Literal",
    "Operator",
    "as_expression",
    "col",
    "grid",
    "lit",
    "null",
    "when",
]


class Expression:
    """The root of all expressions. `==` builds a comparison, so expressions have no truth value of their own."""

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise InvalidParameter("connect.expression_has_no_truth")

    def __add__(self, other: Any) -> Expression:
        return _call(Operator.ADD, self, other)

    def __radd__(self, other: Any) -> Expression:
        return _call(Operator.ADD, other, self)

    def __sub__(self, other: Any) -> Expression:
        return _call(Operator.SUBTRACT, self, other)

    def __rsub__(self, other: Any) -> Expression:
        return _call(Operator.SUBTRACT, other, self)

    def __mul__(self, other: Any) -> Expression:
        return _call(Operator.MULTIPLY, self, other)

    def __rmul__(self, other: Any) -> Expression:
        return _call(Operator.MULTIPLY, other, self)

    def __truediv__(self, other: Any) -> Expression:
        return _call(Operator.DIVIDE, self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _call(Operator.DIVIDE, other, self)

    def __neg__(self) -> Expression:
        return _call(Operator.NEGATE, self)

    def __abs__(self) -> Expression:
        return _call(Operator.ABSOLUTE, self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _call(Operator.EQUAL, self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _call(Operator.NOT_EQUAL, self, other)

    def __lt__(self, other: Any) -> Expression:
        return _call(Operator.LESS, self, other)

    def __le__(self, other: Any) -> Expression:
        return _call(Operator.LESS_EQUAL, self, other)

    def __gt__(self, other: Any) -> Expression:
        return _call(Operator.GREATER, self, other)

    def __ge__(self, other: Any) -> Expression:
        return _call(Operator.GREATER_EQUAL, self, other)

    def __and__(self, other: Any) -> Expression:
        return _call(Operator.AND, self, other)

    def __rand__(self, other: Any) -> Expression:
        return _call(Operator.AND, other, self)

    def __or__(self, other: Any) -> Expression:
        return _call(Operator.OR, self, other)

    def __ror__(self, other: Any) -> Expression:
        return _call(Operator.OR, other, self)

    def __invert__(self) -> Expression:
        return _call(Operator.NOT, self)

    def is_null(self) -> Expression:
        """Whether the value is missing (NaN and infinities are)."""
        return _call(Operator.IS_NULL, self)

    def is_in(self, *values: Any) -> Expression:
        """Whether the value is one of public constants, said one by one or as a list; NULL when it is missing.

        >>> col("ward").is_in(["A", "B"])
        ("ward" in 'A' 'B')
        """
        if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset):
            listed = values[0]
            values = tuple(sorted(listed, key=repr) if isinstance(listed, set | frozenset) else listed)
        if not values:
            raise InvalidParameter("connect.is_in_needs_values", parameter="values")
        return Call(Operator.IN, (self, *(lit(value) for value in values)))

    def between(self, low: Any, high: Any) -> Expression:
        """Whether low <= value <= high."""
        return _call(Operator.AND, self >= low, self <= high)

    def coalesce(self, *others: Any) -> Expression:
        """The first of these that is not missing."""
        return _call(Operator.COALESCE, self, *others)

    def floor(self) -> Expression:
        """The largest whole number not above, an INTEGER; NULL from 2**53 on."""
        return _call(Operator.FLOOR, self)

    def ceil(self) -> Expression:
        """The least whole number not below, an INTEGER; NULL from 2**53 on."""
        return _call(Operator.CEILING, self)

    def round(self, digits: int = 0) -> Expression:
        """The nearest number of so many digits, halves away from zero: an INTEGER for 0 digits (NULL from 2**53 on)."""
        return Call(Operator.ROUND, (self,), (digits,))

    def clamp(self, low: float, high: float) -> Expression:
        """The value moved into [low, high]; a missing value stays missing."""
        return Call(Operator.CLAMP, (self, lit(low), lit(high)))

    def bin(self, width: float, origin: float = 0) -> Expression:
        """The lower edge of the bin [origin + i * width, origin + (i + 1) * width) that holds the value."""
        return Call(Operator.BIN, (self, lit(width), lit(origin)))

    def lower(self) -> Expression:
        """The text with A to Z in lower case; other letters stay (engines disagree about them)."""
        return _call(Operator.LOWER, self)

    def upper(self) -> Expression:
        """The text with a to z in upper case; other letters stay (engines disagree about them)."""
        return _call(Operator.UPPER, self)

    def trim(self) -> Expression:
        """The text without spaces (U+0020) at both ends."""
        return _call(Operator.TRIM, self)

    def length(self) -> Expression:
        """How many code points the text has."""
        return _call(Operator.LENGTH, self)

    def substring(self, start: int, length: int) -> Expression:
        """At most `length` code points from the place `start`, the first being 1."""
        return Call(Operator.SUBSTRING, (self,), (start, length))

    def concat(self, *others: Any) -> Expression:
        """The texts one after the other; NULL if one is missing, and beyond the 2**18 bytes that a text may have."""
        parts = [as_expression(part) for part in (self, *others)]
        while len(parts) > MOST_PARTS:
            parts = [Call(Operator.CONCAT, tuple(parts[i : i + MOST_PARTS])) for i in range(0, len(parts), MOST_PARTS)]
        return Call(Operator.CONCAT, tuple(parts))

    def like(self, pattern: str) -> Expression:
        r"""Whether the text matches: % is any text, _ any one code point, \ takes the next character as it is."""
        return Call(Operator.LIKE, (self,), (pattern,))

    def ilike(self, pattern: str) -> Expression:
        """Whether the text matches, the case of letters aside: 'é' is 'É' (and 'ß' not 'SS': one letter is one)."""
        return Call(Operator.LIKE, (self,), (pattern, True))

    def starts_with(self, text: str) -> Expression:
        return self.like(_as_it_is(text) + "%")

    def ends_with(self, text: str) -> Expression:
        return self.like("%" + _as_it_is(text))

    def contains(self, text: str) -> Expression:
        return self.like("%" + _as_it_is(text) + "%")

    def year(self) -> Expression:
        return _call(Operator.YEAR, self)

    def quarter(self) -> Expression:
        return _call(Operator.QUARTER, self)

    def month(self) -> Expression:
        return _call(Operator.MONTH, self)

    def day(self) -> Expression:
        return _call(Operator.DAY, self)

    def hour(self) -> Expression:
        return _call(Operator.HOUR, self)

    def minute(self) -> Expression:
        return _call(Operator.MINUTE, self)

    def weekday(self) -> Expression:
        """1 for Monday to 7 for Sunday."""
        return _call(Operator.WEEKDAY, self)

    def truncate(self, unit: str) -> Expression:
        """The first moment of the year, quarter, month, week (from Monday), day, hour or minute."""
        return Call(Operator.TRUNCATE_DATE, (self,), (unit,))

    def days_since(self, other: Any) -> Expression:
        """How many midnights lie between `other` and this, negative when this is earlier."""
        return _call(Operator.DAYS_BETWEEN, self, other)

    def cast(self, kind: Type | str) -> Expression:
        """The value as another type, or NULL where it has none (see `checking.CASTS`)."""
        try:
            target = Type(kind)
        except ValueError:
            raise InvalidParameter(
                "connect.cast_needs_type", parameter="kind", allowed=[str(kind) for kind in Type]
            ) from None
        return Call(Operator.CAST, (self,), (target,))


@dataclass(frozen=True, eq=False, repr=False)
class Column(Expression):
    """The value of a column."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidParameter("connect.column_name", parameter="name")

    def __repr__(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True, eq=False, repr=False)
class Literal(Expression):
    """A public constant; `value` is None for a typed NULL."""

    value: Any
    type: Type

    def __repr__(self) -> str:
        return f"null:{self.type}" if self.value is None else repr(self.value) + "Z" * (self.type is Type.INSTANT)


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expression):
    """An operator on expressions; `options` are public constants that no engine sees as values."""

    operator: Operator
    arguments: tuple[Expression, ...]
    options: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        constants = [part.value for part in self.arguments[1:] if isinstance(part, Literal)]
        check_call(self.operator, len(self.arguments), constants, self.options)
        for option in self.options:
            if isinstance(option, str):
                lit(option)

    def __repr__(self) -> str:
        parts = [repr(argument) for argument in self.arguments]
        parts.insert(1, str(self.operator))
        if self.operator is Operator.NOT:
            parts.reverse()
        return f"({' '.join(parts + [repr(option) for option in self.options])})"


NO_VALUE = object()
"""In place of a value that `then` will say."""


@dataclass(frozen=True, eq=False)
class Branch:
    """A condition that waits for its value: `when(condition).then(value)`."""

    condition: Expression
    earlier: tuple[tuple[Expression, Expression], ...] = ()

    def then(self, value: Any) -> Case:
        """The choice with this branch; without another one, the rest is NULL."""
        return Case((*self.earlier, (self.condition, as_expression(value))))


@dataclass(frozen=True, eq=False, repr=False)
class Case(Expression):
    """The value beside the first condition that is true, else `rest`, else NULL."""

    branches: tuple[tuple[Expression, Expression], ...]
    rest: Expression | None = None

    @overload
    def when(self, condition: Any) -> Branch: ...

    @overload
    def when(self, condition: Any, value: Any) -> Case: ...

    def when(self, condition: Any, value: Any = NO_VALUE) -> Case | Branch:
        """One more branch, as the function `when` begins the first."""
        branch = Branch(as_expression(condition), self.branches)
        return branch if value is NO_VALUE else branch.then(value)

    def else_(self, value: Any) -> Case:
        return Case(self.branches, as_expression(value))

    def otherwise(self, value: Any) -> Case:
        """What is taken where no condition is true; the same as `else_`."""
        return self.else_(value)

    def __repr__(self) -> str:
        branches = " ".join(f"when {condition!r} then {value!r}" for condition, value in self.branches)
        return f"(case {branches} else {self.rest!r})"


def col(name: str) -> Column:
    """The column of that name."""
    return Column(name)


def lit(value: Any) -> Literal:
    """A public constant: a number, text, boolean, date or datetime."""
    return value if isinstance(value, Literal) else Literal(*literal_type(value))


def null(kind: Type | str) -> Literal:
    """The missing value of a type."""
    return Literal(None, Type(kind))


@overload
def when(condition: Any) -> Branch: ...


@overload
def when(condition: Any, value: Any) -> Case: ...


def when(condition: Any, value: Any = NO_VALUE) -> Case | Branch:
    """The first branch of a choice; its value is the second argument, or is said by `then`.

    >>> when(col("age") < 18).then("minor").when(col("age") < 65).then("adult").otherwise("old")
    (case when ("age" < 18) then 'minor' when ("age" < 65) then 'adult' else 'old')
    >>> when(col("age") < 18, "minor").else_("adult")
    (case when ("age" < 18) then 'minor' else 'adult')
    """
    branch = Branch(as_expression(condition))
    return branch if value is NO_VALUE else branch.then(value)


def as_expression(value: Any) -> Expression:
    return value if isinstance(value, Expression) else lit(value)


def _call(operator: Operator, *arguments: Any) -> Call:
    return Call(operator, tuple(as_expression(argument) for argument in arguments))


def _as_it_is(text: str) -> str:
    if not isinstance(text, str):
        raise InvalidParameter("connect.text_needed")
    return "".join("\\" + c if c in "\\%_" else c for c in text)


def grid(value: Any, between: Iterable[float], exponent: int, *, centre: int = 0) -> Call:
    """The INTEGER floor(clamp(value) * 2**exponent + 1/2) - centre; NULL stays NULL.

    Guarantee:
        The result lies in [g(low), g(high)] - centre, g(t) = floor(t * 2**exponent + 1/2): the product is exact,
        rounding the sum and floor are monotone. Both ends and the centre are below 2**51 in magnitude, so every step
        is an exact double or a whole number below 2**52.

    >>> grid(col("days"), (0, 30), 4)
    ("days" grid 0.0 30.0 4)
    """
    low, high = between
    check_grid(low, high, exponent, centre)
    options = (float(low), float(high), exponent, centre) if centre else (float(low), float(high), exponent)
    return Call(Operator.GRID, (as_expression(value),), options)
