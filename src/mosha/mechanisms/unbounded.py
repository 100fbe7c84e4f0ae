"""Discrete Laplace noise without an end: for mechanisms that compare noisy numbers instead of releasing them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from mosha.core.randomness import Rng
from mosha.noise import bernoulli_exp, geometric

__all__ = ["unbounded_laplace"]

END = 1 << 62
"""`mosha.noise.geometric` never draws this or more."""


def unbounded_laplace(scale: Fraction, size: int, *, rng: Rng) -> NDArray[Any]:
    """`size` integers with P(x) proportional to exp(-|x| / scale), for every integer x: exact, no gap.

    Guarantee:
        Let q = exp(-1 / scale). A geometric variable K forgets: K = END * J + K', J geometric with ratio
        q**END and K' independent, K given K < END. `geometric` draws K', coins of bias q**END
        count J (never seen: it is below exp(-4096)). The difference of two such variables is discrete Laplace:
        P(x) = (1-q)^2 sum over k of q^k q^(k+|x|), proportional to q^|x|. Python integers hold what 64 bits cannot.

    >>> from mosha.noise import SeededRandom
    >>> unbounded_laplace(Fraction(10), 3, rng=SeededRandom(1)).shape
    (3,)
    """
    parts: NDArray[Any] = geometric(scale, (2, size), rng=rng)
    again = bernoulli_exp(END / scale, (2, size), rng=rng)
    while again.any():
        parts = parts.astype(object) + END * again.astype(object)
        again &= bernoulli_exp(END / scale, (2, size), rng=rng)
    first, second = parts
    noise: NDArray[Any] = first - second
    return noise
