"""Correlations: the covariance over the root of both variances, with a bar from one sum of noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mosha.connect.value import Value
from mosha.tables.additive import Additive, Channels, Column
from mosha.tables.measured import Measured, Range
from mosha.tables.spreads import PRODUCT, Covariance

__all__ = ["Correlation"]

SIDE = 0.03
"""The part of what may be missed that each of the two means and the ratio of the deviations has."""

CORNER = 0.05
"""The part of what may be missed that each of the covariance and the two variances has."""

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
        """One sum of noise moves the answer, up to what means and the ratio of deviations add: `correlations.md`."""
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
        level = 1 - SIDE * (1 - confidence)
        off = tuple(both.mean_error(channels, place, level) / deviations[place] for place in (0, 1))
        means = []
        for place in (0, 1):
            most, middle = both.halves[place] / deviations[place], middles[place] / deviations[place]
            means.append((np.maximum(-most, middle - off[place]), np.minimum(most, middle + off[place])))
        found = together / (deviations[0] * deviations[1])
        return _Standard(usable, rows, (deviations[0], deviations[1]), (means[0], means[1]), (off[0], off[1]), found)

    def _interval(self, channels: Channels, seen: _Standard, confidence: float) -> Interval:
        """Where the correlation of the rows lies."""
        missed = 1 - confidence
        (low, high), spreads = self._corners(channels, 1 - CORNER * missed)
        ratio, known = self._ratio(channels, seen, spreads, 1 - SIDE * missed)
        pulls = [(g * (1 + seen.off[0] ** 2) + (1 + seen.off[1] ** 2) / g) / 2 for g in ratio]
        pull, slack = np.maximum(*pulls), seen.off[0] * seen.off[1]
        for _ in range(4):
            noise = self._noise(channels, seen, ratio, (low, high), 1 - (1 - 3 * SIDE - 3 * CORNER) * missed)
            ends = seen.found - noise - slack, seen.found + noise + slack
            low = np.where(known, np.clip(np.minimum(ends[0], ends[0] / pull), low, high), low)
            high = np.where(known, np.clip(np.maximum(ends[1], ends[1] / pull), low, high), high)
        return low, high

    def _corners(self, channels: Channels, confidence: float) -> tuple[Interval, tuple[Interval, Interval]]:
        """Where the bars of the covariance and of the variances leave the correlation, and the variances."""
        answers = [part.answer(channels) for part in self.parts]
        bars = [part.error(channels, confidence) for part in self.parts]
        both, *spreads = ((answer - bar, answer + bar) for answer, bar in zip(answers, bars, strict=True))
        first, second = ((np.maximum(0.0, low), high) for low, high in spreads)
        scales = [np.sqrt(first[end] * second[end]) for end in (0, 1)]
        far = [np.divide(end, scales[0], out=np.sign(end), where=scales[0] > 0) for end in both]
        near = [end / scales[1] for end in both]
        low, high = np.minimum(far[0], near[0]), np.maximum(far[1], near[1])
        return (np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)), (first, second)

    def _ratio(
        self, channels: Channels, seen: _Standard, spreads: tuple[Interval, Interval], confidence: float
    ) -> tuple[Interval, NDArray[np.bool_]]:
        """The ratio of the true deviations over that of the released ones, and whether it is bounded."""
        counted, first, second, _ = self.parts[0].names
        squares = self.parts[1].names[3], self.parts[2].names[3]
        s, t = seen.deviations
        m, k = seen.means
        (least, most), (lowest, highest) = (
            (spread[0] / (deviation * number.grid) ** 2, spread[1] / (deviation * number.grid) ** 2)
            for spread, deviation, number in zip(spreads, seen.deviations, self.numbers(), strict=True)
        )
        low, high = lowest / (lowest + most), highest / (highest + least)
        for _ in range(3):
            share, rest = (low, high), (1 - high, 1 - low)
            size = _size(_minus(_times(rest, _square(k)), _times(share, _square(m))))
            terms = [(squares[0], PRODUCT * high / s**2), (squares[1], PRODUCT * (1 - low) / t**2), (counted, size)]
            terms += [(first, 2 * _size(m) * high / s), (second, 2 * _size(k) * (1 - low) / t)]
            noise = channels.width(_added(terms), confidence) / seen.rows
            ends = (1 - high * seen.off[0] ** 2 - noise) / 2, (1 + (1 - low) * seen.off[1] ** 2 + noise) / 2
            low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
        known = seen.usable & (low > 0) & (high < 1)
        low, high = np.where(known, low, 0.5), np.where(known, high, 0.5)
        return (np.sqrt(low / (1 - low)), np.sqrt(high / (1 - high))), known

    def _noise(
        self, channels: Channels, seen: _Standard, ratio: Interval, related: Interval, confidence: float
    ) -> Column:
        """How far the noise moves the answer, where the correlation lies in `related`."""
        counted, first, second, product = self.parts[0].names
        squares = self.parts[1].names[3], self.parts[2].names[3]
        (s, t), (m, k) = seen.deviations, seen.means
        up, down = _times(related, ratio), _times(related, (1 / ratio[1], 1 / ratio[0]))
        bent = [edge / 2 for edge in _times(up, _square(m))], [edge / 2 for edge in _times(down, _square(k))]
        flat = _minus(_minus(_times(m, k), (bent[0][0], bent[0][1])), (bent[1][0], bent[1][1]))
        terms = [(product, PRODUCT / (s * t))]
        terms += [(squares[0], PRODUCT * _size(up) / (2 * s**2)), (squares[1], PRODUCT * _size(down) / (2 * t**2))]
        terms += [(first, _size(_minus(_times(up, m), k)) / s), (second, _size(_minus(_times(down, k), m)) / t)]
        return channels.width(_added([*terms, (counted, _size(flat))]), confidence) / seen.rows


def _added(terms: list[tuple[str, Column]]) -> dict[str, Column]:
    """Coefficients by channel; the columns may be one and the same, and then so are channels."""
    found: dict[str, Column] = {}
    for name, size in terms:
        found[name] = found.get(name, 0.0) + size
    return found
