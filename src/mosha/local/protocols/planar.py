"""Planar Laplace noise on a fine grid: a step (i, j) has probability in proportion to exp(-r / 256), r its length."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from mosha.core.measurement import Rng
from mosha.local.protocols.device import draw_below, flip_coin

__all__ = ["STEPS", "planar_steps", "radius_quantile"]

STEPS = 256  # grid steps in 1 / epsilon
_MARGIN = 2.0**-38


def planar_steps(rng: Rng) -> tuple[int, int]:
    """A step (i, j) on the grid with probability in proportion to exp(-sqrt(i^2 + j^2) / 256), exactly.

    Guarantee:
        Rings: let m = max(|i|, |j|). The sum of two geometric variables of ratio e^(-1/256) is m with probability in
        proportion to (m + 1) e^(-m/256); kept with probability m / (m + 1), or 1/8 at m = 0, it is in proportion to the
        number of steps of ring m, 8 m or 1, times e^(-m/256). A uniform step of the ring is kept with probability
        e^(-(r - m)/256) <= 1: the product is in proportion to e^(-r/256). All coins are exact (`_falls_below`).

    >>> from mosha.local import DeviceRandom
    >>> len(planar_steps(DeviceRandom()))
    2
    """
    while True:
        ring = _geometric(rng) + _geometric(rng)
        if not (flip_coin(ring, ring + 1, rng) if ring else flip_coin(1, 8, rng)):
            continue
        i, j = _draw_on_ring(ring, rng)
        if _is_kept(i * i + j * j, ring, rng):
            return i, j


def _draw_on_ring(ring: int, rng: Rng) -> tuple[int, int]:
    """One of the 8 m steps with max(|i|, |j|) = m: four sides of 2 m, each with one of its corners."""
    if ring == 0:
        return 0, 0
    side, place = divmod(draw_below(8 * ring, rng), 2 * ring)
    along = place - ring
    return [(along, -ring), (ring, along), (-along, ring), (-ring, -along)][side]


def _geometric(rng: Rng) -> int:
    """G with probability in proportion to e^(-g/256): a remainder r with e^(-r/256), a quotient with e^(-q)."""
    while not _falls_below(remainder := draw_below(STEPS, rng), rng):
        pass
    quotient = 0
    while _falls_below(STEPS, rng):
        quotient += 1
    return STEPS * quotient + remainder


def _falls_below(steps: int, rng: Rng) -> bool:
    """True with probability exactly e^(-steps / 256)."""
    if not steps:
        return True
    known = int.from_bytes(rng.bytes(8), "little")
    least, most = _word_bounds(steps)
    if known < least:
        return True
    exponent = Fraction(steps, STEPS)
    return known < most and _coin(lambda _digits: (exponent, exponent), rng, known)


@lru_cache(maxsize=2 * STEPS)
def _word_bounds(steps: int) -> tuple[int, int]:
    """64-bit words below the first lie wholly below e^(-steps / 256), those from the second on wholly above it."""
    exponent = Fraction(steps, STEPS)
    least, most = _enclose_exponential(exponent, exponent, 30)
    return int(least * (1 << 64)), math.ceil(most * (1 << 64))


def _is_kept(square: int, ring: int, rng: Rng) -> bool:
    """True with probability exactly exp(-(sqrt(square) - ring) / 256).

    Floats decide where they are far enough apart: below 2^16 rings a root is off by less than 2^-35, so the exponent by
    less than 2^-43, and what is compared by less than the margin; inside it, digits are added until it is certain.
    """
    if square == ring * ring:
        return True
    known = int.from_bytes(rng.bytes(8), "little")
    excess = math.ldexp(known, -64) - math.exp((ring - math.sqrt(square)) / STEPS)
    if ring < 1 << 16 and abs(excess) > _MARGIN:
        return excess < 0

    def bounds(digits: int) -> tuple[Fraction, Fraction]:
        unit = 10**digits
        root = math.isqrt(square * unit * unit)
        return Fraction(root - ring * unit, STEPS * unit), Fraction(root + 1 - ring * unit, STEPS * unit)

    return _coin(bounds, rng, known)


def _coin(bounds: Callable[[int], tuple[Fraction, Fraction]], rng: Rng, known: int) -> bool:
    """True if U < e^-x, where x lies between the bounds for so many digits; U is revealed as far as needed.

    With b bits, the first 64 of them `known`, U lies in [u, u + 1) / 2^b. Where this meets the interval around e^-x,
    both are narrowed: the answer is that of U and x themselves.
    """
    digits, bits = 30, 64
    while True:
        least, most = _enclose_exponential(*bounds(digits), digits)
        if Fraction(known + 1, 1 << bits) <= least:
            return True
        if Fraction(known, 1 << bits) >= most:
            return False
        known = (known << 64) | int.from_bytes(rng.bytes(8), "little")
        digits, bits = digits + 20, bits + 64


def _enclose_exponential(low: Fraction, high: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Numbers around e^-x for low <= x <= high: `Decimal.exp` is correctly rounded, a hundred units more or less."""
    context, slack = Context(prec=digits), Fraction(1, 10 ** (digits - 2))
    least = Fraction(context.exp(-context.divide(Decimal(high.numerator), Decimal(high.denominator)))) - slack
    most = Fraction(context.exp(-context.divide(Decimal(low.numerator), Decimal(low.denominator)))) + slack
    return least, most


def radius_quantile(share: float) -> float:
    """The radius, over epsilon, that planar Laplace noise exceeds with probability 1 - share.

    1 - (1 + r) e^-r = share, by bisection.

    >>> [round(radius_quantile(share), 3) for share in (0.5, 0.9, 0.95, 0.99)]
    [1.678, 3.89, 4.744, 6.638]
    """
    low, high = 0.0, 800.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if -math.expm1(-middle) - middle * math.exp(-middle) < share else (low, middle)
    return (low + high) / 2
