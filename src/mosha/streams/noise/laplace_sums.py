"""How far a sum of Laplace noises strays: its exact law, in place of bounds that are nearly twice as wide."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_NOISES", "find_decayed_width", "find_width", "miss_probability"]

MOST_NOISES = 4096
"""Sums of more noises are nearly normal; their bars are bounds."""

MOST_DECAYED = 2048
"""Sums with more noises of unequal weight are bounded."""

BLUR, WAVES = 32, 20_000
"""Of unequal noises: the deviation over the half-width that the law is blurred by, and the terms of its series."""

_MORE = 1 + 2.0**-30
"""More than the rounding of floats."""


@lru_cache(maxsize=64)
def _weigh_terms(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logarithms of m!, and for each m < count the chance that count - 1 - m failures come before `count` coins."""
    upto = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 2 * count)))])
    failures = np.arange(count)
    chances = np.exp(upto[count - 1 + failures] - upto[failures] - upto[count - 1] - (count + failures) * math.log(2))
    return upto[:count], np.cumsum(chances)[::-1]


def miss_probability(count: int, width: float) -> float:
    """The probability that a sum of `count` Laplace noises of scale 1 strays farther than `width`.

    Guarantee:
        The sum is G - H for independent Gamma variables of shape n. P(G > w + H) = E sum over i < n of
        exp(-w - H) (w + H)**i / i!; by the binomial theorem and E[H**l exp(-H)] = (n + l - 1)! / (n - 1)! / 2**(n + l)
        it is the sum over m < n of exp(-w) w**m / m! times B(n - 1 - m), where B(j) is the sum over l <= j of
        C(n + l - 1, l) / 2**(n + l). All terms are positive; both sides are twice that.

    >>> round(miss_probability(1, math.log(20)), 12), round(miss_probability(7, 0.0), 12)
    (0.05, 1.0)
    """
    if width <= 0:
        return 1.0
    factorials, weights = _weigh_terms(count)
    powers = np.arange(count) * math.log(width) - factorials - width
    return min(1.0, 2 * float(np.exp(powers) @ weights))


@lru_cache(maxsize=4096)
def find_width(count: int, scale: float, missed: float) -> int:
    """A whole w with P(|sum of `count` discrete Laplace noises of this scale| > w) <= missed.

    Guarantee:
        Discrete Laplace noise D is the difference of the whole parts of two exponential variables, whose fractions are
        independent of them: D and an independent symmetric variable N make Laplace noise. A sum of D is symmetric and
        falls away from 0, so a window of 2 w + 1 whole numbers holds it most often around 0, wherever N moves it:
        P(|D| > w) <= P(|D + N| > w) for whole w. The continuous quantile, rounded up, serves.

    >>> find_width(1, 10.0, 0.05), find_width(4, 10.0, 0.05), find_width(100, 10.0, 0.05)
    (30, 57, 278)
    """
    low, high = 0.0, 4.0 * (count + 8 - math.log(missed))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if miss_probability(count, middle) > missed else (low, middle)
    return math.ceil(high * scale * _MORE)


@lru_cache(maxsize=1024)
def find_decayed_width(factor: float, steps: int, scale: float, missed: float) -> float | None:
    """A w with P(|sum of factor**j D_j over j < steps| > w) <= missed, D_j discrete Laplace noises; None for too many.

    Guarantee:
        Let V be the sum of four uniform variables of half-width b / 4: P(|S| > w) <= P(|S + V| > w - b). On a circle of
        circumference 2 c the law of S + V is a Fourier series of its characteristic function, the product of
        (1 - q)**2 / (1 - 2 q cos(r t) + q**2) over the weights r times sinc(b t / 4)**4; rolling it up only moves
        what strays farther than 2 c - w, less than 1e-9 by Bernstein's bound, into [-w, w]. Terms left out are below
        1e-6 together (|sinc(x)| <= 1 / x), and the noises left out stray farther than a hundredth of a deviation with
        1e-6 at most (Chebyshev).

    >>> round(find_decayed_width(0.9, 200, 10.0, 0.05))
    66
    """
    kept = min(steps, math.ceil(-5 * math.log(10) / math.log(factor)))  # 1e-10 of the variance is left
    if kept > MOST_DECAYED:
        return None
    weights, ratio = factor ** np.arange(kept), math.exp(-1 / scale)
    deviation = math.sqrt(2 * ratio * float(np.sum(weights**2))) / (1 - ratio)
    blur, doubt = deviation / BLUR, math.log(4e9)
    half = scale * doubt + math.sqrt((scale * doubt) ** 2 + 2 * doubt * deviation**2) + blur
    waves = np.arange(1, WAVES + 1)
    angles = math.pi * waves / half
    law = np.sinc(angles * blur / (4 * math.pi)) ** 4
    for weight in weights:
        law *= (1 - ratio) ** 2 / (1 - 2 * ratio * np.cos(weight * angles) + ratio**2)
    law *= 2 / (math.pi * waves)
    low, high = 0.0, half / 2
    for _ in range(50):
        middle = (low + high) / 2
        outside = 1 - middle / half - float(law @ np.sin(angles * middle)) + 3e-6
        low, high = (middle, high) if outside > missed else (low, middle)
    return (high + blur + deviation / 100) * _MORE
