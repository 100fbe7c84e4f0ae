"""A question whose answer is a whole synthetic table: what it measures, what it costs, what to expect of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np

from mosha.connect.engines.source import answer
from mosha.connect.language.expression import Expression
from mosha.connect.plan.relation import Relation
from mosha.connect.plan.source import Source
from mosha.core.errors import InvalidParameter
from mosha.core.fingerprint import fingerprint_synthesis
from mosha.core.language import say
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer, strict_probability
from mosha.core.release import Receipt
from mosha.core.showing import Card, Shown
from mosha.mechanisms.error_bars import gaussian_width
from mosha.mechanisms.residuals.axis import Reals
from mosha.mechanisms.residuals.residuals import Measured, Term, cells_of
from mosha.synth.conditions import check_conditions
from mosha.synth.linking import LinkedQuestion, join_questions
from mosha.synth.measuring.columns import Between, Bins, CodedColumn, Hierarchy, Keys
from mosha.synth.measuring.counting import (
    ROWS_PER_PERSON,
    Counted,
    count_cells,
    count_pairs,
    count_rows_per_person,
    grain_of,
    reach_of,
)
from mosha.synth.measuring.selection import MOST_SHOWN, FoundColumn, fill_columns, find_keys, key_question
from mosha.synth.modelling.design import MOST_GROUPS, Choice, design_oneways, design_pairs
from mosha.synth.modelling.model import fit_model
from mosha.synth.modelling.stages import measure_stages, read_stages, whole_multiplier
from mosha.synth.paying import Ask, Noises, make_question_card, plan_noises
from mosha.synth.synthetic import Synthetic
from mosha.synth.workload import MOST_NUMBERS, coded_columns
from mosha.tables import Budget, Table

__all__ = ["METHODS", "SynthesisQuestion", "ask_synthesis"]

METHODS: tuple[Choice, ...] = get_args(Choice)
FINEST, LEAST = 16, 1e-5


@explain_wrong_calls
def ask_synthesis(
    table: Table,
    *,
    columns: Iterable[str] | None = None,
    keys: Keys | None = None,
    between: Between | None = None,
    bins: Bins | None = None,
    hierarchy: Hierarchy | None = None,
    derived: Mapping[str, Expression] | None = None,
    never: Sequence[Expression] = (),
    nulls: Iterable[str] | None = None,
    rows: int | None = None,
    rows_per_person: int | None = None,
    method: Choice = "automatic",
    target: str | None = None,
) -> SynthesisQuestion:
    """A question for a synthetic table.

    Args:
        table: the protected table.
        columns: which columns; all that have keys or a range where left out.
        keys: the public values of columns; what the table's declaration says need not be said again. "from_data" in the
            place of a list buys the values of a column of text or whole numbers: those that enough rows (or persons)
            share are shown, the others count as missing. That costs a part of the budget and of its delta.
        between: the public (low, high) of numbers and dates.
        bins: how many cells numbers and dates have, or their edges; 100 at most where left out.
        hierarchy: for a column the group of each value: cells are merged along it first.
        derived: columns that are computed from others: not measured, and computed anew for every synthetic row.
        never: conditions that no row can meet (structural zeros): synthetic rows that meet one are drawn again.
        nulls: the columns in which missing values are a value of their own; all where left out. A row that misses
            another column is left out.
        rows: how many rows the synthetic table has; the noisy number of rows (or persons) where left out.
        rows_per_person: a column of this name holds how many rows the person of a row has, from 1 to this number (or
            more); left out where it is not given.
        method: "automatic" chooses from public and noisy numbers between independent columns, a tree of pairs, selected
            pairs and all pairs; each of them may be asked for.
        target: a column that others shall predict: its pairs are measured more accurately, the rest a little less.

    >>> import mosha
    >>> people = mosha.protect({"sex": ["F", "M"] * 50, "job": ["a", "b"] * 50}, unit=mosha.Row())
    >>> len(ask_synthesis(people, keys={"sex": ["F", "M"], "job": ["a", "b"]}).columns)
    2
    """
    derived = dict(derived or {})
    if rows_per_person is not None:
        most = positive_integer(ROWS_PER_PERSON, rows_per_person)
        table = replace(table, relation=count_rows_per_person(table.relation))
        columns = None if columns is None else [*columns, ROWS_PER_PERSON]
        between, bins = {**(between or {}), ROWS_PER_PERSON: (1, most)}, {**(bins or {}), ROWS_PER_PERSON: most}
    if columns is not None:
        columns = [name for name in columns if name not in derived]
    coded = coded_columns(
        table,
        columns=columns,
        keys=keys,
        between=between,
        bins=bins,
        hierarchy=hierarchy,
        nulls=nulls,
        may_find=True,
    )
    coded = tuple(column for column in coded if column.name not in derived)
    if method not in METHODS:
        raise InvalidParameter("synth.unknown_method", parameter="method", methods=list(METHODS))
    for name, expression in derived.items():
        if not isinstance(expression, Expression):
            raise InvalidParameter("synth.not_an_expression", parameter="derived", column=name)
    if not isinstance(never, Sequence) or not all(isinstance(condition, Expression) for condition in never):
        raise InvalidParameter("synth.not_a_condition", parameter="never")
    check_conditions(coded, derived, never)
    if target is not None and target not in {column.name for column in coded}:
        known = [column.name for column in coded]
        raise InvalidParameter("synth.unknown_column", parameter="target", column=str(target), columns=known)
    return SynthesisQuestion(
        relation=table.relation, unit=table.unit, account=table.account, columns=coded, derived=derived,
        never=tuple(never), count_of_rows=None if rows is None else positive_integer("rows", rows), method=method,
        target=target,
    )  # fmt: skip


@explain_wrong_calls
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SynthesisQuestion(Shown, Ask):
    """A synthetic table that has not been paid for. Nothing is read before `release`.

    Made by `synthesize`: `relation` (the plan), `unit`, `account`, `columns` with their cells, columns `derived` from
    others, combinations that `never` occur, `count_of_rows`, the `method` and the `target`. Methods take a `budget` as
    `epsilon` (with `delta`) or `rho`; `value`, `noises` and `receipt` are those of a release, and `progress` is told
    each stage.

    Guarantee:
        Five discrete Gaussian mechanisms with multipliers that are fixed before data are read: one-ways; distances of
        pairs from independence; pairs in groups; a few pairs in finer groups; and a second look that the fit never
        sees. What a stage measures depends on what earlier stages released and on nothing else (`residuals.md`,
        `measure_distances`); the model, its rows and its report are post-processing. Where values come from the data,
        a sixth one before them shows those whose noisy counts are large (`selection.md`).

    >>> import mosha
    >>> people = mosha.protect({"sex": ["F", "M"] * 50, "job": ["a", "b"] * 50}, unit=mosha.Row())
    >>> question = people.synthesize(keys={"sex": ["F", "M"], "job": ["a", "b"]})
    >>> len(question.columns)
    2
    """

    columns: tuple[CodedColumn, ...]
    derived: Mapping[str, Expression] = field(default_factory=dict)
    never: tuple[Expression, ...] = ()
    count_of_rows: int | None = None
    method: Choice = "automatic"
    target: str | None = None

    def link(self, rows: SynthesisQuestion, *, at_most: int, count: str = ROWS_PER_PERSON) -> LinkedQuestion:
        """This table of persons together with a table of their rows, such as patients with their visits.

        Args:
            rows: the other table's question: `visits.synthesize(...)`, of the same persons and account.
            at_most: synthetic persons have at most so many rows; more are counted as so many.
            count: what the number of a person's rows is called, in `count` of the answer.

        >>> import mosha
        >>> unit = mosha.Person("who")
        >>> patients = mosha.protect({"who": ["a", "b"], "sex": ["F", "M"]}, unit=unit)
        >>> visits = mosha.protect({"who": ["a", "a"], "ward": ["A", "B"]}, unit=unit)
        >>> question = patients.synthesize(keys={"sex": ["F", "M"]}).link(
        ...     visits.synthesize(keys={"ward": ["A", "B"]}), at_most=5)
        >>> [column.name for column in question.whole.columns]
        ['sex', 'rows_per_person', 'ward']
        """
        relation, columns = join_questions(self, rows, at_most=at_most, count=count)
        whole = replace(self, relation=relation, columns=columns, derived={}, never=())
        return LinkedQuestion(whole=whole, persons=self, rows=rows)

    def __post_init__(self) -> None:
        if self._numbers > MOST_NUMBERS:
            raise InvalidParameter("synth.too_many_numbers", most=MOST_NUMBERS, spent="nothing")
        reach_of(self.unit, self.relation)

    def make_card(self) -> Card:
        """What is asked, of whom."""
        return make_question_card(say("synth.shown_synthetic"), self.unit, self.columns)

    def __repr__(self) -> str:
        """Public words alone."""
        return f"SynthesisQuestion({', '.join(column.name for column in self.columns)}, unit={self.unit!r})"

    @cached_property
    def _numbers(self) -> int:
        """The most numbers that any stage can measure, whatever the groups are."""
        sizes = [min(size, 2 * MOST_GROUPS) for size in self._sizes]
        pairs = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
        return 1 + sum(self._sizes) + pairs

    @property
    def _found(self) -> tuple[FoundColumn, ...]:
        return tuple(column for column in self.columns if isinstance(column, FoundColumn))

    @property
    def _target(self) -> int | None:
        return None if self.target is None else [column.name for column in self.columns].index(self.target)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """The most cells that each column can have."""
        return tuple(MOST_SHOWN + 1 if isinstance(column, FoundColumn) else column.size for column in self.columns)

    def count(self, relation: Relation) -> Counted:
        """The rows by their cells, in columns that are known before; a look lets the engine see the others too."""
        for column in self._found:
            answer(key_question(relation, self.unit, column.name))
        return count_cells(relation, self.unit, self.columns)

    def noises(self, budget: Budget) -> Noises:
        """The noise of each stage for a budget: fixed before data are read."""
        reach, _ = reach_of(self.unit, self.relation)
        grouped = sorted(min(size, 2 * MOST_GROUPS) for size in self._sizes)
        largest = max(*self._sizes, math.prod(grouped[-2:]))
        finest = 1 << max(12, math.ceil(math.log2(FINEST * largest * reach / math.sqrt(LEAST))))
        return plan_noises(budget, reach, self._numbers, columns=len(self.columns), found=len(self._found),
                           finest=finest)  # fmt: skip

    def measurement_for(
        self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None
    ) -> Measurement:
        """What a release for this budget would run."""
        return self._measurement(Budget(epsilon=epsilon, delta=delta, rho=rho))

    def _measurement(self, budget: Budget) -> Measurement:
        noises = self.noises(budget)

        def step(state: None, data: Source | None, ask: object, rng: Rng) -> tuple[dict[str, Any], None]:
            del ask
            relation = self.rows(data)
            shown = self._find_keys(relation, noises, rng)
            columns = fill_columns(self.columns, shown)
            counted = count_pairs(relation, self.unit, columns)
            released = measure_stages(columns, counted, noises.stages, self.method, rng, target=self._target)
            return (released | {"keys": shown} if shown else released), state

        more = [] if self.target is None else [self.target]  # questions without one are known as they always were
        return Measurement(
            unit=self.unit,
            event=noises.event,
            step=step,
            name=f"synthetic table of {len(self.columns)} columns",
            question=fingerprint_synthesis(self.relation, self.unit, self.columns, self.method, *more),
            delta=budget.delta or None if budget.rho is None else None,
        )

    def _find_keys(self, relation: Relation, noises: Noises, rng: Rng) -> dict[str, list[object]]:
        """The values that are bought from the data."""
        if noises.keys is None:
            return {}
        return find_keys(noises.keys, relation, self.unit, [column.name for column in self._found], rng)

    def forecast(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        rows: float | None = None,
        confidence: float = 0.95,
    ) -> dict[str, Any]:
        """What to expect before anything is spent.

        Args:
            epsilon: the budget, as for `release`; or
            rho: the same.
            delta: the same.
            rows: a public guess of the number of rows (or persons): with it, the groups that pairs will have.
            confidence: how often the noise stays within an error bar.
        """
        noises = self.noises(Budget(epsilon=epsilon, delta=delta, rho=rho))
        columns = tuple(column.guess() if isinstance(column, FoundColumn) else column for column in self.columns)
        grain, first = grain_of(self.unit, self.relation), design_oneways(columns)
        quantile = gaussian_width(2.0**30, strict_probability("confidence", confidence)) / 2.0**30
        deviations = noises.stages["one-ways"].deviations(first.axes, first.shares)
        found: dict[str, Any] = {
            "cell of a column": {
                column.name: quantile * deviations[((place, 1),)] / grain * math.sqrt(1 - 1 / column.size)
                for place, column in enumerate(columns)
                if column.size > 1
            },
            "number of rows": quantile * deviations[()] / grain,
        }
        if noises.keys is not None:
            found["values shown from"] = noises.keys.least_count / grain
        if rows is not None:
            even: dict[Term, Reals] = {(): np.array(float(rows) * grain)}
            even.update({term: np.zeros(cells_of(first.axes, term)) for term in first.shares if term})
            whole = whole_multiplier(noises.stages["pairs"], "pairs")
            design = design_pairs(columns, Measured(first.axes, even, deviations), whole, method=self.method,
                                  target=self._target)  # fmt: skip
            found["method"] = design.method
            found["groups"] = {
                column.name: int(groups.max()) + 1 for column, groups in zip(columns, design.groups, strict=True)
            }
        return found

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        key: str | None = None,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Synthetic:
        """Look, pay, measure, and fit the model.

        Args:
            epsilon: the price, together with
            delta: as for any Gaussian noise; or
            rho: the price in zero-concentrated differential privacy.
            key: makes a retry free: the same key finds the payment and the same synthetic table again.
            deadline: after this many seconds the engine breaks off.
            progress: is called with the share of the fit that is done.
        """
        budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
        noises = self.noises(budget)
        released = self.pay(self._measurement(budget), key=key, deadline=deadline)
        return self.read(released.value, noises, receipt=released.receipt, progress=progress)

    def read(
        self,
        value: Mapping[str, Any],
        noises: Noises,
        *,
        receipt: Receipt | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Synthetic:
        """The synthetic table that follows from what was released: post-processing, the same every time."""
        columns = fill_columns(self.columns, value.get("keys", {}))
        design, measured, look = read_stages(columns, value, noises.stages, grain_of(self.unit, self.relation))
        return Synthetic(
            columns=columns, derived=dict(self.derived), never=self.never, count_of_rows=self.count_of_rows,
            model=fit_model(columns, design, measured, progress=progress), measured=measured, look=look, design=design,
            receipt=receipt, unit=self.unit,
        )  # fmt: skip
