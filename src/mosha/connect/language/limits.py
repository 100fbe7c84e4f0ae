"""What every operator takes: how many arguments, and the range of every constant that shapes it.

One table, `LIMITS`, for all engines. A call is checked against it when it is built, before anything is paid or sent;
what lies outside is refused. `total` says what rows can do to a call, and `expressions.md` proves it: a row that has no
value there gets NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mosha.connect.language.operator import Operator
from mosha.connect.language.schema import LARGEST_INTEGER, LARGEST_REAL, LONGEST_TEXT, SMALLEST_FACTOR, Type
from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer, real

__all__ = [
    "DATE_UNITS", "LARGEST_EXPRESSION", "LIMITS", "LONGEST_PATTERN", "LONGEST_SHIFTS", "MOST_PARTS", "MOST_PLACES",
    "MOST_VALUES", "WIDEST_BIN", "Limits", "check_call", "check_grid", "check_limit", "check_size",
    "check_size_of_fields", "seeds",
]  # fmt: skip

DATE_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
MOST_PLACES = 2**31 - 1  # of a text: engines count them in 32 bits, and no text is that long
WIDEST_BIN = 2**61
LARGEST_EXPRESSION = 2**13  # operators
LONGEST_PATTERN = 1000
MOST_PARTS = 8  # of one concatenation; longer ones are put together from shorter ones
MOST_SPLIT = 1000  # parts of a text
MOST_GROWTH = 8  # times as long a replacement may make a text
MOST_VALUES = 2**16
LONGEST_SHIFTS: Mapping[str, int] = {"day": 9999 * 366, "month": 9999 * 12}
MOST_DIGITS = 15
MOST_ROWS = 2**53
MOST_EXPONENT = 400

Check = Callable[[Sequence[Any], Sequence[Any]], None]
"""Looks at the constants among the arguments after the first, and at the options."""


@dataclass(frozen=True)
class Limits:
    """The range of a call: the number of its arguments, its constants, and why no row leaves it.

    `total` says what happens to rows without a value, which no engine may call an error.
    """

    least: int
    most: int
    total: str
    check: Check


def check_call(operator: Operator, arguments: int, constants: Sequence[object], options: Sequence[object]) -> None:
    """Refuse a call that some engine could not compute for every row."""
    limits = LIMITS[operator]
    if not limits.least <= arguments <= limits.most:
        allowed = str(limits.least) if limits.least == limits.most else f"{limits.least} to {limits.most}"
        raise InvalidParameter(
            "connect.arguments_number", operator=operator.name.lower(), allowed=allowed, given=arguments
        )
    limits.check(constants, options)


def check_size(expression: object, parts: Iterable[object]) -> None:
    """Refuse what is too large to be written out, which a few words can ask for: parts stand in many places.

    Guarantee:
        Whatever walks through an expression, as a tree, meets at most `LARGEST_EXPRESSION` operators.
    """
    size = 1 + sum(getattr(part, "size", 0) for part in parts)
    if size > LARGEST_EXPRESSION:
        raise InvalidParameter("connect.expression_too_large", most=LARGEST_EXPRESSION, spent="nothing")
    object.__setattr__(expression, "size", size)


def check_size_of_fields(expression: object) -> None:
    """The same for an expression whose parts stand in its fields, in pairs or alone."""
    check_size(expression, _flatten(vars(expression).values()))


def _flatten(parts: Iterable[object]) -> Iterator[object]:
    for part in parts:
        if isinstance(part, tuple):
            yield from _flatten(part)
        else:
            yield part


def check_grid(low: Any, high: Any, exponent: Any, center: Any = 0) -> None:
    """The range of `expression.grid`."""
    _check_order(low, high)
    if not _is_whole(exponent) or abs(exponent) > MOST_EXPONENT:
        raise InvalidParameter("connect.grid_exponent", parameter="exponent")
    if max(abs(low), abs(high)) * 2.0**exponent >= 2.0**51:
        raise InvalidParameter("connect.grid_too_fine", parameter="exponent")
    if not _is_whole(center) or abs(center) >= 2**51:
        raise InvalidParameter("connect.grid_centre", parameter="center")


def check_limit(name: str, value: object) -> int:
    """A limit on rows or groups: positive, and small enough that every engine reads it as a whole number."""
    found = positive_integer(name, value)
    if found > MOST_ROWS:
        raise InvalidParameter("connect.too_many_rows", parameter=name, spent="nothing")
    return found


def _check_order(low: Any, high: Any) -> None:
    real("low", low)
    real("high", high)
    if not low <= high:
        raise InvalidParameter("connect.range_reversed", parameter="between")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_whole(name: str, value: Any, low: int, high: int) -> None:
    if not _is_whole(value) or not low <= value <= high:
        raise InvalidParameter(
            "connect.not_a_whole_number_between", parameter=name, low=low, high=high, spent="nothing"
        )


def _unpack(options: Sequence[object], least: int, most: int) -> Sequence[Any]:
    if not least <= len(options) <= most:
        raise InvalidParameter("connect.options_number", least=least, most=most, given=len(options))
    return options


def _nothing(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    if options:
        raise InvalidParameter("connect.no_options")


def _substring(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    start, length = _unpack(options, 2, 2)
    _check_whole("the start of a substring", start, 1, MOST_PLACES)
    _check_whole("the length of a substring", length, 0, MOST_PLACES)


def _tail(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    (length,) = _unpack(options, 1, 1)
    _check_whole("the length of a substring", length, 0, MOST_PLACES)


def _side(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    if not set(_unpack(options, 0, 1)) <= {"leading", "trailing"}:
        raise InvalidParameter("connect.trim_side", parameter="side", spent="nothing")


def _split(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    sought, place = _unpack(options, 2, 2)
    _check_sought(sought)
    _check_whole("the place of a part", place, 1, MOST_SPLIT)


def _needle(constants: Sequence[Any], options: Sequence[Any]) -> None:
    del constants
    (sought,) = _unpack(options, 1, 1)
    _check_sought(sought)


def _check_sought(sought: object) -> None:
    if not isinstance(sought, str) or not 1 <= len(sought) <= LONGEST_PATTERN:
        raise InvalidParameter("connect.sought_text", parameter="text", most=LONGEST_PATTERN, spent="nothing")


def _replace(constants: Sequence[Any], options: Sequence[Any]) -> None:
    del constants
    sought, other = _unpack(options, 2, 2)
    _check_sought(sought)
    if not isinstance(other, str) or len(other.encode()) > MOST_GROWTH * len(sought.encode()):
        raise InvalidParameter("connect.text_instead", parameter="text", most=MOST_GROWTH, spent="nothing")


def _shift(constants: Sequence[Any], options: Sequence[Any]) -> None:
    del constants
    amount, unit = _unpack(options, 2, 2)
    if unit not in LONGEST_SHIFTS:
        raise InvalidParameter("connect.date_unit", parameter="unit", allowed=list(LONGEST_SHIFTS))
    _check_whole("a shift of dates", amount, -LONGEST_SHIFTS[unit], LONGEST_SHIFTS[unit])


def _bin(constants: Sequence[Any], options: Sequence[Any]) -> None:
    _nothing((), options)
    if len(constants) != 2:
        raise InvalidParameter("connect.bin_constants")
    width, origin = constants
    if real("width", width) <= 0:
        raise InvalidParameter("connect.bin_width_not_positive", parameter="width")
    if isinstance(width, int):
        _check_whole("the width of a bin", width, 1, WIDEST_BIN)
    elif not SMALLEST_FACTOR <= width < LARGEST_REAL:
        raise InvalidParameter("connect.bin_width_range", parameter="width", spent="nothing")
    real("origin", origin)
    if abs(origin) > LARGEST_INTEGER if isinstance(origin, int) else abs(origin) >= LARGEST_REAL:
        raise InvalidParameter("connect.bin_origin", parameter="origin")


def _clamp(constants: Sequence[object], options: Sequence[object]) -> None:
    _nothing((), options)
    if len(constants) != 2:
        raise InvalidParameter("connect.clamp_constants")
    _check_order(*constants)


def _grid(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    if len(options) not in {3, 4}:
        raise InvalidParameter("connect.grid_options")
    check_grid(*options)


def _like(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    pattern = options[0] if options else None
    if not isinstance(pattern, str) or (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        raise InvalidParameter("connect.pattern_backslash", parameter="pattern")
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidParameter("connect.pattern_too_long", parameter="pattern", most=LONGEST_PATTERN, spent="nothing")
    if len(options) > 2 or not all(isinstance(option, bool) for option in options[1:]):
        raise InvalidParameter("connect.pattern_options")


def _round(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    digits, *bound = _unpack(options, 1, 2)
    _check_whole("digits", digits, -MOST_DIGITS, MOST_DIGITS)
    if len(bound) > 1 or not all(isinstance(limit, float) and 0 < limit < LARGEST_REAL for limit in bound):
        raise InvalidParameter("connect.rounding_bound")


def _base(constants: Sequence[object], options: Sequence[Any]) -> None:
    del constants
    for base in _unpack(options, 0, 1):
        if not isinstance(base, float) or not SMALLEST_FACTOR <= base < LARGEST_REAL or base == 1:
            raise InvalidParameter("connect.logarithm_base", parameter="base", spent="nothing")


def _unit(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    if len(options) != 1 or options[0] not in DATE_UNITS:
        raise InvalidParameter("connect.date_unit", parameter="unit", allowed=list(DATE_UNITS))


def _target(constants: Sequence[object], options: Sequence[object]) -> None:
    del constants
    if len(options) != 1 or not isinstance(options[0], Type):
        raise InvalidParameter("connect.cast_needs_type", parameter="kind", allowed=[str(kind) for kind in Type])


_WIDE = "whole numbers in a wider type, NULL beyond 64 bits; reals stay below 2**1001, NULL from 2**500 on"
_SAME = "engines compare any two values of one type"
_THREE = "three-valued logic has no errors"
_PART = "dates lie in the years 1 to 9999, on every engine"
_SHORTER = "no longer than its argument"

LIMITS: Mapping[Operator, Limits] = {
    **dict.fromkeys([Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY], Limits(2, 2, _WIDE, _nothing)),
    Operator.DIVIDE: Limits(2, 2, "divisors below 2**-500 are zero, a quotient by zero is NULL", _nothing),
    **dict.fromkeys([Operator.NEGATE, Operator.ABSOLUTE], Limits(1, 1, _WIDE, _nothing)),
    **dict.fromkeys([Operator.FLOOR, Operator.CEILING], Limits(1, 1, "NULL from 2**53 on", _nothing)),
    Operator.ROUND: Limits(1, 1, "a real from 2**52 on, in units of its last digit, stays as it is", _round),
    Operator.SQUARE_ROOT: Limits(1, 1, "NULL below zero; the root of a real below 2**500 is below 2**250", _nothing),
    Operator.LOGARITHM: Limits(1, 1, "NULL from zero down; below 745 in magnitude, in base e", _base),
    Operator.EXPONENTIAL: Limits(1, 1, "0 from -346 down, NULL from 346 on", _nothing),
    Operator.POWER: Limits(2, 2, "NULL of a base below zero, where zero has none, and from e**346 on", _nothing),
    Operator.CLAMP: Limits(3, 3, _SAME, _clamp),
    Operator.BIN: Limits(3, 3, "widths up to 2**61 keep every remainder below 2**62; NULL beyond 64 bits", _bin),
    Operator.GRID: Limits(1, 1, "clamped first: every step is below 2**52", _grid),
    **dict.fromkeys(
        [Operator.EQUAL, Operator.NOT_EQUAL, Operator.LESS, Operator.LESS_EQUAL, Operator.GREATER,
         Operator.GREATER_EQUAL],
        Limits(2, 2, _SAME, _nothing),
    ),
    **dict.fromkeys([Operator.AND, Operator.OR], Limits(2, 2, _THREE, _nothing)),
    **dict.fromkeys([Operator.NOT, Operator.IS_NULL], Limits(1, 1, _THREE, _nothing)),
    Operator.IN: Limits(2, MOST_VALUES + 1, _SAME, _nothing),
    Operator.COALESCE: Limits(1, MOST_VALUES, _SAME, _nothing),
    **dict.fromkeys([Operator.LOWER, Operator.UPPER], Limits(1, 1, _SHORTER, _nothing)),
    Operator.TRIM: Limits(1, 1, _SHORTER, _side),
    Operator.LENGTH: Limits(1, 1, f"at most {LONGEST_TEXT}", _nothing),
    Operator.SUBSTRING: Limits(1, 1, _SHORTER, _substring),
    Operator.TAIL: Limits(1, 1, _SHORTER, _tail),
    Operator.SPLIT: Limits(1, 1, _SHORTER, _split),
    Operator.CONCAT: Limits(1, MOST_PARTS, f"NULL beyond {LONGEST_TEXT} bytes", _nothing),
    Operator.POSITION: Limits(1, 1, f"at most {LONGEST_TEXT}; time grows with text times what is sought", _needle),
    Operator.REPLACE: Limits(1, 1, f"grows at most 8 times, NULL beyond {LONGEST_TEXT} bytes", _replace),
    Operator.LIKE: Limits(1, 1, "time grows with text times pattern, on every engine", _like),
    **dict.fromkeys(
        [Operator.YEAR, Operator.QUARTER, Operator.MONTH, Operator.DAY, Operator.HOUR, Operator.MINUTE,
         Operator.WEEKDAY],
        Limits(1, 1, _PART, _nothing),
    ),
    Operator.TRUNCATE_DATE: Limits(1, 1, _PART + "; the first of them is a Monday", _unit),
    Operator.DAYS_BETWEEN: Limits(2, 2, _PART, _nothing),
    Operator.SHIFT_DATE: Limits(1, 1, "NULL where the day would leave the years 1 to 9999", _shift),
    Operator.CAST: Limits(1, 1, "matched against a grammar or a range first, else NULL", _target),
}  # fmt: skip


def seeds(key: bytes) -> tuple[int, int]:
    """Two 63-bit numbers from a key of at least 16 bytes."""
    if not isinstance(key, bytes) or len(key) < 16:
        raise InvalidParameter("connect.bounding_key")
    return int.from_bytes(key[:8]) >> 1, int.from_bytes(key[8:16]) >> 1
