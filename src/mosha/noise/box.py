"""Noise for several numbers at once whose joint change fits a box: the l-infinity K-norm, on integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.noise.exponential import exp_bounds, falls_below
from mosha.noise.generators.secure_random import word, words
from mosha.noise.integers import uniform_each
from mosha.noise.laplace import geometric
from mosha.noise.parameters import LARGEST_SCALE, TABLES, generator, scale_ratio, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mosha.core.measurement import Rng
    from mosha.noise.parameters import Real, Size


__all__ = ["PowerMixture", "box_noise", "box_radius"]

_FIRST_BITS = 62  # so that even the bound 2**62 is a signed 64-bit integer


class PowerMixture:
    """Components j = 0, 1, ..., chosen with probability proportional to factors[j] * (q / (1 - q))**j.

    Guarantee:
        Exact, no gap. Component j is chosen when F_(j-1) <= U < F_j for a uniform U and the cumulative
        probabilities F. Integers enclose each F_j; where the bits of U known so far lie within an
        enclosure, 64 more are drawn and the enclosures narrowed, until U is on a certain side of all.

    Units:
        `exponent` is t > 0; `factors` are rationals >= 0, the first one above 0.

    >>> from mosha.noise import secure
    >>> PowerMixture([Fraction(1), Fraction(0)], Fraction(1)).draw(3, secure()).tolist()
    [0, 0, 0]
    """

    def __init__(self, factors: Sequence[Fraction], exponent: Fraction) -> None:
        self._factors = factors
        self._exponent = exponent
        low, high = self._enclose(_FIRST_BITS)
        self._low, self._high = np.array(low, np.int64), np.array(high, np.int64)

    def _enclose(self, bits: int) -> tuple[list[int], list[int]]:
        """Integers around each F_j but the last (which is 1), in units of 2**-bits."""
        one = 1 << (2 * bits + 64)  # 1 - q may be as small as 2**-51: these bits are lost to it
        q_low, q_high = exp_bounds(self._exponent, one.bit_length() - 1)
        least, most = (
            list(accumulate(f * Fraction(q, one - q) ** j for j, f in enumerate(self._factors)))
            for q in (q_low, q_high)
        )
        low, high = [], []
        for a, b in zip(least[:-1], most[:-1], strict=True):  # F = A / (A + B), A up to j and B beyond it
            low.append(a * 2**bits // (a + most[-1] - b))
            high.append(-(-b * 2**bits // (b + least[-1] - a)))
        return low, high

    def draw(self, count: int, rng: Rng) -> NDArray[np.int64]:
        """`count` independent components."""
        drawn = (words(rng, count) >> np.uint64(64 - _FIRST_BITS)).astype(np.int64)
        passed = np.searchsorted(self._high, drawn, side="right")
        maybe = np.searchsorted(self._low, drawn, side="right")
        for i in np.flatnonzero(passed != maybe):
            passed[i] = self._settle(int(drawn[i]), rng)
        return passed

    def _settle(self, known: int, rng: Rng) -> int:
        bits = _FIRST_BITS
        while True:
            known = (known << 64) | word(rng)
            bits += 64
            low, high = self._enclose(bits)
            passed = sum(known >= bound for bound in high)
            if passed == sum(known >= bound for bound in low):
                return passed


_MOST_SIDES: Final = 16
_LARGEST_TOP: Final = 1 << 42
_LARGEST_BOTTOM: Final = 1 << 20
_LARGEST: Final = 1 << 61
_MARGIN: Final = 2.0**-40  # the float chance is off by less than 2**-45


def box_noise(
    scale: Real, widths: Sequence[int | Fraction], size: Size = None, *, rng: Rng | None = None
) -> NDArray[np.int64]:
    """Integer vectors z, P(z) proportional to exp(-N(z) / scale) with N(z) = max over i of ceil(|z_i| / widths[i]).

    To release d integers whose change v by one person satisfies |v_i| <= D_i, choose a public
    integer k >= 1, widths D_i / k and scale k / epsilon: a larger k only makes the norm finer.

    Guarantee:
        Exact up to `gap`. Given R from `box_radius`, each z_i is uniform on |z_i| <= floor(w_i R). So P(z) is
        proportional to the sum of q**R, q = exp(-1 / scale), over all R with floor(w_i R) >= |z_i| for all i: over
        R >= N(z), hence to q**N(z). A shift with |v_i| <= k w_i moves N by at most k, because
        ceil(|z_i + v_i| / w_i) <= ceil(|z_i| / w_i) + k: the release is (k / scale)-differentially private.

    Units:
        `widths` are in steps of the integer grid, `scale` in steps of N. The last axis of the
        answer runs over the widths.

    Raises:
        InvalidParameter: scale * width above 2**50, more than 16 widths, or widths too fine to count exactly.

    Args:
        scale: how fast the probability falls with the norm.
        widths: the half-width of the box in each coordinate, as integers or short fractions.
        size: how many to draw: a number or a shape; None draws a single one.
        rng: a random generator; the secure one of the process by default.

    >>> box_noise(10, [1000, 1], 5).shape
    (5, 2)
    """
    sides = _check_sides(widths, scale)
    source = generator(rng)
    shape = () if size is None else shape_of(size)
    half = _half_widths(_draw_radii(scale, sides, math.prod(shape), source), sides)
    noise = uniform_each(2 * half + 1, rng=source) - half
    return noise.reshape(*shape, len(sides))


def box_radius(
    scale: Real, widths: Sequence[int | Fraction], size: int | tuple[int, ...], *, rng: Rng | None = None
) -> NDArray[np.int64]:
    """Integers R >= 0 with P(R) proportional to exp(-R / scale) * product over i of (2 floor(widths[i] R) + 1).

    The discrete kin of a Gamma variable of shape d + 1: the radius of a uniform point in a box.

    Guarantee:
        Exact but for R >= floor(2**61 / max(1, widths)), never drawn: a gap below 2**-1900. Proof: `box.md`.

    Units:
        `scale` in steps of R; `widths` in steps of the integer grid.

    Args:
        scale: how fast the probability falls with the radius.
        widths: the half-width of the box in each coordinate.
        size: how many to draw: a number or a shape.
        rng: a random generator; the secure one of the process by default.

    >>> box_radius(1e-9, [1, 1], 3).tolist()
    [0, 0, 0]
    """
    shape = shape_of(size)
    return _draw_radii(scale, _check_sides(widths, scale), math.prod(shape), generator(rng)).reshape(shape)


def _check_sides(widths: Sequence[int | Fraction], scale: Real) -> tuple[Fraction, ...]:
    if not isinstance(widths, Sequence | np.ndarray) or not 1 <= len(widths) <= _MOST_SIDES:
        raise InvalidParameter("noise.number_of_widths", parameter="widths", most=_MOST_SIDES)
    sides = tuple(Fraction(*scale_ratio("widths", width)) for width in widths)
    if any(side.numerator > _LARGEST_TOP or side.denominator > _LARGEST_BOTTOM for side in sides):
        raise InvalidParameter("noise.width_too_fine", parameter="widths")
    if max(sides) * Fraction(*scale_ratio("scale", scale)) > LARGEST_SCALE:
        raise InvalidParameter("noise.box_too_large", parameter="scale")
    return sides


def _half_widths(radius: NDArray[np.int64], sides: tuple[Fraction, ...]) -> NDArray[np.int64]:
    """The integers floor(w R), a row for each R: with w = a / b and R = b s + r, a s + floor(a r / b) < 2**63."""
    columns = []
    for side in sides:
        whole, rest = np.divmod(radius, side.denominator)
        columns.append(side.numerator * whole + side.numerator * rest // side.denominator)
    return np.stack(columns, axis=-1)


@lru_cache(maxsize=TABLES)
def _mixture(top: int, bottom: int, sides: tuple[Fraction, ...]) -> PowerMixture:
    coefficients = [Fraction(1)]  # of R**0, R**1, ... in the product of (2 w R + 1)
    for side in sides:
        shifted = [Fraction(0), *(2 * side * c for c in coefficients)]
        coefficients = [a + b for a, b in zip(shifted, [*coefficients, Fraction(0)], strict=True)]
    stirling = [1]  # of the second kind, S(n, 0), ..., S(n, n) for the present n
    falling = [Fraction(0)] * len(coefficients)
    for c in coefficients:
        for j, s in enumerate(stirling):
            falling[j] += c * s
        stirling = [j * s + t for j, (s, t) in enumerate(zip([*stirling, 0], [0, *stirling], strict=True))]
    return PowerMixture([math.factorial(j) * b for j, b in enumerate(falling)], Fraction(bottom, top))


def _draw_radii(scale: Real, sides: tuple[Fraction, ...], count: int, rng: Rng) -> NDArray[np.int64]:
    mixture = _mixture(*scale_ratio("scale", scale), sides)
    limit = _LARGEST // max(Fraction(1), *sides)
    whole = all(side.denominator == 1 for side in sides)
    radii = np.empty(count, np.int64)
    where = np.arange(count)
    while where.size:
        proposed = _propose(scale, mixture.draw(where.size, rng), rng)
        fits = (proposed >= 0) & (proposed < limit)
        radius = np.where(fits, proposed, 0)
        radii[where] = radius
        kept = fits if whole else fits & _accept(radius, sides, rng)
        where = where[~kept]
    return radii


def _propose(scale: Real, orders: NDArray[np.int64], rng: Rng) -> NDArray[np.int64]:
    """For each order j: j + the sum of j + 1 geometric variables; -1 if that is not below 2**62."""
    proposed = np.empty(orders.size, np.int64)
    for j in range(_MOST_SIDES + 1):
        where = np.flatnonzero(orders == j)
        if where.size:
            parts = geometric(scale, (where.size, j + 1), rng=rng)
            fits = (parts >> 8).sum(axis=1) < _LARGEST >> 7  # then the sum cannot leave 64 bits
            proposed[where] = np.where(fits, parts.sum(axis=1) + j, -1)
    return proposed


def _accept(radius: NDArray[np.int64], sides: tuple[Fraction, ...], rng: Rng) -> NDArray[np.bool_]:
    """A coin for each proposed radius, of the chance that `box_radius` names."""
    drawn = words(rng, radius.size)
    chance = np.ones(radius.size)
    for side, half in zip(sides, _half_widths(radius, sides).T, strict=True):
        chance *= (2 * half + 1) / (2 * float(side) * radius + 1)
    excess = chance - (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53
    kept = excess > 0
    for i in np.flatnonzero(np.abs(excess) < _MARGIN):
        r = int(radius[i])
        exact = math.prod(((2 * (side * r // 1) + 1) / (2 * side * r + 1) for side in sides), start=Fraction(1))
        kept[i] = falls_below(rng, amplitude=exact, exponent=Fraction(0), known=int(drawn[i]), bits=64)
    return kept
