"""Floats that err to the safe side only.

An upper bound that was rounded to the nearest float may lie below the truth, and a promise may not. Sums, products
and quotients are rounded up exactly; whatever goes through `math.exp`, `math.log` and friends (each good to a unit
in the last place) is pushed outward by a margin that covers a short formula: see `bound_above` and `bound_below`.
"""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["add_up", "bound_above", "bound_below", "divide_up", "ratio_up", "round_down", "round_up", "times_up"]

MARGIN = 64.0  # units in the last place: more than any formula here can lose (each has fewer than 30 operations)


def ratio_up(numerator: int, denominator: int) -> float:
    """The least float that is not below numerator / denominator (above zero); infinity where there is none.

    >>> ratio_up(1, 10), ratio_up(1, 3) > 1 / 3
    (0.1, True)
    """
    try:
        near = numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
    top, bottom = near.as_integer_ratio()
    return near if top * denominator >= numerator * bottom else math.nextafter(near, math.inf)


def round_up(exact: Fraction) -> float:
    """The least float that is not below `exact`; infinity where there is none.

    >>> round_up(Fraction(1, 10))
    0.1
    """
    return ratio_up(exact.numerator, exact.denominator)


def round_down(exact: Fraction) -> float:
    """The largest float that is not above `exact`.

    >>> round_down(Fraction(1, 10)) < 0.1
    True
    """
    return -round_up(-exact)


def add_up(first: float, second: float) -> float:
    """The sum, rounded up.

    >>> add_up(1.0, 1.0), add_up(0.1, 0.7) > 0.1 + 0.7
    (2.0, True)
    """
    if math.isinf(first) or math.isinf(second):
        return first + second
    (top, bottom), (up, down) = first.as_integer_ratio(), second.as_integer_ratio()
    return ratio_up(top * down + up * bottom, bottom * down)


def times_up(value: float, count: int) -> float:
    """`value * count`, rounded up.

    >>> times_up(0.1, 10), times_up(0.5, 4)
    (1.0000000000000002, 2.0)
    """
    if math.isinf(value):
        return value
    top, bottom = value.as_integer_ratio()
    return ratio_up(top * count, bottom)


def divide_up(numerator: float, denominator: float, *, power: int = 1) -> float:
    """(numerator / denominator)^power, rounded up.

    >>> divide_up(1, 10), divide_up(1, 10, power=2)
    (0.1, 0.01)
    """
    (top, bottom), (up, down) = numerator.as_integer_ratio(), denominator.as_integer_ratio()
    return ratio_up((top * down) ** power, (bottom * up) ** power)


def bound_above(value: float, *, scale: float = 0.0) -> float:
    """An upper bound on what `value` was computed for.

    `scale` is the largest term of a sum that may have cancelled.

    >>> bound_above(1.0) > 1.0, bound_above(0.0), bound_above(1.0, scale=1e6) - 1.0 > 1e-9
    (True, 0.0, True)
    """
    if not math.isfinite(value):
        return value
    size = max(abs(value), abs(scale))
    return value + MARGIN * math.ulp(size) if size else 0.0


def bound_below(value: float, *, scale: float = 0.0) -> float:
    """A lower bound on what `value` was computed for."""
    return -bound_above(-value, scale=scale)
