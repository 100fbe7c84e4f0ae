"""Correlations: the covariance over the root of both variances, with a bar from one sum of noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mosha.connect.value import Value
from mosha.tables.additive import Additive, Channels, Column
from mosha.tables.measured import Measured, Range
from mosha.tables.spreads import PRODUCT, Covariance

__all__ = ["Correlation"]

MEAN, RATIO = 0.02, 0.15
"""The part of what may be missed that each of the two means has, and the ratio of the deviations."""

CELLS = 12
"""Into so many cells the interval of the ratio is cut."""

Interval = tuple[Column, Column]


def _times(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _minus(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _square(a: Interval) -> Interval:
    least = np.maximum(0.0, np.maximum(a[0], -a[1]))
    return least**2, _size(a) ** 2


def _size(a: Interval) -> Column:
    return np.maximum(np.abs(a[0]), np.abs(a[1]))


def _raise_end(low: Column, centre: Column, find: Callable[[Column, Column], Column]) -> Column:
    """A greater lower end: what lies in [a, b] is no less than `find(a, b)`, the best bound where [a, b] is short."""
    for _ in range(5):
        low = np.clip(find(low, centre), low, centre)
    for _ in range(2):
        trial = (low + np.clip(find(low, low), low, centre)) / 2
        low = np.where(find(low, trial) >= trial, trial, low)
    return low


def _lower_end(high: Column, centre: Column, find: Callable[[Column, Column], Column]) -> Column:
    """The same for an upper end."""
    return -_raise_end(-high, -centre, lambda a, b: -find(-b, -a))


@dataclass(frozen=True, eq=False)
class _Standard:
    """The moments of every group, each column in units of its released deviation."""

    usable: NDArray[np.bool_]
    rows: Column
    deviations: tuple[Column, Column]
    means: tuple[Interval, Interval]
    off: tuple[Column, Column]
    found: Column


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

    def squares(self) -> Sequence[str]:
        return [name for part in self.parts for name in part.squares()]

    def answer(self, channels: Channels) -> Column:
        both, first, second = (part.answer(channels) for part in self.parts)
        scale = np.sqrt(first * second)
        return np.clip(np.divide(both, scale, out=np.zeros_like(both), where=scale > 0), -1.0, 1.0)

    def error(self, channels: Channels, confidence: float) -> Column:
        """One sum of noise moves the answer, for every ratio of deviations that another leaves: `correlations.md`."""
        seen = self._standard(channels, confidence)
        low, high = self._interval(channels, seen, confidence)
        rounding = sum(0.75 / deviation + PRODUCT / deviation**2 for deviation in seen.deviations)
        low, high = np.maximum(-1.0, low - rounding), np.minimum(1.0, high + rounding)
        point = self.answer(channels)
        return np.asarray(np.maximum(high - point, point - low), np.float64)

    def _standard(self, channels: Channels, confidence: float) -> _Standard:
        both, first, second = self.parts
        rows, *middles, together = both.moments(channels)
        spreads = [part.moments(channels)[3] for part in (first, second)]
        usable = (channels.values[both.names[0]] >= 1.0) & (spreads[0] > 0) & (spreads[1] > 0)
        deviations = tuple(np.sqrt(np.where(usable, spread, 1.0)) for spread in spreads)
        level = 1 - MEAN * (1 - confidence)
        off = tuple(both.mean_error(channels, place, level) / deviations[place] for place in (0, 1))
        means = []
        for place in (0, 1):
            most, middle = both.halves[place] / deviations[place], middles[place] / deviations[place]
            means.append((np.maximum(-most, middle - off[place]), np.minimum(most, middle + off[place])))
        found = together / (deviations[0] * deviations[1])
        return _Standard(usable, rows, (deviations[0], deviations[1]), (means[0], means[1]), (off[0], off[1]), found)

    def _interval(self, channels: Channels, seen: _Standard, confidence: float) -> Interval:
        """Where the correlation of the rows lies: cell by cell of the ratio of deviations, each end by itself."""
        missed = 1 - confidence
        ends = self._ratio(channels, seen, 1 - RATIO * missed)
        edges = ends[0] + (ends[1] - ends[0]) * np.linspace(0.0, 1.0, CELLS + 1)[:, None]
        cell = edges[:-1], edges[1:]
        even = np.asarray((cell[0] <= 0.5) & (cell[1] >= 0.5))
        evenness = [2 * np.sqrt(edge * (1 - edge)) for edge in cell]
        kept = np.minimum(*evenness), np.where(even, 1.0, np.maximum(*evenness))
        squares = seen.off[0] ** 2, seen.off[1] ** 2
        pull = 1 + np.maximum(*(edge * squares[0] + (1 - edge) * squares[1] for edge in cell))
        slack = seen.off[0] * seen.off[1]
        low, high = _times(kept, (seen.found - slack, seen.found + slack))

        def least(a: Column, b: Column) -> Column:
            end = low - self._noise(channels, seen, (cell, kept), (a, b), 1 - (1 - 2 * MEAN - RATIO) * missed)
            return np.asarray(np.minimum(end, end / pull))

        def greatest(a: Column, b: Column) -> Column:
            end = high + self._noise(channels, seen, (cell, kept), (a, b), 1 - (1 - 2 * MEAN - RATIO) * missed)
            return np.asarray(np.maximum(end, end / pull))

        one = np.ones_like(low)
        left = _raise_end(-one, np.clip(low, -1.0, 1.0), least).min(axis=0)
        right = _lower_end(one, np.clip(high, -1.0, 1.0), greatest).max(axis=0)
        return np.where(seen.usable, left, -1.0), np.where(seen.usable, right, 1.0)

    def _ratio(self, channels: Channels, seen: _Standard, confidence: float) -> Interval:
        """The ratio of the true deviations over that of the released ones, as a share q from 0 to 1."""
        counted, first, second, _ = self.parts[0].names
        squares = self.parts[1].names[3], self.parts[2].names[3]
        (s, t), (m, k) = seen.deviations, seen.means
        off = seen.off[0] ** 2, seen.off[1] ** 2

        def noise(low: Column, high: Column) -> Column:
            size = _size(_minus(_times((1 - high, 1 - low), _square(k)), _times((low, high), _square(m))))
            terms = [(squares[0], PRODUCT * high / s**2), (squares[1], PRODUCT * (1 - low) / t**2), (counted, size)]
            terms += [(first, 2 * _size(m) * high / s), (second, 2 * _size(k) * (1 - low) / t)]
            return channels.width(_added(terms), confidence) / seen.rows

        half = np.full_like(seen.rows, 0.5)
        least = _raise_end(0 * half, half, lambda a, b: (1 - noise(a, b)) / (2 + off[0]))
        return least, _lower_end(2 * half, half, lambda a, b: (1 + noise(a, b) + off[1]) / (2 + off[1]))

    def _noise(
        self,
        channels: Channels,
        seen: _Standard,
        ratio: tuple[Interval, Interval],
        related: Interval,
        confidence: float,
    ) -> Column:
        """How far the noise moves the answer, where q lies in a cell and the correlation in `related`."""
        counted, first, second, product = self.parts[0].names
        squares = self.parts[1].names[3], self.parts[2].names[3]
        (s, t), (m, k) = seen.deviations, seen.means
        (low, high), kept = ratio
        up, down = _times(related, (low, high)), _times(related, (1 - high, 1 - low))
        bent = [a + b for a, b in zip(_times(up, _square(m)), _times(down, _square(k)), strict=True)]
        flat = _minus(_times(kept, _times(m, k)), (bent[0], bent[1]))
        twice = (2 * up[0], 2 * up[1]), (2 * down[0], 2 * down[1])
        terms = [(product, PRODUCT * kept[1] / (s * t)), (counted, _size(flat))]
        terms += [(squares[0], PRODUCT * _size(up) / s**2), (squares[1], PRODUCT * _size(down) / t**2)]
        terms += [(first, _size(_minus(_times(twice[0], m), _times(kept, k))) / s)]
        terms += [(second, _size(_minus(_times(twice[1], k), _times(kept, m))) / t)]
        return channels.width(_added(terms), confidence) / seen.rows


def _added(terms: list[tuple[str, Column]]) -> dict[str, Column]:
    """Coefficients by channel; the columns may be one and the same, and then so are channels."""
    found: dict[str, Column] = {}
    for name, size in terms:
        found[name] = found.get(name, 0.0) + size
    return found
