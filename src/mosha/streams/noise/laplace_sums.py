"""How far a sum of Laplace noises strays: its exact law, in place of bounds that are nearly twice as wide."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MOST_NOISES",
    "find_decayed_width",
    "find_pair_width",
    "find_weighted_width",
    "find_width",
    "miss_probability",
]

MOST_NOISES = 4096
"""Sums of more noises are nearly normal; their bars are bounds."""

MOST_DECAYED = 1 << 16
"""Sums with more noises of unequal weight are bounded."""

BLUR, WAVES = 32, 20_000
"""Of unequal noises: the deviation over the half-width that the law is blurred by, and the terms of its series."""

FIRST_WAVES, SOME = 1000, 64
"""Of many unequal noises: so many terms are worked out, and later ones bounded by so many of the noises."""

LEAST_MISSED = 1e-5
"""Below it the law of unequal noises, which is known to a few parts in a million, is bounded."""

NARROW = 1 << 10
"""Bars of fewer whole steps are those of the discrete law; a step more or less is nothing to wider ones."""

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
    """A whole w with P(|sum of `count` discrete Laplace noises of this scale| > w) <= missed; the least one, if narrow.

    Guarantee:
        Discrete Laplace noise D is the difference of the whole parts of two exponential variables, whose fractions are
        independent of them: D and an independent symmetric variable N make Laplace noise. A sum of D is symmetric and
        falls away from 0, so a window of 2 w + 1 whole numbers holds it most often around 0, wherever N moves it:
        P(|D| > w) <= P(|D + N| > w) for whole w. The continuous quantile, rounded up, serves; where it is narrow, the
        law itself is summed (`_find_discrete_width`).

    >>> find_width(1, 10.0, 0.05), find_width(4, 10.0, 0.05), find_width(100, 10.0, 0.05)
    (30, 57, 277)
    >>> find_width(7, 1.0, 0.05)
    7
    """
    low, high = 0.0, 4.0 * (count + 8 - math.log(missed))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if miss_probability(count, middle) > missed else (low, middle)
    width = math.ceil(high * scale * _MORE)
    return _find_discrete_width(count, scale, missed, width) if width < NARROW else width


def _find_discrete_width(count: int, scale: float, missed: float, most: int) -> int:
    """The least w up to `most` with P(|sum of `count` discrete Laplace noises| > w) <= missed.

    Guarantee:
        The law rolled up on a circle of whole numbers has the characteristic function of the sum at the roots of unity.
        Rolling up moves only what strays farther than half of the circle into the window: less than what is added, by
        `miss_probability`, as in `find_width`; 1e-11 holds the rounding of floats.
    """
    size = 16 * (1 << most.bit_length())
    ratio = math.exp(-1 / scale)
    waves = (1 - ratio) ** 2 / (1 - 2 * ratio * np.cos(2 * math.pi / size * np.arange(size // 2 + 1)) + ratio**2)
    law = np.fft.irfft(waves**count, size)
    within = law[0] + 2 * np.concatenate([[0.0], np.cumsum(law[1 : most + 1])])
    outside = 1 - within + miss_probability(count, (size // 2 - 1) / scale) + 1e-11
    good = np.flatnonzero(outside <= missed)
    return int(good[0]) if good.size else most


@lru_cache(maxsize=1024)
def find_decayed_width(factor: float, steps: int, scale: float, missed: float, beside: float = 0.0) -> float | None:
    """A w with P(|sum of factor**j D_j over j < steps| > w) <= missed, D_j discrete Laplace noises; None for too many.

    With `beside`, of this and another such sum that is so many times as heavy or less.

    >>> round(find_decayed_width(0.9, 200, 10.0, 0.05))
    66
    """
    kept = min(steps, math.ceil(-5 * math.log(10) / math.log(factor)))  # 1e-10 of the variance is left
    if kept > MOST_DECAYED:
        return None
    weights: NDArray[np.float64] = factor ** np.arange(kept, dtype=np.float64)
    if beside:
        weights = np.sort(np.concatenate([weights, beside * weights]))
    return find_weighted_width(weights, np.ones(len(weights)), scale, missed)


def find_weighted_width(weights: NDArray[np.float64], times: NDArray[np.float64], scale: float, missed: float) -> float:
    """A w with P(|sum of weighted discrete Laplace noises| > w) <= missed; each of `weights` is there so many `times`.

    Guarantee:
        Let V be the sum of four uniform variables of half-width b / 4: P(|S| > w) <= P(|S + V| > w - b). On a circle of
        circumference 2 c the law of S + V is a Fourier series of its characteristic function, the product of
        (1 - q)**2 / (1 - 2 q cos(r t) + q**2) over the weights r times sinc(b t / 4)**4; rolling it up only moves
        what strays farther than 2 c - w, less than 1e-9 by Bernstein's bound, into [-w, w]. Terms left out are below
        1e-6 together (|sinc(x)| <= 1 / x), and noises left out by the caller stray farther than a hundredth of a
        deviation with 1e-6 at most where they have 1e-10 of the variance (Chebyshev). Every factor lies between 0 and
        1: of many noises later terms are bounded by some of the factors, and the bounds are added to what is missed.
        Where next to nothing may be missed, Bernstein's bound serves.

    >>> round(find_weighted_width(np.array([1.0, 0.5]), np.array([9.0, 9.0]), 10.0, 0.05))
    96
    """
    ratio = math.exp(-1 / scale)
    deviation = math.sqrt(2 * ratio * float(np.sum(times * weights**2))) / -math.expm1(-1 / scale)
    if missed < LEAST_MISSED:
        return _bound_width(scale * float(np.max(np.abs(weights))), deviation, math.log(4 / missed))
    blur = deviation / BLUR
    half = _bound_width(scale * float(np.max(np.abs(weights))), deviation, math.log(4e9)) + blur
    waves = np.arange(1, WAVES + 1)
    angles = np.asarray(math.pi * waves / half, np.float64)
    law = np.asarray(np.sinc(angles * blur / (4 * math.pi)) ** 4 * 2 / (math.pi * waves), np.float64)
    first = WAVES if len(weights) <= 2 * SOME else FIRST_WAVES
    for weight, count in zip(weights, times, strict=True):
        law[:first] *= _respond(weight, scale, angles[:first]) ** count
    some = slice(None, None, -(-len(weights) // SOME))
    for weight, count in zip(weights[some], times[some], strict=True):
        law[first:] *= _respond(weight, scale, angles[first:]) ** count
    told = (waves <= first) & (law > 1e-11)
    slack, law, angles = 3e-6 + float(law[~told].sum()), law[told], angles[told]
    low, high = 0.0, half / 2
    for _ in range(50):
        middle = (low + high) / 2
        outside = 1 - middle / half - float(law @ np.sin(angles * middle)) + slack
        low, high = (middle, high) if outside > missed else (low, middle)
    return (high + blur + deviation / 100) * _MORE


@lru_cache(maxsize=1024)
def find_pair_width(count: int, beside: float, scale: float, missed: float) -> float:
    """A w with P(|A + r B| > w) <= missed for sums A and B of `count` discrete Laplace noises each, |r| <= `beside`.

    Guarantee:
        A and B are symmetric and fall away from 0, so more of B keeps the sum less often within any w, but for a step
        of the lattice, which the blur holds where noise is many steps wide.

    >>> round(find_pair_width(9, 0.0, 10.0, 0.05)), round(find_pair_width(9, 1.0, 10.0, 0.05))
    (86, 121)
    """
    return find_weighted_width(np.array([1.0, beside]), np.full(2, float(count)), scale, missed)


def _bound_width(scale: float, deviation: float, doubt: float) -> float:
    """Bernstein's bound: a sum of Laplace noises strays farther with a chance of 2 exp(-doubt) at most (`Plan`)."""
    return scale * doubt + math.sqrt((scale * doubt) ** 2 + 2 * doubt * deviation**2)


def _respond(weight: float, scale: float, angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """The characteristic function of one discrete Laplace noise of this weight."""
    turned = 4 * math.exp(-1 / scale) * np.sin(weight * angles / 2) ** 2  # 1 - 2 q cos + q**2, without cancelling
    return np.asarray(1 / (1 + turned / math.expm1(-1 / scale) ** 2))
