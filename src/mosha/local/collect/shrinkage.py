"""Shares drawn towards where the others are: what most values tell of how shares are spread, each value is told."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mosha.local.protocols.protocol import Protocol

__all__ = ["FEWEST_VALUES", "shrink_shares"]

Floats = NDArray[np.float64]
FEWEST_VALUES = 50  # fewer tell too little of how shares are spread
_LARGE = 20.0  # standard deviations: shares above it stand for themselves
_BLEND = 4.0
_ATOMS = np.arange(0.0, _LARGE + _BLEND + 0.25, 0.25)
_SEEN = np.arange(-8.0, _LARGE + 0.125, 0.125)
_EXPONENTS = (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
_ABSENT = (0.0, 0.3, 0.6, 0.85, 0.95)


def shrink_shares(raw: Floats, protocol: Protocol, reports: int) -> Floats:
    """The posterior mean of each share under a prior that is estimated from all shares: post-processing, free.

    The prior is a power law x^-a between two ends, or zero with some probability. The result is averaged over a, the
    ends and that probability, weighted by how well they explain all raw shares together and by how common such laws
    are (`_prior_weights`). Nothing is assumed about any single value. If no such law explains the data, wide priors
    remain, which change little; shares above 20 standard deviations are not changed at all, nor are domains of fewer
    than 50 values.

    The likelihood of a raw share is normal with the variance of the protocol at that share. Raw shares enter through a
    grid of an eighth of a deviation, so the time does not grow with the number of values beyond reading them.

    >>> from mosha.local.protocols.choice import best
    >>> even = 0.01 + 0.002 * np.sin(np.arange(100.0))  # a hundred shares of one size, but for noise
    >>> float(np.ptp(shrink_shares(even, best(100, 1.0).protocol, 100_000))) < 0.001
    True
    """
    truth, lie = float(protocol.truth), float(protocol.lie)
    spread = float(np.sqrt(lie * (1 - lie) / reports) / (truth - lie))
    if len(raw) < FEWEST_VALUES or spread * _LARGE < 1e-12:
        return raw
    seen = raw / spread
    small = seen[seen < _LARGE]
    if len(small) < FEWEST_VALUES:
        return raw
    share = np.minimum(1.0, _ATOMS * spread)
    variance = (share * truth * (1 - truth) + (1 - share) * lie * (1 - lie)) / (lie * (1 - lie))
    learnt = np.interp(seen, _SEEN, _posterior_mean(_count_on_grid(small), variance))
    own = np.clip((_LARGE - seen) / _BLEND, 0.0, 1.0)
    return np.asarray((own * learnt + (1 - own) * seen) * spread)


def _count_on_grid(seen: Floats) -> Floats:
    """How many raw shares are at each point of the grid; one between two points counts for both, by its place."""
    place = (np.clip(seen, _SEEN[0], _SEEN[-1]) - _SEEN[0]) * 8
    left = np.minimum(place.astype(np.int64), len(_SEEN) - 2)
    part = place - left
    counted = np.bincount(left, 1 - part, len(_SEEN)) + np.bincount(left + 1, part, len(_SEEN))
    return np.asarray(counted, np.float64)


def _posterior_mean(counted: Floats, variance: Floats) -> Floats:
    """For each point of the grid: the posterior mean, in standard deviations, averaged over all laws."""
    exponent = -((_SEEN[:, None] - _ATOMS) ** 2) / (2 * variance) - np.log(variance) / 2
    likelihood = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    laws = _laws()
    present, absent = likelihood @ laws.T, likelihood[:, :1]
    held = np.flatnonzero(counted)
    evidence = np.array(
        [counted[held] @ np.log((1 - zero) * present[held] + zero * absent[held] + 1e-300) for zero in _ABSENT]
    )
    evidence += _prior_weights()
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    moment, found = likelihood @ (laws * _ATOMS).T, np.zeros(len(_SEEN))
    for zero, weight in zip(_ABSENT, weights, strict=True):
        kept = np.flatnonzero(weight > 1e-9)
        total = (1 - zero) * present[:, kept] + zero * absent + 1e-300
        found += ((1 - zero) * moment[:, kept] / total) @ weight[kept]
    return np.asarray(found / weights[weights > 1e-9].sum())


def _shapes() -> list[tuple[float, int, int]]:
    """(exponent, low, high) of each law; one of a single atom needs no exponent."""
    lows = [*range(1, 9), *range(10, 65, 2)]
    lengths = (1, 2, 4, 8, 12, 20, 32, 48, len(_ATOMS))
    ends = sorted({(low, min(low + length, len(_ATOMS))) for low in lows for length in lengths})
    return [(a, low, high) for a in _EXPONENTS for low, high in ends if high - low > 1 or not a]


@lru_cache(maxsize=1)
def _laws() -> Floats:
    """Power laws between two ends on the grid of atoms, one a row."""
    shapes = _shapes()
    laws = np.zeros((len(shapes), len(_ATOMS)))
    for row, (exponent, low, high) in zip(laws, shapes, strict=True):
        row[low:high] = np.maximum(_ATOMS[low:high], 0.25) ** -exponent
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


@lru_cache(maxsize=1)
def _prior_weights() -> Floats:
    """Nats in favour of each law before any share is seen, a row for each probability of zero.

    Words, names and sites follow power laws x^-a with a from 1 to 2 that end far out, and few values are never held.
    """
    tails = [3.0 * (high == len(_ATOMS)) + 2.0 * (1 <= exponent <= 2) for exponent, _, high in _shapes()]
    return np.add.outer([2.0 * (zero == 0) for zero in _ABSENT], tails)
