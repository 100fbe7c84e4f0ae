"""A mixture of products that agrees with noisy residuals of pairs: the model that rows are drawn from.

Component k has a distribution for every column, independent of the others; all components weigh the same. With the K
distributions of all columns side by side in one matrix P, the product of P with its own transpose, over K, holds the
pair table of any two columns. It is fitted by Adam to residuals that were paid for, and stops when what is left is no
larger than their noise: a closer fit would be a fit to the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.mechanisms.residuals.axis import Reals

__all__ = [
    "Mixture",
    "PairTarget",
    "assume_independence",
    "centre_table",
    "fit_mixture",
    "join_mixtures",
    "misfit_of_independence",
    "shrink_towards_independence",
]

Singles = NDArray[Any]
"""Single precision: a model is never more accurate than the noise that it is fitted to."""

RATE, DECAYS, SPREAD = 0.15, (0.9, 0.9), 0.5
MANY, DOUBT = 50, 3.0
"""Pairs with at least this many free numbers are taken for independent within this many deviations of noise alone."""


@dataclass(frozen=True, eq=False)
class PairTarget:
    """What was measured of a pair: its residual and the deviation of each cell, as shares of all rows."""

    first: int
    second: int
    residual: Reals
    deviation: float
    is_assumed: bool = False
    """Whether independence was put in the place of a residual that could not be told from it."""

    @property
    def freedom(self) -> int:
        """How many free numbers were measured."""
        return 0 if self.is_assumed else int((self.residual.shape[0] - 1) * (self.residual.shape[1] - 1))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Components' distributions over the groups of all columns, side by side: `parts[:, starts[c]:starts[c + 1]]`."""

    parts: Singles
    starts: tuple[int, ...]
    misfit: float
    steps: int = 0
    """How many steps the fit took."""

    def column(self, place: int) -> Singles:
        """The distribution of one column in every component."""
        return self.parts[:, self.starts[place] : self.starts[place + 1]]

    def pair(self, first: int, second: int) -> Reals:
        """The pair table that the model implies, as shares."""
        return np.asarray(self.column(first).T @ self.column(second) / len(self.parts), np.float64)


class _Blocks:
    """Columns side by side: softmax, sums and centring block by block."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.sizes = np.asarray(sizes, np.int64)
        self.owner = np.repeat(np.arange(len(sizes)), self.sizes)

    def softmax(self, logits: Singles) -> Singles:
        raised = np.exp(logits - np.maximum.reduceat(logits, self.starts[:-1], axis=1)[:, self.owner])
        raised /= np.add.reduceat(raised, self.starts[:-1], axis=1)[:, self.owner]
        return np.asarray(raised)

    def backward(self, parts: Singles, gradient: Singles) -> Singles:
        weighted = parts * gradient
        weighted -= parts * np.add.reduceat(weighted, self.starts[:-1], axis=1)[:, self.owner]
        return weighted

    def centre(self, table: Singles) -> Singles:
        """Each block minus the means of its rows and columns."""
        inverse = (1.0 / self.sizes)[self.owner].astype(table.dtype)
        table = table - np.add.reduceat(table, self.starts[:-1], axis=1)[:, self.owner] * inverse
        return np.asarray(table - np.add.reduceat(table, self.starts[:-1], axis=0)[self.owner] * inverse[:, None])


def fit_mixture(
    oneways: Sequence[Reals],
    pairs: Sequence[PairTarget],
    *,
    groups: Sequence[NDArray[np.int64]],
    fine: Sequence[PairTarget] = (),
    deviations: Sequence[float],
    components: int,
    steps: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> Mixture:
    """The mixture whose one-ways and pair residuals are those that were measured, within their noise.

    Args:
        oneways: the share of every cell of the model, for each column.
        pairs: what was measured of pairs, in groups of these cells.
        groups: for each column the group of every cell; numbers never fall from one cell to the next.
        fine: what was measured of pairs by the cells themselves.
        deviations: how far the shares of each column may be off.
        components: how many products.
        steps: the most steps of Adam.
        seed: of the first distributions: a function of what was released, so that a fit can be made again.
        progress: is called with the share of the steps that were taken.
    """
    cells, merged = _Blocks([len(shares) for shares in oneways]), _Merge(groups)
    generator = np.random.default_rng(seed)
    base = np.log(np.maximum(np.concatenate(oneways), 1e-6)).astype(np.float32)
    starts = tuple(int(start) for start in cells.starts)
    freedom = sum(pair.freedom for pair in (*pairs, *fine))
    if not freedom:
        return Mixture(cells.softmax(base[None, :]), starts, 0.0)
    logits = base + SPREAD * generator.standard_normal((components, len(base)), np.float32)
    target, weight = _assemble(pairs, merged.blocks)
    share, slack = np.concatenate(oneways).astype(np.float32), _slack(deviations, cells)
    adam, misfit = _Adam(logits.shape), np.inf
    for step in range(steps):
        parts = cells.softmax(logits)
        coarse = merged.gather(parts)
        error = merged.blocks.centre(coarse.T @ coarse / components) - target
        pull = (coarse @ merged.blocks.centre(weight * error))[:, merged.owner]
        missed = float(np.sum(weight * error * error)) / 2 + _add_fine(fine, parts, cells, pull)
        misfit = missed / freedom
        if misfit <= 1.0:
            break
        pull += slack * (parts.mean(axis=0) - share)
        logits -= adam.step(cells.backward(parts, pull), step, RATE * (1 - 0.8 * step / steps))
        if progress is not None and step % 10 == 0:
            progress(step / steps)
    return Mixture(cells.softmax(logits), starts, misfit, step + 1)


def join_mixtures(fits: Sequence[Mixture]) -> Mixture:
    """All components of several fits as one mixture: every pair table is the mean of theirs.

    Each fit is off from what was measured within its noise, in a direction that its first distributions decide; the
    mean of several is nearer to the truth than each of them is. Its misfit is that of the first.
    """
    if len(fits) == 1:
        return fits[0]
    steps = sum(fit.steps for fit in fits)
    return Mixture(np.concatenate([fit.parts for fit in fits]), fits[0].starts, fits[0].misfit, steps)


def _add_fine(fine: Sequence[PairTarget], parts: Singles, cells: _Blocks, pull: Singles) -> float:
    """The misfit of single pairs, whose gradient is added to `pull`."""
    missed = 0.0
    for pair in fine:
        rows = slice(cells.starts[pair.first], cells.starts[pair.first + 1])
        columns = slice(cells.starts[pair.second], cells.starts[pair.second + 1])
        left, right = parts[:, rows], parts[:, columns]
        error = centre_table(np.asarray(left.T @ right / len(parts), np.float64)) - pair.residual
        missed += float((error**2).sum()) / pair.deviation**2
        scaled = (error / pair.deviation**2).astype(np.float32)
        pull[:, rows] += right @ scaled.T
        pull[:, columns] += left @ scaled
    return missed


class _Merge:
    """From the cells of all columns, side by side, to their groups."""

    def __init__(self, groups: Sequence[NDArray[np.int64]]) -> None:
        sizes = [int(numbers.max()) + 1 for numbers in groups]
        self.blocks = _Blocks(sizes)
        self.owner = np.concatenate(
            [start + numbers for start, numbers in zip(self.blocks.starts, groups, strict=False)]
        )
        self.firsts = np.searchsorted(self.owner, np.arange(self.owner[-1] + 1))
        self.is_plain = len(self.firsts) == len(self.owner)

    def gather(self, parts: Singles) -> Singles:
        return parts if self.is_plain else np.asarray(np.add.reduceat(parts, self.firsts, axis=1), np.float32)


def _slack(deviations: Sequence[float], blocks: _Blocks) -> Singles:
    """The weight of a one-way's error: one over its variance, held where the noise is next to nothing."""
    weights = 1 / np.maximum(np.asarray(deviations, np.float64), 1e-4) ** 2
    return np.asarray(weights[blocks.owner], np.float32)


def _assemble(pairs: Sequence[PairTarget], blocks: _Blocks) -> tuple[Singles, Singles]:
    """All residuals in one symmetric matrix, and their weights: 0 where nothing was measured."""
    size = int(blocks.starts[-1])
    target, weight = np.zeros((size, size), np.float32), np.zeros((size, size), np.float32)
    for pair in pairs:
        rows = slice(blocks.starts[pair.first], blocks.starts[pair.first + 1])
        columns = slice(blocks.starts[pair.second], blocks.starts[pair.second + 1])
        target[rows, columns], weight[rows, columns] = pair.residual, 1 / pair.deviation**2
        target[columns, rows], weight[columns, rows] = pair.residual.T, 1 / pair.deviation**2
    return target, weight


class _Adam:
    """Adam (Kingma and Ba 2015)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.mean, self.square = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    def step(self, gradient: Singles, number: int, rate: float) -> Singles:
        first, second = DECAYS
        self.mean *= first
        self.mean += (1 - first) * gradient
        self.square *= second
        self.square += (1 - second) * gradient * gradient
        scale = np.sqrt(self.square / (1 - second ** (number + 1)))
        scale += 1e-12
        return np.asarray(rate * (self.mean / (1 - first ** (number + 1))) / scale, np.float32)


def shrink_towards_independence(pair: PairTarget, oneways: Sequence[Reals]) -> tuple[PairTarget, Reals]:
    """A residual moved towards independence by as much as its noise explains (James and Stein), and what is left."""
    independent = centre_table(np.outer(oneways[pair.first], oneways[pair.second]))
    excess = pair.residual - independent
    energy = float((excess**2).sum())
    noise = pair.freedom * pair.deviation**2
    kept = (max(0.0, 1 - noise / energy) if energy > 0 else 0.0) * excess
    return PairTarget(pair.first, pair.second, independent + kept, pair.deviation), kept


def assume_independence(pair: PairTarget, oneways: Sequence[Reals]) -> PairTarget:
    """The pair as it is; or as if its columns were independent, where its many numbers do not speak against that."""
    independent = centre_table(np.outer(oneways[pair.first], oneways[pair.second]))
    energy = float(((pair.residual - independent) ** 2).sum()) / pair.deviation**2
    if pair.freedom < MANY or energy > pair.freedom + DOUBT * np.sqrt(2 * pair.freedom):
        return pair
    return PairTarget(pair.first, pair.second, independent, pair.deviation, is_assumed=True)


def misfit_of_independence(pairs: Sequence[PairTarget], oneways: Sequence[Reals]) -> float:
    """How far measured pairs are from independence, in squares of their noise: about 1 where noise is all there is."""
    missed, freedom = 0.0, 0
    for pair in pairs:
        if pair.freedom:
            independent = centre_table(np.outer(oneways[pair.first], oneways[pair.second]))
            missed += float(((pair.residual - independent) ** 2).sum()) / pair.deviation**2
            freedom += pair.freedom
    return missed / max(freedom, 1)


def centre_table(table: Reals) -> Reals:
    """The table minus the means of its rows and columns."""
    table = table - table.mean(axis=0, keepdims=True)
    return np.asarray(table - table.mean(axis=1, keepdims=True), np.float64)
