"""Persons and their rows as one question: each person weighs one, spread over the rows of the second table.

A person without rows is one row of the joined table, whose cells of the second table say so. The model is one of
persons: whatever it says of the second table it says of a row picked at random from a person picked at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mosha.connect.language.cases import when
from mosha.connect.language.expression import Expression, col
from mosha.connect.language.schema import Type
from mosha.connect.plan.person_steps import Pick, Summary, SummaryColumn
from mosha.connect.plan.relation import Relation
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, WrongUnit
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.core.showing import Card, Shown
from mosha.core.unit import Person
from mosha.synth.linked import LinkedTables, make_linked_card
from mosha.synth.measuring.columns import MOST_CELLS, CodedColumn
from mosha.synth.measuring.selection import FoundColumn
from mosha.synth.synthetic import Synthetic

__all__ = ["LinkedQuestion", "join_questions"]

_COUNTED = "mosha_rows_of_person"


class TableQuestion(Protocol):
    """What is needed of a question for a synthetic table."""

    @property
    def relation(self) -> Relation: ...
    @property
    def unit(self) -> Any: ...
    @property
    def account(self) -> Account | None: ...
    @property
    def columns(self) -> tuple[CodedColumn, ...]: ...
    @property
    def derived(self) -> Mapping[str, Expression]: ...
    @property
    def never(self) -> tuple[Expression, ...]: ...

    def make_card(self) -> Card: ...
    def forecast(
        self, *, epsilon: float | None, delta: float, rho: float | None, rows: float | None, confidence: float
    ) -> dict[str, Any]: ...
    def measurement_for(self, *, epsilon: float | None, delta: float, rho: float | None) -> Measurement: ...
    def release(
        self,
        *,
        epsilon: float | None,
        delta: float,
        rho: float | None,
        key: str | None,
        deadline: float | None,
        progress: Callable[[float], None] | None,
    ) -> Synthetic: ...


@dataclass(frozen=True, eq=False)
class LinkedColumn(CodedColumn):
    """A column of the second table: its cells, and one more for persons who have no row there."""

    counted: str = ""
    cells: CodedColumn | None = None

    @property
    def known_cells(self) -> int:
        assert self.cells is not None
        return self.cells.known_cells

    @property
    def code(self) -> Expression:
        """As in its own table; the last cell where the person has no row."""
        assert self.cells is not None
        return when(col(self.counted) == 0, self.size - 1).else_(self.cells.code)


@dataclass(frozen=True, eq=False)
class LinkedFoundColumn(FoundColumn):
    """A column of the second table whose values come from the data."""

    counted: str = ""

    def fill(self, values: Any) -> CodedColumn:
        return _link_column(super().fill(values), self.counted)

    def guess(self) -> CodedColumn:
        return _link_column(super().guess(), self.counted)


def _link_column(column: CodedColumn, counted: str) -> CodedColumn:
    if isinstance(column, FoundColumn):
        return LinkedFoundColumn(column.name, column.kind, (None,), hierarchy=column.hierarchy, counted=counted)
    groups = None if column.groups is None else (*column.groups, max(column.groups) + 1)
    return LinkedColumn(
        column.name, column.kind, (*column.labels, None), column.edges, groups, column.missing, counted, column
    )


def join_questions(
    persons: TableQuestion, rows: TableQuestion, *, at_most: int, count: str
) -> tuple[Relation, tuple[CodedColumn, ...]]:
    """The joined table of both questions and its columns; refused where they do not belong together."""
    most, counted = positive_integer("at_most", at_most), str(count)
    if most >= MOST_CELLS:
        raise InvalidParameter("synth.too_many_cells", parameter="at_most", column=counted, cells=most, most=MOST_CELLS)
    if not isinstance(persons.unit, Person) or persons.relation.person is None:
        raise InvalidParameter("synth.linked_needs_persons", parameter="unit", spent="nothing")
    if not isinstance(rows, type(persons)) or rows.relation.person is None:
        raise InvalidParameter("synth.linked_needs_question", parameter="rows", spent="nothing")
    if not rows.unit.protects_same(persons.unit):
        raise WrongUnit("tables.join_other_person")
    if rows.account is not persons.account:
        raise InvalidParameter("tables.join_two_accounts", spent="nothing")
    named = [counted, *(c.name for c in persons.columns), *(c.name for c in rows.columns)]
    if len(set(named)) < len(named) or persons.relation.person in named:
        raise InvalidParameter("synth.linked_same_columns", parameter="columns", spent="nothing")
    column = CodedColumn(counted, Type.INTEGER, tuple(range(most + 1)), missing=False)
    columns = (*persons.columns, column, *(_link_column(c, counted) for c in rows.columns))
    return _join_tables(persons, rows, counted, most), columns


def _join_tables(persons: TableQuestion, rows: TableQuestion, counted: str, most: int) -> Relation:
    """Every person beside each of their rows, and beside nothing where there are none, with the number of rows.

    Guarantee:
        `Summary` and `PersonJoin` match rows of one person alone, so all rows of the result that carry a person come
        from that person's rows in the two tables; their weights sum to at most the reach (`reach_of`).
    """
    person = persons.relation.person
    assert person is not None
    left: Relation = Pick(persons.relation, {person: person, **{c.name: c.name for c in persons.columns}})
    owner = rows.relation.person
    assert owner is not None
    right: Relation = Pick(rows.relation, {person: owner, **{c.name: c.name for c in rows.columns}})
    summary = Summary(right, (person,), {_COUNTED: SummaryColumn("count")})
    joined = left.join_person(summary, how="left")
    number = when(col(_COUNTED).is_null(), 0).else_(col(_COUNTED))
    return joined.compute({counted: number.clamp(0, most)}).join_person(right, how="left")


@explain_wrong_calls
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LinkedQuestion(Shown):
    """Two synthetic tables of the same persons that have not been paid for. Nothing is read before `release`.

    Made by `link`: the question about the `whole` joined table, and those about `persons` and their `rows`.

    Guarantee:
        That of `SynthesisQuestion`, for a joined table in which all rows of one person together weigh one: adding or
        removing a person, with all rows in both tables, moves every count by rows whose weights sum to at most one.

    >>> import mosha
    >>> unit = mosha.Person("who")
    >>> patients = mosha.protect({"who": ["a", "b"], "sex": ["F", "M"]}, unit=unit)
    >>> visits = mosha.protect({"who": ["a", "a"], "ward": ["A", "B"]}, unit=unit)
    >>> question = patients.synthesize(keys={"sex": ["F", "M"]}).link(
    ...     visits.synthesize(keys={"ward": ["A", "B"]}), at_most=5)
    >>> len(question.whole.columns)
    3
    """

    whole: TableQuestion
    persons: TableQuestion
    rows: TableQuestion

    def make_card(self) -> Card:
        """What is asked, of whom."""
        return make_linked_card(self.whole.make_card())

    def __repr__(self) -> str:
        """Public words alone."""
        return f"LinkedQuestion({', '.join(column.name for column in self.whole.columns)}, unit={self.whole.unit!r})"

    def forecast(self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None,
                 rows: float | None = None, confidence: float = 0.95) -> Mapping[str, Any]:  # fmt: skip
        """What to expect before anything is spent, as `SynthesisQuestion.forecast` says it.

        Args:
            epsilon: the budget, as for `release`; or
            rho: the same.
            delta: the same.
            rows: a public guess of the number of persons.
            confidence: how often the noise stays within an error bar.
        """
        return self.whole.forecast(epsilon=epsilon, delta=delta, rho=rho, rows=rows, confidence=confidence)

    def measurement_for(
        self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None
    ) -> Measurement:
        """What a release for this budget would run.

        Args:
            epsilon: the price, with
            delta: as for `release`; or
            rho: the price in zero-concentrated differential privacy.
        """
        return self.whole.measurement_for(epsilon=epsilon, delta=delta, rho=rho)

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        key: str | None = None,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> LinkedTables:
        """Look, pay, measure, and fit the model of both tables.

        Args:
            epsilon: the price of both tables together, with
            delta: as for any Gaussian noise; or
            rho: the price in zero-concentrated differential privacy.
            key: makes a retry free: the same key finds the payment and the same tables again.
            deadline: after this many seconds the engine breaks off.
            progress: is called with the share of the fit that is done.
        """
        made = self.whole.release(epsilon=epsilon, delta=delta, rho=rho, key=key, deadline=deadline, progress=progress)
        person = self.whole.relation.person
        assert person is not None
        sides = [(dict(side.derived), side.never) for side in (self.persons, self.rows)]
        return LinkedTables(whole=made, person=person, width=len(self.persons.columns), of_persons=sides[0],
                            of_rows=sides[1])  # fmt: skip
