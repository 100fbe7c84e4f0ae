"""How far sorted degrees may be off: a band for each entry, from the released sequence alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["find_count_bars", "find_degree_bars", "find_mean_widths"]

Floats = NDArray[np.float64]

BLOCKS = (*range(17), 20, 24, 28, 32, 40, 48, 56, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Means up to the end of the block that is so many blocks away are looked at; any choice would hold."""


def find_mean_widths(scale: float, missed: float, most: int) -> tuple[NDArray[np.int64], Floats]:
    """Lengths up to `most`, and what the mean of so many noises, or of more, stays below: all lengths at once.

    Guarantee:
        With probability 1 - `missed`, for independent discrete Laplace noise. For each t below 1 / scale,
        exp(t S_k - k p(t)) has mean 1 and is a martingale in k, S_k the sum of k noises and p the logarithm of their
        moment generating function. A mixture of such over several t is one too, is never negative, and so ever comes
        to 1 / `missed` with probability `missed` at most (Ville's inequality). A width is the c at which the mixture
        for S_k = k c comes to just that. The logarithm of the mixture is convex in k, and 0 at 0: once positive it
        grows, so what is wide enough for a length is wide enough for every greater one.

    Units:
        Those of the noise; `scale` too.

    >>> lengths, widths = find_mean_widths(4.0, 0.025, 1000)
    >>> [(int(lengths[i]), round(float(widths[i]), 1)) for i in (0, 9, -1)]
    [(1, 32.6), (10, 7.0), (1000, 0.6)]
    """
    doublings = math.ceil(math.log2(max(most, 1)))
    lengths = np.unique(np.rint(np.geomspace(1, max(most, 1), 2 + 16 * doublings)).astype(np.int64))
    tilts = 0.8 / scale * 2.0 ** -np.arange(doublings // 2 + 2)
    q = math.exp(-1 / scale)
    exponents = 2 * math.log1p(-q) - np.log1p(-q * np.exp(tilts)) - np.log1p(-q * np.exp(-tilts))
    wanted = math.log(tilts.size / missed)
    low, high = np.zeros(lengths.size), (wanted / lengths + exponents[0]) / tilts[0]  # the first of them is enough
    for _ in range(50):
        middle = (low + high) / 2
        logarithms = lengths[:, None] * (tilts * middle[:, None] - exponents)
        enough = np.logaddexp.reduce(logarithms, axis=1) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return lengths, np.asarray(high, np.float64)


def _find_ceilings(fitted: Floats, highest: int, lengths: NDArray[np.int64], widths: Floats) -> Floats:
    """What each true degree is at most: the mean of what was fitted, from it to the end of a block, and a width."""
    whole, places = np.rint(fitted), np.arange(fitted.size)
    ends = np.append(np.flatnonzero(np.diff(fitted)), fitted.size - 1)
    ends = ends[whole[ends] < highest]
    sums = np.append(0.0, np.cumsum(np.minimum(fitted, whole) + 0.5))
    rounding = 1e-6 + 2.0**-44 * sums[-1]
    first, found = np.searchsorted(ends, places), np.full(fitted.size, float(highest))
    for blocks in BLOCKS:
        start = places[first + blocks < ends.size]
        if start.size == 0:
            break
        after = ends[first[start] + blocks] + 1
        width = widths[np.searchsorted(lengths, after - start, side="right") - 1]
        mean = (sums[after] - sums[start]) / (after - start)
        found[start] = np.minimum(found[start], np.floor(mean + width + rounding))
    return found


def _find_bands(fitted: Floats, highest: int, scale: float, missed: float) -> tuple[Floats, Floats]:
    """What each degree is at least and at most: either is wrong about an entry with half the chance.

    Guarantee:
        True degrees d are sorted, so d_i is at most the mean of d from i to b, which is the mean of the noisy ones less
        that of their noise, and the latter is above -c (`find_mean_widths`) for all b at once. The fitted curve F
        (isotonic regression) has sums that are never above those of the noisy degrees and equal to them at ends of
        blocks: at such a b, sums from i to b are no more than those of F. Where the answer changes, a block of F ends.
        What `consistent_sequence` does after F keeps the answer on the side of the nearest whole number r that F is on,
        and within 1/2 of r: of points around r, those on F's side weigh more, those beyond its half less, and a
        regression never pools values from two sides of r (the first of them would have to be the greater). So F is at
        most min(answer, r) + 1/2, but where it was cut at the highest degree: no such b is taken. Degrees are whole
        numbers. What they are at least follows upside down. All of it reads the answer alone.
    """
    lengths, widths = find_mean_widths(scale, missed / 2, fitted.size)
    below = _find_ceilings(highest - fitted[::-1], highest, lengths, widths)
    return highest - below[::-1], _find_ceilings(fitted, highest, lengths, widths)


def find_degree_bars(fitted: Floats, highest: int, scale: float, missed: float) -> Floats:
    """Half-widths for what `consistent_sequence` answers: each entry misses its own with this chance at most.

    >>> fitted = np.repeat([2.0, 3.0, 9.0], [400, 100, 1])
    >>> find_degree_bars(fitted, 500, 2.0, 0.05)[[0, 200, 399, 420, 500]].tolist()
    [2.0, 1.0, 2.0, 1.0, 16.0]
    """
    if fitted.size == 0:
        return np.zeros(0)
    low, high = _find_bands(fitted, highest, scale, missed)
    return np.asarray(np.maximum(np.maximum(high - fitted, fitted - low), 0.0), np.float64)


def find_count_bars(counts: Floats, scale: float, missed: float) -> Floats:
    """Half-widths for how many degrees are at most 0, 1, ..., read off `consistent_sequence`: any is missed so rarely.

    Guarantee:
        Every degree misses its band with an equal part of the chance. Otherwise m degrees that are at most j
        have low_m <= j and j < high_(m + 1): both hold for the true m, and bands are made to rise before they are read.

    >>> find_count_bars(np.repeat([0.0, 400.0, 500.0], [2, 1, 497]), 2.0, 0.05)[[0, 1, 2, 3, 499]].tolist()
    [89.0, 469.0, 400.0, 189.0, 0.0]
    """
    whole = np.rint(counts).astype(np.int64)
    fitted = np.repeat(np.arange(whole.size, dtype=np.float64), np.diff(whole, prepend=0))
    if fitted.size == 0:
        return np.zeros(whole.size)
    low, high = _find_bands(fitted, whole.size - 1, scale, missed / fitted.size)
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
    least = np.searchsorted(high, np.arange(whole.size), side="right")
    most = np.searchsorted(low, np.arange(whole.size), side="right")
    return np.asarray(np.maximum(whole - least, most - whole), np.float64)
