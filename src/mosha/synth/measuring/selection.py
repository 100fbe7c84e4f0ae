"""Values that nobody listed, bought from the data: those are shown whose noisy count exceeds a threshold.

What was not shown shares the cell of missing values. The proof stands in `selection.md`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.connect.engines.source import answer_in_batches
from mosha.connect.language.expression import col
from mosha.connect.language.schema import Type
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.relation import Relation
from mosha.connect.plan.source import Totals
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Failure
from mosha.core.measurement import Rng
from mosha.core.unit import Unit
from mosha.exact.grid import LARGEST_STEPS, add_noise
from mosha.mechanisms.residuals.axis import Reals
from mosha.mechanisms.residuals.residuals import ResidualNoise
from mosha.noise import discrete_gaussian
from mosha.synth.measuring.columns import CodedColumn, Wholes, coded_keys
from mosha.synth.measuring.counting import reach_of
from mosha.tables.parts.part import Frame
from mosha.tables.parts.shown_groups import ShownGroups

__all__ = ["MOST_SHOWN", "FoundColumn", "KeyNoise", "fill_columns", "find_keys", "found_column", "key_question"]

MOST_SHOWN = 1000
"""No column shows more values than this: those with the largest noisy counts."""

MOST_VALUES = 1 << 16
"""One unit may have a part in at most so many values of a column."""

GUESSED = 20
"""So many values a forecast takes such a column for."""

_STEPS = 4
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class FoundColumn(CodedColumn):
    """A column whose values come from the data: one cell, of all that was not shown, until they were bought."""

    hierarchy: Mapping[object, object] | None = None

    def fill(self, values: Sequence[object]) -> CodedColumn:
        """The column with the values that were shown; all others share the cell of missing values."""
        if not values:
            return CodedColumn(self.name, self.kind, (None,))
        return coded_keys(self.name, self.kind, values, self.hierarchy, missing=True)

    def guess(self) -> CodedColumn:
        """The column as a forecast takes it, with values of its own making."""
        return CodedColumn(self.name, self.kind, (*(f"value {i + 1}" for i in range(GUESSED)), None))


def fill_columns(columns: Sequence[CodedColumn], shown: Mapping[str, Sequence[object]]) -> tuple[CodedColumn, ...]:
    """The columns with the values that were bought; others stay as they are."""
    return tuple(c.fill(shown[c.name]) if isinstance(c, FoundColumn) else c for c in columns)


@dataclass(frozen=True)
class KeyNoise:
    """One discrete Gaussian mechanism on the counts of all values of some columns, and a threshold for them.

    Guarantee:
        Let one unit add rows whose weights sum to at most `noise.reach`, or take them away. Then the values that
        `find_keys` shows cost `event`: `selection.md`.

    Fields:
        noise: multiplier, reach and resolution; its coordinates are at least the numbers that one unit moves.
        columns: how many columns.
        failing: the probability that a value of one unit alone is shown, all columns together.
    """

    noise: ResidualNoise
    columns: int
    failing: float

    def __post_init__(self) -> None:
        if self.noise.reach > MOST_VALUES or self.columns * self.noise.reach > self.noise.coordinates:
            raise InvalidParameter("synth.too_many_values", most=MOST_VALUES, spent="nothing")

    @property
    def event(self) -> Event:
        return Failure(self.noise.event, self.failing)

    @property
    def factor(self) -> int:
        """The whole number k that counts are multiplied by: k**2 * reach**2 * columns is at most resolution**2."""
        found = math.isqrt(self.noise.resolution**2 // (self.noise.reach**2 * self.columns))
        if found < 1:
            raise InvalidParameter("synth.too_many_terms")
        return found

    @property
    def threshold(self) -> int:
        """In grid steps: any value of one unit alone exceeds it with probability `failing` at most, all together."""
        from scipy.special import ndtr  # noqa: PLC0415  (slow to import)

        sigma, own = float(self.noise.sigma), self.factor * self.noise.reach
        largest = own / np.arange(1, self.noise.reach + 1)

        def fails(level: float) -> bool:
            return self.columns * float(ndtr((largest + _STEPS - level) / sigma).sum()) * (1 + 2.0**-20) > self.failing

        low, high = float(own), own + _STEPS + sigma
        while fails(high):
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if fails(middle) else (low, middle)
        return math.ceil(high)

    @property
    def least_count(self) -> float:
        """The threshold in the unit of the counts."""
        return self.threshold / self.factor


def key_question(relation: Relation, unit: Unit, name: str) -> Aggregation:
    """What the engine is asked: the values of a column, each unit's part bounded as in all counts."""
    _, bound = reach_of(unit, relation)
    return Aggregation(relation, ((name, col(name)),), (("rows", Rows()),), bound=bound)


def find_keys(
    noise: KeyNoise, relation: Relation, unit: Unit, names: Sequence[str], rng: Rng
) -> dict[str, list[object]]:
    """The values of each column that are shown, in the order of their names."""
    if len(names) > noise.columns:
        raise InvalidParameter("synth.more_than_paid")
    return {name: _show(noise, key_question(relation, unit, name), unit, rng) for name in names}


def _show(noise: KeyNoise, question: Aggregation, unit: Unit, rng: Rng) -> list[object]:
    threshold, factor = noise.threshold, noise.factor
    shown = ShownGroups(Frame(question.relation, unit, question.keys), 1)

    def use(totals: Totals) -> None:
        counts = np.asarray(totals["rows"], np.int64)
        noisy = _add(counts, noise.noise, factor, rng)
        shown.add(totals, np.flatnonzero((counts > 0) & (noisy > threshold)), noisy.reshape(-1, 1).astype(np.float64))

    answer_in_batches(question, use)
    groups, counts = shown.list()
    return _largest([group[0] for group in groups], counts.reshape(-1))


def _add(counts: Wholes, noise: ResidualNoise, factor: int, rng: Rng) -> NDArray[np.int64]:
    steps = np.minimum(counts, LARGEST_STEPS // factor) * factor
    return add_noise(steps, np.asarray(discrete_gaussian(noise.sigma, len(counts), rng=rng), np.int64).reshape(-1))


def _largest(values: list[object], counts: Reals) -> list[object]:
    """At most `MOST_SHOWN` values, those with the largest noisy counts, in their order; missing values are no value."""
    places = [int(place) for place in np.argsort(-counts, kind="stable") if values[place] is not None]
    return [values[place] for place in sorted(places[:MOST_SHOWN])]


def found_column(name: str, kind: Type, hierarchy: Mapping[object, object] | None) -> FoundColumn:
    """A column whose values are to be bought: text and whole numbers alone."""
    if kind not in {Type.TEXT, Type.INTEGER}:
        raise InvalidParameter("synth.keys_of_kind", parameter="keys", column=name, kind=str(kind))
    return FoundColumn(name, kind, (None,), hierarchy=hierarchy)
