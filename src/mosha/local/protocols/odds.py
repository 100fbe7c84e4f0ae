"""How much likelier the truth may make a report: e^epsilon, rounded down to a ratio of two integers."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive

__all__ = ["BITS", "LARGEST_EPSILON", "Odds"]

BITS = 40  # of the numerator; the ratio is within 2**-BITS of e^epsilon, relatively
LARGEST_EPSILON = 24.0
_DIGITS = Context(prec=60)


@dataclass(frozen=True)
class Odds:
    """The ratio `top` : `bottom` of the probabilities of one report under two values, at most e^epsilon.

    Reports are drawn by whole numbers in exactly this ratio: nothing irrational is sampled, so any language with
    integers can draw the same reports, and what is claimed is never less than what is drawn.

    Guarantee:
        top / bottom <= e^epsilon. `Decimal.exp` is correctly rounded, here to 60 digits; with 10^-50 taken off,
        relatively, it lies below e^epsilon, and the product with 2**shift is rounded down.

    Units:
        Both are counts; `bottom` is a power of two and `top` has 41 bits.

    >>> odds = Odds.of(1.0)
    >>> odds.bottom == 2**39, float(odds.ratio)
    (True, 2.7182818284582027)
    """

    top: int
    bottom: int

    @staticmethod
    @lru_cache(maxsize=1024, typed=True)  # True is no epsilon
    def of(epsilon: float) -> Odds:
        """The odds of `epsilon`; one too small to make a difference, or too large to hide anything, is refused."""
        epsilon = positive("epsilon", epsilon)
        if epsilon > LARGEST_EPSILON:
            raise InvalidParameter(
                "local.epsilon_too_large", parameter="epsilon", most=LARGEST_EPSILON, value=epsilon, spent="nothing"
            )
        power = _DIGITS.exp(Decimal(epsilon))
        below = Fraction(power) * (1 - Fraction(1, 10**50))
        shift = BITS + 1 - int(below).bit_length()
        top = int(below * (1 << shift))
        if top <= 1 << shift:
            raise InvalidParameter("local.epsilon_too_small", parameter="epsilon", spent="nothing")
        return Odds(top, 1 << shift)

    @property
    def ratio(self) -> Fraction:
        return Fraction(self.top, self.bottom)
