"""The exact choice of a component whose weight is a rational times a power of q / (1 - q), q = exp(-t)."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from mosha.noise.exponential import exp_bounds
from mosha.noise.generators.words import word, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mosha.core.randomness import Rng

__all__ = ["PowerMixture"]

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
