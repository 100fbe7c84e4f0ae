"""The parts of a report: questions about tables, in SQL, about graphs, streams and margins, all asked in one way."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from mosha.core.account import Account
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.fingerprint import fingerprint_plan
from mosha.core.language import Language, make_note
from mosha.core.measurement import Measurement
from mosha.core.number import positive, strict_probability
from mosha.core.release import Receipt
from mosha.core.unit import Unit
from mosha.graphs import Question as GraphQuestion
from mosha.synth import MarginalsQuestion
from mosha.tables import Answer
from mosha.tables import Question as TableQuestion
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.rounding import round_together
from mosha.tables.questions.look import look
from mosha.tables.questions.release_plan import ReleasePlan
from mosha.tables.sql.group_keys import forecast_sums
from mosha.tables.sql.query import Statement

__all__ = [
    "BOUGHT_LATER", "TOTAL", "GraphPart", "MarginsPart", "Part", "ReadyPart", "StreamWish", "TablePart", "Wish",
    "WishWords",
]  # fmt: skip

BOUGHT_LATER = {"tables.forecast_needs_at_most", "tables.forecast_needs_range"}
"""Codes of what nobody can say before a release: bounds and ranges that it buys itself."""

TOTAL = "∑"
"""In place of a key: all of them together."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How accurate a part should be: an error bar of at most `within`, or a share of what is left by `weight`.

    `confidence` is that of the bar, and `rows` a guess of the rows in a group, which bars of means need.

    >>> Wish(within=30).confidence
    0.95
    """

    within: float | None = None
    confidence: float = 0.95
    weight: float = 1.0
    rows: float | None = None

    def __post_init__(self) -> None:
        for name in ("within", "weight", "rows"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(name, getattr(self, name)))
        object.__setattr__(self, "confidence", strict_probability("confidence", self.confidence))


class StreamWish(TypedDict, total=False):
    """A wish for a stream, word by word."""

    within: float | None
    confidence: float
    weight: float


class WishWords(StreamWish, total=False):
    """A wish, word by word."""

    rows: float | None


@dataclass(frozen=True, kw_only=True)
class ReadyPart:
    """A part with its budget: what is paid for, what is looked at before, what the step is given, how it is read."""

    measurement: Measurement
    data: object
    look: Callable[[], None]
    read: Callable[[Any, Receipt], Answer]


@dataclass(frozen=True, kw_only=True)
class Part(ABC):
    """One question of a report: a name, words for people, and a wish."""

    name: str
    title: str = ""
    text: str = ""
    wish: Wish = field(default_factory=Wish)

    @property
    def heading(self) -> str:
        """What stands above it."""
        return self.title or self.name.replace("_", " ").capitalize()

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """Whose presence is hidden."""

    @property
    @abstractmethod
    def account(self) -> Account | None:
        """Who pays."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What is asked, and nothing about its price."""

    @property
    def needs_delta(self) -> bool:
        """Whether no budget without a delta can pay for it."""
        return False

    def name_columns(self, answer: Answer, lang: Language) -> Answer:  # noqa: ARG002
        """The answer for readers of the language `lang`, where the question itself has named no columns."""
        return answer

    @abstractmethod
    def prepare(self, budget: Budget) -> ReadyPart:
        """What a release for this budget runs."""

    @abstractmethod
    def width(self, budget: Budget) -> float:
        """The widest error bar that is to be expected for a budget."""


@dataclass(frozen=True, kw_only=True)
class TablePart(Part):
    """A question about a protected table, by verbs or in SQL."""

    question: TableQuestion
    statement: Statement | None = None

    @property
    def unit(self) -> Unit:
        return self.question.unit

    @property
    def account(self) -> Account | None:
        return self.question.account

    @property
    def fingerprint(self) -> str:
        return self.question.fingerprint

    @property
    def needs_delta(self) -> bool:
        return self.question.private_keys

    def prepare(self, budget: Budget) -> ReadyPart:
        plan = self.question.plan_release(budget)

        def read(value: Any, receipt: Receipt) -> Answer:
            answer = self.question.read_answer(plan, value, receipt)
            return answer if self.statement is None else self.statement.answer(answer)

        def look_at() -> None:
            look(plan.frame, plan.selection, plan.parts)

        return ReadyPart(measurement=plan.measurement(self.heading), data=None, look=look_at, read=read)

    def width(self, budget: Budget) -> float:
        plan = self.question.plan_release(budget)
        try:
            bars = self._forecast_bars(plan)
        except InvalidParameter as error:
            if self.wish.within is None and error.code in BOUGHT_LATER:  # its bar is known when it is answered
                return math.inf
            raise
        return max((float(np.max(bar)) for bar in bars.values() if len(bar)), default=math.inf)

    def _forecast_bars(self, plan: ReleasePlan) -> Mapping[str, Any]:
        """The bars to be expected of the groups; of all sums of them, where several groupings are asked for."""
        assumed = plan.assume(Guess(self.wish.rows, None, {}))
        if self.statement is None or not self.statement.sets:
            return plan.errors(assumed, self.wish.confidence)
        return forecast_sums(plan, assumed, self.statement.sets, self.question, self.wish.confidence)


@dataclass(frozen=True, kw_only=True)
class GraphPart(Part):
    """A question about a protected graph."""

    question: GraphQuestion

    @property
    def unit(self) -> Unit:
        return self.question.unit

    @property
    def account(self) -> Account | None:
        return self.question.account

    @property
    def fingerprint(self) -> str:
        return self.question.fingerprint

    def prepare(self, budget: Budget) -> ReadyPart:
        measurement = self.question.measurement_for(epsilon=budget.epsilon, rho=budget.rho)

        def read(value: Any, receipt: Receipt) -> Answer:
            found = value["value"] if isinstance(value, dict) and "value" in value else value
            error = measurement.error
            bar = None if error is None else lambda level: error(level, value)
            return _tabulate(self.question.verb, found, bar, receipt)

        return ReadyPart(measurement=measurement, data=self.question.graph, look=lambda: None, read=read)

    def width(self, budget: Budget) -> float:
        try:
            bar = self.question.forecast(epsilon=budget.epsilon, rho=budget.rho, confidence=self.wish.confidence)
        except InvalidParameter:
            return math.inf
        return float(np.max(bar))


@dataclass(frozen=True, kw_only=True)
class MarginsPart(Part):
    """A table of margins: cells, sums of rows and columns, and the whole, which add up exactly.

    Guarantee:
        One release of residuals; every number is a linear function of them, so sums agree with their parts, and their
        error bars are exact (`mechanisms/residuals/residuals.md`).
    """

    question: MarginalsQuestion
    columns: tuple[str, ...]

    @property
    def unit(self) -> Unit:
        unit: Unit = self.question.unit
        return unit

    @property
    def account(self) -> Account | None:
        return self.question.account

    @property
    def fingerprint(self) -> str:
        return self.question.measurement_for(rho=1.0).question

    @property
    def needs_delta(self) -> bool:
        return True

    def prepare(self, budget: Budget) -> ReadyPart:
        measurement = self.question.measurement_for(epsilon=budget.epsilon, rho=budget.rho, delta=_own_delta(budget))

        def read(value: Any, receipt: Receipt) -> Answer:
            margins = self.question.read_answer(replace(budget, delta=_own_delta(budget)), value, receipt)
            sets = _subsets(self.columns)
            rows: list[tuple[Any, ...]] = []
            counts: list[float] = []
            cells = margins.table(*self.columns)
            whole = round_together(cells["count"])
            rounded: list[int] = []
            for names in sets:
                found = margins.table(*names) if names else {"count": [float(margins.marginal())]}
                counts += found["count"]
                many = range(len(found["count"]))
                rows += [tuple(found[n][i] if n in names else TOTAL for n in self.columns) for i in many]
                sums: dict[tuple[Any, ...], int] = dict.fromkeys(zip(*(found[n] for n in names), strict=True), 0)
                for place, count in enumerate(whole):
                    group = tuple(cells[n][place] for n in names)
                    sums[group] = sums.get(group, 0) + count
                rounded += sums.values()

            def errors(level: float) -> dict[str, Any]:
                return {"count": np.concatenate([np.ravel(margins.error(*names, confidence=level)) for names in sets])}

            return Answer(
                keys=self.columns, rows=tuple(rows), columns={"count": np.array(counts)}, receipt=receipt,
                errors=errors, whole=("count",), rounded={"count": np.array(rounded)},
                notes=(make_note("reports.note_not_listed"),) if any(None in row for row in rows) else (),
            )  # fmt: skip

        return ReadyPart(measurement=measurement, data=None, look=self.question.look, read=read)

    def width(self, budget: Budget) -> float:
        bars = self.question.forecast(
            epsilon=budget.epsilon, rho=budget.rho, delta=_own_delta(budget), confidence=self.wish.confidence
        )
        return max(bars.values())


def _own_delta(budget: Budget) -> float:
    """Gaussian noise has a delta with an epsilon, and needs none with a rho."""
    return 0.0 if budget.rho is not None else budget.delta


def _subsets(columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The cells first, then each margin, the whole last."""
    chosen: list[tuple[str, ...]] = [()]
    for name in columns:
        chosen += [(*names, name) for names in chosen]
    return sorted(chosen, key=lambda names: (-len(names), names))


def _tabulate(name: str, value: ArrayLike, error: Callable[[float], ArrayLike] | None, receipt: Receipt) -> Answer:
    """A number, or a sequence of numbers by its place, as a table."""
    numbers = np.asarray(value, np.float64)
    keys: tuple[str, ...] = () if numbers.ndim == 0 else ("place",)
    flat = numbers.reshape(-1)
    rows: tuple[tuple[Any, ...], ...] = ((),) if numbers.ndim == 0 else tuple((i,) for i in range(flat.size))

    def errors(level: float) -> dict[str, Any]:
        bar = math.nan if error is None else error(level)
        return {name: np.broadcast_to(np.asarray(bar, np.float64), flat.shape)}

    return Answer(keys=keys, rows=rows, columns={name: flat}, receipt=receipt, errors=errors)


def join_fingerprints(*values: object) -> str:
    """One hash for what several parts ask."""
    return fingerprint_plan("report", *values)
