"""Who is drawn out of many, at a cost that grows with those drawn: independent coins, and sets of a given size."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from mosha.noise.coins import bernoulli
from mosha.noise.exponential import exp_bounds
from mosha.noise.generators.secure_random import word, words
from mosha.noise.integers import uniform
from mosha.noise.laplace import geometric
from mosha.noise.parameters import TABLES, generator, probability, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mosha.core.measurement import Rng
    from mosha.noise.parameters import Real

__all__ = ["bernoulli_places", "choose_places"]

_MOST: Final = 1 << 42  # places; the sum of a block of gaps stays within 64 bits
_BLOCK: Final = 1 << 18  # gaps that are drawn at a time
_OFTEN: Final = Fraction(1, 16)  # from here on a coin for every place is quicker
_FEW: Final = 1 << 16  # up to so many places as well
_SELDOM: Final = Fraction(1, 1 << 48)  # below it the scale of the gaps would be too large


def bernoulli_places(p: Real, n: int, *, rng: Rng | None = None) -> NDArray[np.int64]:
    """The places, in order, at which n coins of bias `p` show heads; of many, the cost grows with p n, not with n.

    Guarantee:
        Every place is in it with probability exactly p, independently of the others, within `gap(n + 1)`. Proof: let
        L = p / (1 - p) and r = 1 - exp(-L). As ln(1 / (1 - p)) <= 1 / (1 - p) - 1 = L, r >= p. Numbers of failures
        between successes of independent coins of bias r are independent with P(k) = (1 - r)^k r, which is
        proportional to exp(-k L): `geometric` of scale 1 / L draws them, so the places after them are those of
        independent coins of bias r. Each is kept by a coin of its own of bias p / r, exact (`_Thinning`), which
        leaves independent coins of bias p. A gap of n or more ends the drawing, whatever its value.

    Units:
        `p` is a probability, taken as the exact rational that it is; `n` a count, at most 2**42.

    Args:
        p: the bias of each coin.
        n: how many coins there are.
        rng: a random generator; the secure one of the process by default.

    >>> bernoulli_places(1, 3).tolist(), bernoulli_places(0, 10**12).tolist()
    ([0, 1, 2], [])
    """
    chance = Fraction(*probability("p", p))
    count = whole_number("n", n, at_least=0, at_most=_MOST)
    source = generator(rng)
    if chance == 0 or count == 0:
        return np.zeros(0, np.int64)
    if chance >= _OFTEN or count <= _FEW:
        return np.flatnonzero(bernoulli(chance, count, rng=source))
    if chance < _SELDOM:
        found = _draw_by_gaps(_SELDOM, count, source)
        return found[bernoulli(chance / _SELDOM, len(found), rng=source)]
    return _draw_by_gaps(chance, count, source)


def choose_places(size: int, n: int, *, rng: Rng | None = None) -> NDArray[np.int64]:
    """A set of `size` of the places 0, ..., n - 1, in order, every such set equally likely; the cost grows with `size`.

    Guarantee:
        Exact, no gap. Places are drawn uniformly, and those that were drawn before are passed over. Given the
        different places so far, the next one is uniform on the others, so every sequence of different places is equally
        likely, and so is every set. Of more than half of the places those left out are chosen, which is the same.

    Args:
        size: how many places are chosen, at most n.
        n: how many there are, at most 2**42.
        rng: a random generator; the secure one of the process by default.

    >>> choose_places(3, 3).tolist()
    [0, 1, 2]
    """
    count = whole_number("n", n, at_least=0, at_most=_MOST)
    wanted = whole_number("size", size, at_least=0, at_most=count)
    source = generator(rng)
    if 2 * wanted > count:
        chosen = np.ones(count, np.bool_)
        chosen[_draw_different(count - wanted, count, source)] = False
        return np.flatnonzero(chosen)
    return np.sort(_draw_different(wanted, count, source))


def _draw_different(wanted: int, n: int, rng: Rng) -> NDArray[np.int64]:
    """The first different ones of uniform places, at most half of all, in the order in which they were drawn."""
    drawn = np.zeros(0, np.int64)
    while len(drawn) < wanted:
        more = uniform(n, wanted - len(drawn) + 8, rng=rng)
        together = np.concatenate([drawn, more])
        _, first = np.unique(together, return_index=True)
        drawn = together[np.sort(first)]
    return drawn[:wanted]


def _draw_by_gaps(p: Fraction, n: int, rng: Rng) -> NDArray[np.int64]:
    thinning, scale = _thinning(p), (1 - p) / p
    parts, last = [], -1
    while last < n:
        expected = float((n - last) / (scale + 1))
        block = min(_BLOCK, int(expected + 4 * expected**0.5) + 4)
        gaps = np.minimum(geometric(scale, block, rng=rng), n)
        places = last + np.cumsum(gaps + 1)
        parts.append(places[places < n])
        last = int(places[-1])
    found = np.concatenate(parts)
    return found[thinning.flip(len(found), rng)]


class _Thinning:
    """A coin of bias c = p / (1 - exp(-L)), L = p / (1 - p), decided by 32 bits unless they tie.

    Guarantee:
        With b bits of a uniform U known, U lies in [k, k + 1) / 2**b. `exp_bounds` encloses exp(-L), and so
        c 2**b lies in [low, high]: U < c is certain if k + 1 <= low, and U >= c if k >= high; otherwise 64 more
        bits are drawn. So the answer is exact, and ends with probability one.
    """

    def __init__(self, p: Fraction) -> None:
        self._p = p
        self.sure, self.never = self.bounds(32)

    def bounds(self, bits: int) -> tuple[int, int]:
        """Integers with low <= c 2**bits <= high."""
        p = self._p
        fine = bits + 8 + 2 * max(0, p.denominator.bit_length() - p.numerator.bit_length())
        least, most = exp_bounds(p / (1 - p), fine)
        top, bottom = p.numerator << (bits + fine), p.denominator
        return top // (bottom * ((1 << fine) - least)), -(-top // (bottom * ((1 << fine) - most)))

    def flip(self, count: int, rng: Rng) -> NDArray[np.bool_]:
        drawn = words(rng, count, "<u4")
        heads = drawn < self.sure
        for i in np.flatnonzero((drawn < self.never) & ~heads):
            heads[i] = self._settle(int(drawn[i]), rng)
        return heads

    def _settle(self, known: int, rng: Rng) -> bool:
        bits = 32
        while True:
            low, high = self.bounds(bits)
            if known + 1 <= low:
                return True
            if known >= high:
                return False
            known, bits = (known << 64) | word(rng), bits + 64


@lru_cache(maxsize=TABLES)
def _thinning(p: Fraction) -> _Thinning:
    return _Thinning(p)
