"""How far pair tables are from tables that were fixed before: a few noisy numbers that say which pairs are worth more.

A distance is one number whatever the size of its table, so that all pairs together cost little; what it buys is the
choice of the pairs that are measured cell by cell afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.exact.grid import LARGEST_STEPS, add_noise
from mosha.mechanisms.residuals.axis import Reals
from mosha.mechanisms.residuals.residuals import Counts, ResidualNoise
from mosha.noise import discrete_gaussian
from mosha.synth.measuring.counting import Wholes

__all__ = ["distance_deviation", "measure_distances"]

Expected = Mapping[tuple[int, int], Wholes]
"""For a pair of axes, by number, the whole-number table that it is compared with."""


def _factor(noise: ResidualNoise, pairs: int) -> int:
    """The whole number k that distances are multiplied by: k**2 * reach**2 * pairs is at most resolution**2."""
    found = math.isqrt(noise.resolution**2 // (noise.reach**2 * max(pairs, 1)))
    if pairs > noise.coordinates or found < 1:
        raise InvalidParameter("synth.too_many_terms")
    return found


def distance_deviation(noise: ResidualNoise, pairs: int) -> float:
    """The standard deviation of each distance, in the unit of the counts."""
    factor, sigma = noise.coarsen(_factor(noise, pairs))
    return float(sigma) / factor


def measure_distances(noise: ResidualNoise, expected: Expected, counts: Counts, rng: Rng) -> Reals:
    """The sum of absolute differences between each pair table and what was expected of it, with noise.

    Guarantee:
        `expected` is a function of public numbers and of earlier releases. One unit moves every pair table by rows
        whose weights sum to at most `reach`, so by at most that in l1, and by the triangle inequality each distance
        too: all P distances by reach * sqrt(P) in l2. They are multiplied by a whole number k with k * reach * sqrt(P)
        <= resolution and clamped, which moves no two numbers apart: the step costs `noise.event`, as in `residuals.md`
        (*Grids*: where k is large, a smaller number in its place and as much less noise).
    """
    (factor, sigma), exact = noise.coarsen(_factor(noise, len(expected))), list[int]()
    for pair, table in expected.items():
        distance = int(np.abs(counts(pair) - table).sum(dtype=object))
        exact.append(min(distance * factor, LARGEST_STEPS))
    drawn = np.asarray(discrete_gaussian(sigma, len(exact), rng=rng), np.int64).reshape(-1)
    return np.asarray(add_noise(np.array(exact, np.int64), drawn) / float(factor), np.float64)
