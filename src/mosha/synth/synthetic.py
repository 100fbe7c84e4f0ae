"""A synthetic table that was paid for: rows, conditional rows, graded answers, and a report of how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.connect import source
from mosha.core.errors import InvalidParameter
from mosha.core.language import phrase, say
from mosha.core.names.extras import load_guest
from mosha.core.number import positive_integer
from mosha.core.showing import Card, Shown
from mosha.mechanisms.residuals.axis import Reals
from mosha.noise import secure
from mosha.synth.computing import arrow_table
from mosha.synth.conditions import decode_cells, derive_columns, find_broken_rows
from mosha.synth.fitted import Fitted
from mosha.synth.grading import certified_count
from mosha.synth.margins import Estimate, narrow_column, selection_of, takes_whole_cells
from mosha.synth.measuring.columns import Wholes
from mosha.synth.modelling.balancing import balance_rows
from mosha.synth.modelling.drawing import draw_cells
from mosha.synth.modelling.model import seed_of
from mosha.synth.report import Report, make_report
from mosha.synth.saving import save_table
from mosha.synth.workload import MarginalsQuestion
from mosha.tables import Budget, Question

__all__ = ["Synthetic"]

TRIES = 20
"""How often rows that meet a condition of `never` are drawn again before that is given up."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Synthetic(Shown, Fitted):
    """A model of a table and the rows that are drawn from it: use and publish them as often as you like.

    Made by a release: the `columns` with their cells, columns `derived` from others, combinations that `never` occur,
    `count_of_rows`, the `model`, what was `measured`, the `look` and `design` of both stages, `receipt` and `unit`.
    Methods take the `chosen` columns, a `place` for a file, a `confidence`, a `question` of the private table.

    Guarantee:
        Everything here is post-processing of what was paid for; the private table is not read again.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("people", unit=mosha.Row(), epsilon=8, delta=1e-6)
    >>> people = mosha.protect({"sex": ["F", "M"] * 50, "job": ["a", "b"] * 50}, unit=mosha.Row(), account=account)
    >>> made = people.synthesize(keys={"sex": ["F", "M"], "job": ["a", "b"]}).release(epsilon=5, delta=1e-6)
    >>> made, len(made.given(sex="F").sample(10)["job"])
    (Synthetic(sex, job), 10)
    """

    chosen: Mapping[int, Reals] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Synthetic({', '.join([*(column.name for column in self.columns), *self.derived])})"

    def make_card(self) -> Card:
        """How large it is, how it was made, and what was paid."""
        facts = [
            (say("core.shown_hidden"), self.unit.describe()),
            (say("synth.shown_columns"), ", ".join([*(column.name for column in self.columns), *self.derived])),
            (say("synth.shown_rows"), f"{self.rows:,}"),
            (say("synth.shown_method"), self.method),
        ]
        paid = [] if self.receipt is None else [str(self.receipt)]
        return Card(
            title=say("synth.shown_synthetic"), facts=facts, notes=[say("synth.shown_belongs_to_nobody"), *paid]
        )

    def _place(self, name: str) -> int:
        for place, column in enumerate(self.columns):
            if column.name == name:
                return place
        known = [column.name for column in self.columns]
        raise InvalidParameter("synth.unknown_column", parameter="column", column=name, columns=known)

    def given(self, **chosen: object) -> Synthetic:
        """The same model among rows with these values: a value, a list of values, or a range of numbers."""
        selections = {self._place(name): selection_of(self.columns[self._place(name)], w) for name, w in chosen.items()}
        columns = tuple(narrow_column(c, chosen[c.name]) if c.name in chosen else c for c in self.columns)
        return replace(self, columns=columns, chosen={**self.chosen, **selections})

    def sample(self, rows: int, *, seed: int = 0) -> dict[str, list[Any]]:
        """New rows as columns; the same seed draws the same rows.

        Args:
            rows: how many.
            seed: any whole number: another one draws other rows. It protects nobody and costs nothing.
        """
        rows = positive_integer("rows", rows)
        generator = np.random.default_rng([seed_of(self.measured) % 2**63, abs(int(seed)), rows])
        cells = draw_cells(self.model, rows, generator, self.chosen)
        found = self._decode(cells if self.chosen else balance_rows(cells, self.model, generator), generator)
        for _ in range(TRIES if self.never else 0):
            wrong = self._find_broken_rows(found)
            if not wrong.any():
                break
            again = self._decode(draw_cells(self.model, rows, generator, self.chosen), generator)
            found = {name: np.where(wrong, again[name], column) for name, column in found.items()}
        else:
            if self.never and self._find_broken_rows(found).any():
                raise InvalidParameter("synth.contradictory_conditions", parameter="never", spent="paid")
        return {name: column.tolist() for name, column in derive_columns(found, self.derived, self.columns).items()}

    def _decode(self, cells: list[Wholes], generator: np.random.Generator) -> dict[str, Any]:
        return decode_cells(self.columns, cells, generator)

    def _find_broken_rows(self, found: dict[str, object]) -> NDArray[np.bool_]:
        return find_broken_rows(found, self.never, self.derived, self.columns)

    @cached_property
    def table(self) -> dict[str, list[Any]]:
        """The synthetic table as columns."""
        return self.sample(self.rows)

    def to_arrow(self) -> Any:
        """The synthetic table as an Arrow table."""
        return load_guest("pyarrow", extra="arrow", needed_for=phrase("core.table_of", kind="Arrow")).table(self.table)

    def to_pandas(self) -> Any:
        """The synthetic table as a pandas table."""
        return load_guest("pandas", extra="pandas", needed_for=phrase("core.table_of", kind="pandas")).DataFrame(
            self.table
        )

    def to_polars(self) -> Any:
        """The synthetic table as a Polars table."""
        return load_guest("polars", extra="polars", needed_for=phrase("core.table_of", kind="Polars")).DataFrame(
            self.table
        )

    def save(self, place: str | Path) -> Path:
        """Write the table to a CSV or Parquet file that says of itself that it is synthetic."""
        return save_table(self, self.table, Path(place))

    def count(self, *, confidence: float = 0.95, **chosen: object) -> Estimate:
        """How many rows lie in chosen cells: certified where that was measured, else what the model says."""
        selections = {self._place(name): selection_of(self.columns[self._place(name)], w) for name, w in chosen.items()}
        if not self.chosen and takes_whole_cells(selections.values()):
            found = certified_count(self.measured, self.design, selections, confidence)
            if found is not None:
                return found
        share = float(np.mean(self.model.chance({**self.chosen, **selections})))
        return Estimate(share * self.model.total, None, "modelled")

    def answer(self, question: object) -> Any:
        """What the table says to a question: {column: wish} (see `count`), or a question about the protected table.

        A question about the protected table (`table.group_by(...).count()`, `.mean(...)`) is put to the synthetic rows:
        a modelled answer, without error bars.
        """
        if isinstance(question, Mapping):
            return self.count(**question)
        if not hasattr(question, "measurement_for"):
            raise InvalidParameter("synth.not_a_question", parameter="question")
        return _ask_synthetic(self, self.table, question)

    def report(self) -> Report:
        """How good the table is, from the second look alone, which the fit never saw."""
        return make_report(self)


NEARLY_EXACT = Budget(epsilon=4096.0)


def _ask_synthetic(made: Fitted, table: Mapping[str, list[object]], question: object) -> Any:
    """Modelled answers: a table of marginals by their columns, or of aggregates by group."""
    if isinstance(question, MarginalsQuestion):
        place = {column.name: i for i, column in enumerate(made.columns)}
        names = [tuple(question.columns[c].name for c in one) for one in question.sets]
        return {one: made.model.marginal([place[name] for name in one]) * made.model.total for one in names}
    if not isinstance(question, Question):
        raise InvalidParameter("synth.not_a_question", parameter="question")
    if question.relation.person is not None:
        raise InvalidParameter("synth.question_of_persons", parameter="question")
    rows = source(arrow_table(table, made.columns))
    measurement = question.measurement(NEARLY_EXACT)
    value, _ = measurement.step(None, rows, None, secure())
    parts = question.parts(NEARLY_EXACT)
    found = {name: column for part, noisy in zip(parts, value["parts"], strict=True)
             for name, column in part.answers(noisy).items()}  # fmt: skip
    keys = [key for key, _ in question.keys]
    groups = question.only if question.only is not None else ((),)
    return [
        dict(zip(keys, group, strict=True))
        | {name: Estimate(float(column[i]), None, "modelled") for name, column in found.items()}
        for i, group in enumerate(groups)
    ]
