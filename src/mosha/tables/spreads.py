"""Variances and covariances: moments from the middle of the range, noised together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mosha.connect.expression import Expression
from mosha.connect.value import Clamped, Rows, Value
from mosha.tables.additive import Additive, Channels, Column, centred_channels
from mosha.tables.measured import Measured, Range

__all__ = ["PRODUCT", "Covariance", "StandardDeviation"]

SHIFT = 14
PRODUCT = 2.0**SHIFT
"""The unit of sums of products, in squares of grid steps: coarse, so that a share of a row keeps its fraction."""


@dataclass(frozen=True, eq=False)
class Covariance(Additive):
    """The covariance of two columns (of one with itself: the variance), over rows in which `given` is not missing."""

    first: Measured
    second: Measured
    given: Expression | None = None

    def numbers(self) -> tuple[Measured, ...]:
        return (self.first, self.second)

    def settled(self, ranges: Mapping[str, Range]) -> Self:
        return replace(self, first=self.first.settled(ranges), second=self.second.settled(ranges))

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
        """Fieller's argument for the means m, k and the covariance c of the rows: see `spreads.md`."""
        counted, *means, found = self.moments(channels)
        missed = 1 - confidence
        away = [self.mean_error(channels, place, 1 - missed * (0.1 if self._same else 0.05)) for place in (0, 1)]
        most = np.full_like(counted, math.prod(self.halves))
        least = np.zeros_like(most) if self._same else -most
        together = away[0] * away[1]
        shifted = np.abs(means[0]) * away[1] + np.abs(means[1]) * away[0] + together
        low, high = least, most
        for _ in range(4):
            furthest = np.maximum(np.abs(low - means[0] * means[1]), np.abs(high - means[0] * means[1])) + shifted
            noise = channels.width(self._terms(means, away, furthest), 1 - 0.9 * missed) / counted
            low = np.maximum(least, found - noise - (0.0 if self._same else together))
            high = np.minimum(most, found + noise + together)
        point = np.clip(found, least, most)
        bars = np.maximum(high - point, point - low) + sum(self.halves) + PRODUCT
        usable = channels.values[self.names[0]] >= 1.0
        whole = self._limits[1] - self._limits[0]
        return np.asarray(np.minimum(np.where(usable, bars * self._scale, whole), whole), np.float64)

    def mean_error(self, channels: Channels, place: int, confidence: float) -> Column:
        """How far the mean of one column may be from the released one, in grid units."""
        names, (counted, *means, _) = self.names, self.moments(channels)
        half = self.halves[place]
        away = np.full_like(counted, 2 * half)
        for _ in range(3):
            furthest = np.minimum(half, np.abs(means[place]) + away)
            away = channels.width({names[1 + place]: np.ones_like(counted), names[0]: furthest}, confidence) / counted
        return away

    def _terms(self, means: list[Column], away: list[Column], furthest: Column) -> dict[str, Any]:
        """The largest coefficients of P - m T - k S + (m k - c) n that are possible."""
        names = self.names
        sizes = [np.minimum(h, np.abs(m) + a) for h, m, a in zip(self.halves, means, away, strict=True)]
        terms: dict[str, Any] = {names[3]: np.full_like(furthest, PRODUCT), names[1]: sizes[1]}
        terms[names[2]] = terms.get(names[2], 0.0) + sizes[0]
        return terms | {names[0]: furthest}


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

    def settled(self, ranges: Mapping[str, Range]) -> Self:
        return replace(self, variance=self.variance.settled(ranges))

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
