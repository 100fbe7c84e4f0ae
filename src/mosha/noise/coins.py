"""Coins with an exact bias: a rational probability, or exp(-x) for a rational x."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, overload

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.noise.exponential import exp_bounds, exp_negative, falls_below
from mosha.noise.generators.secure_random import word, words
from mosha.noise.parameters import format_ratio, generator, probability, scale_ratio, shape_of, to_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mosha.core.measurement import Rng
    from mosha.noise.parameters import Real, Size

__all__ = ["bernoulli", "bernoulli_exp", "flips"]

_ONE = Fraction(1)
_MARGIN = 2.0**-40  # the floats compared in `flips` are off by less than 2**-47


class _Coin:
    """Heads with probability amplitude * exp(-exponent) <= 1, decided by 16 bits unless they tie.

    Guarantee:
        Words below `sure` lie wholly below the probability, words from `never` on wholly above it;
        one between (at most one, but for the width of `exp_bounds`) is settled by `falls_below`, exactly.
    """

    def __init__(self, amplitude: Fraction, exponent: Fraction) -> None:
        self._amplitude, self._exponent = amplitude, exponent
        low, high = exp_bounds(exponent, 32)
        unit = amplitude.denominator << 16
        self.sure = amplitude.numerator * low // unit
        self.never = -(-amplitude.numerator * high // unit)

    def _settle(self, known: int, rng: Rng) -> bool:
        return falls_below(rng, amplitude=self._amplitude, exponent=self._exponent, known=known, bits=16)

    def flip(self, size: Size, rng: Rng | None) -> bool | NDArray[np.bool_]:
        source = generator(rng)
        if size is None:
            known = word(source, 2)
            return known < self.sure or (known < self.never and self._settle(known, source))
        shape = shape_of(size)
        drawn = words(source, math.prod(shape), "<u2")
        heads = drawn < self.sure
        for i in np.flatnonzero((drawn < self.never) & ~heads):
            heads[i] = self._settle(int(drawn[i]), source)
        return heads.reshape(shape)


@lru_cache(maxsize=256)
def _rational_coin(top: int, bottom: int) -> _Coin:
    return _Coin(Fraction(top, bottom), Fraction(0))


@lru_cache(maxsize=256)
def _exponential_coin(top: int, bottom: int) -> _Coin:
    return _Coin(_ONE, Fraction(top, bottom))


@overload
def bernoulli(p: Real, size: None = None, *, rng: Rng | None = None) -> bool: ...
@overload
def bernoulli(p: Real, size: int | tuple[int, ...], *, rng: Rng | None = None) -> NDArray[np.bool_]: ...
def bernoulli(p: Real, size: Size = None, *, rng: Rng | None = None) -> bool | NDArray[np.bool_]:
    """Coins that show heads (True) with probability exactly `p`; one of them when `size` is None.

    Guarantee:
        Exact, no gap: a uniform variable is compared with the rational number that `p` is, bit by bit as
        far as needed (`falls_below`).

    Units:
        `p` is a probability in [0, 1].

    Args:
        p: the probability of heads.
        size: how many to draw: a number or a shape; None draws a single one.
        rng: a random generator; the secure one of the process by default.

    >>> bernoulli(1), bernoulli(0)
    (True, False)
    """
    return _rational_coin(*probability("p", p)).flip(size, rng)


@overload
def bernoulli_exp(x: Real, size: None = None, *, rng: Rng | None = None) -> bool: ...
@overload
def bernoulli_exp(x: Real, size: int | tuple[int, ...], *, rng: Rng | None = None) -> NDArray[np.bool_]: ...
def bernoulli_exp(x: Real, size: Size = None, *, rng: Rng | None = None) -> bool | NDArray[np.bool_]:
    """Coins that show heads (True) with probability exactly exp(-x); one of them when `size` is None.

    Guarantee:
        Exact, no gap: a uniform variable is compared with exp(-x), enclosed ever more narrowly by
        integers until the comparison is settled (`falls_below`).

    Units:
        `x` is a pure number, zero or above.

    Args:
        x: the exponent: heads come with probability exp(-x).
        size: how many to draw: a number or a shape; None draws a single one.
        rng: a random generator; the secure one of the process by default.

    >>> bernoulli_exp(0)
    True
    """
    top, bottom = to_ratio("x", x)
    if top < 0:
        raise InvalidParameter("noise.negative_exponent", parameter="x", value=format_ratio(top, bottom))
    return _exponential_coin(top, bottom).flip(size, rng)


def flips(distances: NDArray[np.integer], scale: Real, *, rng: Rng | None = None) -> NDArray[np.bool_]:
    """For each distance d >= 0 a coin of its own, heads (True) with probability exactly exp(-d / scale).

    Guarantee:
        Exact, no gap. d / scale as a float is off by at most 2**-51 relative, so exp(-d / scale) by less
        than 2**-48 absolute (t exp(-t) < 1, `exp_negative` below 2**-48 relative), and the uniform variable by
        2**-53. Outside a margin of 2**-40 the floats are right; inside it `falls_below` decides.

    Units:
        `distances` and `scale` are in the same unit, that of the scores.

    Args:
        distances: an array of integers, none below zero.
        scale: the distance at which the probability has fallen to 1/e.
        rng: a random generator; the secure one of the process by default.

    >>> flips(np.array([0, 10**6]), 1).tolist()
    [True, False]
    """
    top, bottom = scale_ratio("scale", scale, at_most=None)
    values = np.asarray(distances)
    if values.dtype.kind not in "iu":
        raise InvalidParameter("noise.distances_not_integers", parameter="distances", kind=str(values.dtype))
    if values.dtype.kind == "i" and (values < 0).any():
        raise InvalidParameter("noise.negative_distances", parameter="distances")
    source = generator(rng)
    drawn = words(source, values.size).reshape(values.shape)
    uniform = (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53
    rate = float(min(Fraction(bottom, top), Fraction(1 << 60)))
    excess = exp_negative(values.astype(np.float64) * rate) - uniform
    heads = excess > 0
    for i in np.flatnonzero(np.abs(excess) < _MARGIN):
        exponent = Fraction(int(values.flat[i]) * bottom, top)
        heads.flat[i] = falls_below(source, amplitude=_ONE, exponent=exponent, known=int(drawn.flat[i]), bits=64)
    return heads
