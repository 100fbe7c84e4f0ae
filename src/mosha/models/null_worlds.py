"""Worlds in which a null hypothesis is true, with the noise of the release in them; and the statistics of tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mosha.models.sums.moments import Moments
from mosha.models.sums.row_sums import Floats

__all__ = [
    "NoiseDraw",
    "anova_statistic",
    "distance_statistic",
    "draw_counts",
    "draw_moments",
    "independence_statistic",
    "null_moments",
    "null_shares",
    "welch_statistic",
]


@dataclass(frozen=True)
class NoiseDraw:
    """Noise of a released law, for simulated worlds: it hides nobody, so any generator will do."""

    deviation: float
    laplace: bool

    def rescale(self, deviation: float) -> NoiseDraw:
        """The same law in other units."""
        return NoiseDraw(deviation, self.laplace)

    def draw(self, shape: tuple[int, ...]) -> Floats:
        """So many of them."""
        drawn = np.random.default_rng()
        if self.laplace:
            return np.asarray(drawn.laplace(0.0, self.deviation / np.sqrt(2), shape))
        return np.asarray(drawn.normal(0.0, self.deviation, shape))


def null_shares(table: Floats, deviation: float) -> tuple[float, Floats]:
    """The number of rows, and the shares of cells if rows and columns were independent."""
    count = max(float(table.sum()), 1.0)
    sides = []
    for axis in (1, 0):
        side = np.maximum(table.sum(axis=axis), deviation / 2)
        sides.append(side / side.sum())
    return count, np.outer(*sides)


def draw_counts(count: float, shares: Floats, worlds: int) -> Floats:
    """Multinomial tables of so many rows."""
    drawn = np.random.default_rng().multinomial(round(count), shares.reshape(-1) / shares.sum(), size=worlds)
    return np.asarray(drawn.reshape(worlds, *shares.shape), np.float64)


def independence_statistic(table: Floats, deviation: float) -> Floats:
    """Squared distances from what independence expects, each over its variance with noise."""
    rows, columns = table.sum(axis=-1, keepdims=True), table.sum(axis=-2, keepdims=True)
    whole = np.maximum(table.sum(axis=(-2, -1), keepdims=True), 1.0)
    expected = rows * columns / whole
    return np.asarray(((table - expected) ** 2 / (np.maximum(expected, 0.0) + deviation**2 + 1.0)).sum(axis=(-2, -1)))


def distance_statistic(table: Floats) -> Floats:
    """The largest distance of the two cumulative curves, in units that their sizes leave open."""
    counts = np.maximum(table.sum(axis=-1, keepdims=True), 1.0)
    curves = table.cumsum(axis=-1) / counts
    return np.asarray(np.abs(curves[..., 0, :] - curves[..., 1, :]).max(axis=-1))


@dataclass(frozen=True, eq=False)
class NullGroups:
    """Numbers of rows, the common mean and the variance of each group."""

    counts: Floats
    mean: float
    variances: Floats


def null_moments(moments: Moments, *, pooled: bool) -> NullGroups:
    """What the release says about everything but the differences of means."""
    counts = np.maximum(np.rint(moments.counts), 2.0)
    squares = moments.seconds[:, 0, 0]
    whole = moments.add_classes()
    mean = float(np.clip(whole.firsts[0, 0] / max(float(whole.counts[0]), 1.0), -1.0, 1.0))
    own = squares / counts - np.clip(moments.firsts[:, 0] / counts, -1.0, 1.0) ** 2
    if pooled:
        own = np.full_like(own, float((own * counts).sum() / counts.sum()))
    return NullGroups(counts, mean, np.clip(own, 1e-6, 1.0))


def draw_moments(null: NullGroups, noise: NoiseDraw, worlds: int) -> tuple[Floats, Floats, Floats]:
    """Noisy counts, sums and sums of squares of normal groups with one mean."""
    drawn, counts = np.random.default_rng(), null.counts
    shape = (worlds, len(counts))
    first = counts * null.mean + np.sqrt(counts * null.variances) * drawn.normal(size=shape)
    second = null.variances * drawn.chisquare(counts - 1, size=shape) + first**2 / counts
    off = noise.draw(shape)
    return counts + off, first + noise.draw(shape), second + noise.draw(shape) + off / 2


def _spread(counts: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Counts that can be divided by, means, and sums of squares around them."""
    usable = np.maximum(counts, 2.0)
    means = np.clip(first / usable, -1.0, 1.0)
    return usable, means, np.clip(second - usable * means**2, 1e-4 * usable, usable)


def welch_statistic(counts: Floats, first: Floats, second: Floats) -> Floats:
    """|difference of means| over its standard error."""
    usable, means, squares = _spread(counts, first, second)
    error = (squares / (usable - 1) / usable).sum(axis=-1)
    return np.asarray(np.abs(means[..., 0] - means[..., 1]) / np.sqrt(error))


def anova_statistic(counts: Floats, first: Floats, second: Floats) -> Floats:
    """Variance between groups over variance within groups."""
    usable, means, squares = _spread(counts, first, second)
    whole = usable.sum(axis=-1)
    middle = (usable * means).sum(axis=-1, keepdims=True) / whole[..., None]
    between = (usable * (means - middle) ** 2).sum(axis=-1) / (usable.shape[-1] - 1)
    return np.asarray(between / (squares.sum(axis=-1) / np.maximum(whole - usable.shape[-1], 1.0)))
