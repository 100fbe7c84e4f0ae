"""Noise with full support: no output is possible for one data set and impossible for its neighbor.

For mechanisms that compare noisy numbers, or release them unclamped.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.measurement import Rng
from mosha.noise.coins import bernoulli_exp
from mosha.noise.gaussian import discrete_gaussian
from mosha.noise.laplace import geometric

__all__ = ["END", "RARE", "unbounded_gaussian", "unbounded_geometric", "unbounded_laplace"]

END = 1 << 62
"""`mosha.noise.geometric` never draws this or more."""

RARE = 1 << 20
"""A Gaussian draw gets a Laplace tail with probability exp(-RARE)."""


def unbounded_laplace(scale: Fraction, size: int, *, rng: Rng) -> NDArray[Any]:
    """`size` integers with P(x) proportional to exp(-|x| / scale), for every integer x: exact, no gap.

    Guarantee:
        Let q = exp(-1 / scale). A geometric variable K forgets: K = END * J + K', J geometric with ratio
        q**END and K' independent, K given K < END. `geometric` draws K', coins of bias q**END
        count J (never seen: it is below exp(-4096)). The difference of two such variables is discrete Laplace:
        P(x) = (1-q)^2 sum over k of q^k q^(k+|x|), proportional to q^|x|. Python integers hold what 64 bits cannot.

    Args:
        scale: in steps of the integer grid; a rational number.
        size: how many integers to draw.
        rng: where the randomness comes from.

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


def unbounded_gaussian(sigma: Fraction, size: int, *, rng: Rng) -> NDArray[Any]:
    """`size` integers that follow the discrete Gaussian law, with a Laplace tail so thin that nobody will see it.

    Guarantee:
        Shifts D_1, D_2, ... of such noise, each chosen with knowledge of all earlier sums and with the sum of D_t^2 at
        most S^2, cost no more than DiscreteGaussian noise of the parameter sigma / (1 + 2**-50) does for the
        sensitivity S: `unbounded.md`.

    Args:
        sigma: in steps of the integer grid, 2**10 to 2**50; shifts may be up to 2**60.
        size: how many integers to draw.
        rng: where the randomness comes from.

    >>> from mosha.noise import SeededRandom
    >>> unbounded_gaussian(Fraction(1000), 3, rng=SeededRandom(1)).shape
    (3,)
    """
    noise: NDArray[Any] = discrete_gaussian(sigma, size, rng=rng)
    rare = bernoulli_exp(RARE, size, rng=rng)
    if rare.any():
        noise = noise.astype(object) + np.where(rare, unbounded_laplace(sigma, size, rng=rng).astype(object), 0)
    return noise


def unbounded_geometric(scale: Fraction, *, rng: Rng) -> int:
    """One integer x >= 0 with P(x) proportional to exp(-x / scale): noise to one side.

    Guarantee:
        Exact, no gap: discrete Laplace noise is drawn until it is not negative, and given that it follows this law.

    Args:
        scale: in steps of the integer grid; a rational number.
        rng: where the randomness comes from.

    >>> from mosha.noise import SeededRandom
    >>> unbounded_geometric(Fraction(10), rng=SeededRandom(1)) >= 0
    True
    """
    while (drawn := int(unbounded_laplace(scale, 1, rng=rng)[0])) < 0:
        pass
    return drawn
