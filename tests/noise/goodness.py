"""Is a sample drawn from a known distribution? Exact binomial tails, a stated false-alarm rate, nothing asymptotic."""

import math
from typing import Any

import numpy as np
from scipy.stats import binom, norm

ALARM = 1e-10  # false alarms of one call, by the union bound over its events


def rejects(events: Any, alarm: Any = ALARM) -> bool:
    """Whether some event, given as (count, trials, probability), is too rare or too frequent to be chance.

    Each count is binomial under the hypothesis; each tail gets an equal share of `alarm`.
    """
    count, trials, p = (np.array(column) for column in zip(*events, strict=True))
    tail = np.minimum(binom.cdf(count, trials, p), binom.sf(count - 1, trials, p))
    return bool((tail < alarm / (2 * len(events))).any())


def folded(x: Any) -> Any:
    """The geometric half of a discrete Laplace variable: x for x >= 0, -1 - x below."""
    return x ^ (x >> 63)


def laplace_below(scale: Any) -> Any:
    """P(X <= k) as a function of the integers k, for discrete Laplace noise."""
    q = math.exp(-1 / scale)

    def below(k: Any) -> Any:
        k = np.asarray(k, float)
        tail = np.exp(-(np.where(k >= 0, k + 1, -k)) / scale) / (1 + q)
        return np.where(k >= 0, 1 - tail, tail)

    return below


def gaussian_below(sigma: Any) -> Any:
    """P(X <= k) for discrete Gaussian noise: summed, or by the midpoint rule where its error is below 1e-8."""
    if sigma > 3000:
        return lambda k: norm.cdf((np.asarray(k, float) + 0.5) / sigma)
    reach = math.ceil(40 * sigma) + 1
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma * sigma))
    cumulative = np.cumsum(weights) / weights.sum()
    return lambda k: cumulative[np.clip(np.asarray(k) + reach, 0, 2 * reach)]


def quantile_events(samples: Any, below: Any, scale: Any, cells: Any = 40) -> list[Any]:
    """Prefixes X <= k and the cells between them, k spread over where the mass is."""
    edges = np.unique(np.rint(scale * np.tan(np.linspace(-1.5, 1.5, cells))).astype(np.int64))
    prefix = np.searchsorted(np.sort(samples), edges, side="right")
    p = below(edges)
    n = len(samples)
    events = list(zip(prefix.tolist(), [n] * len(p), p, strict=True))
    events += list(zip(np.diff(prefix).tolist(), [n] * (len(p) - 1), np.diff(p), strict=True))
    return [(count, trials, chance) for count, trials, chance in events if 0 <= chance <= 1]


def low_bit_events(samples: Any, bits: Any = 8) -> list[Any]:
    """Every value of the lowest bits: uniform when the scale is far above them."""
    counts = np.bincount(samples & ((1 << bits) - 1), minlength=1 << bits)
    return [(int(count), len(samples), 2.0**-bits) for count in counts]


def digit_events(samples: Any, scale: Any) -> list[Any]:
    """The binary digits of the folded variable: bit i is 1 with probability q**(2**i) / (1 + q**(2**i))."""
    y = folded(samples)
    ratios = [math.exp(-(2.0**i) / scale) for i in range(56)]
    sign = (int((samples < 0).sum()), len(y), ratios[0] / (1 + ratios[0]))
    return [sign, *((int(((y >> i) & 1).sum()), len(y), r / (1 + r)) for i, r in enumerate(ratios))]


def pair_events(samples: Any, positive: Any) -> list[Any]:
    """Signs of disjoint pairs of neighbors in the array, independent of each other."""
    first, second = samples[0::2] > 0, samples[1::2] > 0
    pairs = len(second)
    both = int((first[:pairs] & second).sum())
    neither = int((~first[:pairs] & ~second).sum())
    return [(both, pairs, positive**2), (neither, pairs, (1 - positive) ** 2)]
