"""Public parameters as the exact rationals they are, checked where they enter.

A float is the dyadic rational that its bits say: `0.1` means 3602879701896397 / 2**55.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from numbers import Integral, Rational
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.language import phrase
from mosha.core.measurement import Rng
from mosha.noise.generators.replay import KeyedRandom
from mosha.noise.generators.secure_random import SecureRandom, secure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mosha.noise.envelope import Envelope

__all__ = [
    "LARGEST_SCALE",
    "TABLES",
    "Ratio",
    "Real",
    "Size",
    "draw",
    "enlarge_scale",
    "format_ratio",
    "generator",
    "probability",
    "scale_ratio",
    "shape_of",
    "to_ratio",
    "whole_number",
]

LARGEST_SCALE: Final = 1 << 50
"""Noise of a larger scale could leave 64-bit integers; see `mosha.noise.gap`."""

Ratio: TypeAlias = tuple[int, int]
"""A rational in lowest terms: numerator and (positive) denominator."""

Real: TypeAlias = "int | float | Fraction"
Size: TypeAlias = int | tuple[int, ...] | None


def to_ratio(name: str, value: Real) -> Ratio:
    """`value` as the exact rational it is.

    >>> to_ratio("scale", 0.75)
    (3, 4)
    """
    kind = type(value)
    if kind is float or (kind is not int and isinstance(value, float | np.floating)):
        if not math.isfinite(value):
            raise InvalidParameter("core.not_finite", parameter=name, value=str(float(value)))
        return value.as_integer_ratio()
    if kind is bool or not isinstance(value, Rational):
        raise InvalidParameter("noise.not_a_rational", parameter=name, kind=kind.__name__)
    return int(value.numerator), int(value.denominator)


def format_ratio(top: int, bottom: int = 1) -> str:
    """A rational for a message, however large: integers of thousands of digits have no text in Python."""
    try:
        return f"{top / bottom:g}"
    except OverflowError:
        return phrase("noise.beyond_doubles")


def scale_ratio(name: str, value: Real, *, at_most: int | None = LARGEST_SCALE) -> Ratio:
    """A scale: an exact rational above zero, and no larger than `at_most`."""
    top, bottom = to_ratio(name, value)
    if top <= 0:
        raise InvalidParameter("noise.not_positive", parameter=name, value=format_ratio(top, bottom))
    if at_most is not None and top > at_most * bottom:
        raise InvalidParameter("noise.scale_too_large", parameter=name, exponent=at_most.bit_length() - 1)
    return top, bottom


def probability(name: str, value: Real) -> Ratio:
    """An exact rational in [0, 1]."""
    top, bottom = to_ratio(name, value)
    if not 0 <= top <= bottom:
        raise InvalidParameter("noise.not_a_probability", parameter=name, value=format_ratio(top, bottom))
    return top, bottom


def whole_number(name: str, value: object, *, at_least: int, at_most: int) -> int:
    """An integer in [at_least, at_most]."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise InvalidParameter("core.not_whole", parameter=name, kind=type(value).__name__)
    number = int(value)
    if not at_least <= number <= at_most:
        value = format_ratio(number)
        raise InvalidParameter("noise.out_of_range", parameter=name, low=at_least, high=at_most, value=value)
    return number


def enlarge_scale(scale: Fraction) -> Fraction:
    """The scale that is drawn with where `scale` is charged: a hair more noise, which pays for `exact/clamping.md`."""
    return scale * (1 + Fraction(1, 1 << 50))


def shape_of(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """`size` as the shape of an array."""
    sizes = size if isinstance(size, tuple) else (size,)
    try:
        shape = tuple(operator.index(side) for side in sizes if not isinstance(side, bool))
    except TypeError:
        shape = ()
    if len(shape) != len(sizes) or any(side < 0 for side in shape):
        raise InvalidParameter("noise.not_a_size", parameter="size")
    return shape


TABLES: Final = 64
"""How many tables (about 200 kB each) of one kind are kept for later calls."""


def generator(rng: Rng | None) -> Rng:
    """The generator to use: the process-wide secure one unless another is given."""
    if rng is None:
        return secure()
    if not isinstance(rng, SecureRandom | KeyedRandom | Rng):  # the protocol last: asking it is slow
        raise InvalidParameter("noise.not_a_generator", parameter="rng", kind=type(rng).__name__)
    return rng


def draw(table: Envelope, size: Size, rng: Rng | None) -> int | NDArray[np.int64]:
    """One sample for `size` None, else an array of that shape."""
    source = generator(rng)
    if size is None:
        return table.draw_one(source)
    shape = shape_of(size)
    return table.draw_many(math.prod(shape), source).reshape(shape)
