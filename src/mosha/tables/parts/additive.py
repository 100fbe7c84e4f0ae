"""What can be asked of each group: counts, sums and means, as noisy channels and what is made of them.

An aggregate names the exact integer channels it needs, and turns their noisy values into an answer with an error bar:
post-processing, which costs nothing. Aggregates of one release share channels (the mean and the variance of a column
need one count, and the sum is made of those two), and all channels share one weight for each person.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mosha.connect.language.checking import type_of
from mosha.connect.language.expression import Expression
from mosha.connect.language.schema import Schema
from mosha.connect.language.value import Persons, Rows, Value
from mosha.tables.mechanisms.joint_noise import JointNoise
from mosha.tables.parts.bounded_number import Measured, Range

__all__ = [
    "Additive",
    "Aggregate",
    "Channels",
    "Column",
    "Count",
    "CountPersons",
    "Distinct",
    "DistinctSum",
    "Mean",
    "Sum",
    "centred_channels",
    "fill_each",
]

Column = NDArray[np.float64]
Flags = NDArray[np.bool_]

WIDER = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)  # confidences at which a mean that left its range is looked for


@dataclass(frozen=True)
class Channels:
    """Noisy channels in their own grid units, with the reach of one unit and the noise they carry."""

    values: Mapping[str, Column]
    reach: Mapping[str, float]
    noise: JointNoise

    def width(self, terms: Mapping[str, object], confidence: float) -> Column:
        """How far sum of coefficient * channel strays, with this confidence."""
        parts = [np.asarray(coefficient) * self.reach[name] for name, coefficient in terms.items()]
        return np.asarray(self.noise.width(parts, confidence), np.float64)

    def count_width(self, name: str, confidence: float) -> Column:
        """The error bar of a channel that counts something.

        One channel has discrete Laplace noise on whole numbers: P(|X| > w) = 2 q**(w + 1) / (1 + q) for whole w, and
        what lies between two of them covers no more than the lower one.
        """
        width = self.same_width({name: 1.0}, confidence)
        if self.noise.kind != "laplace" or self.noise.channels != 1 or not self.reach[name]:
            return width
        scale = self.noise.deviation(self.reach[name]) / math.sqrt(2)
        least = scale * (math.log(2 / (1 - confidence)) - math.log1p(math.exp(-1 / scale)))
        return np.maximum(width, math.ceil(least * (1 + 2.0**-40)) - 1)

    def of_groups(self, places: NDArray[np.intp]) -> Channels:
        """Those of some groups alone."""
        return replace(self, values={name: column[places] for name, column in self.values.items()})

    def same_width(self, terms: Mapping[str, object], confidence: float) -> Column:
        """An error bar that is the same for every group."""
        groups = len(next(iter(self.values.values())))
        return np.broadcast_to(self.width(terms, confidence), (groups,)).copy()


@dataclass(frozen=True)
class Aggregate:
    """The root: something that is asked of every group.

    >>> from mosha.tables import count
    >>> isinstance(count(), Aggregate)
    True
    """

    def check(self, schema: Schema) -> None:
        """Refuse columns that are not in `schema` or have the wrong type."""
        for measured in self.numbers():
            measured.check(schema)

    def numbers(self) -> tuple[Measured, ...]:
        """The numbers with bounds that it is made of."""
        return ()

    def fill_ranges(self, ranges: Mapping[str, Range]) -> Self:
        """With the `ranges` that were bought or declared."""
        del ranges
        return self


Kind = TypeVar("Kind", bound=Aggregate)


def fill_each(aggregates: Mapping[str, Kind], ranges: Mapping[str, Any]) -> dict[str, Kind]:
    """Aggregates with the ranges that were bought: the first two numbers of what is known of each column."""
    bought = {key: (float(low), float(high)) for key, (low, high, *_) in ranges.items()}
    return {name: aggregate.fill_ranges(bought) for name, aggregate in aggregates.items()}


@dataclass(frozen=True)
class Additive(Aggregate):
    """An aggregate that is made of noisy sums."""

    def channels(self) -> Mapping[str, Value]:
        """The exact sums it needs, by a name that tells equal ones apart from others."""
        raise NotImplementedError

    def squares(self) -> Sequence[str]:
        """The channels that are sums of squares: a forecast takes values to be spread evenly over their range."""
        return ()

    def answer(self, channels: Channels) -> Column:
        raise NotImplementedError

    def error(self, channels: Channels, confidence: float) -> Column:
        """The half-width of the error bar of each answer."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Count(Additive):
    """How many rows, or how many rows in which a column is not missing."""

    of: Expression | None = None

    def check(self, schema: Schema) -> None:
        if self.of is not None:
            type_of(self.of, schema)

    @property
    def _channel(self) -> str:
        return "rows" if self.of is None else f"rows with {self.of!r}"

    def channels(self) -> Mapping[str, Value]:
        return {self._channel: Rows(self.of)}

    def answer(self, channels: Channels) -> Column:
        return channels.values[self._channel]

    def error(self, channels: Channels, confidence: float) -> Column:
        return channels.count_width(self._channel, confidence)


@dataclass(frozen=True, eq=False)
class CountPersons(Additive):
    """How many persons."""

    def channels(self) -> Mapping[str, Value]:
        return {"persons": Persons()}

    def answer(self, channels: Channels) -> Column:
        return channels.values["persons"]

    def error(self, channels: Channels, confidence: float) -> Column:
        return channels.count_width("persons", confidence)


@dataclass(frozen=True, eq=False)
class Distinct(Aggregate):
    """How many different values a column has; missing ones do not count."""

    of: Expression

    def check(self, schema: Schema) -> None:
        type_of(self.of, schema)


@dataclass(frozen=True, eq=False)
class DistinctSum(Distinct):
    """The sum of the different values of a column, each first clamped into its range and rounded to its grid."""

    measured: Measured

    def check(self, schema: Schema) -> None:
        self.measured.check(schema)

    def numbers(self) -> tuple[Measured, ...]:
        return (self.measured,)

    def fill_ranges(self, ranges: Mapping[str, Range]) -> Self:
        measured = self.measured.fill_ranges(ranges)
        return replace(self, measured=measured, of=measured.plain.known)


def centred_channels(measured: Measured) -> tuple[str, str]:
    """The names of the two channels of a mean: the number of values, and their sum from the middle of the range."""
    return f"rows with {measured.of!r}", f"sum from the middle of {measured.key}"


@dataclass(frozen=True, eq=False)
class Sum(Additive):
    """The sum of a column, every value first clamped into its range; missing values count nothing."""

    measured: Measured

    def numbers(self) -> tuple[Measured, ...]:
        return (self.measured,)

    def fill_ranges(self, ranges: Mapping[str, Range]) -> Self:
        return replace(self, measured=self.measured.fill_ranges(ranges))

    @property
    def _channel(self) -> str:
        return f"sum of {self.measured.key}"

    def channels(self) -> Mapping[str, Value]:
        return {self._channel: self.measured.plain}

    def is_made_of(self, channels: Mapping[str, object]) -> bool:
        """Whether a count and a sum from the middle are there, which give the sum without a channel of its own."""
        return all(name in channels for name in centred_channels(self.measured))

    def _terms(self, channels: Channels) -> dict[str, float]:
        if self._channel in channels.values:
            return {self._channel: 1.0}
        counted, centred = centred_channels(self.measured)
        return {centred: 1.0, counted: float(self.measured.middle)}

    def answer(self, channels: Channels) -> Column:
        terms = self._terms(channels).items()
        total = np.sum([factor * channels.values[name] for name, factor in terms], axis=0)
        return np.asarray(total * self.measured.grid, np.float64)

    def error(self, channels: Channels, confidence: float) -> Column:
        return channels.same_width(self._terms(channels), confidence) * self.measured.grid


@dataclass(frozen=True, eq=False)
class Mean(Additive):
    """The mean of a column: the sum from the middle of its range over the count of values, noised together."""

    measured: Measured

    def numbers(self) -> tuple[Measured, ...]:
        return (self.measured,)

    def fill_ranges(self, ranges: Mapping[str, Range]) -> Self:
        return replace(self, measured=self.measured.fill_ranges(ranges))

    def channels(self) -> Mapping[str, Value]:
        counted, centred = centred_channels(self.measured)
        return {counted: Rows(self.measured.of), centred: self.measured.centred}

    def answer(self, channels: Channels) -> Column:
        counted, total = (channels.values[name] for name in centred_channels(self.measured))
        centred = np.divide(total, counted, out=np.zeros_like(total), where=counted > 0)
        return np.clip((centred + self.measured.middle) * self.measured.grid, *self.measured.between)

    def error(self, channels: Channels, confidence: float) -> Column:
        """Fieller's argument: x covers the truth if |S - x N| is within the noise of S - x N.

        Where no x of the range is in it, the noise has strayed beyond its bar. The bar is then that of the first
        confidence of `WIDER` which meets the range, or the whole range: more confidence is never a narrower bar.
        """
        low, high = (edge / self.measured.grid - self.measured.middle for edge in self.measured.between)
        counted, total = (channels.values[name] for name in centred_channels(self.measured))
        strayed = (counted > 0) & ((total < low * counted) | (total > high * counted))
        left, right, _ = self._interval(channels, confidence, low, high)
        outside = np.flatnonzero(strayed)
        for level in WIDER if len(outside) else ():
            lower, upper, meets = self._interval(channels.of_groups(outside), level, low, high)
            if level > confidence:
                left[outside[meets]], right[outside[meets]] = lower[meets], upper[meets]
            outside = outside[~meets]
        left[outside], right[outside] = low, high
        point = self.answer(channels) / self.measured.grid - self.measured.middle
        bars: Column = (np.maximum(right - point, point - left) + 1.0) * self.measured.grid
        return bars

    def _interval(self, channels: Channels, confidence: float, low: float, high: float) -> tuple[Column, Column, Flags]:
        """The least and greatest x of the range that may be the truth, and whether there is any.

        Narrowed from the whole range in a few rounds, each valid where the one before is.
        """
        names = centred_channels(self.measured)
        counted, total = (channels.values[name] for name in names)
        left: Column = np.full(counted.shape, low)
        right: Column = np.full(counted.shape, high)
        usable = counted > 0
        safe = np.where(usable, counted, 1.0)
        for _ in range(4):
            furthest = np.maximum(np.abs(left), np.abs(right))
            reach = channels.width({names[1]: np.ones_like(furthest), names[0]: furthest}, confidence) / safe
            meets = usable & (total / safe - reach <= high) & (total / safe + reach >= low)
            left = np.where(meets, np.clip(total / safe - reach, low, high), low)
            right = np.where(meets, np.clip(total / safe + reach, low, high), high)
        return left, right, meets


def list_unknown(aggregates: Mapping[str, Aggregate]) -> list[Measured]:
    """The numbers whose range is yet to be bought, each once."""
    found = {m.key: m for aggregate in aggregates.values() for m in aggregate.numbers() if m.automatic}
    return list(found.values())
