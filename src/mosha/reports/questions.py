"""The questions of a report: added one by one, each with a wish, and one budget that is divided among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Self, Unpack

from mosha.connect.plan.relation import Relation
from mosha.core.account import Account
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, current_language
from mosha.core.names.calls import explain_wrong_calls
from mosha.graphs import Question as GraphQuestion
from mosha.reports.parts import GraphPart, MarginsPart, Part, StreamWish, TablePart, Wish, WishWords
from mosha.reports.period import Every, Period, find_period
from mosha.reports.split import Split, split_budget
from mosha.reports.stream_part import StepRows, StreamKind, StreamPart, StreamShow, StreamStep, as_batches, list_starts
from mosha.synth import MarginalsQuestion, cube
from mosha.tables import Question as TableQuestion
from mosha.tables import Table
from mosha.tables.sql.query import statement

__all__ = ["Questions"]

MakePart = Callable[[Period], Part]


@explain_wrong_calls
@dataclass(frozen=True, repr=False)
class Questions:
    """A title, a budget for one period, and questions with their wishes; nothing is read here."""

    title: str
    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    period: Every = "once"
    lang: Language | None = None
    makers: tuple[tuple[str, MakePart], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.title, str) or not self.title.strip():
            raise InvalidParameter("reports.no_title", parameter="title")
        find_period(self.period)
        Budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho)

    @property
    def budget(self) -> Budget:
        """What one period may cost."""
        return Budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho)

    @property
    def language(self) -> Language:
        return self.lang or current_language()

    def add(
        self,
        name: str,
        question: TableQuestion | GraphQuestion | MarginalsQuestion,
        *,
        title: str = "",
        text: str = "",
        within: float | None = None,
        confidence: float = 0.95,
        weight: float = 1.0,
        rows: float | None = None,
    ) -> Self:
        """The report with one question more.

        Args:
            name: by which its answer is found.
            question: about a table or a graph, or `table.marginals(...)`.
            title: what stands above the answer.
            text: a paragraph for readers.
            within: how wide the widest error bar may be; the least budget for it is planned.
            confidence: how often the noise stays within the bar.
            weight: without `within`: the part of what is left, beside those of the others.
            rows: a public guess of the rows in a group, on which bars of means depend.
        """
        wish = Wish(within=within, confidence=confidence, weight=weight, rows=rows)
        part: Part
        if isinstance(question, TableQuestion):
            part = TablePart(name=name, title=title, text=text, wish=wish, question=question)
        elif isinstance(question, GraphQuestion):
            part = GraphPart(name=name, title=title, text=text, wish=wish, question=question)
        elif isinstance(question, MarginalsQuestion):
            columns = tuple(column.name for column in question.columns)
            part = MarginsPart(name=name, title=title, text=text, wish=wish, question=question, columns=columns)
        else:
            raise InvalidParameter("reports.not_a_question", parameter="question", kind=type(question).__name__)
        return self.add_part(name, lambda _: part)

    def add_sql(
        self,
        name: str,
        sql: str,
        tables: Mapping[str, Table | Relation],
        *,
        title: str = "",
        text: str = "",
        **wish: Unpack[WishWords],
    ) -> Self:
        """The report with a SELECT more; `:start` and `:end` stand for the first day of the period and of the next.

        Args:
            name: by which its answer is found.
            sql: one SELECT.
            tables: what FROM may name.
            title: what stands above the answer.
            text: a paragraph for readers.
            wish: within, confidence, weight, rows, as for `add`.
        """
        wished = Wish(**wish)

        def make(period: Period) -> Part:
            checked = statement(_fill_period(sql, period), tables)
            return TablePart(
                name=name, title=title, text=text, wish=wished, question=checked.question, statement=checked
            )

        return self.add_part(name, make)

    def add_stream(
        self,
        name: str,
        rows: StepRows,
        *,
        account: Account,
        step: StreamStep = "day",
        kind: StreamKind = "counter",
        column: str | None = None,
        between: tuple[float, float] | None = None,
        show: StreamShow = "each",
        title: str = "",
        text: str = "",
        **wish: Unpack[StreamWish],
    ) -> Self:
        """The report with a stream more: rows, or the sum of a column, for every step of the period.

        Args:
            name: by which its answer is found.
            rows: the rows of each step, as a list with an entry for each, or as a function of the first days of the
                steps and the end of the period, which is called when all is paid.
            account: who pays; its unit is hidden.
            step: "day", "week" or "month".
            kind: "counter", or "total" with `column` and `between`.
            column: what is summed.
            between: the range that its values are clamped into.
            show: "each" step by itself, or the "running" sum.
            title: what stands above the answer.
            text: a paragraph for readers.
            wish: within, confidence, weight, as for `add`.
        """
        wished, batches = Wish(**wish), as_batches(rows)
        if self.period == "once":
            raise InvalidParameter("reports.stream_once", parameter="period")

        def make(period: Period) -> Part:
            return StreamPart(
                name=name, title=title, text=text, wish=wished, whose=account.unit, payer=account, end=period.end,
                starts=list_starts(period.start, period.end, step), rows=batches, kind=kind, column=column,
                between=between, show=show,
            )  # fmt: skip

        return self.add_part(name, make)

    def add_margins(
        self,
        name: str,
        table: Table,
        columns: Sequence[str],
        *,
        title: str = "",
        text: str = "",
        **wish: Unpack[WishWords],
    ) -> Self:
        """The report with a table of margins more: cells and totals that add up, with exact bars; it needs a delta.

        Totals are measured beside the cells, so their bars are narrower than those of sums of cells.

        Args:
            name: by which its answer is found.
            table: a protected table that declares keys (or ranges) for the columns.
            columns: one to three of them.
            title: what stands above the answer.
            text: a paragraph for readers.
            wish: within, confidence, weight, as for `add`.
        """
        if not 1 <= len(columns) <= 3:
            raise InvalidParameter("reports.margins_columns", parameter="columns")
        question = table.marginals(sets=cube(*columns), columns=list(columns))
        return self.add(name, question, title=title, text=text, **wish)

    def add_part(self, name: str, make: MakePart) -> Self:
        """The report with a part of any kind more, made for each period."""
        if not isinstance(name, str) or not name or name in dict(self.makers):
            raise InvalidParameter("reports.name_of_part", parameter="name", name=str(name))
        return replace(self, makers=(*self.makers, (name, make)))

    def make_parts(self, period: Period) -> tuple[Part, ...]:
        """All parts for one period."""
        if not self.makers:
            raise InvalidParameter("reports.no_questions", spent="nothing")
        return tuple(make(period) for _, make in self.makers)

    def plan(self, *, on: date | str | None = None) -> Split:
        """How the budget is divided: every wish at the lowest joint cost found. Nothing is read or spent."""
        return split_budget(self.make_parts(find_period(self.period, on)), self.budget)


def _fill_period(sql: str, period: Period) -> str:
    if not isinstance(sql, str):
        raise InvalidParameter("tables.sql_not_text", parameter="sql")
    return sql.replace(":start", f"DATE '{period.start}'").replace(":end", f"DATE '{period.end}'")
