"""Public numbers, checked where they enter: a wrong one is refused with a reason, never repaired."""

from __future__ import annotations

import math
from numbers import Real
from typing import SupportsIndex

from mosha.core.errors import InvalidParameter

__all__ = ["non_negative", "positive", "positive_integer", "probability", "real", "strict_probability"]


def real(name: str, value: object) -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter("core.not_a_number", parameter=name, kind=type(value).__name__)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidParameter("core.not_finite", parameter=name, value=str(number))
    return number


def positive(name: str, value: object) -> float:
    """A finite number above zero.

    >>> positive("epsilon", 1)
    1.0
    """
    number = real(name, value)
    if number <= 0:
        raise InvalidParameter("core.not_positive", parameter=name, value=number)
    return number


def non_negative(name: str, value: object) -> float:
    """A finite number, zero or above."""
    number = real(name, value)
    if number < 0:
        raise InvalidParameter("core.negative", parameter=name, value=number)
    return number


def probability(name: str, value: object) -> float:
    """A number in [0, 1): where 1 stands for no promise at all, it is refused."""
    number = real(name, value)
    if not 0 <= number < 1:
        raise InvalidParameter("core.not_below_one", parameter=name, value=number)
    return number


def strict_probability(name: str, value: object) -> float:
    """A number in (0, 1)."""
    number = real(name, value)
    if not 0 < number < 1:
        code = "core.percent" if 1 < number < 100 else "core.not_between_zero_and_one"
        raise InvalidParameter(code, parameter=name, value=number, share=number / 100)
    return number


def positive_integer(name: str, value: object) -> int:
    """A whole number, one or above.

    >>> positive_integer("horizon", 365)
    365
    """
    number = _read_index(value)
    if number is None:
        raise InvalidParameter("core.not_whole", parameter=name, kind=type(value).__name__)
    if number < 1:
        raise InvalidParameter("core.below_one", parameter=name, value=number)
    return int(number)


def _read_index(value: object) -> int | None:
    """The whole number that a value stands for, if it does."""
    if type(value) is int:  # nearly always; to ask whether something is like an index takes fifty times as long
        return value
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_") or not isinstance(value, SupportsIndex):
        return None  # older versions of NumPy take their own True for 1
    try:
        return value.__index__()
    except TypeError:  # an array of several numbers
        return None
