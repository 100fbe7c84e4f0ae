"""A question whose answer is a whole synthetic table: what it measures, what it costs, what to expect of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np

from mosha.connect.language.expression import Expression
from mosha.connect.plan.relation import Relation
from mosha.connect.plan.source import Source
from mosha.core.errors import InvalidParameter
from mosha.core.event import compose
from mosha.core.fingerprint import fingerprint_synthesis
from mosha.core.language import say
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer, strict_probability
from mosha.core.randomness import Rng
from mosha.core.release import Receipt
from mosha.core.showing import Card, Shown
from mosha.mechanisms.error_bars import gaussian_width
from mosha.synth.choosing import Distances
from mosha.synth.conditions import check_conditions
from mosha.synth.design import (
    MOST_GROUPS,
    STAGES,
    Choice,
    Design,
    combine,
    design_distances,
    design_fine,
    design_oneways,
    design_pairs,
    expect_independence,
    read_distances,
)
from mosha.synth.fitted import describe_design, read_design
from mosha.synth.measuring.axis import Axis, Reals
from mosha.synth.measuring.columns import Between, Bins, CodedColumn, Hierarchy, Keys, Wholes
from mosha.synth.measuring.counting import (
    ROWS_PER_PERSON,
    Counted,
    count_cells,
    count_rows_per_person,
    grain_of,
    reach_of,
)
from mosha.synth.measuring.distances import distance_deviation, measure_distances
from mosha.synth.measuring.residuals import Counts, Measured, ResidualNoise, Term, cells_of
from mosha.synth.model import fit_model
from mosha.synth.paying import Ask, fit_resolution, make_question_card, pack, unpack
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
) -> SynthesisQuestion:
    """A question for a synthetic table.

    Args:
        table: the protected table.
        columns: which columns; all that have keys or a range where left out.
        keys: the public values of columns; what the table's declaration says need not be said again.
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
        table, columns=columns, keys=keys, between=between, bins=bins, hierarchy=hierarchy, nulls=nulls
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
    return SynthesisQuestion(
        relation=table.relation, unit=table.unit, account=table.account, columns=coded, derived=derived,
        never=tuple(never), count_of_rows=None if rows is None else positive_integer("rows", rows), method=method,
    )  # fmt: skip


@explain_wrong_calls
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SynthesisQuestion(Shown, Ask):
    """A synthetic table that has not been paid for. Nothing is read before `release`.

    Made by `synthesize`: `relation` (the plan), `unit`, `account`, `columns` with their cells, columns `derived` from
    others, combinations that `never` occur, `count_of_rows` and the `method`. Methods take a `budget` as `epsilon`
    (with `delta`) or `rho`; `value`, `noises` and `receipt` are those of a release, and `progress` is told each stage.

    Guarantee:
        Five discrete Gaussian mechanisms with multipliers that are fixed before data are read: one-ways; distances of
        pairs from independence; pairs in groups; a few pairs in finer groups; and a second look that the fit never
        sees. What a stage measures depends on what earlier stages released and on nothing else (`residuals.md`,
        `measure_distances`); the model, its rows and its report are post-processing.

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
        sizes = [min(column.size, 2 * MOST_GROUPS) for column in self.columns]
        pairs = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
        return 1 + sum(column.size for column in self.columns) + pairs

    @property
    def _pairs(self) -> int:
        return len(self.columns) * (len(self.columns) - 1) // 2

    def count(self, relation: Relation) -> Counted:
        return count_cells(relation, self.unit, self.columns)

    def noises(self, budget: Budget) -> dict[str, ResidualNoise]:
        """The noise of each stage for a budget: fixed before data are read."""
        reach, _ = reach_of(self.unit, self.relation)
        grouped = sorted(min(column.size, 2 * MOST_GROUPS) for column in self.columns)
        largest = max(*(column.size for column in self.columns), math.prod(grouped[-2:]))
        finest = 1 << max(12, math.ceil(math.log2(FINEST * largest * reach / math.sqrt(LEAST))))
        parts = list(STAGES.values())
        resolution, multipliers = fit_resolution(budget, parts, resolution=finest, coordinates=self._numbers)
        found = {
            stage: ResidualNoise(multiplier, reach, resolution, self._numbers)
            for stage, multiplier in zip(STAGES, multipliers, strict=True)
        }
        distance_deviation(found["distances"], self._pairs)  # refuses, before anything is paid, what cannot be measured
        return found

    def measurement_for(
        self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None
    ) -> Measurement:
        """What a release for this budget would run."""
        return self._measurement(Budget(epsilon=epsilon, delta=delta, rho=rho))

    def _measurement(self, budget: Budget) -> Measurement:
        noises = self.noises(budget)

        def step(state: None, data: Source | None, ask: object, rng: Rng) -> tuple[dict[str, Any], None]:
            del ask
            counted = self.count(self.rows(data))
            return self._measure(counted, noises, rng), state

        return Measurement(
            unit=self.unit,
            event=compose([(noise.event, 1) for noise in noises.values()]),
            step=step,
            name=f"synthetic table of {len(self.columns)} columns",
            question=fingerprint_synthesis(self.relation, self.unit, self.columns, self.method),
            delta=budget.delta or None if budget.rho is None else None,
        )

    def _measure(self, counted: Counted, noises: Mapping[str, ResidualNoise], rng: Rng) -> dict[str, Any]:
        """All stages, one after the other: what leaves is residuals, and the groups that follow from them."""
        multiplier = self._whole_multiplier(noises)
        first = design_oneways(self.columns)
        one = noises["one-ways"].measure(first.axes, first.shares, _counts(first, counted), rng)
        first_look = pack(one.residuals)
        compared, told, one, far = self._compare(one, counted, noises["distances"], rng)
        second = design_pairs(self.columns, one, multiplier, method=self.method, distances=far)
        two = noises["pairs"].measure(second.axes, second.shares, _counts(second, counted), rng)
        both = combine(one, two)
        third = design_fine(self.columns, second, both, multiplier)
        three = noises["fine"].measure(third.axes, third.shares, _counts(third, counted), rng)
        look = look_design(second)
        seen = noises["look"].measure(look.axes, look.shares, _counts(look, counted), rng)
        return {
            "one-ways": first_look, "distances": told, "pairs": pack(two.residuals), "fine": pack(three.residuals),
            "look": pack(seen.residuals), "method": second.method,
            "designs": {stage: describe_design(design) for stage, design in
                        (("distances", compared), ("pairs", second), ("fine", third))},
        }  # fmt: skip

    def _compare(
        self, one: Measured, counted: Counted, noise: ResidualNoise, rng: Rng
    ) -> tuple[Design, Reals, Measured, Distances | None]:
        """The second stage: its design, what it released, all that is known of one-ways, and distances if there are."""
        deviation = distance_deviation(noise, self._pairs)
        design = design_distances(self.columns, one, self._whole_multiplier_of(noise, "distances"), deviation,
                                  method=self.method)  # fmt: skip
        counts = _counts(design, counted)
        if design.shares:
            again = noise.measure(design.axes, design.shares, counts, rng)
            return design, pack(again.residuals), combine(one, again), None
        values = measure_distances(noise, expect_independence(self.columns, design, one), counts, rng)
        return design, values, one, read_distances(self.columns, one, values, deviation)

    def _whole_multiplier(self, noises: Mapping[str, ResidualNoise]) -> float:
        """The multiplier of all stages together, times what one unit counts for."""
        return self._whole_multiplier_of(noises["pairs"], "pairs")

    def _whole_multiplier_of(self, noise: ResidualNoise, stage: str) -> float:
        return noise.multiplier * math.sqrt(STAGES[stage]) * noise.reach

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
        grain, first = grain_of(self.unit, self.relation), design_oneways(self.columns)
        quantile = gaussian_width(2.0**30, strict_probability("confidence", confidence)) / 2.0**30
        deviations = noises["one-ways"].deviations(first.axes, first.shares)
        found: dict[str, Any] = {
            "cell of a column": {
                column.name: quantile * deviations[((place, 1),)] / grain * math.sqrt(1 - 1 / column.size)
                for place, column in enumerate(self.columns)
                if column.size > 1
            },
            "number of rows": quantile * deviations[()] / grain,
        }
        if rows is not None:
            even: dict[Term, Reals] = {(): np.array(float(rows) * grain)}
            even.update({term: np.zeros(cells_of(first.axes, term)) for term in first.shares if term})
            design = design_pairs(
                self.columns, Measured(first.axes, even, deviations), self._whole_multiplier(noises), method=self.method
            )
            found["method"] = design.method
            found["groups"] = {
                column.name: int(groups.max()) + 1 for column, groups in zip(self.columns, design.groups, strict=True)
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
        noises: Mapping[str, ResidualNoise],
        *,
        receipt: Receipt | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Synthetic:
        """The synthetic table that follows from what was released: post-processing, the same every time."""
        grain, first = grain_of(self.unit, self.relation), design_oneways(self.columns)
        designs = {stage: read_design(self.columns, plain) for stage, plain in value["designs"].items()}
        second, third = designs["pairs"], designs["fine"]
        measured = _in_rows(noises["one-ways"], first, value["one-ways"], grain)
        for stage, design in designs.items():
            if design.shares:
                measured = combine(measured, _in_rows(noises[stage], design, value[stage], grain))
        look = _in_rows(noises["look"], look_design(second), value["look"], grain)
        model = fit_model(self.columns, third, measured, progress=progress)
        return Synthetic(
            columns=self.columns, derived=dict(self.derived), never=self.never, count_of_rows=self.count_of_rows,
            model=model, measured=measured, look=look, design=third, receipt=receipt, unit=self.unit,
        )  # fmt: skip


def look_design(design: Design) -> Design:
    """The second look: pairs in groups and the total, or one-ways where there are no pairs."""
    shares = {term: share for term, share in design.shares.items() if len(term) == 2 or not term}
    if len(shares) < 2:
        shares = dict(design.shares)
    return Design(design.axes, shares, design.groups, design.fine, design.method)


def _counts(design: Design, counted: Counted) -> Counts:
    """The exact tables of a design's axes."""
    known: dict[int, Wholes] = {}

    def cells(number: int) -> Wholes:
        if number not in known:
            known[number] = design.cells(number, counted.cells)
        return known[number]

    def counts(numbers: tuple[int, ...]) -> Wholes:
        if not numbers:
            return counted.marginal(())
        sizes = tuple(design.axes[number].size for number in numbers)
        return counted.table([cells(number) for number in numbers], sizes)

    return counts


def _in_rows(noise: ResidualNoise, design: Design, whole: Reals, grain: int) -> Measured:
    axes: tuple[Axis, ...] = design.axes
    deviations = noise.deviations(axes, design.shares)
    residuals = unpack(np.asarray(whole, np.float64), axes, list(deviations))
    return Measured(
        axes, {t: table / grain for t, table in residuals.items()}, {t: d / grain for t, d in deviations.items()}
    )
