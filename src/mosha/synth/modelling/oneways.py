"""Noisy one-way counts made usable: without negative cells, smoother where the column is ordered, merged into groups.

All of it reads noisy counts alone: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosha.mechanisms.residuals.axis import Reals
from mosha.synth.measuring.columns import Wholes

__all__ = ["clean_counts", "find_group_error", "group_cells", "nearest_counts"]

THRESHOLD = 2.5
"""Coefficients of wavelets below so many deviations of their noise are taken for noise."""

WAVELETS = (
    (1.0, 1.0),
    (1 + 3**0.5, 3 + 3**0.5, 3 - 3**0.5, 1 - 3**0.5),
    (0.3326705529500825, 0.8068915093110924, 0.4598775021184914, -0.1350110200102546, -0.0854412738820267,
     0.0352262918857095),
)  # fmt: skip
"""Daubechies' filters of two, four and six numbers, up to a factor: for steps, slopes and curves."""


def clean_counts(counts: Reals, deviation: float, *, ordered: bool, known: int) -> Reals:
    """Counts without negative cells that sum to what the noisy ones do.

    Args:
        counts: noisy counts of the cells of a column.
        deviation: the standard deviation of their noise.
        ordered: whether neighboring cells are near each other; then noise is told from signal at every scale.
        known: how many cells lie in the order; a cell of missing values follows them.
    """
    total = max(float(counts.sum()), 1.0)
    found = []
    for wavelet in WAVELETS if ordered and known >= 4 else ():
        smooth = np.array(counts, np.float64)
        smooth[:known] = _denoise(smooth[:known], deviation, wavelet)
        found.append(smooth)
    tables = [table + (total - table.sum()) / len(table) for table in found or [np.asarray(counts, np.float64)]]
    return np.asarray(np.mean([nearest_counts(table) for table in tables], axis=0), np.float64)


def find_group_error(
    counts: Reals, deviation: float, groups: Wholes, *, ordered: bool, known: int, draws: int = 6
) -> float:
    """How far the shares of groups are off once the noise of their cells is cleaned: half of an l1 norm.

    The noise is drawn anew around the counts that are known, the same every time, and cleaned in the same way.
    """
    generator, total = np.random.default_rng(0), max(float(counts.sum()), 1.0)
    own, found = np.bincount(groups, counts), 0.0
    for _ in range(draws):
        again = clean_counts(counts + generator.normal(0, deviation, len(counts)), deviation, ordered=ordered,
                             known=known)  # fmt: skip
        found += float(np.abs(np.bincount(groups, again * (total / max(float(again.sum()), 1.0))) - own).sum())
    return found / (2 * draws * total)


def _denoise(values: Reals, deviation: float, wavelet: Sequence[float]) -> Reals:
    """Wavelets at every shift, mirrored at the ends; what lies within the noise is dropped (Coifman and Donoho 1995).

    Filters of one scale are those of the scale before, spread out by two: products of Fourier transforms. Divided by
    the root of two, low and high pass have squares that sum to 1 at every frequency, so that their transposes rebuild.
    """
    size = len(values)
    width = 2 * size
    low = np.asarray(wavelet, np.float64) / np.linalg.norm(wavelet) / math.sqrt(2)
    high = low[::-1] * (-1.0) ** np.arange(len(low))
    left, passed = np.fft.fft(np.concatenate([values, values[::-1]])), np.ones(width, np.complex128)
    rebuilt = np.zeros(width, np.complex128)
    for scale in range(int(math.log2(size))):
        keep, take = (_spread_filter(part, scale, width) for part in (low, high))
        band = passed * take
        detail = np.fft.ifft(left * take).real
        least = THRESHOLD * deviation * math.sqrt(float(np.mean(np.abs(band) ** 2)))
        rebuilt += np.fft.fft(np.where(np.abs(detail) > least, detail, 0.0)) * band.conj()
        left, passed = left * keep, passed * keep
    both = np.fft.ifft(rebuilt + left * passed.conj()).real
    return np.asarray((both[:size] + both[: size - 1 : -1]) / 2, np.float64)


def _spread_filter(numbers: Reals, scale: int, width: int) -> NDArray[np.complex128]:
    """The Fourier transform of a filter whose numbers lie 2**scale places apart, on a circle."""
    places = (np.arange(len(numbers)) << scale) % width
    return np.asarray(np.fft.fft(np.bincount(places, numbers, minlength=width)), np.complex128)


def group_cells(counts: Reals, most: int, *, ordered: bool, hierarchy: Wholes | None = None) -> Wholes:
    """The group of each cell: at most `most` groups of about equal weight, heavy cells alone.

    Ordered cells are merged with their neighbors, others with other light ones; along a declared hierarchy its groups
    stay whole until there are too many of them.
    """
    size = len(counts)
    if size <= most:
        return np.arange(size, dtype=np.int64)
    if hierarchy is not None and len(np.unique(hierarchy)) <= most:
        return np.unique(hierarchy, return_inverse=True)[1].reshape(-1).astype(np.int64)
    most = max(most, 1)
    order = np.arange(size) if ordered else np.argsort(-counts, kind="stable")
    groups, weights = np.zeros(size, np.int64), np.maximum(counts, 0.0)
    group, left, rest = 0, most, float(weights.sum())
    held = 0.0
    for place, cell in enumerate(order):
        weight = float(weights[cell])
        target = rest / max(left, 1)
        heavy = weight >= target and held > 0
        if (held >= target * 0.999 or (heavy and held >= 0.25 * target)) and left > 1 and place:
            rest -= held
            group, left, held = group + 1, left - 1, 0.0
        groups[cell] = group
        held += weight
    return groups


def nearest_counts(table: Reals) -> Reals:
    """The nearest table, in the l2 norm, without negative cells and with the same sum (zeros where that is negative).

    >>> nearest_counts(np.array([3.0, 1.0, -1.0])).tolist()
    [2.5, 0.5, 0.0]
    """
    values, total = np.asarray(table, np.float64).reshape(-1), float(table.sum())
    if total <= 0:
        return np.zeros(table.shape)
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    shift = excess[np.nonzero(falling > excess)[0][-1]]
    return np.asarray(np.maximum(values - shift, 0.0).reshape(table.shape), np.float64)
