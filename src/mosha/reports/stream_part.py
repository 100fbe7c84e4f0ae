"""A stream in a report: the steps of a period, fed from a file of rows with a date, or from Python."""

from __future__ import annotations

import bisect
import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mosha.core.account import Account
from mosha.core.budget import Budget
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.language import Language, say
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import real
from mosha.core.release import Receipt
from mosha.core.unit import Unit
from mosha.reports.parts import Part, ReadyPart, join_fingerprints
from mosha.streams import Batches, Instant, Running, Stream, counter, total
from mosha.tables import Answer

__all__ = ["RowsOfFile", "StepRows", "StreamKind", "StreamPart", "StreamShow", "StreamStep"]

StepRows = Iterable[Mapping[str, Any]] | Callable[..., Any]
StreamKind = Literal["counter", "total"]
StreamShow = Literal["running", "each"]
StreamStep = Literal["day", "week", "month"]


@dataclass(frozen=True)
class RowsOfFile:
    """A CSV file whose rows say by an ISO date to which step they belong; it is read when it has been paid for."""

    path: str
    time: str

    def __call__(self, starts: tuple[date, ...], end: date) -> Batches:
        """The rows of every step; those outside of all steps, or without a date, are left out."""
        columns: dict[str, list[str]] = {}
        steps: list[int] = []
        with Path(self.path).open(encoding="utf-8-sig", newline="", errors="replace") as file:
            reader = csv.DictReader(file)
            names = [name for name in reader.fieldnames or [] if name]
            columns = {name: [] for name in names}
            for row in reader:
                steps.append(_find_step(row.get(self.time), starts, end))
                for name in names:
                    columns[name].append(row.get(name) or "")
        return Batches.at(columns, steps=np.array(steps, np.int64), count=len(starts))

    def check(self, *needed: str) -> None:
        """Refuse a file that is absent or lacks a column: its header is public."""
        try:
            with Path(self.path).open(encoding="utf-8-sig", newline="") as file:
                names = next(csv.reader(file), [])
        except (OSError, UnicodeDecodeError):
            raise DataError("reports.stream_file", path=self.path, spent="nothing") from None
        if missing := [name for name in (self.time, *needed) if name not in names]:
            raise DataError("reports.stream_column", column=missing[0], columns=names, spent="nothing")


def _find_step(text: str | None, starts: tuple[date, ...], end: date) -> int:
    try:
        day = date.fromisoformat((text or "")[:10])
    except ValueError:
        return -1
    if not starts[0] <= day < end:
        return -1
    return bisect.bisect_right(starts, day) - 1


def list_starts(start: date, end: date, step: StreamStep) -> tuple[date, ...]:
    """The first day of every step of a period.

    >>> [str(day) for day in list_starts(date(2026, 1, 1), date(2026, 4, 1), "month")]
    ['2026-01-01', '2026-02-01', '2026-03-01']
    """
    found, day = [], start
    while day < end:
        found.append(day)
        if step == "month":
            day = date(day.year + day.month // 12, day.month % 12 + 1, 1)
        else:
            day += timedelta(days=7 if step == "week" else 1)
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class StreamPart(Part):
    """Rows (or the sum of a column) step by step over a period, all steps paid for together.

    Guarantee:
        The steps of one `Stream` in their order, whose event pays for all of them.
    """

    whose: Unit
    payer: Account | None = None
    starts: tuple[date, ...]
    end: date
    rows: Callable[[tuple[date, ...], date], Batches | Iterable[Any]] = field(compare=False)
    kind: StreamKind = "counter"
    column: str | None = None
    between: tuple[float, float] | None = None
    show: StreamShow = "each"

    def __post_init__(self) -> None:
        if not self.starts:
            raise InvalidParameter("reports.stream_without_steps", parameter="step")
        if self.kind == "total" and (self.column is None or self.between is None):
            raise InvalidParameter("reports.stream_total", parameter="between")
        if self.between is not None:
            low, high = (real("between", edge) for edge in self.between)
            object.__setattr__(self, "between", (low, high))

    @property
    def unit(self) -> Unit:
        return self.whose

    @property
    def account(self) -> Account | None:
        return self.payer

    @property
    def fingerprint(self) -> str:
        place = (self.rows.path, self.rows.time) if isinstance(self.rows, RowsOfFile) else ()
        asked = (self.kind, self.column, self.between, self.show)
        return join_fingerprints("stream", self.unit, self.starts, self.end, asked, place)

    def _stream(self, budget: Budget) -> Stream:
        price: dict[str, Any] = {"epsilon": budget.epsilon, "rho": budget.rho}
        price["delta"] = budget.delta if budget.rho is None else 0.0
        common = {"unit": self.whose, "horizon": len(self.starts), **price}
        shown = Running() if self.show == "running" else Instant()
        if self.kind == "total" and self.between is not None:
            return total(between=self.between, column=self.column, release=shown, **common)
        return counter(release=shown, **common)

    def prepare(self, budget: Budget) -> ReadyPart:
        stream = self._stream(budget)
        inner: Measurement = stream

        def step(state: object, data: object, ask: object, rng: Rng) -> tuple[list[float], object]:
            del data, ask
            batches = self.rows(self.starts, self.end)
            held = batches if isinstance(batches, Batches) else Batches(batches)
            values, _ = inner.step(inner.init(), held, None, rng)
            return np.asarray(values, np.float64).reshape(-1).tolist(), state

        def read(value: object, receipt: Receipt) -> Answer:
            steps = range(1, len(self.starts) + 1)
            return Answer(
                keys=("from",), rows=tuple((day,) for day in self.starts), receipt=receipt,
                columns={self._value_name: np.asarray(value, np.float64)},
                errors=lambda level: {self._value_name: np.array([stream.error_at(at, level) for at in steps])},
                whole=(self._value_name,) if self.kind == "counter" else (),
            )  # fmt: skip

        def look_at() -> None:
            if isinstance(self.rows, RowsOfFile):
                owner = getattr(self.whose, "column", None)
                self.rows.check(*(name for name in (owner, self.column) if name is not None))

        whole: Measurement = Measurement(
            unit=stream.unit, event=stream.event, step=step, name=self.heading, delta=stream.delta
        )
        return ReadyPart(measurement=whole, data=None, look=look_at, read=read)

    def name_columns(self, answer: Answer, lang: Language) -> Answer:
        (old,) = answer.columns
        new = say("reports.stream_rows", lang) if self.kind == "counter" else str(self.column)
        new = say("reports.stream_so_far", lang, name=new) if self.show == "running" else new
        return Answer(
            keys=(say("reports.stream_from", lang),), rows=answer.rows, receipt=answer.receipt,
            columns={new: answer.columns[old]}, errors=lambda level: {new: answer.errors(level)[old]},
            whole=(new,) if old in answer.whole else (), notes=answer.notes,
        )  # fmt: skip

    @property
    def _value_name(self) -> str:
        name = "rows" if self.kind == "counter" else str(self.column)
        return f"{name} so far" if self.show == "running" else name

    def width(self, budget: Budget) -> float:
        return float(np.max(self._stream(budget).forecast(self.wish.confidence)))


def as_batches(rows: StepRows) -> Callable[[tuple[date, ...], date], Any]:
    """Rows for every step, given as a list with an entry for each or as a function of the first days and the end."""
    if callable(rows):
        return rows
    listed = list(rows)
    return lambda starts, end: listed  # noqa: ARG005
