"""The exact comparison of a uniform variable, whose bits appear when needed, with a real number."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from mosha.noise.exponential import exp_bounds
from mosha.noise.generators.words import word

if TYPE_CHECKING:
    from mosha.core.randomness import Rng

__all__ = ["falls_below"]


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
