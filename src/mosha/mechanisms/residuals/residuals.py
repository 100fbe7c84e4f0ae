"""Residuals of marginals, measured once with exact integer noise, and what is rebuilt from them.

A *term* names a level for some columns: ((0, 1), (3, 1)) is what the pair of columns 0 and 3 adds to what their
one-ways say. All terms of a measurement are one vector of whole numbers and get one discrete Gaussian noise. The
proof stands in `residuals.md`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import DiscreteGaussian
from mosha.core.measurement import Rng
from mosha.exact.grid import add_noise, clamp_steps
from mosha.mechanisms.residuals.axis import Axis, Reals
from mosha.noise import LARGEST_SCALE, discrete_gaussian
from mosha.noise.parameters import enlarge_scale

__all__ = ["Measured", "ResidualNoise", "Term", "cells_of", "marginal_of", "pack", "residual_of", "unpack"]

Term = tuple[tuple[int, int], ...]
"""Columns with their levels, by the number of the column."""

Counts = Callable[[tuple[int, ...]], NDArray[np.int64]]
"""The exact marginal of some columns, at the resolution of their cells."""

FINEST = 64
"""Every term is multiplied by at least so much, so that rounding it down costs less than one part in so many."""

ENOUGH, COARSEST = 1 << 12, 1 << 12
"""A term that would be multiplied by more is counted on a grid of its own, whose noise has at least so many steps."""

_SAFE = 1 << 61
_SMOOTHING = 5
"""At least (100 log 2 + log(5 coordinates)) / (2 pi^2), for up to 2**24 coordinates (`gaussian.md`, lemma 2)."""


def cells_of(axes: Sequence[Axis], term: Term) -> int:
    """How many numbers a term has."""
    return math.prod(axes[column].nodes(level) for column, level in term)


def _movement(axes: Sequence[Axis], term: Term) -> tuple[int, Fraction]:
    """The common multiple of a term, and the square of what one row moves its residual, in rows."""
    levels = [axes[column].levels[level - 1] for column, level in term]
    share = math.prod((1 - Fraction(1, level.largest) for level in levels), start=Fraction(1))
    return math.prod(level.common for level in levels), share


def residual_of(axes: Sequence[Axis], term: Term, counts: NDArray[np.int64], factor: int) -> NDArray[np.int64]:
    """`factor` times the whole-number residual of a marginal, held within 2**60: nothing else of it may leave."""
    common, _ = _movement(axes, term)
    table: NDArray[Any] = counts
    is_large = int(np.abs(counts).sum(dtype=object)) * common * factor * 2 ** len(term) >= _SAFE
    if is_large:
        table = counts.astype(object)
    for place, (column, level) in enumerate(term):
        table = axes[column].gather(table, level, place)
    for place, (column, level) in enumerate(term):
        table = axes[column].levels[level - 1].residual(table, place)
    if is_large:
        held = [min(max(int(n) * factor, -_SAFE), _SAFE) for n in table.ravel()]
        return clamp_steps(np.array(held, np.int64).reshape(table.shape))
    return clamp_steps(np.asarray(table * factor, np.int64))


@dataclass(frozen=True)
class ResidualNoise:
    """One discrete Gaussian mechanism on the residuals of any terms, whose price is fixed before they are known.

    Guarantee:
        Let one unit add at most `reach` rows (weights of rows, in the unit of the counts) or take them away. Then
        `measure` costs `event`, whatever the terms and their weights are: `residuals.md`.

    Fields:
        multiplier: standard deviation of the noise over the sensitivity.
        reach: the most that one unit counts for.
        resolution: the sensitivity in grid steps that all terms together are scaled up to, a power of two.
        coordinates: the most numbers that the terms may have.
    """

    multiplier: float
    reach: int
    resolution: int
    coordinates: int

    def __post_init__(self) -> None:
        if self.sigma > LARGEST_SCALE or self.sigma < 1 << 10:
            raise InvalidParameter("synth.noise_out_of_range", parameter="epsilon")

    @staticmethod
    def resolution_for(reach: int, largest: int, least_share: float) -> int:
        """A resolution at which every term is scaled by `FINEST` or more.

        `largest` is the greatest common multiple of a term, `least_share` the least part of the price of any term.
        """
        return 1 << max(12, math.ceil(math.log2(FINEST * largest * reach / math.sqrt(least_share))))

    @property
    def event(self) -> Event:
        return DiscreteGaussian(self.multiplier, float(self.resolution), self.coordinates)

    @property
    def sigma(self) -> Fraction:
        return enlarge_scale(Fraction(self.multiplier) * self.resolution)

    def factors(self, axes: Sequence[Axis], shares: Mapping[Term, float]) -> dict[Term, int]:
        """The whole number that each term is multiplied by, so that all together move by at most `resolution`.

        `shares` say what part of the price each term has; they are made to sum to 1.
        """
        total = math.fsum(shares.values())
        found = {}
        for term, part in shares.items():
            common, share = _movement(axes, term)
            size = common * self.reach * math.sqrt(float(share))
            found[term] = max(1, math.floor(self.resolution * math.sqrt(part / total) / size))
        while self._movement_of_all(axes, found) > self.resolution**2:
            found = {term: factor - max(1, factor >> 20) for term, factor in found.items()}
            if min(found.values()) < 1:
                raise InvalidParameter("synth.too_many_terms")
        return found

    def coarsen(self, factor: int) -> tuple[int, Fraction]:
        """The factor on the grid of its own term, and the noise there: what large counts times it stays below 2**60.

        The grid is coarser by a power of two, and the noise by as much and a hair: `residuals.md`, *Grids*.
        """
        steps = math.floor(Fraction(self.multiplier) * self.resolution)
        shift = min(factor.bit_length() - ENOUGH.bit_length(), steps.bit_length() - 1 - COARSEST.bit_length())
        if shift <= 0:
            return factor, self.sigma
        own = Fraction(self.multiplier) * self.resolution / 2**shift
        return factor >> shift, enlarge_scale(own + _SMOOTHING / (2 * own))

    def _movement_of_all(self, axes: Sequence[Axis], factors: Mapping[Term, int]) -> Fraction:
        """The square of what one unit moves all terms together, in grid steps: exact."""
        by_share: dict[Fraction, int] = {}
        for term, factor in factors.items():
            common, share = _movement(axes, term)
            by_share[share] = by_share.get(share, 0) + (factor * common) ** 2
        return sum((share * square for share, square in by_share.items()), start=Fraction(0)) * self.reach**2

    def measure(self, axes: Sequence[Axis], shares: Mapping[Term, float], counts: Counts, rng: Rng) -> Measured:
        """The residuals with noise: the only place where the counts meet randomness."""
        if self._width(axes, shares) > self.coordinates:
            raise InvalidParameter("synth.more_than_paid")
        noisy, factors = {}, self.factors(axes, shares)
        for sigma, terms in self._group_grids(factors).items():
            width = sum(cells_of(axes, term) for term in terms)
            drawn, first = np.asarray(discrete_gaussian(sigma, width, rng=rng), np.int64).reshape(-1), 0
            for term, factor in terms.items():
                exact = residual_of(axes, term, counts(tuple(column for column, _ in term)), factor)
                noise = drawn[first : first + exact.size].reshape(exact.shape)
                noisy[term] = add_noise(exact, noise) / (float(factor) * _movement(axes, term)[0])
                first += exact.size
        return self.read(axes, factors, {term: noisy[term] for term in factors})

    def _group_grids(self, factors: Mapping[Term, int]) -> dict[Fraction, dict[Term, int]]:
        """The terms whose grids have the same noise, with their factors there."""
        found: dict[Fraction, dict[Term, int]] = {}
        for term, factor in factors.items():
            own, sigma = self.coarsen(factor)
            found.setdefault(sigma, {})[term] = own
        return found

    def _width(self, axes: Sequence[Axis], shares: Mapping[Term, float]) -> int:
        return sum(cells_of(axes, term) for term in shares)

    def read(self, axes: Sequence[Axis], factors: Mapping[Term, int], noisy: Mapping[Term, Reals]) -> Measured:
        """What was measured, centred once more: post-processing of the noisy numbers."""
        deviations, residuals = self._deviations(axes, factors), {}
        for term, table in noisy.items():
            centred = np.asarray(table, np.float64).reshape([axes[column].nodes(level) for column, level in term])
            for place, (column, level) in enumerate(term):
                centred = axes[column].levels[level - 1].centre(centred, place)
            residuals[term] = centred
        return Measured(tuple(axes), residuals, deviations)

    def deviations(self, axes: Sequence[Axis], shares: Mapping[Term, float]) -> dict[Term, float]:
        """The standard deviation of each term's noise before it is centred, in the unit of the counts."""
        return self._deviations(axes, self.factors(axes, shares))

    def _deviations(self, axes: Sequence[Axis], factors: Mapping[Term, int]) -> dict[Term, float]:
        found = {}
        for term, factor in factors.items():
            own, sigma = self.coarsen(factor)
            found[term] = float(sigma) / (own * float(_movement(axes, term)[0]))
        return found


@dataclass(frozen=True, eq=False)
class Measured:
    """Noisy residuals: independent of each other, each with covariance `deviation**2` times its own centring."""

    axes: tuple[Axis, ...]
    residuals: Mapping[Term, Reals]
    deviations: Mapping[Term, float]

    def marginal(self, columns: tuple[int, ...]) -> Reals:
        """The marginal of some columns: unbiased, consistent with all others, negative here and there."""
        return marginal_of(self.axes, self.residuals, columns)

    def variance(self, queries: Mapping[int, Reals]) -> Reals:
        """The exact variance of product queries: for each column, by number, rows of coefficients over its cells.

        Row i of the answer belongs to row i of every column.
        """
        total = np.zeros(len(next(iter(queries.values()))) if queries else 1)
        energies = {c: [self.axes[c].energy(q, v) for v in range(self.axes[c].depth + 1)] for c, q in queries.items()}
        for term in _terms_within(self.axes, self.deviations, tuple(sorted(queries))):
            levels, product = dict(term), np.full(len(total), self.deviations[term] ** 2)
            for column in queries:
                product = product * energies[column][levels.get(column, 0)]
            total += product
        return total

    def cell_variance(self, columns: tuple[int, ...]) -> Reals:
        """The exact variance of every cell of a marginal."""
        shape = [self.axes[column].size for column in columns]
        total = np.zeros(shape)
        for term in _terms_within(self.axes, self.deviations, columns):
            levels, product = dict(term), np.full(shape, self.deviations[term] ** 2)
            for place, column in enumerate(columns):
                along = [1] * len(columns)
                along[place] = -1
                product *= self.axes[column].cell_energy(levels.get(column, 0)).reshape(along)
            total += product
        return total


def _terms_within(axes: Sequence[Axis], known: Mapping[Term, object], columns: tuple[int, ...]) -> Iterator[Term]:
    """The terms that were measured on a part of these columns."""
    ordered = sorted(columns)
    for levels in itertools.product(*(range(axes[column].depth + 1) for column in ordered)):
        term = tuple((column, level) for column, level in zip(ordered, levels, strict=True) if level)
        if term in known:
            yield term


def marginal_of(axes: Sequence[Axis], residuals: Mapping[Term, Reals], columns: tuple[int, ...]) -> Reals:
    """The sum of all residuals of some columns' subsets, each spread over the cells."""
    total = np.zeros([axes[column].size for column in columns])
    for term in _terms_within(axes, residuals, columns):
        levels = dict(term)
        order = [place for column in columns for place, (c, _) in enumerate(term) if c == column]
        spread = np.transpose(residuals[term], order).reshape(
            [axes[column].nodes(levels[column]) if column in levels else 1 for column in columns]
        )
        for place, column in enumerate(columns):
            spread = axes[column].spread(spread, levels.get(column, 0), place)
        total += spread
    return total


def pack(residuals: Mapping[Term, Reals]) -> Reals:
    """Residuals as one array, which every book keeps."""
    flat = [np.asarray(table, np.float64).reshape(-1) for table in residuals.values()]
    return np.concatenate(flat) if flat else np.zeros(0)


def unpack(whole: Reals, axes: Sequence[Axis], terms: Sequence[Term]) -> dict[Term, Reals]:
    """The residuals that `pack` put together, for these terms in this order."""
    found, first = {}, 0
    for term in terms:
        size = cells_of(axes, term)
        shape = [axes[column].nodes(level) for column, level in term]
        found[term] = np.array(whole[first : first + size]).reshape(shape)
        first += size
    return found
