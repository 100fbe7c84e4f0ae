"""exp(-t) twice: between two integers, as narrow as asked, and as a float with a proved error.

The float decides nearly every comparison; where it could be wrong, the integers decide, against a uniform variable
whose bits appear when they are needed (`falls_below`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
from typing import TYPE_CHECKING

from mosha.noise.generators.secure_random import word

if TYPE_CHECKING:
    from mosha.core.measurement import Rng

__all__ = [
    "COEFFICIENTS",
    "LARGEST_EXPONENT",
    "LN2_HIGH",
    "LN2_LOW",
    "PER_LN2",
    "exp_bounds",
    "exp_negative",
    "falls_below",
]


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Integers (low, high) with low <= 2**bits * exp(-exponent) <= high, for exponent >= 0.

    Guarantee:
        Every step keeps an interval: what rounds down feeds `low`, what rounds up feeds `high`.
        With r = exponent / 2**k < 1/128 the series of exp(r) has positive terms, each less than half the
        one before, so all terms after the last one kept sum to less than it. One division turns
        exp(r) into exp(-r), and k squarings turn that into exp(-exponent). The width is a matter of
        cost, never of correctness: it is at most 2 for the precision chosen here (tested).

    Units:
        `low` and `high` count units of 2**-bits.

    >>> exp_bounds(Fraction(1), 30)  # 2**30 / e = 395007542.4...
    (395007542, 395007543)
    """
    top, bottom = exponent.numerator, exponent.denominator
    if top == 0:
        return 1 << bits, 1 << bits
    if top > (bits + 1) * bottom:  # exp(-t) < 2**-t
        return 0, 1
    halvings = (top // bottom).bit_length() + 7
    precision = bits + 2 * halvings + 16
    one = 1 << precision
    r_low = (top << (precision - halvings)) // bottom
    r_high = r_low + 1
    sum_low = sum_high = term_low = term_high = one
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * r_low // n) >> precision
        term_high = -((-term_high * r_high // n) >> precision)
        sum_low += term_low
        sum_high += term_high
    low = (one << precision) // (sum_high + term_high)
    high = -((-one << precision) // sum_low)
    for _ in range(halvings):
        low = (low * low) >> precision
        high = -((-high * high) >> precision)
    drop = precision - bits
    return low >> drop, -(-high >> drop)


LARGEST_EXPONENT: Final = 700.0
"""Larger exponents are treated as this one: exp(-700) < 2**-1009 is zero to every comparison made here."""

_LN2: Final = Fraction(0x2C5C85FDF473DE6AF278ECE600FCBDABD03, 1 << 138)  # to 2**-138
LN2_HIGH: Final = float(Fraction(int(_LN2 * (1 << 32)), 1 << 32))
LN2_LOW: Final = float(_LN2 - Fraction(LN2_HIGH))
PER_LN2: Final = float(1 / _LN2)


def _taylor(degree: int) -> tuple[float, ...]:
    coefficient, coefficients = Fraction(1), []
    for n in range(degree + 1):
        coefficients.append(float(coefficient))
        coefficient /= -(n + 1)
    return tuple(reversed(coefficients))


COEFFICIENTS: Final = _taylor(13)


def exp_negative(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(-t) for each t >= 0, with a relative error below 2**-48 (t above 700 counts as 700).

    Guarantee:
        Only correctly rounded +, -, * and scaling by powers of two are used, one NumPy operation each, so
        no library's `exp` is trusted. With k = round(t / ln 2) <= 1010 the product k * high is exact (10 + 32
        bits), so r = t - k ln 2 carries an absolute error below 2**-53 + k 2**-85 + 2**-53 and |r| < 0.35. The
        series stops after r**13: 0.35**14 / 14! < 2**-56. Horner on |r| < 0.35 loses less than
        4 units of 2**-53. Together below 2**-50 relative; scaling by 2**-k is exact.

    Units:
        None: exponents are pure numbers.

    >>> exp_negative(np.array([0.0, 1.0])).round(6).tolist()
    [1.0, 0.367879]
    """
    clipped = np.minimum(exponents, LARGEST_EXPONENT)
    k = np.rint(clipped * PER_LN2)
    r = clipped - k * LN2_HIGH
    r -= k * LN2_LOW
    value = np.full_like(r, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        value *= r
        value += coefficient
    return np.ldexp(value, (-k).astype(np.int32))


def falls_below(rng: Rng, *, amplitude: Fraction, exponent: Fraction, whole: int = 0, known: int, bits: int) -> bool:
    """Whether whole + U < amplitude * exp(-exponent), where U is uniform on [0, 1).

    `known` holds the first `bits` bits of U that were drawn already; 64 more are drawn whenever
    they do not decide.

    Guarantee:
        With b bits known, whole + U lies in [p, p + 1) / 2**b for the integer p below. The real number lies
        in [low, high] / 2**b. If p + 1 <= low the answer is yes, if p >= high it is no, whatever
        the bits to come; otherwise nothing is answered and more bits are drawn. So the answer is exact, and
        its probability given `whole` is clamp(amplitude * exp(-exponent) - whole, 0, 1). It ends with
        probability one: both gaps shrink to zero around the number, and U equals it with probability zero.

    >>> from mosha.noise import secure
    >>> falls_below(secure(), amplitude=Fraction(1), exponent=Fraction(0), known=65535, bits=16)
    True
    """
    while True:
        guard = (amplitude.numerator // amplitude.denominator).bit_length() + 2
        low, high = exp_bounds(exponent, bits + guard)
        unit = amplitude.denominator << guard
        point = (whole << bits) | known
        if point + 1 <= amplitude.numerator * low // unit:
            return True
        if point >= -(-amplitude.numerator * high // unit):
            return False
        known = (known << 64) | word(rng)
        bits += 64
