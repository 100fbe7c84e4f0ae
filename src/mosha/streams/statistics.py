"""Statistics of one step that tables have no need of: sums by key, and the two halves of a mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.unit import Neighbors, Unit
from mosha.exact.bounding import keep_at_most, read_rows, rows_per_unit, to_array, to_numbers
from mosha.exact.grid import grid_for, sum_steps, sum_steps_by
from mosha.exact.statistic import Sensitivity, Steps, root_up
from mosha.mechanisms import ClippedSum, Histogram
from mosha.streams.batches import Batches
from mosha.streams.plan import Plan, StreamState
from mosha.streams.stream import Stream

__all__ = ["KeyedSum", "MeanParts", "mean_of"]


def _require_one_row(unit: Unit) -> None:
    if rows_per_unit(unit) != 1 or unit.neighbors is not Neighbors.ADD_REMOVE:
        raise InvalidParameter("streams.statistic_of_streams", parameter="unit")


@dataclass(frozen=True, kw_only=True)
class KeyedSum:
    """For each of `keys` the sum of `column` over the rows with that key, each value clamped into `between`.

    Guarantee:
        A row adds a whole number of steps of size at most max(|low|, |high|) to one coordinate, or nothing.

    >>> from mosha.core.unit import Reading
    >>> rooms = KeyedSum(keys=["a", "b"], key="room", between=(0, 4), column="kW")
    >>> (rooms.evaluate({"room": ["a", "b", "a", "x"], "kW": [1, 9, 2, 3]}, Reading()) * rooms.grid).tolist()
    [3.0, 4.0]
    """

    keys: Sequence[Any]
    key: str
    between: tuple[float, float]
    column: str
    _keyed: Histogram = field(init=False, repr=False, compare=False)
    _sum: ClippedSum = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keyed", Histogram(keys=self.keys, column=self.key))
        object.__setattr__(self, "keys", self._keyed.keys)
        object.__setattr__(self, "_sum", ClippedSum(between=self.between, column=self.column))

    @property
    def grid(self) -> float:
        return self._sum.grid

    @property
    def labels(self) -> tuple[Any, ...]:
        return self._keyed.labels

    def sensitivity(self, unit: Unit) -> Sensitivity:
        _require_one_row(unit)
        return replace(self._sum.sensitivity(unit), l0=1)

    @np.errstate(all="ignore")
    def evaluate(self, data: Any, unit: Unit) -> Steps:
        if not (hasattr(data, "keys") and self.key in data and self.column in data):
            raise DataError("streams.columns_missing", columns=[self.key, self.column])
        keys, _ = read_rows(data, unit, self.key)
        values, persons = read_rows(data, unit, self.column)
        codes = self._keyed._codes(to_array(keys))  # noqa: SLF001  (one definition of what a key is)
        steps = self._sum._steps(to_numbers(values))  # noqa: SLF001
        if persons is not None:
            kept = keep_at_most(1, persons, np.stack([codes, steps], axis=1))
            codes, steps = codes[kept], steps[kept]
        largest = max(1, self._sum.sensitivity(unit).l1)
        return sum_steps_by(codes, steps, len(self.labels), largest)


@dataclass(frozen=True, kw_only=True)
class MeanParts:
    """Two numbers for a mean: how many values there are, and the sum of their distances from the middle of `between`.

    Both are in halves of the width of `between`, so that one row moves each by at most one half.

    Guarantee:
        A row with a number adds (h, s) with h steps fixed and |s| <= h; any other row adds nothing: l1 <= 2 h and l2 <=
        sqrt(2) h.

    >>> from mosha.core.unit import Reading
    >>> parts = MeanParts(between=(0, 10))
    >>> (parts.evaluate([5, 10, float("nan")], Reading()) * parts.grid).tolist()
    [10.0, 5.0]
    """

    between: tuple[float, float]
    column: str | None = None
    labels: tuple[str, str] = ("count", "sum")

    def __post_init__(self) -> None:
        object.__setattr__(self, "between", ClippedSum(between=self.between).between)

    @property
    def half(self) -> float:
        return (self.between[1] - self.between[0]) / 2

    @property
    def grid(self) -> float:
        return grid_for(self.half)

    @property
    def _steps(self) -> int:
        return int(np.ceil(self.half / self.grid))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        _require_one_row(unit)
        steps = self._steps
        return Sensitivity(l0=2, l1=2 * steps, l2=root_up(2 * steps**2), linf=steps, span=2 * steps)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        values, persons = read_rows(data, unit, self.column)
        column = to_numbers(values)
        low, high = self.between
        centred = np.clip(column, low, high) - (low / 2 + high / 2)
        there = ~np.isnan(column)
        steps = np.clip(np.rint(np.where(there, centred, 0.0) / self.grid), -self._steps, self._steps).astype(np.int64)
        parts = np.stack([np.where(there, self._steps, 0), steps], axis=1)
        if persons is not None:
            parts = parts[keep_at_most(1, persons, parts)]
        return sum_steps(parts, self._steps)


def mean_of(stream: Stream, parts: MeanParts) -> Stream:
    """The stream of means: the quotient of the two numbers, held within the declared range.

    The error bar of a step follows from the noisy count, which is published with the mean: a state holds both.
    """
    low, high = parts.between
    middle = low / 2 + high / 2

    def quotient(count: float, away: float) -> float:
        return float(min(high, max(low, middle + away / max(count, parts.half) * parts.half)))

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, Any]:
        answer, state = stream.step(state, data, ask, rng)
        shown = np.asarray(answer, np.float64)
        state = replace(state, shown=shown)
        if isinstance(data, Batches):
            return np.array([quotient(count, away) for count, away in shown]), state
        return quotient(*shown.tolist()), state

    def error_from(state: StreamState) -> Callable[[float, Any], Any] | None:
        if state.shown is None:  # saved before states held what was shown
            return None
        found, last = np.atleast_2d(state.shown), state.time  # a release keeps nothing else of a state: it is secret

        def error(confidence: float, answer: object) -> Any:
            steps = range(last - len(found) + 1, last + 1)
            widths = [
                find_mean_width(stream.plan, parts.half, pair, step, confidence)
                for pair, step in zip(found.tolist(), steps, strict=True)
            ]
            return np.array(widths) if isinstance(answer, np.ndarray) else widths[0]

        return error

    return replace(stream, step=step, error=None, error_from=error_from)


def find_mean_width(plan: Plan, half: float, shown: Sequence[float], step: int, confidence: float) -> float:
    """How far the mean of a step may be from the quotient of what was shown: a noisy count and a noisy centred sum.

    Guarantee:
        Let the rows have the count C and the centred sum A = m C, both in halves of the width of the range, |m| <= 1,
        and let c and a be what was shown. Then a - m c is a sum of noise, of which the count's is |m| times as heavy,
        and |a / c - m| is at most its width over c. A bound on |m| that follows from this one is used for the next.
    """
    count, away = float(shown[0]), float(shown[1])
    if count < half:
        return 2 * half
    found, off = min(1.0, max(-1.0, away / count)), 2.0
    for _ in range(3):
        off = min(off, plan.width_at(confidence, step, min(1.0, abs(found) + off)) / count)
    return min(2.0, off) * half
