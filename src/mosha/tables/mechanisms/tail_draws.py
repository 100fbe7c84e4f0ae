"""How many people may have how much, as far as a noisy histogram of norms can tell: draws of all that may well be.

Above a threshold that about half of the people pass, numbers of rows are taken to follow a generalized Pareto law:
laws that end (negative shape), fall exponentially (0) or as slowly as a power (1 over the exponent) are all of this
family, and what exceeds a high threshold follows one of them nearly (Pickands, Balkema and de Haan). Every law of a
grid is weighed by how likely it makes the noisy counts; people are drawn from the laws by their weights. It is an
estimate and no bound: `tail_counts.md` says why there is none.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["DRAWS", "draw_people", "widen_bar"]

DRAWS = 500

HALF, ENOUGH = 0.5, 20.0
"""What share of the people passes the threshold, and how many scales of noise they are at least."""

SHAPES = np.concatenate([np.linspace(-1.0, -0.25, 4), np.linspace(0.0, 2.5, 16)])
SIZES = np.exp(np.linspace(-1.2, 1.2, 14))
"""Laws of the grid: shapes, and sizes over the median of what exceeds the threshold."""

RARER = 1.0
"""Slow laws are rarer beforehand: exp(-RARER * shape)."""

NUMBERS = np.linspace(-1.2, 1.2, 3)
"""Numbers of people above the threshold, in deviations of what is seen."""

BUCKETS = 8
"""So many buckets, with their noise, show most of those people."""

Numbers = NDArray[np.float64]


def draw_people(noisy: Numbers, marks: tuple[int, ...], scale: float, last: int, rng: np.random.Generator) -> Numbers:
    """How many people each bucket may hold, a row for each draw.

    Args:
        noisy: the noisy counts.
        marks: the upper ends of the buckets.
        scale: of the noise.
        last: the last bucket that more than noise fills.
        rng: of the draws.
    """
    places = np.arange(len(marks))
    seen = np.where(places <= last, np.maximum(noisy, 0.0), 0.0)
    ends = np.array(marks, np.float64) + 0.5  # norms are whole numbers
    first = _find_threshold(seen, ends, last, scale)
    above, low = float(seen[first + 1 :].sum()), float(ends[first]) if first >= 0 else 0.5
    edges = np.concatenate([[low], ends[first + 1 : -1]]) - low  # the last bucket has no end
    shares = _list_shares(edges, _find_middle(seen[first + 1 :], ends[first + 1 :] - low))
    deviation = math.sqrt(above + 2 * BUCKETS * scale**2) / max(above, scale)
    numbers = max(above, scale) * np.exp(NUMBERS * min(deviation, 0.5))
    likely = np.stack([_weigh(noisy[first + 1 :], number * shares, scale) for number in numbers])
    likely -= RARER * np.repeat(np.maximum(SHAPES, 0.0), len(SIZES))
    weights = np.cumsum(np.exp(likely - likely.max()).ravel())
    taken = np.searchsorted(weights, (np.arange(DRAWS) + 0.5) / DRAWS * weights[-1])
    number, law = np.unravel_index(np.minimum(taken, weights.size - 1), likely.shape)
    drawn = rng.poisson(numbers[number][:, None] * shares[law])
    return np.concatenate([np.broadcast_to(seen[: first + 1], (DRAWS, first + 1)), drawn], axis=1)


def _find_threshold(seen: Numbers, ends: Numbers, last: int, scale: float) -> int:
    """The last bucket below the threshold, -1 for none: at the densest one or above, with enough people beyond."""
    if last == 0:
        return -1
    density = seen / np.diff(ends, prepend=0.5)
    above = seen.sum() - np.cumsum(seen)
    enough = np.flatnonzero(above >= max(HALF * seen.sum(), ENOUGH * scale))
    return max(int(enough[-1]) if enough.size else 0, min(int(np.argmax(density)), last - 1))


def _find_middle(seen: Numbers, exceeding: Numbers) -> float:
    """About by how much half of those above the threshold exceed it."""
    upto = np.cumsum(seen)
    return float(exceeding[min(int(np.searchsorted(upto, upto[-1] / 2)), len(exceeding) - 1)])


def _list_shares(edges: Numbers, middle: float) -> Numbers:
    """For every law of the grid, what share of the people above the threshold is in each bucket."""
    shape, size = (values.ravel()[:, None] for values in np.meshgrid(SHAPES, middle * SIZES, indexing="ij"))
    safe = np.where(shape == 0, 1.0, shape)
    inner = np.maximum(1 + shape * edges / size, 0.0)
    with np.errstate(divide="ignore"):  # beyond the end of a law nobody is left
        powers = np.where(inner > 0, inner ** (-1 / safe), 0.0)
    left = np.where(shape == 0, np.exp(-edges / size), powers)
    return np.asarray(left - np.concatenate([left[:, 1:], np.zeros((len(left), 1))], axis=1))


def _weigh(noisy: Numbers, expected: Numbers, scale: float) -> Numbers:
    """How likely each law makes the noisy counts, in logarithms: people vary (as normal), and so does Laplace noise."""
    from scipy.special import log_ndtr  # noqa: PLC0415  (slow to import)

    spread = np.sqrt(np.maximum(expected, 1e-3))
    away, wide = (noisy - expected) / spread, spread / scale
    above = log_ndtr(away - wide) + (wide - away) ** 2 / 2
    below = log_ndtr(-away - wide) + (wide + away) ** 2 / 2
    return np.asarray(np.sum(np.logaddexp(above, below) - away**2 / 2, axis=1))


def widen_bar(lost: Numbers, deviation: float, likely: float) -> float:
    """By how much a bar of noise has to be wider, so that noise and what is lost stay within it, with this probability.

    Args:
        lost: what is cut, by draws that are equally likely.
        deviation: of the noise, which is taken to be Laplace's.
        likely: the probability.

    >>> round(widen_bar(np.full(4, 1e6), 1.0, 0.95), -3)
    1000000.0
    """
    scale = max(deviation / math.sqrt(2), 1e-12)
    bar = -scale * math.log(1 - likely)
    least, most = 0.0, float(lost.max())
    for _ in range(40):
        wider = (least + most) / 2
        within = _spread_below(lost + bar + wider, scale) - _spread_below(lost - bar - wider, scale)
        least, most = (wider, most) if float(within.mean()) < likely else (least, wider)
    return most


def _spread_below(x: Numbers, scale: float) -> Numbers:
    """The probability that Laplace noise is below x."""
    tail = np.exp(-np.abs(x) / scale) / 2
    return np.asarray(np.where(x < 0, tail, 1 - tail))
