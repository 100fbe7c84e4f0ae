"""Verbs that people have in their fingers from data frames, each in terms of the verbs of a protected table."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Self

from mosha.connect.language.expression import Expression
from mosha.connect.language.schema import Schema
from mosha.connect.plan.relation import Relation
from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.tables import aggregates
from mosha.tables.aggregates import quantile
from mosha.tables.declaration import Declaration
from mosha.tables.parts.additive import Aggregate
from mosha.tables.question import Question
from mosha.tables.verbs import Asks

__all__ = ["FrameVerbs"]

QUARTILES = (0.25, 0.5, 0.75)


@explain_wrong_calls
class FrameVerbs(Asks, ABC):
    """`filter`, `with_columns`, `value_counts`, `pivot` and `describe`."""

    declared: Declaration

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The public list of columns and their types."""

    @abstractmethod
    def where(self, predicate: Expression | str) -> Self:
        """The rows for which `predicate` is true."""

    @abstractmethod
    def compute(self, /, **columns: object) -> Self:
        """More columns."""

    @abstractmethod
    def group_by(self, *columns: object, keys: object = None, **computed: object) -> Asks:
        """Groups."""

    def filter(self, predicate: Expression | str) -> Self:
        """The rows for which `predicate` is true: an expression, or a condition in SQL.

        >>> import mosha
        >>> visits = mosha.protect({"days": [1, 9]}, unit=mosha.Row())
        >>> visits.filter("days > 3 AND days < 10").count()
        Question(count, unit=Row())
        """
        return self.where(predicate)

    def with_columns(self, /, **columns: object) -> Self:
        """More columns, each computed from those before it.

        >>> import mosha
        >>> visits = mosha.protect({"days": [1, 9]}, unit=mosha.Row())
        >>> visits.with_columns(long=mosha.when(mosha.col("days") > 7).then("yes").otherwise("no"))
        Table(days integer, long text, unit=Row())
        """
        return self.compute(**columns)

    def value_counts(self, column: str, *, keys: Iterable[object] | str | None = None) -> Question:
        """How many rows each value of a column has; values come from `keys`, the declaration, or the data (a delta).

        >>> import mosha
        >>> visits = mosha.protect({"ward": ["A", "B"]}, unit=mosha.Row())
        >>> visits.value_counts("ward", keys=["A", "B"])
        Question(count by ward, unit=Row())
        """
        return self.group_by(column, keys=keys).count()

    def pivot(self, index: str, columns: str, *, keys: object = None, **aggregate: Aggregate) -> Question:
        """One number for each pair of values of two columns: rows, unless another aggregate is named.

        `answer.pivot()` lays the answer out as a table with a column for each value of `columns`.

        >>> import mosha
        >>> visits = mosha.protect({"ward": ["A"], "sex": ["F"]}, unit=mosha.Row())
        >>> visits.pivot("ward", "sex", keys={"ward": ["A", "B"], "sex": ["F", "M"]})
        Question(count by ward, sex, unit=Row())
        """
        if len(aggregate) > 1:
            raise InvalidParameter("tables.pivot_one_number", parameter="aggregate")
        grouped = self.group_by(index, columns, keys=keys)
        return grouped.aggregate(**aggregate) if aggregate else grouped.count()

    def describe(self, columns: Sequence[str] | None = None) -> Question:
        """A summary at one price: rows, and of every column with a declared range its mean, spread and quartiles.

        Args:
            columns: which; all that have a declared range where it is left out.

        >>> import mosha
        >>> said = {"days": {"type": "integer", "between": [0, 30]}}
        >>> mosha.protect({"days": [1, 9]}, unit=mosha.Row(), schema={"columns": said}).describe()
        Question(count, days mean, days standard deviation, days 25%, days 50%, days 75%, unit=Row())
        """
        chosen = list(self.declared.ranges) if columns is None else list(columns)
        if not chosen:
            raise InvalidParameter("tables.describe_needs_ranges", parameter="columns", spent="nothing")
        asked: dict[str, Aggregate] = {"count": aggregates.count()}
        for name in chosen:
            asked[f"{name} mean"] = aggregates.mean(name)
            asked[f"{name} standard deviation"] = aggregates.standard_deviation(name)
            asked |= {f"{name} {share:.0%}": quantile(name, share) for share in QUARTILES}
        return self.aggregate(**asked)


def read_condition(table: object, text: str) -> Relation:
    """The rows of a table for which a condition in SQL is true, read by the same parser as a whole SELECT.

    The parser stands above this file and is loaded by name, when a condition is given as text.
    """
    queries = importlib.import_module("mosha.tables.sql.query")
    parsing = importlib.import_module("mosha.tables.sql.parsing")
    name = "the_rows"
    select, explained = parsing.parse(f"SELECT COUNT(*) FROM {name} WHERE {text}")  # noqa: S608  (it reaches no engine)
    if explained or {key for key, value in select.args.items() if value} != {"expressions", "from_", "where"}:
        raise InvalidParameter("tables.condition_only", parameter="predicate")
    question: Question = queries.statement(select.sql("duckdb"), {name: table}).question
    return question.relation
