"""Public numbers, checked where they enter: a wrong one is refused with a reason, never repaired."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from mosha.core.errors import InvalidParameter

__all__ = ["non_negative", "positive", "positive_integer", "probability", "real", "strict_probability"]


def real(name: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(f"{name} must be a number, not {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidParameter(f"{name} must be finite, got {number}.")
    return number


def positive(name: str, value: Any) -> float:
    """A finite number above zero.

    >>> positive("epsilon", 1)
    1.0
    """
    number = real(name, value)
    if number <= 0:
        raise InvalidParameter(f"{name} must be above zero, got {number:g}.")
    return number


def non_negative(name: str, value: Any) -> float:
    """A finite number, zero or above."""
    number = real(name, value)
    if number < 0:
        raise InvalidParameter(f"{name} must not be negative, got {number:g}.")
    return number


def probability(name: str, value: Any) -> float:
    """A number in [0, 1): where 1 stands for no promise at all, it is refused."""
    number = real(name, value)
    if not 0 <= number < 1:
        raise InvalidParameter(f"{name} must lie in [0, 1), got {number:g}.")
    return number


def strict_probability(name: str, value: Any) -> float:
    """A number in (0, 1)."""
    number = real(name, value)
    if not 0 < number < 1:
        percent = f" Write {number / 100:g} for {number:g}%." if 1 < number < 100 else ""
        raise InvalidParameter(f"{name} must lie strictly between 0 and 1, got {number:g}.{percent}")
    return number


def positive_integer(name: str, value: Any) -> int:
    """A whole number, one or above.

    >>> positive_integer("horizon", 365)
    365
    """
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        number = None
    if number is None or isinstance(value, bool):
        raise InvalidParameter(f"{name} must be a whole number, not {type(value).__name__}.")
    if number < 1:
        raise InvalidParameter(f"{name} must be at least 1, got {number}.")
    return int(number)
