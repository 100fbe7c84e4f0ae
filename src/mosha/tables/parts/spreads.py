"""Variances and covariances: moments from the middle of the range, noised together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mosha.connect.language.expression import Expression
from mosha.connect.language.value import Clamped, Rows, Value
from mosha.tables.intervals import Interval, cut, lower_end, minus, raise_end, size, square, times
from mosha.tables.parts.additive import Additive, Channels, Column, centred_channels
from mosha.tables.parts.bounded_number import Measured, Range

__all__ = ["PRODUCT", "Covariance", "StandardDeviation"]

SHIFT = 14
PRODUCT = 2.0**SHIFT
"""The unit of sums of products, in squares of grid steps: coarse, so that a share of a row keeps its fraction."""


MEANS = 0.1
"""The part of what may be missed that the two means have together."""

CELLS = 4
"""Into so many cells the interval of each of two means is cut; that of one into as many as two have."""


@dataclass(frozen=True, eq=False)
class Covariance(Additive):
    """The covariance of two columns (of one with itself: the variance), over rows in which `given` is not missing."""

    first: Measured
    second: Measured
    given: Expression | None = None

    def numbers(self) -> tuple[Measured, ...]:
        return (self.first, self.second)

    def fill_ranges(self, ranges: Mapping[str, Range]) -> Self:
        return replace(self, first=self.first.fill_ranges(ranges), second=self.second.fill_ranges(ranges))

    def _sum(self, measured: Measured) -> str:
        name = centred_channels(measured)[1]
        return name if self.given is None else f"{name} with {self.given!r}"

    @property
    def names(self) -> tuple[str, str, str, str]:
        """The number of rows, the two sums, the sum of products."""
        counted = centred_channels(self.first)[0] if self.given is None else f"rows with {self.given!r}"
        product = f"products of {self._sum(self.first)} and {self._sum(self.second)}"
        return counted, self._sum(self.first), self._sum(self.second), product

    def channels(self) -> Mapping[str, Value]:
        names = self.names
        if self.given is None:
            rows, first, second = Rows(self.first.of), self.first.centred, self.second.centred
        else:
            rows = Rows(self.given)
            first, second = (replace(m, of=m.of + self.given).centred for m in (self.first, self.second))
        return {names[0]: rows, names[1]: first, names[2]: second, names[3]: _product(first, second)}

    def squares(self) -> Sequence[str]:
        return self.names[3:] if self._same else ()

    def moments(self, channels: Channels) -> tuple[Column, Column, Column, Column]:
        """The number of rows, the two means, and the covariance, in grid units."""
        counted, first, second, product = (channels.values[name] for name in self.names)
        safe = np.maximum(counted, 1.0)
        means = first / safe, second / safe
        return safe, *means, product * PRODUCT / safe - means[0] * means[1]

    @property
    def _same(self) -> bool:
        return self.first.key == self.second.key

    @property
    def halves(self) -> tuple[float, float]:
        """Half of each range, in grid units: no value is further from the middle."""
        first, second = ((m.between[1] - m.between[0]) / 2 / m.grid + 1 for m in (self.first, self.second))
        return first, second

    @property
    def _limits(self) -> tuple[float, float]:
        high = math.prod((m.between[1] - m.between[0]) / 2 for m in (self.first, self.second))
        return (0.0 if self._same else -high), high

    @property
    def _scale(self) -> float:
        return self.first.grid * self.second.grid

    def answer(self, channels: Channels) -> Column:
        return np.clip(self.moments(channels)[3] * self._scale, *self._limits)

    def error(self, channels: Channels, confidence: float) -> Column:
        """Fieller's argument for the covariance of the rows, cell by cell of their means: see `spreads.md`."""
        counted, *means, found = self.moments(channels)
        cells = self._cells(channels, means, 1 - (1 - confidence) * (MEANS if self._same else MEANS / 2))
        off = [(low - mean, high - mean) for (low, high), mean in zip(cells, means, strict=True)]
        moved = square(off[0]) if self._same else times(*off)
        most = np.full_like(moved[0], math.prod(self.halves))
        least = np.zeros_like(most) if self._same else -most

        def noise(low: Column, high: Column) -> Column:
            return channels.width(self._terms(cells, (low, high)), 1 - (1 - MEANS) * (1 - confidence)) / counted

        center = [np.clip(found + edge, least, most) for edge in moved]
        low = raise_end(least, center[0], lambda a, b: found + moved[0] - noise(a, b)).min(axis=0)
        high = lower_end(most, center[1], lambda a, b: found + moved[1] + noise(a, b)).max(axis=0)
        point = np.clip(found, least[0], most[0])
        bars = np.maximum(high - point, point - low) + sum(self.halves) + PRODUCT
        usable = channels.values[self.names[0]] >= 1.0
        whole = self._limits[1] - self._limits[0]
        return np.asarray(np.minimum(np.where(usable, bars * self._scale, whole), whole), np.float64)

    def _cells(self, channels: Channels, means: list[Column], confidence: float) -> tuple[Interval, Interval]:
        """Where the two means of the rows lie, cut into cells: a row for each pair of cells."""
        sides = []
        for place, (half, mean) in enumerate(zip(self.halves, means, strict=True)):
            away = self.mean_error(channels, place, confidence)
            sides.append((np.clip(mean - away, -half, half), np.clip(mean + away, -half, half)))
        if self._same:
            cells = cut(sides[0], CELLS**2)
            return cells, cells
        (a, b), (c, d) = (cut(side, CELLS) for side in sides)
        return (np.tile(a, (CELLS, 1)), np.tile(b, (CELLS, 1))), (np.repeat(c, CELLS, 0), np.repeat(d, CELLS, 0))

    def mean_error(self, channels: Channels, place: int, confidence: float) -> Column:
        """How far the mean of one column may be from the released one, in grid units."""
        names, (counted, *means, _) = self.names, self.moments(channels)
        half = self.halves[place]
        away = np.full_like(counted, 2 * half)
        for _ in range(3):
            furthest = np.minimum(half, np.abs(means[place]) + away)
            away = channels.width({names[1 + place]: np.ones_like(counted), names[0]: furthest}, confidence) / counted
        return away

    def _terms(self, means: tuple[Interval, Interval], covariance: Interval) -> dict[str, Any]:
        """The largest coefficients of P - m T - k S + (m k - c) n that are possible."""
        names = self.names
        product = square(means[0]) if self._same else times(*means)
        terms: dict[str, Any] = {names[3]: np.full_like(product[0], PRODUCT), names[1]: size(means[1])}
        terms[names[2]] = terms.get(names[2], 0.0) + size(means[0])
        return terms | {names[0]: size(minus(product, covariance))}


def _product(first: Clamped, second: Clamped) -> Clamped:
    """The product of two numbers on their grids, on a coarser grid of its own; missing where either is."""
    corners = [float(a * b) for a in (first.low, first.high) for b in (second.low, second.high)]
    return Clamped(first.known * second.known, (min(corners), max(corners)), exponent=-SHIFT)


@dataclass(frozen=True, eq=False)
class StandardDeviation(Additive):
    """The root of the variance."""

    variance: Covariance

    def numbers(self) -> tuple[Measured, ...]:
        return self.variance.numbers()

    def fill_ranges(self, ranges: Mapping[str, Range]) -> Self:
        return replace(self, variance=self.variance.fill_ranges(ranges))

    def channels(self) -> Mapping[str, Value]:
        return self.variance.channels()

    def squares(self) -> Sequence[str]:
        return self.variance.squares()

    def answer(self, channels: Channels) -> Column:
        return np.sqrt(self.variance.answer(channels))

    def error(self, channels: Channels, confidence: float) -> Column:
        value, bars = self.variance.answer(channels), self.variance.error(channels, confidence)
        root = np.sqrt(value)
        spread: Column = np.maximum(np.sqrt(value + bars) - root, root - np.sqrt(np.maximum(0.0, value - bars)))
        return spread
