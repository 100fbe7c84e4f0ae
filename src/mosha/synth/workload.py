"""Questions about many marginals at once: least noise, exact error bars, one price."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from mosha.connect.plan.relation import Relation
from mosha.connect.plan.source import Source
from mosha.core.errors import InvalidParameter
from mosha.core.fingerprint import fingerprint_synthesis
from mosha.core.language import say
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, positive_integer, strict_probability
from mosha.core.release import Receipt
from mosha.core.showing import Card, Shown
from mosha.mechanisms.error_bars import gaussian_width
from mosha.mechanisms.residuals.axis import Axis, Reals
from mosha.mechanisms.residuals.planning import Workload, best_shares
from mosha.mechanisms.residuals.residuals import Measured, ResidualNoise, Term, cells_of, pack, unpack
from mosha.synth.margins import Marginals
from mosha.synth.measuring.columns import Between, Bins, CodedColumn, Hierarchy, Keys, coded_column
from mosha.synth.measuring.counting import Counted, count_cells, grain_of, reach_of
from mosha.synth.measuring.selection import found_column
from mosha.synth.paying import Ask, epsilon_for, fit_resolution, make_question_card
from mosha.tables import Budget, Table
from mosha.tables.table import is_from_data

__all__ = ["MOST_NUMBERS", "MarginalsQuestion", "ask_marginals", "coded_columns"]

MOST_NUMBERS = 1 << 24
"""No release measures more numbers than this."""

MOST_MARKS = 128
Kind = Literal["cells", "ranges", "prefixes", "hierarchy"]
Goal = Literal["sum", "largest"]


def coded_columns(
    table: Table,
    *,
    columns: Iterable[str] | None,
    keys: Keys | None,
    between: Between | None,
    bins: Bins | None,
    hierarchy: Hierarchy | None,
    nulls: Iterable[str] | None,
    may_find: bool = False,
) -> tuple[CodedColumn, ...]:
    """The columns of a release with their cells; what the table's declaration says need not be said again.

    Where it `may_find` them, the values of columns with keys "from_data" are to be bought.
    """
    for word, given in (("keys", keys), ("between", between), ("bins", bins), ("hierarchy", hierarchy)):
        if given is not None and not isinstance(given, Mapping):
            raise InvalidParameter("synth.not_by_column", parameter=word, spent="nothing")
    if not all(isinstance(groups, Mapping) for groups in (hierarchy or {}).values()):
        raise InvalidParameter("synth.not_by_column", parameter="hierarchy", spent="nothing")
    said, schema = table.declared, table.schema
    keys, between = {**said.keys, **(keys or {})}, {**said.ranges, **(between or {})}
    person = table.relation.person
    named = list(columns) if columns is not None else [
        name for name, kind in schema.items()
        if name != person and (columns is not None or name in keys or name in between or name in (bins or {})
                               or str(kind) == "boolean")
    ]  # fmt: skip
    for name in [*named, *keys, *between, *(bins or {}), *(hierarchy or {}), *(nulls or ())]:
        schema[name]
    if not named or len(set(named)) < len(named):
        raise InvalidParameter("synth.no_columns", parameter="columns", spent="nothing")
    if person in named:
        raise InvalidParameter("synth.person_column", parameter="columns", column=person, spent="nothing")
    missing = set(named) if nulls is None else set(nulls)
    found = {name for name in named if may_find and is_from_data(keys.get(name))}
    return tuple(
        found_column(name, schema[name], (hierarchy or {}).get(name)) if name in found else coded_column(
            name, schema, keys=keys.get(name), between=between.get(name) if name not in keys else None,
            bins=(bins or {}).get(name), hierarchy=(hierarchy or {}).get(name), missing=name in missing,
        )
        for name in named
    )  # fmt: skip


@explain_wrong_calls
def ask_marginals(
    table: Table,
    *,
    ways: int = 2,
    columns: Iterable[str] | None = None,
    sets: Iterable[Sequence[str]] | None = None,
    weights: Mapping[str | tuple[str, ...], float] | None = None,
    queries: Mapping[str, Kind] | None = None,
    goal: Goal = "sum",
    keys: Keys | None = None,
    between: Between | None = None,
    bins: Bins | None = None,
    hierarchy: Hierarchy | None = None,
    nulls: Iterable[str] | None = None,
) -> MarginalsQuestion:
    """All marginals of `ways` columns, or those of `sets`, as one question.

    `table` is protected; `columns` are all of its columns by default. `weights` say how much a marginal counts,
    `queries` what is asked of a column ("cells", "ranges", "prefixes", "hierarchy"), `goal` whether the "sum" or the
    largest error is made small. Cells of a column are its `keys`, or `bins` of its range `between`; `hierarchy` has the
    group of each value; `nulls` names columns with a cell for missing values.

    >>> import mosha
    >>> people = mosha.protect({"sex": ["F", "M"] * 50, "job": ["a", "b"] * 50}, unit=mosha.Row())
    >>> len(ask_marginals(people, ways=1, keys={"sex": ["F", "M"], "job": ["a", "b"]}).sets)
    2
    """
    if sets is not None:
        listed = [(one,) if isinstance(one, str) else tuple(one) for one in sets]
        columns = list(dict.fromkeys(name for one in listed for name in one)) if columns is None else columns
    coded = coded_columns(
        table, columns=columns, keys=keys, between=between, bins=bins, hierarchy=hierarchy, nulls=nulls
    )
    place = {column.name: i for i, column in enumerate(coded)}
    if sets is None:
        ways = positive_integer("ways", ways)
        if ways > len(coded):
            raise InvalidParameter("synth.too_many_ways", parameter="ways", ways=ways, columns=len(coded))
        numbers = tuple(itertools.combinations(range(len(coded)), ways))
    else:
        numbers = tuple(dict.fromkeys(tuple(sorted({place[name] for name in one})) for one in listed))
    kinds = dict(queries or {})
    for name, kind in kinds.items():
        if name not in place or kind not in {"cells", "ranges", "prefixes", "hierarchy"}:
            raise InvalidParameter("synth.unknown_queries", parameter="queries", column=name)
    for name in hierarchy or {}:
        kinds.setdefault(name, "hierarchy")
    if goal not in {"sum", "largest"}:
        raise InvalidParameter("synth.unknown_goal", parameter="goal")
    named = {_as_set(place, one): positive("a weight", weight) for one, weight in (weights or {}).items()}
    return MarginalsQuestion(
        relation=table.relation,
        unit=table.unit,
        account=table.account,
        columns=coded,
        sets=numbers,
        weights=tuple(named.get(one, 1.0) for one in numbers),
        kinds=tuple(kinds.get(column.name, "cells") for column in coded),
        goal=goal,
    )


def _as_set(place: Mapping[str, int], one: str | tuple[str, ...]) -> tuple[int, ...]:
    try:
        return tuple(sorted({place[name] for name in ((one,) if isinstance(one, str) else one)}))
    except (KeyError, TypeError):
        raise InvalidParameter("synth.unknown_weight", parameter="weights") from None


@explain_wrong_calls
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MarginalsQuestion(Shown, Ask):
    """Marginals of a protected table. Nothing is read before `release`.

    Made by `ask_marginals`: `relation` (the plan), `unit`, `account`, `columns` with their cells, the `sets` of columns
    whose margins are asked, their `weights` and `kinds`, and the `goal`. Methods take a `budget` as `epsilon` (with
    `delta`) or `rho`, and the `confidence` of error bars; `value` and `receipt` are those of a release.

    Guarantee:
        One discrete Gaussian mechanism on the residuals of all terms (`residuals.md`), whose event is fixed before data
        are read; marginals, error bars and linear queries are post-processing.

    >>> import mosha
    >>> people = mosha.protect({"sex": ["F", "M"] * 50, "job": ["a", "b"] * 50}, unit=mosha.Row())
    >>> question = people.marginals(columns=["sex", "job"], keys={"sex": ["F", "M"], "job": ["a", "b"]})
    >>> len(question.sets)
    1
    """

    columns: tuple[CodedColumn, ...]
    sets: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    kinds: tuple[Kind, ...]
    goal: Goal = "sum"

    def __post_init__(self) -> None:
        axes, numbers = self.axes, 0
        for one in self.sets:
            numbers += math.prod(axes[column].size for column in one)
            if numbers > MOST_NUMBERS:
                raise InvalidParameter("synth.too_many_numbers", most=MOST_NUMBERS, spent="nothing")
        reach_of(self.unit, self.relation)

    def make_card(self) -> Card:
        """What is asked, of whom."""
        return make_question_card(say("synth.shown_marginals"), self.unit, self.columns)

    def __repr__(self) -> str:
        """Public words alone."""
        return f"MarginalsQuestion({len(self.sets)} marginals of {len(self.columns)} columns, unit={self.unit!r})"

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(column.axis(kind) for column, kind in zip(self.columns, self.kinds, strict=True))

    @cached_property
    def shares(self) -> dict[Term, float]:
        """What part of the price each term has: best for the goal."""
        queries = {i: _queries(kind, self.columns[i]) for i, kind in enumerate(self.kinds) if kind != "cells"}
        shares = best_shares(Workload(self.axes, self.sets, self.weights, queries), largest=self.goal == "largest")
        return {term: share for term, share in shares.items() if share > 0}

    def _noise(self, budget: Budget) -> ResidualNoise:
        reach, _ = reach_of(self.unit, self.relation)
        numbers = sum(cells_of(self.axes, term) for term in self.shares)
        largest = max(math.prod(self.axes[c].levels[v - 1].common for c, v in term) for term in self.shares)
        finest = ResidualNoise.resolution_for(reach, largest, min(self.shares.values()))
        resolution, (multiplier,) = fit_resolution(budget, [1.0], resolution=finest, coordinates=numbers)
        return ResidualNoise(multiplier, reach, resolution, numbers)

    def count(self, relation: Relation) -> Counted:
        return count_cells(relation, self.unit, self.columns)

    def measurement_for(
        self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None
    ) -> Measurement:
        """What a release for this budget would run."""
        return self._measurement(Budget(epsilon=epsilon, delta=delta, rho=rho))

    def _measurement(self, budget: Budget) -> Measurement:
        noise = self._noise(budget)

        def step(state: None, data: Source | None, ask: object, rng: Rng) -> tuple[dict[str, Reals], None]:
            del ask
            counted = self.count(self.rows(data))
            measured = noise.measure(self.axes, self.shares, counted.marginal, rng)
            return {"residuals": pack(measured.residuals)}, state

        return Measurement(
            unit=self.unit,
            event=noise.event,
            step=step,
            name=f"marginals of {len(self.columns)} columns",
            question=fingerprint_synthesis(
                self.relation, self.unit, self.columns, self.sets, self.weights, self.kinds, self.goal
            ),
            delta=budget.delta or None if budget.rho is None else None,
        )

    def _read_residuals(self, noise: ResidualNoise, whole: Reals | None) -> Measured:
        """The residuals of a release in rows (or persons); zeros for a forecast."""
        deviations, grain = noise.deviations(self.axes, self.shares), grain_of(self.unit, self.relation)
        terms = list(deviations)
        if whole is None:
            whole = np.zeros(sum(cells_of(self.axes, term) for term in terms))
        residuals = {term: table / grain for term, table in unpack(whole, self.axes, terms).items()}
        return Measured(self.axes, residuals, {term: deviation / grain for term, deviation in deviations.items()})

    def forecast(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        confidence: float = 0.95,
    ) -> dict[tuple[str, ...], float]:
        """For each marginal the half-width of the widest error bar of a cell, before anything is spent."""
        measured = self._read_residuals(self._noise(Budget(epsilon=epsilon, delta=delta, rho=rho)), None)
        quantile = normal_quantile(confidence)
        return {
            tuple(self.columns[c].name for c in one): quantile * float(np.sqrt(measured.cell_variance(one).max()))
            for one in self.sets
        }

    def plan(self, *, within: float, delta: float, confidence: float = 0.95) -> Budget:
        """The least epsilon at which no error bar of a cell is wider than `within`."""
        rough = self._noise(Budget(rho=0.5))
        measured = self._read_residuals(rough, None)
        widest = max(float(measured.cell_variance(one).max()) for one in self.sets)
        needed = positive("within", within) / (normal_quantile(confidence) * math.sqrt(widest)) * rough.multiplier
        return Budget(epsilon=epsilon_for(needed, delta), delta=delta)

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        within: float | None = None,
        confidence: float = 0.95,
        key: str | None = None,
        deadline: float | None = None,
    ) -> Marginals:
        """Look, pay, ask, and answer with error bars.

        Args:
            epsilon: the price, together with
            delta: as for any Gaussian noise; or
            rho: the price in zero-concentrated differential privacy; or
            within: the widest error bar of a cell, at this `confidence`: the least epsilon for it is paid.
            confidence: with `within`.
            key: makes a retry free: the same key finds the payment and the answer again.
            deadline: after this many seconds the engine breaks off.
        """
        if within is not None:
            if epsilon is not None or rho is not None:
                raise InvalidParameter("synth.one_budget", parameter="within", spent="nothing")
            budget = self.plan(within=within, delta=delta, confidence=confidence)
        else:
            budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
        release = self.pay(self._measurement(budget), key=key, deadline=deadline)
        return self.read_answer(budget, release.value, release.receipt)

    def read_answer(self, budget: Budget, value: Mapping[str, object], receipt: Receipt) -> Marginals:
        """The marginals that a release for this budget holds: post-processing of what its step answered."""
        measured = self._read_residuals(self._noise(budget), np.asarray(value["residuals"], np.float64))
        return Marginals(columns=self.columns, sets=self.sets, measured=measured, receipt=receipt)


def normal_quantile(confidence: float) -> float:
    """The half-width of an interval of the normal law around 0, in standard deviations, rounded up a little."""
    return gaussian_width(2.0**30, strict_probability("confidence", confidence)) / 2.0**30


def _queries(kind: Kind, column: CodedColumn) -> Reals:
    """The queries that a column is planned for, as rows of coefficients; between at most 128 marks where it is long."""
    size = column.size
    if kind == "hierarchy":
        groups = np.array(column.groups if column.groups is not None else np.zeros(size), np.int64)
        return np.concatenate([np.eye(size), (np.unique(groups)[:, None] == groups).astype(np.float64)])
    marks = np.unique(np.linspace(0, size, min(size, MOST_MARKS) + 1).round().astype(int))
    prefixes = (np.arange(size) < marks[1:, None]).astype(np.float64)
    if kind == "prefixes":
        return prefixes
    pairs = list(itertools.combinations(range(len(marks)), 2))
    below = np.concatenate([np.zeros((1, size)), prefixes])
    return np.asarray(below[[b for _, b in pairs]] - below[[a for a, _ in pairs]], np.float64)
