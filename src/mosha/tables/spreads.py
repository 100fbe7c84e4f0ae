"""Variances, covariances and correlations: moments from the middle of the range, noised together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from mosha.connect.expression import Expression
from mosha.connect.value import Product, Rows, Value
from mosha.tables.additive import Additive, Channels, Column, centred_channels
from mosha.tables.measured import Measured, Range

__all__ = ["Correlation", "Covariance", "StandardDeviation"]


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
    def _names(self) -> tuple[str, str, str, str]:
        """The number of rows, the two sums, the sum of products."""
        counted = centred_channels(self.first)[0] if self.given is None else f"rows with {self.given!r}"
        product = f"products of {self._sum(self.first)} and {self._sum(self.second)}"
        return counted, self._sum(self.first), self._sum(self.second), product

    def channels(self) -> Mapping[str, Value]:
        names = self._names
        if self.given is None:
            rows, first, second = Rows(self.first.of), self.first.centred, self.second.centred
        else:
            rows = Rows(self.given)
            first, second = (replace(m, of=m.of + self.given).centred for m in (self.first, self.second))
        return {names[0]: rows, names[1]: first, names[2]: second, names[3]: Product(first, second)}

    def _moments(self, channels: Channels) -> tuple[Column, Column, Column, Column]:
        counted, first, second, product = (channels.values[name] for name in self._names)
        safe = np.maximum(counted, 1.0)
        return safe, first / safe, second / safe, product / safe

    def _limits(self) -> tuple[float, float]:
        high = math.prod((m.between[1] - m.between[0]) / 2 for m in (self.first, self.second))
        return (0.0 if self.first.key == self.second.key else -high), high

    def answer(self, channels: Channels) -> Column:
        _, first, second, product = self._moments(channels)
        return np.clip((product - first * second) * self.first.grid * self.second.grid, *self._limits())

    def error(self, channels: Channels, confidence: float) -> Column:
        """The noise of n (P/n - ST/n^2), linear in the noise of n, S, T and P, and what S and T add together.

        With a = S/n and b = T/n as released, n * (the truth minus the answer) is minus the noise of
        P - a T - b S + (2 a b - P/n) n, minus n (mu - a) (nu - b).
        """
        counted, first, second, product = self._moments(channels)
        names, ones = self._names, np.ones_like(counted)
        terms: dict[str, Any] = {names[3]: ones, names[1]: -second}
        terms[names[2]] = terms.get(names[2], 0.0) - first
        terms[names[0]] = 2 * first * second - product
        least = np.maximum(1.0, counted - channels.width({names[0]: ones}, confidence))
        bars = channels.width(terms, confidence) / least
        sides = [channels.width({names[1 + i]: ones, names[0]: m}, confidence) for i, m in enumerate((first, second))]
        low, high = self._limits()
        whole = (bars + sides[0] * sides[1] / least**2) * self.first.grid * self.second.grid
        return np.asarray(np.minimum(whole, high - low), np.float64)


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

    def answer(self, channels: Channels) -> Column:
        return np.sqrt(self.variance.answer(channels))

    def error(self, channels: Channels, confidence: float) -> Column:
        value, bars = self.variance.answer(channels), self.variance.error(channels, confidence)
        root = np.sqrt(value)
        spread: Column = np.maximum(np.sqrt(value + bars) - root, root - np.sqrt(np.maximum(0.0, value - bars)))
        return spread


@dataclass(frozen=True, eq=False)
class Correlation(Additive):
    """Pearson's correlation of two columns: their covariance over the root of both variances."""

    parts: tuple[Covariance, Covariance, Covariance] = field(repr=False)

    def numbers(self) -> tuple[Measured, ...]:
        return self.parts[0].numbers()

    def settled(self, ranges: Mapping[str, Range]) -> Self:
        both, first, second = (part.settled(ranges) for part in self.parts)
        return replace(self, parts=(both, first, second))

    def channels(self) -> Mapping[str, Value]:
        return {name: value for part in self.parts for name, value in part.channels().items()}

    def answer(self, channels: Channels) -> Column:
        both, first, second = (part.answer(channels) for part in self.parts)
        scale = np.sqrt(first * second)
        return np.clip(np.divide(both, scale, out=np.zeros_like(both), where=scale > 0), -1.0, 1.0)

    def error(self, channels: Channels, confidence: float) -> Column:
        """By the worst corner of the three error bars, each at a third of what may be missed."""
        each = 1 - (1 - confidence) / 3
        both, first, second = (part.answer(channels) for part in self.parts)
        bars = [part.error(channels, each) for part in self.parts]
        least = np.maximum(0.0, first - bars[1]) * np.maximum(0.0, second - bars[2])
        most = (first + bars[1]) * (second + bars[2])
        point, worst = self.answer(channels), np.zeros_like(both)
        for end in (both - bars[0], both + bars[0]):
            for scale in (least, most):
                corner = np.where(scale > 0, end / np.sqrt(np.where(scale > 0, scale, 1.0)), np.sign(end) * 2)
                worst = np.maximum(worst, np.abs(np.clip(corner, -1.0, 1.0) - point))
        return np.asarray(worst, np.float64)
