"""Correlations: the covariance over the root of both variances, with a bar from one sum of noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mosha.connect.language.value import Value
from mosha.tables.intervals import Interval, cut, lower_end, minus, raise_end, size, square, times
from mosha.tables.mechanisms.joint_noise import imitate
from mosha.tables.parts.additive import Additive, Channels, Column
from mosha.tables.parts.bounded_number import Measured, Range
from mosha.tables.parts.spreads import PRODUCT, Covariance

__all__ = ["Correlation"]

MEAN, RATIO = 0.02, 0.15
"""The part of what may be missed that each of the two means has, and the ratio of the deviations."""

CELLS = 12
"""Into so many cells the interval of the ratio is cut."""

DRAWS, AT_ONCE = 4001, 128
"""How often other noise is imagined, and for how many groups together."""


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

    def fill_ranges(self, ranges: Mapping[str, Range]) -> Self:
        both, first, second = (part.fill_ranges(ranges) for part in self.parts)
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
        """The lesser of two, which `correlations.md` has: what one sum of noise leaves, and what draws of noise say."""
        seen = self._standard(channels, confidence)
        low, high = self._interval(channels, seen, confidence)
        rounding = sum(0.75 / deviation + PRODUCT / deviation**2 for deviation in seen.deviations)
        low, high = np.maximum(-1.0, low - rounding), np.minimum(1.0, high + rounding)
        point = self.answer(channels)
        proved = np.maximum(high - point, point - low)
        return np.asarray(
            np.minimum(proved, self._find_by_draws(channels, seen, point, confidence) + rounding), np.float64
        )

    def _find_by_draws(self, channels: Channels, seen: _Standard, point: Column, confidence: float) -> Column:
        """How far the answer strays from what it would be with other noise taken off: by draws, `correlations.md`."""
        counted, first, second, product = self.parts[0].names
        squares = self.parts[1].names[3], self.parts[2].names[3]
        names = list(dict.fromkeys([counted, first, second, product, *squares]))
        noise = dict(zip(names, imitate(channels.noise, DRAWS, len(names)).T, strict=True))
        found = np.empty_like(point)
        for start in range(0, len(point), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            drawn = {
                name: channels.values[name][some, None] - channels.reach[name] * noise[name][None, :] for name in names
            }
            rows = np.maximum(drawn[counted], 1.0)
            m, k = drawn[first] / rows, drawn[second] / rows
            u, v = (drawn[name] * PRODUCT / rows - mean**2 for name, mean in zip(squares, (m, k), strict=True))
            possible = (drawn[counted] >= 1.0) & (u > 0) & (v > 0) & seen.usable[some, None]
            related = (drawn[product] * PRODUCT / rows - m * k) / np.sqrt(np.where(possible, u * v, 1.0))
            away = np.where(possible, np.abs(related - point[some, None]), np.inf)
            found[some] = np.quantile(away, confidence, axis=1, method="higher")
        return found

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
        cell = cut(ends, CELLS)
        even = np.asarray((cell[0] <= 0.5) & (cell[1] >= 0.5))
        evenness = [2 * np.sqrt(edge * (1 - edge)) for edge in cell]
        kept = np.minimum(*evenness), np.where(even, 1.0, np.maximum(*evenness))
        squares = seen.off[0] ** 2, seen.off[1] ** 2
        pull = 1 + np.maximum(*(edge * squares[0] + (1 - edge) * squares[1] for edge in cell))
        slack = seen.off[0] * seen.off[1]
        low, high = times(kept, (seen.found - slack, seen.found + slack))

        def least(a: Column, b: Column) -> Column:
            end = low - self._noise(channels, seen, (cell, kept), (a, b), 1 - (1 - 2 * MEAN - RATIO) * missed)
            return np.asarray(np.minimum(end, end / pull))

        def greatest(a: Column, b: Column) -> Column:
            end = high + self._noise(channels, seen, (cell, kept), (a, b), 1 - (1 - 2 * MEAN - RATIO) * missed)
            return np.asarray(np.maximum(end, end / pull))

        one = np.ones_like(low)
        left = raise_end(-one, np.clip(low, -1.0, 1.0), least).min(axis=0)
        right = lower_end(one, np.clip(high, -1.0, 1.0), greatest).max(axis=0)
        return np.where(seen.usable, left, -1.0), np.where(seen.usable, right, 1.0)

    def _ratio(self, channels: Channels, seen: _Standard, confidence: float) -> Interval:
        """The ratio of the true deviations over that of the released ones, as a share q from 0 to 1."""
        counted, first, second, _ = self.parts[0].names
        squares = self.parts[1].names[3], self.parts[2].names[3]
        (s, t), (m, k) = seen.deviations, seen.means
        off = seen.off[0] ** 2, seen.off[1] ** 2

        def noise(low: Column, high: Column) -> Column:
            other = size(minus(times((1 - high, 1 - low), square(k)), times((low, high), square(m))))
            terms = [(squares[0], PRODUCT * high / s**2), (squares[1], PRODUCT * (1 - low) / t**2), (counted, other)]
            terms += [(first, 2 * size(m) * high / s), (second, 2 * size(k) * (1 - low) / t)]
            return channels.width(_add_coefficients(terms), confidence) / seen.rows

        half = np.full_like(seen.rows, 0.5)
        least = raise_end(0 * half, half, lambda a, b: (1 - noise(a, b)) / (2 + off[0]))
        return least, lower_end(2 * half, half, lambda a, b: (1 + noise(a, b) + off[1]) / (2 + off[1]))

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
        up, down = times(related, (low, high)), times(related, (1 - high, 1 - low))
        bent = [a + b for a, b in zip(times(up, square(m)), times(down, square(k)), strict=True)]
        flat = minus(times(kept, times(m, k)), (bent[0], bent[1]))
        twice = (2 * up[0], 2 * up[1]), (2 * down[0], 2 * down[1])
        terms = [(product, PRODUCT * kept[1] / (s * t)), (counted, size(flat))]
        terms += [(squares[0], PRODUCT * size(up) / s**2), (squares[1], PRODUCT * size(down) / t**2)]
        terms += [(first, size(minus(times(twice[0], m), times(kept, k))) / s)]
        terms += [(second, size(minus(times(twice[1], k), times(kept, m))) / t)]
        return channels.width(_add_coefficients(terms), confidence) / seen.rows


def _add_coefficients(terms: list[tuple[str, Column]]) -> dict[str, Column]:
    """Coefficients by channel; the columns may be one and the same, and then so are channels."""
    found: dict[str, Column] = {}
    for name, coefficient in terms:
        found[name] = found.get(name, 0.0) + coefficient
    return found
