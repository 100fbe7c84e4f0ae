"""Unbiased integers below a bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.noise.generators.secure_random import word, words
from mosha.noise.parameters import generator, shape_of, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mosha.core.measurement import Rng
    from mosha.noise.parameters import Size

__all__ = ["uniform", "uniform_each"]

_LARGEST: Final = 1 << 63
_LOW: Final = np.uint64(0xFFFFFFFF)


@overload
def uniform(n: int, size: None = None, *, rng: Rng | None = None) -> int: ...
@overload
def uniform(n: int, size: int | tuple[int, ...], *, rng: Rng | None = None) -> NDArray[np.int64]: ...
def uniform(n: int, size: Size = None, *, rng: Rng | None = None) -> int | NDArray[np.int64]:
    """Integers 0, 1, ..., n - 1, each equally likely; one of them when `size` is None.

    Guarantee:
        Exact, no gap. Alone or for n > 2**32: words of just enough bits, those >= n drawn again. In arrays, for
        n <= 2**32 (Lemire 2019): a 32-bit word w gives a = w n // 2**32, and is drawn again if (w n) mod 2**32 < t
        with t = 2**32 mod n. What is kept for a are the multiples of n in [a 2**32 + t, (a + 1) 2**32), an
        interval of n * (2**32 // n) integers: exactly 2**32 // n of them, for every a.

    Units:
        `n` is a count, from 1 to 2**63.

    Args:
        n: how many integers to choose from.
        size: how many to draw: a number or a shape; None draws a single one.
        rng: a random generator; the secure one of the process by default.

    >>> uniform(1)
    0
    """
    bound = whole_number("n", n, at_least=1, at_most=_LARGEST)
    source = generator(rng)
    if size is None:
        return _draw_below(bound, source)
    shape = shape_of(size)
    count = math.prod(shape)
    if bound <= 1 << 32:
        return _draw_by_product(bound, count, source).reshape(shape)
    return _draw_by_mask(np.full(count, bound - 1, np.uint64), source).reshape(shape)


def uniform_each(bounds: NDArray[np.int64], *, rng: Rng | None = None) -> NDArray[np.int64]:
    """For each bound n an integer of its own in 0, 1, ..., n - 1, each equally likely.

    Guarantee:
        Exact, no gap: words of just enough bits, those >= n drawn again.

    Units:
        Each bound is a count, from 1 to 2**63 - 1.

    Args:
        bounds: an array of signed integers of at least 1.
        rng: a random generator; the secure one of the process by default.

    >>> uniform_each(np.array([1, 1])).tolist()
    [0, 0]
    """
    values = np.asarray(bounds)
    if values.dtype.kind != "i" or (values < 1).any():
        raise InvalidParameter("noise.bounds_below_one", parameter="bounds")
    last = (values.astype(np.int64).ravel() - 1).view(np.uint64)
    return _draw_by_mask(last, generator(rng)).reshape(values.shape)


def _draw_below(bound: int, rng: Rng) -> int:
    bits = (bound - 1).bit_length()
    size = (bits + 7) // 8
    while (drawn := word(rng, size) >> (8 * size - bits)) >= bound:
        pass
    return drawn


def _draw_by_product(bound: int, count: int, rng: Rng) -> NDArray[np.int64]:
    factor, surplus = np.uint64(bound), (1 << 32) % bound
    product = words(rng, count, "<u4").astype(np.uint64) * factor
    again = np.flatnonzero((product & _LOW) < surplus)
    while again.size:
        fresh = words(rng, again.size, "<u4").astype(np.uint64) * factor
        product[again] = fresh
        again = again[(fresh & _LOW) < surplus]
    product >>= np.uint64(32)
    return product.view(np.int64)


def _draw_by_mask(last: NDArray[np.uint64], rng: Rng) -> NDArray[np.int64]:
    """Uniform on 0, ..., last, by masks of just enough bits."""
    mask = last.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    drawn = words(rng, last.size) & mask
    again = np.flatnonzero(drawn > last)
    while again.size:
        fresh = words(rng, again.size) & mask[again]
        drawn[again] = fresh
        again = again[fresh > last[again]]
    return drawn.view(np.int64)
