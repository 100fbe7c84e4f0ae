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
from typing import Any, Final, NoReturn

from mosha.connect.language.limits import MOST_PARTS, check_call, check_grid, check_size
from mosha.connect.language.operator import Operator
from mosha.connect.language.schema import Type, literal_type
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.names.attributes import explain_attribute
from mosha.core.names.calls import explain_wrong_calls, renamed_argument
from mosha.core.options import DateUnit

__all__ = [
    "Call",
    "Column",
    "Expression",
    "Literal",
    "Operator",
    "as_expression",
    "col",
    "grid",
    "lit",
    "null",
]


_VERBS_OF_TABLES: Final = {
    "mean": "mean", "avg": "mean", "sum": "sum", "count": "count", "median": "median", "quantile": "quantile",
    "var": "variance", "variance": "variance", "std": "standard_deviation", "min": "minimum", "max": "maximum",
    "n_unique": "distinct", "nunique": "distinct", "value_counts": "value_counts", "alias": "with_columns",
}  # fmt: skip
"""What data frames ask of a column, and which verb of a protected table asks it here."""


class Expression:
    """The root of all expressions. `==` builds a comparison, so expressions have no truth value of their own.

    Methods take other expressions or constants: `others`, a list of `values`, the ends `low` and `high` of a range;
    `digits`, `width`, `origin` and `unit` are public numbers and words, `pattern` is a text to find, `kind` a type.

    >>> col("ward").is_null() | (col("days").clamp(0, 30) > 7)
    (("ward" is_null) or (("days" clamp 0 30) > 7))
    """

    __hash__ = object.__hash__
    size = 0
    """How many operators it has, those of a part that stands in two places counted in both."""

    def __getattr__(self, name: str) -> NoReturn:
        """Only for names that do not exist: the answer names the right one."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in _VERBS_OF_TABLES:
            raise AttributeError(say("connect.verb_of_the_table", name=name, verb=_VERBS_OF_TABLES[name]))
        raise AttributeError(explain_attribute(type(self).__name__, name, dir(type(self))))

    def __bool__(self) -> NoReturn:
        raise InvalidParameter("connect.expression_has_no_truth")

    def __add__(self, other: object) -> Expression:
        return _call(Operator.ADD, self, other)

    def __radd__(self, other: object) -> Expression:
        return _call(Operator.ADD, other, self)

    def __sub__(self, other: object) -> Expression:
        return _call(Operator.SUBTRACT, self, other)

    def __rsub__(self, other: object) -> Expression:
        return _call(Operator.SUBTRACT, other, self)

    def __mul__(self, other: object) -> Expression:
        return _call(Operator.MULTIPLY, self, other)

    def __rmul__(self, other: object) -> Expression:
        return _call(Operator.MULTIPLY, other, self)

    def __truediv__(self, other: object) -> Expression:
        return _call(Operator.DIVIDE, self, other)

    def __rtruediv__(self, other: object) -> Expression:
        return _call(Operator.DIVIDE, other, self)

    def __neg__(self) -> Expression:
        return _call(Operator.NEGATE, self)

    def __abs__(self) -> Expression:
        return _call(Operator.ABSOLUTE, self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _call(Operator.EQUAL, self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _call(Operator.NOT_EQUAL, self, other)

    def __lt__(self, other: object) -> Expression:
        return _call(Operator.LESS, self, other)

    def __le__(self, other: object) -> Expression:
        return _call(Operator.LESS_EQUAL, self, other)

    def __gt__(self, other: object) -> Expression:
        return _call(Operator.GREATER, self, other)

    def __ge__(self, other: object) -> Expression:
        return _call(Operator.GREATER_EQUAL, self, other)

    def __and__(self, other: object) -> Expression:
        return _call(Operator.AND, self, other)

    def __rand__(self, other: object) -> Expression:
        return _call(Operator.AND, other, self)

    def __or__(self, other: object) -> Expression:
        return _call(Operator.OR, self, other)

    def __ror__(self, other: object) -> Expression:
        return _call(Operator.OR, other, self)

    def __invert__(self) -> Expression:
        return _call(Operator.NOT, self)

    def is_null(self) -> Expression:
        """Whether the value is missing (NaN and infinities are)."""
        return _call(Operator.IS_NULL, self)

    def is_in(self, *values: object) -> Expression:
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

    def between(self, low: object, high: object) -> Expression:
        """Whether low <= value <= high."""
        return _call(Operator.AND, self >= low, self <= high)

    def coalesce(self, *others: object) -> Expression:
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

    def concat(self, *others: object) -> Expression:
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
        """Whether text begins so; no letter of `text` stands for another."""
        return self.like(_as_it_is(text) + "%")

    def ends_with(self, text: str) -> Expression:
        """Whether text ends so; no letter of `text` stands for another."""
        return self.like("%" + _as_it_is(text))

    def contains(self, text: str) -> Expression:
        """Whether text has this in it; no letter of `text` stands for another."""
        return self.like("%" + _as_it_is(text) + "%")

    def year(self) -> Expression:
        """The year of a date or time."""
        return _call(Operator.YEAR, self)

    def quarter(self) -> Expression:
        """The quarter of a date or time, 1 to 4."""
        return _call(Operator.QUARTER, self)

    def month(self) -> Expression:
        """The month of a date or time, 1 to 12."""
        return _call(Operator.MONTH, self)

    def day(self) -> Expression:
        """The day of the month, 1 to 31."""
        return _call(Operator.DAY, self)

    def hour(self) -> Expression:
        """The hour of a time, 0 to 23."""
        return _call(Operator.HOUR, self)

    def minute(self) -> Expression:
        """The minute of a time, 0 to 59."""
        return _call(Operator.MINUTE, self)

    def weekday(self) -> Expression:
        """1 for Monday to 7 for Sunday."""
        return _call(Operator.WEEKDAY, self)

    def truncate(self, unit: DateUnit) -> Expression:
        """The first moment of the year, quarter, month, week (from Monday), day, hour or minute."""
        return Call(Operator.TRUNCATE_DATE, (self,), (unit,))

    def days_since(self, other: object) -> Expression:
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
    """The value of the column `name`.

    >>> Column("days") + 1
    ("days" + 1)
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidParameter("connect.column_name", parameter="name")

    def __repr__(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True, eq=False, repr=False)
class Literal(Expression):
    """A public constant of a `type`; `value` is None for a typed NULL.

    >>> lit(3).value, null("real")
    (3, null:real)
    """

    value: Any
    type: Type

    def __repr__(self) -> str:
        if isinstance(self.value, str):
            return "'" + repr('"' + self.value)[2:]  # never in double quotes: those are a column's
        return f"null:{self.type}" if self.value is None else repr(self.value) + "Z" * (self.type is Type.INSTANT)


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expression):
    """An operator on expressions; `options` are public constants that no engine sees as values."""

    operator: Operator
    arguments: tuple[Expression, ...]
    options: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        check_size(self, self.arguments)
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


@explain_wrong_calls
def col(name: str) -> Column:
    """The column called `name`.

    >>> col("days") > 3
    ("days" > 3)
    """
    return Column(name)


@explain_wrong_calls
def lit(value: object) -> Literal:
    """A public constant: `value` is a number, text, boolean, date or datetime.

    >>> lit("A").type
    <Type.TEXT: 'text'>
    """
    return value if isinstance(value, Literal) else Literal(*literal_type(value))


def null(kind: Type | str) -> Literal:
    """The missing value of the type `kind`.

    >>> null("integer")
    null:integer
    """
    return Literal(None, Type(kind))


def as_expression(value: object) -> Expression:
    return value if isinstance(value, Expression) else lit(value)


def _call(operator: Operator, *arguments: object) -> Call:
    return Call(operator, tuple(as_expression(argument) for argument in arguments))


def _as_it_is(text: str) -> str:
    if not isinstance(text, str):
        raise InvalidParameter("connect.text_needed")
    return "".join("\\" + c if c in "\\%_" else c for c in text)


@renamed_argument(centre="center")
def grid(value: object, between: Iterable[float], exponent: int, *, center: int = 0) -> Call:
    """The INTEGER floor(clamp(`value` into `between`) * 2**`exponent` + 1/2) - `center`; NULL stays NULL.

    Guarantee:
        The result lies in [g(low), g(high)] - center, g(t) = floor(t * 2**exponent + 1/2): the product is exact,
        rounding the sum and floor are monotone. Both ends and the center are below 2**51 in magnitude, so every step
        is an exact double or a whole number below 2**52.

    >>> grid(col("days"), (0, 30), 4)
    ("days" grid 0.0 30.0 4)
    """
    low, high = between
    check_grid(low, high, exponent, center)
    options = (float(low), float(high), exponent, center) if center else (float(low), float(high), exponent)
    return Call(Operator.GRID, (as_expression(value),), options)
