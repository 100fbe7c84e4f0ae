"""The public grid that reals live on: powers of two, so that changing units rounds nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, Unbounded
from mosha.core.number import positive, real
from mosha.exact.statistic import Steps

__all__ = [
    "LARGEST_STEPS",
    "add_noise",
    "check_bounds",
    "clamp_steps",
    "grid_for",
    "power_of_two",
    "round_to_grid",
    "sum_steps",
    "sum_steps_by",
    "to_units",
]

FINENESS = 28
"""A grid chosen for a bound has 2**27 to 2**28 steps within it.

A sum of n values is off by n/2 steps at worst, and room for noise and sum (2**60 steps) remains for 2**32 rows; declare
a coarser grid for larger tables, where a statistic takes one.
"""

_SMALLEST, _LARGEST = 2.0**-512, 2.0**512  # of a bound: sums and grids stay far from where floats end
_SAFE = 1 << 62

LARGEST_STEPS = 1 << 60
"""Exact and noisy numbers of steps are held within this size."""


def power_of_two(name: str, value: object) -> float:
    """A grid: a power of two, as a float.

    >>> power_of_two("grid", 0.25)
    0.25
    """
    number = positive(name, value)
    if math.frexp(number)[0] != 0.5 or not _SMALLEST * 2.0**-32 <= number <= _LARGEST:
        raise InvalidParameter("exact.not_a_power_of_two", parameter=name, value=number)
    return number


def check_bounds(name: str, between: Iterable[object] | None) -> tuple[float, float]:
    """`between=(low, high)`: two finite numbers, the first one smaller."""
    if between is None:
        raise Unbounded("exact.no_range", parameter="between", statistic=name)
    try:
        first, second = between
    except (TypeError, ValueError):
        raise InvalidParameter("exact.not_a_pair", parameter="between", kind=type(between).__name__) from None
    low, high = real("low", first), real("high", second)
    if not low < high:
        raise InvalidParameter("exact.range_reversed", parameter="between", low=low, high=high)
    if not max(abs(low), abs(high)) <= _LARGEST or not high - low >= _SMALLEST:
        raise InvalidParameter("exact.range_extreme", parameter="between")
    return low, high


def grid_for(magnitude: float) -> float:
    """The grid that is used for values up to `magnitude` unless another one is declared.

    >>> grid_for(100.0) == 2.0 ** (7 - 28)
    True
    """
    fraction, exponent = math.frexp(magnitude)
    return math.ldexp(1.0, exponent - FINENESS - (fraction == 0.5))


def round_to_grid(values: NDArray[np.float64], grid: float) -> NDArray[np.int64]:
    """Each value by itself to the nearest step; the caller has bounded values to 2**62 steps.

    Monotone in the value (division by a power of two is exact, rounding is monotone), so what lies
    between two bounds lies between the rounded bounds afterwards.
    """
    return np.rint(values / grid).astype(np.int64)


def clamp_steps(steps: Steps) -> Steps:
    """Each number moved to the nearest one within 2**60.

    No two numbers move apart, so no norm of a sensitivity grows; see `clamping.md` for what this buys.
    """
    return np.clip(steps, -LARGEST_STEPS, LARGEST_STEPS)


def sum_steps(steps: Steps, largest: int) -> Steps:
    """The sum over rows of whole numbers of size at most `largest`, held within 2**60 and never wrapped around.

    n numbers of size at most `largest` sum to at most n * largest; where 64 bits might not hold that,
    Python's integers do the sum.
    """
    keep = steps.ndim == 1
    if steps.shape[0] * largest < _SAFE:
        return clamp_steps(np.asarray(steps.sum(axis=0, dtype=np.int64, keepdims=keep)))
    exact = np.atleast_1d(steps.astype(object).sum(axis=0))
    return np.array([min(max(int(number), -LARGEST_STEPS), LARGEST_STEPS) for number in exact], np.int64)


def sum_steps_by(codes: NDArray[np.int64], steps: Steps, count: int, largest: int) -> Steps:
    """For each code 0, ..., count - 1 the sum of the steps of its rows, as `sum_steps` of these rows.

    One pass over the rows, whatever the number of codes. Where 64 bits might not hold a sum, steps are split into
    31 low bits and the rest: both sums fit for fewer than 2**32 rows, and Python's integers put them together.

    Args:
        codes: one for each row, from 0 to `count`; `count` is that of no sum.
        steps: one whole number for each row, of size at most `largest`.
        count: how many sums there are.
        largest: what bounds the steps.

    >>> sum_steps_by(np.array([0, 2, 0, 3]), np.array([5, 1, -7, 9]), 3, 9).tolist()
    [-2, 0, 1]
    """
    if len(steps) * largest < _SAFE:
        return clamp_steps(_add_up(codes, steps, count))
    low, high = _add_up(codes, steps & 0x7FFFFFFF, count), _add_up(codes, steps >> 31, count)
    found = np.zeros(count, np.int64)
    for code in np.flatnonzero(low | high):
        exact = (int(high[code]) << 31) + int(low[code])
        found[code] = min(max(exact, -LARGEST_STEPS), LARGEST_STEPS)
    return found


def _add_up(codes: NDArray[np.int64], steps: Steps, count: int) -> Steps:
    found = np.zeros(count + 1, np.int64)
    np.add.at(found, codes, steps)
    return found[:count]


def add_noise(steps: Steps, noise: Steps) -> Steps:
    """Steps plus noise, both held within 2**60 before and after: 64 bits cannot overflow.

    Guarantee:
        The samplers never draw |noise| >= 2**62, which exact noise would, if rarely. As the sum is held
        within 2**60 that is no more than a factor 1 + 2**-2900 on any probability: `clamping.md`.
    """
    return clamp_steps(clamp_steps(steps) + noise)


def to_units(steps: Steps, grid: float) -> NDArray[np.int64] | NDArray[np.float64]:
    """Steps in the unit of the data: whole numbers on the grid 1, floats on any other.

    >>> to_units(np.array([3, -1]), 0.25)
    array([ 0.75, -0.25])
    """
    return steps if grid == 1.0 else steps.astype(np.float64) * grid
