"""Discrete Cauchy noise: tails so heavy that even its scale may depend on the data."""

from __future__ import annotations

import math
from fractions import Fraction

from mosha.core.measurement import Rng
from mosha.noise.integers import uniform

__all__ = ["discrete_cauchy", "find_cauchy_width", "flip_coin"]

_WORD = 64


def discrete_cauchy(scale: Fraction, *, rng: Rng) -> int:
    """An integer with P(x) proportional to 1 / (scale**2 + x**2): exact, no gap, and no end.

    Guarantee:
        By rejection, with m = ceil(scale) >= 1. Proposals: for |x| <= m the weight 1 / s^2, for |x| > m the weight
        1 / (|x| (|x| - 1)), each at least 1 / (s^2 + x^2); they sum to (2 m + 1) / s^2 and to 1 / m on each side.
        Kept with probability s^2 / (s^2 + x^2), resp. |x| (|x| - 1) / (s^2 + x^2). Beyond m: P(X > x) = m / x, which
        is the law of floor(m / U) + 1 for uniform U; bits of U are drawn until they settle the floor.
        All comparisons are between integers.

    Units:
        `scale` is in steps; a rational number of at least 1, which may be private.

    >>> from mosha.noise import SeededRandom
    >>> discrete_cauchy(Fraction(10), rng=SeededRandom(3))
    22
    """
    top, bottom = scale.numerator**2, scale.denominator**2  # s^2
    m = math.ceil(scale)
    near, far = (2 * m + 1) * bottom * m, 2 * top
    while True:
        if flip_coin(near, near + far, rng):
            x = uniform(2 * m + 1, rng=rng) - m
            if flip_coin(top, top + bottom * x * x, rng):
                return x
        else:
            x = _draw_beyond(m, rng)
            if flip_coin(bottom * x * (x - 1), top + bottom * x * x, rng):
                return -x if flip_coin(1, 2, rng) else x


def flip_coin(top: int, bottom: int, rng: Rng) -> bool:
    """True with probability top / bottom exactly: a uniform number is compared with it, 64 bits at a time.

    >>> from mosha.noise import SeededRandom
    >>> flip_coin(1, 1, SeededRandom(1)), flip_coin(0, 1, SeededRandom(1))
    (True, False)
    """
    while True:
        digit, top = divmod(top << _WORD, bottom)
        drawn = int.from_bytes(rng.bytes(_WORD // 8), "little")
        if drawn != digit:
            return drawn < digit
        if top == 0:
            return False


def _draw_beyond(m: int, rng: Rng) -> int:
    """floor(m / U) + 1 for U uniform on (0, 1)."""
    drawn, bits = 0, 0
    while True:
        drawn, bits = drawn << _WORD | int.from_bytes(rng.bytes(_WORD // 8), "little"), bits + _WORD
        if drawn and (m << bits) // drawn == (m << bits) // (drawn + 1):
            return (m << bits) // drawn + 1


def find_cauchy_width(scale: float, missed: float) -> float:
    """A w with P(|X| > w) <= missed for discrete Cauchy X, one step wider than for the continuous law.

    Guarantee:
        The weights 1 / (s^2 + x^2) of the integers x > w sum to at most the integral from w - 1 on, on each side,
        and all weights to (pi / s) coth(pi s) >= pi / s. So P(|X| > w) <= 1 - (2 / pi) atan((w - 1) / s).

    >>> round(find_cauchy_width(10.0, 0.5), 6)
    11.0
    """
    return scale / math.tan(math.pi / 2 * missed) + 1
