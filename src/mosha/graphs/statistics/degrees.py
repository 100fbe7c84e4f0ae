"""Degrees: noisy, then made consistent with what every degree sequence is. All of it is post-processing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.graphs.data.graph import kernels

__all__ = [
    "average_neighbors",
    "consistent_sequence",
    "distribution",
    "distribution_tail",
    "monotone_counts",
    "sequence_of_counts",
]

Floats = NDArray[np.float64]


def consistent_sequence(noisy: NDArray[np.generic], highest: int, *, variance: float) -> Floats:
    """The degrees that noisy sorted ones point to: increasing, within what a simple graph allows, near whole numbers.

    Isotonic regression (Hay et al. 2009) pools entries into blocks; the mean of a block of L entries is off by about
    variance / L, squared, and what it stands for is a whole number: each block moves to the mean of the whole numbers
    around it, weighed by how likely they make it. A second regression keeps the order.

    Guarantee:
        A function of the noisy numbers and public ones alone.

    Units:
        Degrees; `variance` is that of the noise on one entry, in degrees squared.

    >>> consistent_sequence(np.array([2, -1, 1, 9]), 3, variance=8.0).round(2).tolist()
    [0.21, 0.21, 1.0, 3.0]
    """
    fitted: Floats = np.clip(kernels().fit_isotonic(np.asarray(noisy, np.float64)), 0, highest)
    _, place, counts = np.unique(fitted, return_inverse=True, return_counts=True)
    spread = 2 * variance / counts[place]
    nearest = np.rint(fitted)
    total, mean = np.zeros_like(fitted), np.zeros_like(fitted)
    for step in (-2, -1, 0, 1, 2):
        weight = np.exp(-np.minimum((fitted - nearest - step) ** 2 / spread, 700.0))
        total += weight
        mean += weight * (nearest + step)
    ordered: Floats = np.clip(kernels().fit_isotonic(mean / total), 0, highest)
    return ordered


def monotone_counts(noisy: NDArray[np.generic]) -> Floats:
    """The nearest non-decreasing counts that are not negative.

    >>> monotone_counts(np.array([-2, 4, 2, 9])).tolist()
    [0.0, 3.0, 3.0, 9.0]
    """
    fitted: Floats = kernels().fit_isotonic(np.asarray(noisy, np.float64))
    return np.maximum(fitted, 0.0)


def average_neighbors(noisy: NDArray[np.generic]) -> Floats:
    """Each entry j the mean of those up to j / 3 below and above it, as many on both sides: a straight line stays.

    >>> average_neighbors(np.arange(12)).tolist() == list(range(12))
    True
    >>> average_neighbors(np.array([0, 0, 0, 3, 0])).tolist()[3]
    1.0
    """
    places = np.arange(noisy.size)
    reach = np.minimum(places // 3, noisy.size - 1 - places)
    sums = np.append(0.0, np.cumsum(noisy, dtype=np.float64))
    return np.asarray((sums[places + reach + 1] - sums[places - reach]) / (2 * reach + 1), np.float64)


def distribution(noisy: NDArray[np.generic], vertices: float) -> Floats:
    """The part of `vertices` with degree at most 0, 1, ..., from noisy counts of all but the last entry, which is 1.

    >>> distribution(np.array([1, -1, 4, 6]), 8.0).tolist()
    [0.0, 0.0, 0.5, 0.75, 1.0]
    """
    counts = np.clip(kernels().fit_isotonic(average_neighbors(noisy)), 0.0, max(vertices, 0.0))
    return np.append(counts / vertices if vertices > 0 else np.ones_like(counts), 1.0)


def distribution_tail(noisy: NDArray[Any], vertices: float, length: int) -> Floats:
    """The part of vertices with degree at most D, D + 1, ..., length - 1, when degrees were bounded by D.

    The share s above a degree has mean s_1 in the third quarter of the entries below D and s_2 in the last one. Beyond
    D it goes on to fall by s_2 / s_1 every quarter of D. Where it hardly falls below D (by less than a sixth) or D is
    below 8, degrees are taken to end at D.

    Guarantee:
        A function of the noisy numbers and public ones alone: an extrapolation, which no noise bar covers.

    >>> falling = 1000 - 1000 * np.exp(-np.arange(16) / 8)
    >>> np.round(distribution_tail(falling, 1000.0, 33)[[0, 8, 15, 16]], 2).tolist(), float(round(1 - np.exp(-2), 2))
    ([0.86, 0.95, 0.98, 1.0], 0.86)
    """
    bound = noisy.size
    upper = 1 - noisy / vertices if vertices > 0 else np.zeros(bound)
    third, last = (upper[first : first + bound // 4] for first in (bound // 2, bound - bound // 4))
    places = np.arange(bound, length)
    if bound < 8 or last.mean() <= 0 or third.mean() < 1.2 * last.mean():
        return np.ones(places.size)
    middle = bound - (bound // 4 + 1) / 2
    fall = np.log(last.mean() / third.mean()) / (bound - bound // 4 - bound // 2)
    beyond = 1 - np.minimum(last.mean(), 1.0) * np.exp(fall * (places - middle))
    beyond[-1:] = 1.0  # higher degrees count as the last one
    return np.asarray(np.clip(beyond, 0.0, 1.0), np.float64)


def sequence_of_counts(cumulative: Floats) -> NDArray[np.int64]:
    """The sorted degrees that a cumulative histogram stands for.

    >>> sequence_of_counts(np.array([1.0, 3.0, 3.0, 4.0])).tolist()
    [0, 1, 1, 3]
    """
    ends = np.rint(cumulative).astype(np.int64)
    return np.repeat(np.arange(cumulative.size), ends - np.append(0, ends[:-1]))
