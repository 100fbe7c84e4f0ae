"""Noisy one-way counts made usable: without negative cells, smoother where the column is ordered, merged into groups.

All of it reads noisy counts alone: post-processing.
"""

from __future__ import annotations

import math

import numpy as np

from mosha.synth.measuring.axis import Reals
from mosha.synth.measuring.columns import Wholes

__all__ = ["clean_counts", "group_cells", "nearest_counts"]

THRESHOLD = 2.5
"""Differences of neighbouring averages below so many deviations of their noise are taken for noise."""


def clean_counts(counts: Reals, deviation: float, *, ordered: bool, known: int) -> Reals:
    """Counts without negative cells that sum to what the noisy ones do.

    Args:
        counts: noisy counts of the cells of a column.
        deviation: the standard deviation of their noise.
        ordered: whether neighbouring cells are near each other; then noise is told from signal at every scale.
        known: how many cells lie in the order; a cell of missing values follows them.
    """
    smooth = np.array(counts, np.float64)
    if ordered and known >= 4:
        smooth[:known] = _denoise(smooth[:known], deviation)
    total = max(float(counts.sum()), 1.0)
    smooth += (total - smooth.sum()) / len(smooth)
    return nearest_counts(smooth)


def _denoise(values: Reals, deviation: float) -> Reals:
    """Haar wavelets, averaged over all shifts; differences within the noise are dropped (Coifman and Donoho 1995)."""
    size = len(values)
    width = 1 << math.ceil(math.log2(size))
    padded = np.concatenate([values, values[::-1]])[:width] if width <= 2 * size else values
    shifts = (np.arange(width)[:, None] + np.arange(width)) % width
    rows, details = padded[shifts], []
    while rows.shape[1] > 1:
        left, right = rows[:, 0::2], rows[:, 1::2]
        difference = (left - right) / math.sqrt(2)
        details.append(np.where(np.abs(difference) > THRESHOLD * deviation, difference, 0.0))
        rows = (left + right) / math.sqrt(2)
    for detail in reversed(details):
        wider = np.empty((len(rows), 2 * rows.shape[1]))
        wider[:, 0::2], wider[:, 1::2] = (rows + detail) / math.sqrt(2), (rows - detail) / math.sqrt(2)
        rows = wider
    back = np.empty_like(rows)
    np.put_along_axis(back, shifts, rows, axis=1)
    return np.asarray(back.mean(axis=0)[:size], np.float64)


def group_cells(counts: Reals, most: int, *, ordered: bool, hierarchy: Wholes | None = None) -> Wholes:
    """The group of each cell: at most `most` groups of about equal weight, heavy cells alone.

    Ordered cells are merged with their neighbours, others with other light ones; along a declared hierarchy its groups
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
