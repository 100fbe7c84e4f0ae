"""What can be asked of each group: counts, sums, means and spreads, as noisy channels and what is made of them.

An aggregate names the exact integer channels it needs, and turns their noisy values into an answer with an error bar:
post-processing, which costs nothing. Aggregates of one release share channels (the mean and the variance of a column
need one count), and all channels share one weight for each person.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.connect.checking import type_of
from mosha.connect.expression import Expression, as_expression, col
from mosha.connect.schema import Schema
from mosha.connect.value import Clamped, Persons, Product, Rows, Value
from mosha.core.errors import DataError, InvalidParameter, Unbounded
from mosha.core.number import real
from mosha.tables.joint_noise import JointNoise

__all__ = [
    "Additive",
    "Aggregate",
    "Channels",
    "correlation",
    "count",
    "covariance",
    "mean",
    "persons",
    "standard_deviation",
    "sum",
    "variance",
]

Column = NDArray[np.float64]
FINENESS = 18


@dataclass(frozen=True)
class Channels:
    """Noisy channels in their own grid units, with the reach of one unit and the noise they carry."""

    values: Mapping[str, Column]
    reach: Mapping[str, float]
    noise: JointNoise

    def width(self, terms: Mapping[str, Any], confidence: float) -> Column:
        """How far sum of coefficient * channel strays, with this confidence."""
        parts = [np.asarray(coefficient) * self.reach[name] for name, coefficient in terms.items()]
        return np.asarray(self.noise.width(parts, confidence), np.float64)


@dataclass(frozen=True)
class Aggregate:
    """The root: something that is asked of every group."""

    def check(self, schema: Schema) -> None:
        """Refuse columns that are not there or have the wrong type."""


@dataclass(frozen=True)
class Additive(Aggregate):
    """An aggregate that is made of noisy sums."""

    def channels(self) -> Mapping[str, Value]:
        """The exact sums it needs, by a name that tells equal ones apart from others."""
        raise NotImplementedError

    def answer(self, channels: Channels) -> Column:
        raise NotImplementedError

    def error(self, channels: Channels, confidence: float) -> Column:
        """The half-width of the error bar of each answer."""
        raise NotImplementedError


def _numeric(column: Any) -> Expression:
    return col(column) if isinstance(column, str) else as_expression(column)


def _range(name: str, between: Any) -> tuple[float, float]:
    if between is None:
        raise Unbounded(
            f"{name} needs between=(low, high): without a range one person can move it without limit. "
            "If you do not know one, between='automatic' buys one from the budget."
        )
    try:
        low, high = between
    except (TypeError, ValueError):
        raise InvalidParameter("between is a pair: between=(low, high).") from None
    low, high = real("low", low), real("high", high)
    if not low < high:
        raise InvalidParameter(f"between=(low, high) must have low < high, got ({low:g}, {high:g}).")
    return low, high


@dataclass(frozen=True, eq=False)
class Measured:
    """A number with declared bounds, seen from the middle of its range on a public grid of 2**18 steps."""

    name: str
    of: Expression
    between: tuple[float, float]

    @property
    def exponent(self) -> int:
        """The grid is 2**-exponent, with 2**17 to 2**18 steps in half the range."""
        return FINENESS - math.frexp(self.between[1] / 2 - self.between[0] / 2)[1]

    @property
    def grid(self) -> float:
        return math.ldexp(1.0, -self.exponent)

    @property
    def middle(self) -> int:
        """The middle of the range in grid units."""
        return math.floor((self.between[0] / 2 + self.between[1] / 2) / self.grid + 0.5)

    @property
    def centred(self) -> Clamped:
        return Clamped(self.of, self.between, exponent=self.exponent, centre=self.middle)

    @property
    def plain(self) -> Clamped:
        return Clamped(self.of, self.between, exponent=self.exponent)

    @property
    def key(self) -> str:
        return f"{self.of!r} in [{self.between[0]:.17g}, {self.between[1]:.17g}]"

    def check(self, schema: Schema) -> None:
        if not type_of(self.of, schema).numeric:
            raise DataError(f"{self.name} needs a number, and {self.of!r} is {type_of(self.of, schema)}.")

    @staticmethod
    def of_column(name: str, column: Any, between: Any) -> Measured:
        return Measured(f"{name}({column!r})", _numeric(column), _range(f"{name}({column!r})", between))


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
        return _spread(channels, {self._channel: 1.0}, confidence)


@dataclass(frozen=True, eq=False)
class CountPersons(Additive):
    """How many persons."""

    def channels(self) -> Mapping[str, Value]:
        return {"persons": Persons()}

    def answer(self, channels: Channels) -> Column:
        return channels.values["persons"]

    def error(self, channels: Channels, confidence: float) -> Column:
        return _spread(channels, {"persons": 1.0}, confidence)


def _spread(channels: Channels, terms: Mapping[str, Any], confidence: float) -> Column:
    """An error bar that is the same for every group."""
    groups = len(next(iter(channels.values.values())))
    return np.broadcast_to(channels.width(terms, confidence), (groups,)).copy()


@dataclass(frozen=True, eq=False)
class Sum(Additive):
    """The sum of a column, every value first clamped into its range; missing values count nothing."""

    measured: Measured

    def check(self, schema: Schema) -> None:
        self.measured.check(schema)

    @property
    def _channel(self) -> str:
        return f"sum of {self.measured.key}"

    def channels(self) -> Mapping[str, Value]:
        return {self._channel: self.measured.plain}

    def answer(self, channels: Channels) -> Column:
        return channels.values[self._channel] * self.measured.grid

    def error(self, channels: Channels, confidence: float) -> Column:
        return _spread(channels, {self._channel: 1.0}, confidence) * self.measured.grid


@dataclass(frozen=True, eq=False)
class Mean(Additive):
    """The mean of a column: the sum from the middle of its range over the count of values, noised together."""

    measured: Measured

    def check(self, schema: Schema) -> None:
        self.measured.check(schema)

    @property
    def _names(self) -> tuple[str, str]:
        return f"rows with {self.measured.of!r}", f"sum from the middle of {self.measured.key}"

    def channels(self) -> Mapping[str, Value]:
        return dict(zip(self._names, (Rows(self.measured.of), self.measured.centred), strict=True))

    def answer(self, channels: Channels) -> Column:
        counted, total = (channels.values[name] for name in self._names)
        centred = np.divide(total, counted, out=np.zeros_like(total), where=counted > 0)
        return np.clip((centred + self.measured.middle) * self.measured.grid, *self.measured.between)

    def error(self, channels: Channels, confidence: float) -> Column:
        """Fieller's argument: x covers the truth if |S - x N| is within the noise of S - x N.

        The interval of such x is narrowed from the whole range in a few rounds, each valid.
        """
        names, grid = self._names, self.measured.grid
        counted, total = (channels.values[name] for name in names)
        low, high = (edge / grid - self.measured.middle for edge in self.measured.between)
        left, right = np.full(counted.shape, low), np.full(counted.shape, high)
        usable = counted > 0
        safe = np.where(usable, counted, 1.0)
        for _ in range(4):
            furthest = np.maximum(np.abs(left), np.abs(right))
            reach = channels.width({names[1]: np.ones_like(furthest), names[0]: furthest}, confidence) / safe
            left = np.where(usable, np.clip(total / safe - reach, low, high), low)
            right = np.where(usable, np.clip(total / safe + reach, low, high), high)
        point = self.answer(channels) / grid - self.measured.middle
        bars: Column = (np.maximum(right - point, point - left) + 1.0) * grid
        return bars


@dataclass(frozen=True, eq=False)
class Covariance(Additive):
    """The covariance of two columns (of one with itself: the variance), over rows in which both are there."""

    first: Measured
    second: Measured

    def check(self, schema: Schema) -> None:
        self.first.check(schema)
        self.second.check(schema)

    @property
    def _both(self) -> Expression:
        """Missing where either column is."""
        return self.first.of * 0.0 + self.second.of * 0.0

    @property
    def _same(self) -> bool:
        return self.first.key == self.second.key

    @property
    def _names(self) -> tuple[str, str, str, str]:
        with_both = self.first.of if self._same else self._both
        counted = f"rows with {with_both!r}"
        if self._same:
            one = f"sum from the middle of {self.first.key}"
            return counted, one, one, f"sum of squares of {self.first.key}"
        sums = (f"sum from the middle of {m.key} with {with_both!r}" for m in (self.first, self.second))
        return (counted, *sums, f"sum of products of {self.first.key} and {self.second.key}")  # type: ignore[return-value]

    def channels(self) -> Mapping[str, Value]:
        names = self._names
        if self._same:
            rows, first, second = Rows(self.first.of), self.first.centred, self.first.centred
        else:
            rows = Rows(self._both)
            first, second = (self._restricted(m).centred for m in (self.first, self.second))
        return {names[0]: rows, names[1]: first, names[2]: second, names[3]: Product(first, second)}

    def _restricted(self, measured: Measured) -> Measured:
        return Measured(measured.name, measured.of + self._both, measured.between)

    def _moments(self, channels: Channels) -> tuple[Column, Column, Column, Column]:
        counted, first, second, product = (channels.values[name] for name in self._names)
        safe = np.maximum(counted, 1.0)
        return safe, first / safe, second / safe, product / safe

    def _limits(self) -> tuple[float, float]:
        high = math.prod((m.between[1] - m.between[0]) / 2 for m in (self.first, self.second))
        return (0.0 if self._same else -high), high

    def answer(self, channels: Channels) -> Column:
        _, first, second, product = self._moments(channels)
        return np.clip((product - first * second) * self.first.grid * self.second.grid, *self._limits())

    def error(self, channels: Channels, confidence: float) -> Column:
        """First-order error of P/n - (S/n)(T/n), evaluated at a count that noise may have made too large."""
        counted, first, second, product = self._moments(channels)
        names = self._names
        terms: dict[str, Any] = {names[3]: np.ones_like(counted), names[1]: -second}
        terms[names[2]] = terms.get(names[2], 0.0) - first
        terms[names[0]] = 2 * first * second - product
        ones = np.ones_like(counted)
        least = np.maximum(1.0, counted - channels.width({names[0]: ones}, confidence))
        bars = channels.width(terms, confidence) / least
        quadratic = (channels.width({names[1]: ones}, confidence) / least) * (
            channels.width({names[2]: ones}, confidence) / least
        )
        low, high = self._limits()
        return np.minimum((bars + quadratic) * self.first.grid * self.second.grid, high - low)


@dataclass(frozen=True, eq=False)
class StandardDeviation(Additive):
    """The root of the variance."""

    variance: Covariance

    def check(self, schema: Schema) -> None:
        self.variance.check(schema)

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
    """Pearson's correlation of two columns."""

    parts: tuple[Covariance, Covariance, Covariance] = field(repr=False)

    def check(self, schema: Schema) -> None:
        self.parts[0].check(schema)

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


def count(column: Any = None) -> Count:
    """How many rows (with `column`: in which it is not missing)."""
    return Count(None if column is None else _numeric(column))


def persons() -> CountPersons:
    """How many persons."""
    return CountPersons()


def sum(column: Any, *, between: tuple[float, float]) -> Sum:  # noqa: A001  (the analyst's word)
    """The sum of a column whose values are clamped into [low, high]."""
    return Sum(Measured.of_column("sum", column, between))


def mean(column: Any, *, between: tuple[float, float]) -> Mean:
    """The mean of a column whose values are clamped into [low, high]."""
    return Mean(Measured.of_column("mean", column, between))


def variance(column: Any, *, between: tuple[float, float]) -> Covariance:
    """The variance of a column whose values are clamped into [low, high]."""
    measured = Measured.of_column("variance", column, between)
    return Covariance(measured, measured)


def standard_deviation(column: Any, *, between: tuple[float, float]) -> StandardDeviation:
    """The standard deviation of a column whose values are clamped into [low, high]."""
    return StandardDeviation(variance(column, between=between))


def covariance(columns: Sequence[Any], *, between: Sequence[tuple[float, float]]) -> Covariance:
    """The covariance of two columns, each clamped into its own (low, high)."""
    first, second = _pair(columns, between)
    return Covariance(first, second)


def correlation(columns: Sequence[Any], *, between: Sequence[tuple[float, float]]) -> Correlation:
    """The correlation of two columns, each clamped into its own (low, high)."""
    first, second = _pair(columns, between)
    both = Covariance(first, second)
    ones = [Covariance(m, m) for m in (both._restricted(first), both._restricted(second))]  # noqa: SLF001
    return Correlation((both, ones[0], ones[1]))


def _pair(columns: Sequence[Any], between: Sequence[tuple[float, float]]) -> tuple[Measured, Measured]:
    if len(columns) != 2 or len(between) != 2:
        raise InvalidParameter("two columns are needed, and a range (low, high) for each of them.")
    first, second = (Measured.of_column("covariance", c, b) for c, b in zip(columns, between, strict=True))
    return first, second
