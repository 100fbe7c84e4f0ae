"""Noise without an end, so that nothing is possible for one stream and impossible for another."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.randomness import Rng
from mosha.mechanisms.unbounded import unbounded_laplace
from mosha.noise import bernoulli_exp, discrete_gaussian

__all__ = ["RARE", "unbounded_gaussian", "unbounded_geometric", "unbounded_laplace"]

RARE = 1 << 20
"""A draw gets a Laplace tail with probability exp(-RARE)."""


def unbounded_gaussian(sigma: Fraction, size: int, *, rng: Rng) -> NDArray[Any]:
    """`size` integers that follow the discrete Gaussian law, with a Laplace tail so thin that nobody will see it.

    Guarantee:
        Shifts D_1, D_2, ... of such noise, each chosen with knowledge of all earlier sums and with the sum of D_t^2 at
        most S^2, cost no more than DiscreteGaussian noise of the parameter sigma / (1 + 2**-50) does for the
        sensitivity S: `unbounded.md`.

    Units:
        `sigma` in steps of the integer grid, 2**10 to 2**50; shifts up to 2**60.

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

    >>> from mosha.noise import SeededRandom
    >>> unbounded_geometric(Fraction(10), rng=SeededRandom(1)) >= 0
    True
    """
    while (drawn := int(unbounded_laplace(scale, 1, rng=rng)[0])) < 0:
        pass
    return drawn
