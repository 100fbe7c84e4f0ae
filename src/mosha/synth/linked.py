"""Synthetic persons and their synthetic rows: two tables that refer to each other, drawn from one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mosha.connect.language.expression import Expression
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.core.release import Receipt
from mosha.core.showing import Card, Shown
from mosha.mechanisms.residuals.axis import Reals
from mosha.synth.conditions import decode_cells, derive_columns, find_broken_rows
from mosha.synth.margins import Estimate
from mosha.synth.measuring.columns import CodedColumn, Wholes
from mosha.synth.modelling.drawing import draw_column, draw_components
from mosha.synth.modelling.model import seed_of
from mosha.synth.report import Report
from mosha.synth.saving import save_table
from mosha.synth.synthetic import TRIES, Synthetic

__all__ = ["LinkedTables", "make_linked_card"]

Conditions = tuple[Mapping[str, Expression], Sequence[Expression]]
"""Columns that are derived from others, and conditions that no row can meet."""

Columns = dict[str, list[Any]]


def make_linked_card(shown: Card) -> Card:
    """What is shown of the one table that two make, as shown of both."""
    return Card(title=say("synth.shown_linked"), facts=shown.facts, notes=shown.notes)


@explain_wrong_calls
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LinkedTables(Shown):
    """A model of persons and of their rows, and the two tables that are drawn from it.

    Made by a release: the model of the `whole` joined table, the name of the `person` column, the `width` of the first
    table, and what is derived and never occurs, `of_persons` and `of_rows`.

    Guarantee:
        Everything here is post-processing of what was paid for; the private tables are not read again.

    >>> import mosha
    >>> unit = mosha.Person("who")
    >>> account = mosha.Ledger.memory().account("clinic", unit=unit, epsilon=8, delta=1e-6)
    >>> people = [f"p{i}" for i in range(100)]
    >>> patients = mosha.protect({"who": people, "sex": ["F", "M"] * 50}, unit=unit, account=account)
    >>> visits = mosha.protect({"who": people[:60], "ward": ["A", "B"] * 30}, unit=unit, account=account)
    >>> question = patients.synthesize(keys={"sex": ["F", "M"]}).link(
    ...     visits.synthesize(keys={"ward": ["A", "B"]}), at_most=3)
    >>> made = question.release(epsilon=5, delta=1e-6)
    >>> persons, rows = made.sample(50)
    >>> list(persons), list(rows), set(rows["who"]) <= set(persons["who"])
    (['who', 'sex'], ['who', 'ward'], True)
    """

    whole: Synthetic
    person: str
    width: int
    of_persons: Conditions
    of_rows: Conditions

    def __repr__(self) -> str:
        names = [column.name for column in self.whole.columns]
        return f"LinkedTables({', '.join(names[: self.width])}; {', '.join(names[self.width + 1 :])})"

    def make_card(self) -> Card:
        """How large it is, how it was made, and what was paid."""
        return make_linked_card(self.whole.make_card())

    @property
    def receipt(self) -> Receipt | None:
        """What was paid."""
        return self.whole.receipt

    def given(self, **chosen: object) -> LinkedTables:
        """The same model among persons with these values.

        Args:
            chosen: columns of the first table, or the number of rows, with a value, a list of values or a range.
        """
        found = replace(self, whole=self.whole.given(**chosen))
        if any(place > self.width for place in found.whole.chosen):
            raise InvalidParameter("synth.given_of_rows", parameter="chosen")
        return found

    def sample(self, persons: int, *, seed: int = 0) -> tuple[Columns, Columns]:
        """New persons and their rows as columns; the same seed draws the same.

        Args:
            persons: how many.
            seed: any whole number: another one draws others. It protects nobody and costs nothing.
        """
        count = positive_integer("persons", persons)
        generator = np.random.default_rng([seed_of(self.whole.measured) % 2**63, abs(int(seed)), count])
        owner, people, numbers = self._draw_persons(count, generator)
        # names follow a random order: components stand in theirs
        names = generator.permutation(count) + 1
        again = np.repeat(owner, numbers)
        order = np.argsort(names)
        first = {self.person: np.sort(names), **{name: column[order] for name, column in people.items()}}
        second = self._draw_rows(again, generator)
        whose = np.repeat(names, numbers)
        order = np.argsort(whose, kind="stable")
        second = {self.person: whose[order], **{name: column[order] for name, column in second.items()}}
        return _as_lists(first), _as_lists(second)

    def _draw_persons(self, count: int, generator: np.random.Generator) -> tuple[Wholes, dict[str, Any], Wholes]:
        """The component, the columns and the number of rows of each person."""
        chosen, columns = self.whole.chosen, self.whole.columns[: self.width]
        owner = draw_components(self.whole.model, count, generator, chosen)
        cells = {place: chosen.get(place) for place in range(self.width)}
        owner, people = self._draw_allowed(columns, cells, owner, self.of_persons, generator, patience=0)
        numbers = self._draw_cells({self.width: chosen.get(self.width)}, owner, generator)[0]
        return owner, people, numbers

    def _draw_rows(self, owner: Wholes, generator: np.random.Generator) -> dict[str, Any]:
        """The columns of the second table, of persons who have rows: the cell of those without is left out."""
        columns, first = self.whole.columns[self.width + 1 :], self.width + 1
        cells = {first + i: np.concatenate([np.ones(c.size - 1), [0.0]]) for i, c in enumerate(columns)}
        return self._draw_allowed(columns, cells, owner, self.of_rows, generator, patience=TRIES // 2)[1]

    def _draw_cells(
        self, places: Mapping[int, Reals | None], owner: Wholes, generator: np.random.Generator
    ) -> list[Wholes]:
        """Cells of some columns for rows of these components, in any order."""
        order, back = np.argsort(owner, kind="stable"), np.empty(len(owner), np.int64)
        back[order] = np.arange(len(owner))
        return [draw_column(self.whole.model, p, owner[order], generator, s)[back] for p, s in places.items()]

    def _draw_allowed(
        self,
        columns: Sequence[CodedColumn],
        places: Mapping[int, Reals | None],
        owner: Wholes,
        conditions: Conditions,
        generator: np.random.Generator,
        *,
        patience: int,
    ) -> tuple[Wholes, dict[str, Any]]:
        """Values of all columns, derived ones among them; rows that no row can be like are drawn again.

        After so many tries in vain (`patience`) such a row is drawn from the component of another one.
        """
        derived, never = conditions
        found = decode_cells(columns, self._draw_cells(places, owner, generator), generator)
        if not len(owner):
            return owner, {name: np.empty(0, object) for name in [*found, *derived]}
        for number in range(TRIES + 1 if never else 1):
            wrong = find_broken_rows(found, never, derived, columns)
            if not wrong.any():
                return owner, derive_columns(found, derived, columns)
            if number >= patience:
                owner = np.where(wrong, generator.choice(owner, len(owner)), owner)
            again = decode_cells(columns, self._draw_cells(places, owner, generator), generator)
            found = {name: np.where(wrong, again[name], column) for name, column in found.items()}
        raise InvalidParameter("synth.contradictory_conditions", parameter="never", spent="paid")

    @cached_property
    def tables(self) -> tuple[Columns, Columns]:
        """The synthetic persons and their rows; as many persons as the noisy number says, or the caller."""
        return self.sample(self.whole.rows)

    def save(self, persons: str | Path, rows: str | Path) -> tuple[Path, Path]:
        """Write both tables to CSV or Parquet files that say of themselves that they are synthetic.

        Args:
            persons: the file of the persons.
            rows: the file of their rows.
        """
        first, second = self.tables
        return save_table(self.whole, first, Path(persons)), save_table(self.whole, second, Path(rows))

    def count(self, *, confidence: float = 0.95, **chosen: object) -> Estimate:
        """How many persons have these values; of the second table, each person's rows count as one together.

        Args:
            confidence: how often the error bar holds.
            chosen: columns with a value, a list of values or a range, as for `Synthetic.count`.
        """
        return self.whole.count(confidence=confidence, **chosen)

    def report(self) -> Report:
        """How good the joined table is, from the second look alone, which the fit never saw."""
        return self.whole.report()


def _as_lists(found: Mapping[str, Any]) -> Columns:
    return {name: np.asarray(column).tolist() for name, column in found.items()}
