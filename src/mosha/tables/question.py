"""A question about a protected table: frozen, data-free, with its price and its error known before it is asked."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mosha.connect.engines.local_source import LocalSource
from mosha.connect.engines.source import stop_at
from mosha.connect.language.checking import check_size, list_expressions
from mosha.connect.language.expression import Column, Expression
from mosha.connect.plan.relation import Relation, rebase
from mosha.connect.plan.source import Source
from mosha.core.account import Account
from mosha.core.budget import Budget, choose_budget
from mosha.core.errors import InvalidParameter, Refused
from mosha.core.fingerprint import fingerprint_plan
from mosha.core.language import Phrase, make_note
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.names.deprecation import renamed_method
from mosha.core.number import positive, strict_probability
from mosha.core.question import find_least_budget
from mosha.core.release import Receipt
from mosha.core.showing import BarsAhead, Card, Prose, Shown
from mosha.core.unit import Unit
from mosha.tables.answer import Answer
from mosha.tables.parts.additive import Aggregate, Count, CountPersons, Distinct
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.part import Frame, Part, list_values, public_rows
from mosha.tables.parts.quantiles import Quantile
from mosha.tables.parts.shown_groups import MOST_KEYS
from mosha.tables.questions.explaining import explain_release
from mosha.tables.questions.groupings import check_sets
from mosha.tables.questions.look import EARLIER, describe_look, is_known, look, notice_data, remember, take_answer
from mosha.tables.questions.reader import ProtectedTable, Tables, read_question, read_sets
from mosha.tables.questions.release_plan import Released, ReleasePlan, check_parts, plan_parts, plan_release
from mosha.tables.questions.writer import write_question
from mosha.tables.showing import make_question_card

__all__ = ["Question"]


@explain_wrong_calls
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Question(Shown):
    """What is asked of each group of a protected table. Nothing is read before `release`.

    Made by the verbs of a table: `relation` (the plan), `unit`, `account`, `keys` and `only` (public groups), `listed`,
    `aggregates`, their `weights` in the budget, `best` (only the largest groups), `sets` of keys by which the groups
    will be added up. Methods take a `budget` as `epsilon`
    (with `delta`) or `rho`, the `confidence` of error bars, and public guesses: `rows`, `at_most`, `between`.

    Guarantee:
        The measurement's event prices every part, and what follows is post-processing. A part may use what an earlier
        one released (a bound that was bought) to scale data and noise alike: no noise multiplier depends on it.

    >>> import mosha
    >>> visits = mosha.protect({"ward": ["a", "b", "a"]}, unit=mosha.Row())
    >>> question = visits.group_by("ward", keys=["a", "b"]).count()
    >>> question.forecast(epsilon=1)["count"].round(2).tolist()
    [3.0, 3.0]
    """

    relation: Relation
    unit: Unit
    account: Account | None
    keys: tuple[tuple[str, Expression], ...] = ()
    only: tuple[tuple[Any, ...], ...] | None = None
    listed: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    """The public values of some of the keys, where the others' come from the data."""
    aggregates: Mapping[str, Aggregate]
    weights: Mapping[str, float] = field(default_factory=dict)
    best: int | None = None
    sets: tuple[tuple[str, ...], ...] = ()
    """The groupings that will be made of the groups, each by the keys that it keeps: noise is planned for them."""

    def __post_init__(self) -> None:
        if not self.aggregates:
            raise InvalidParameter("tables.nothing_asked")
        for name, aggregate in self.aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise InvalidParameter("tables.not_an_aggregate", name=name)
            if name in dict(self.keys):
                raise InvalidParameter("tables.name_is_a_key", name=name)
        asked = [part for aggregate in self.aggregates.values() for part in list_expressions(aggregate)]
        check_size(self.relation, [*(expression for _, expression in self.keys), *asked])
        for aggregate in self.aggregates.values():
            aggregate.check(self.relation.schema)
        if self.private_keys and any(_is_person(e, self.relation) for _, e in self.keys):
            raise Refused("tables.groups_of_one_person", spent="nothing")
        if unknown := [name for name in self.weights if name not in self.aggregates]:
            raise InvalidParameter("tables.weight_of_nothing", aggregate=unknown[0])
        if self.best is not None and not self._asks_for_top:
            raise InvalidParameter("tables.top_counts", parameter="top", spent="nothing")
        if self.sets:
            check_sets(self.sets, list(dict(self.keys)), of_some=self.best is not None)
        self._check_keys()
        check_parts(self.frame, self.aggregates)

    def _check_keys(self) -> None:
        """Public keys in plain form; refuse more top values than candidates."""
        if self.only is not None:
            object.__setattr__(self, "only", public_rows(self.relation, self.keys, self.only))
            if self.best is not None and self.best > len(self.only):
                raise InvalidParameter("tables.too_few_candidates", candidates=len(self.only), asked=self.best)
        object.__setattr__(self, "listed", list_values(self.relation, self.keys, self.listed))

    @property
    def frame(self) -> Frame:
        most = MOST_KEYS if self.private_keys else len(self.only or ((),))
        if self.best is not None and self.only is not None:
            most = min(most, self.best)
        places = {name: place for place, (name, _) in enumerate(self.keys)}
        sets = tuple(tuple(sorted(places[name] for name in kept)) for kept in self.sets)
        return Frame(self.relation, self.unit, self.keys, self.only, most, self.listed, sets)

    @property
    def private_keys(self) -> bool:
        """Whether the groups come from the data."""
        return bool(self.keys) and self.only is None

    @property
    def _asks_for_top(self) -> bool:
        """Whether one plain count of groups is asked for, by which the largest groups are found."""
        asked = self.aggregates.get("count")
        return bool(self.keys) and len(self.aggregates) == 1 and isinstance(asked, Count) and asked.of is None

    @property
    def title(self) -> str:
        by = f" by {', '.join(name for name, _ in self.keys)}" if self.keys else ""
        return f"{', '.join(self.aggregates)}{by}"

    def weigh(self, /, **weights: float) -> Question:
        """The same question with another split of the budget: each aggregate weighs 1 unless it is said otherwise.

        Sums, counts and means share one noise, and are worth the sum of their weights together; counts of persons,
        each count of distinct values and the quantiles of each column are parts of their own.
        """
        checked = {name: positive(name, weight) for name, weight in weights.items()}
        return replace(self, weights={**self.weights, **checked})

    weighted = renamed_method("weighted", "weigh")

    @property
    def fingerprint(self) -> str:
        """What tells this question from others that cost the same: its plan, its groups and what is asked of them."""
        weights = tuple(sorted(self.weights.items()))
        aggregates = tuple(self.aggregates.items())
        some: tuple[object, ...] = (self.listed,) if self.listed else ()
        some += (("sets", self.sets),) if self.sets else ()
        return fingerprint_plan(self.relation, self.unit, self.keys, self.only, aggregates, weights, self.best, *some)

    def to_dict(self, *, tables: Mapping[str, ProtectedTable[Question] | Relation] | None = None) -> dict[str, Any]:
        """The question as plain data: its plan, its groups and what is asked, and nothing about who pays.

        Args:
            tables: what the tables are called (protected and public ones). Without it they are "table", "table_2" and
                so on, from left to right.

        >>> import mosha, pyarrow
        >>> table = mosha.protect(pyarrow.table({"days": [1, 2]}), unit=mosha.Row())
        >>> asked = table.where(mosha.col("days") > 1).count().to_dict()
        >>> asked["steps"], asked["aggregates"]
        ([{'where': {'operator': '>', 'of': [{'column': 'days'}, 1]}}], [{'name': 'count', 'kind': 'count'}])
        >>> Question.from_dict(table, asked)
        Question(count, unit=Row())
        """
        return write_question(
            self.relation, by=dict(self.keys), only=self.only, listed=self.listed, aggregates=self.aggregates,
            weights=self.weights, top=self.best, tables=tables, sets=self.sets,
        )  # fmt: skip

    @staticmethod
    def from_dict(tables: Tables[Question], data: object) -> Question:
        """The question that `to_dict` wrote down, or somebody else: data, never code.

        Args:
            tables: the protected table that is asked (called "table"), or all tables that may be named, by name. They
                bring their unit, their account and their declaration with them.
            data: plain data, as JSON holds it; whatever is wrong with it is refused by a typed error.
        """
        data, sets = read_sets(data)
        return replace(read_question(tables, data), sets=sets)

    def __repr__(self) -> str:
        """Public words alone."""
        return f"Question({self.title}, unit={self.unit.summarize()})"

    def make_card(self) -> Card:
        return make_question_card(self)

    def plan_release(self, budget: Budget) -> ReleasePlan:
        """The release for a budget, planned: its price, its parts and what is read out of their answers."""
        return plan_release(self.frame, self.aggregates, self.weights, budget, self.best)

    def parts(self, budget: Budget) -> list[Part]:
        """The parts of a release that has this budget beside any selection of groups."""
        return plan_parts(self.frame, self.aggregates, self.weights, budget)

    def measurement(self, budget: Budget) -> Measurement:
        """The whole release as one measurement; its data are the table's own, or a source to put in its place."""
        return self.plan_release(budget).measurement(self.title)

    def measurement_for(
        self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None
    ) -> Measurement:
        """What a release for this budget would run; `account.how_many(question, epsilon=...)` asks for it."""
        return self.measurement(Budget(epsilon=epsilon, delta=delta, rho=rho))

    def on(self, data: Source) -> Question:
        """The same question about other `data`: a source, in the place of the private table."""
        return replace(self, relation=rebase(self.relation, data))

    def forecast(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        rows: float | None = None,
        at_most: int | None = None,
        between: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
    ) -> dict[str, Any]:
        """The half-width of the error bar of every cell, before anything is spent.

        Args:
            epsilon: the budget, as for `release`; or
            rho: the same.
            delta: the same.
            rows: how many rows a group is assumed to have, a public guess: means, spreads and correlations depend on
                it. Values are assumed to be spread evenly over their range.
            at_most: how many rows a person is assumed to count for, where that limit is to be bought.
            between: ranges that are assumed, by the name of the column, where they are to be bought.
            confidence: how often the noise stays within the bar.
        """
        plan = self.plan_release(Budget(epsilon=epsilon, delta=delta, rho=rho))
        level = strict_probability("confidence", confidence)
        return BarsAhead(plan.errors(plan.assume(Guess(rows, at_most, between or {})), level))

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        within: float | None = None,
        confidence: float | None = None,
        rows: float | None = None,
        key: str | None = None,
        deadline: float | None = None,
    ) -> Answer:
        """Look, pay, ask, and answer with error bars.

        Args:
            epsilon: the price, or one of
            rho: the price in zero-concentrated differential privacy, or
            within: how wide the widest error bar may be; with `confidence`, the least epsilon for it is paid.
            delta: allows Gaussian noise, which is better for many groups.
            confidence: with `within`; 0.95 where it is left out.
            rows: with `within`: how many rows a group is assumed to have.
            key: makes a retry free: the same key finds the payment and the answer again, whatever became of the data
                since (a note says so); another question under it is refused. A table that lives on a server has one
                made for it, which the error tells if the server goes away.
            deadline: after so many seconds the engine breaks off (DeadlineExceeded): unpaid while it only looks at the
                statements; afterwards the payment stays, it counts as a failure, and the same key asks once more.
        """
        if self.account is None:
            raise InvalidParameter("tables.no_account", parameter="account", spent="nothing")
        if rows is not None and within is None:
            raise InvalidParameter("tables.rows_without_within", parameter="rows")
        budget = choose_budget(
            lambda width, level: self.plan(within=width, confidence=level, delta=delta, rows=rows),
            epsilon=epsilon, delta=delta, rho=rho, within=within, confidence=confidence,
        )  # fmt: skip
        seconds = None if deadline is None else positive("deadline", deadline)
        plan = self.plan_release(budget)
        measurement, met = notice_data(plan.measurement(self.title))
        if key is None and any(not isinstance(source, LocalSource) for source in self.relation.sources):
            key = f"release-{secrets.token_hex(8)}"
        if key is not None:
            measurement = replace(measurement, question=self.fingerprint)
        with stop_at(seconds):
            if key is None or not self.account.holds(key):
                self._look(plan)
            run = self.account.open(measurement, key=key)
            release = take_answer(run, key)
        run.close()
        return self.read_answer(plan, release.value, release.receipt, earlier=not met)

    def _look(self, plan: ReleasePlan) -> None:
        """Look, unless this question was looked at for this budget and nothing has changed."""
        seen = describe_look(plan.frame, plan.budget, self.fingerprint)
        if not is_known(seen):
            look(plan.frame, plan.selection, plan.parts)
            remember(seen)

    def read_answer(self, plan: ReleasePlan, value: Released, receipt: Receipt, *, earlier: bool = False) -> Answer:
        """The answer that a release of this plan holds: post-processing.

        Args:
            plan: as `plan_release` made it.
            value: what the measurement's step answered.
            receipt: for its payment.
            earlier: whether it was answered before, under the same key.
        """
        finest = plan.show_grouping(tuple(range(len(self.keys))))

        def bars(kept: tuple[int, ...], level: float) -> Mapping[str, Any]:
            return plan.show_grouping(kept).errors(value, level)

        answer = Answer(
            keys=tuple(name for name, _ in self.keys),
            rows=plan.rows(value),
            columns=plan.answers(value),
            receipt=receipt,
            notes=tuple(dict.fromkeys([*plan.notes(value), *([make_note(EARLIER)] if earlier else [])])),
            errors=lambda level: finest.errors(value, level),
            groupings=bars if plan.is_for_groupings else None,
            in_rows=tuple(n for n, a in self.aggregates.items() if isinstance(a, Quantile) and not a.in_values),
            whole=tuple(n for n, a in self.aggregates.items() if type(a) in {Count, CountPersons, Distinct}),
            estimated=plan.estimated,
        )
        answer = replace(answer, notes=(*answer.notes, *self._note_nothing(answer)))
        return answer if self.best is None else answer.order_by("count", descending=True).limit(self.best)

    def _note_nothing(self, answer: Answer) -> Iterator[Phrase]:
        """Where every count may be of nothing and a file of text was taken for UTF-8, that it may be something else.

        Lines that cannot be read count nowhere, without a word, for an error would tell of one. This follows from noisy
        numbers, and costs nothing.
        """
        if any(isinstance(source, LocalSource) and source.takes_utf8 for source in self.relation.sources):
            bars = answer.errors(0.999)
            numbers = [(answer.columns[name], bars[name]) for name in answer.whole]
            if numbers and all(np.all((np.abs(found) <= bar) & np.isfinite(bar)) for found, bar in numbers):
                yield make_note("tables.note_nothing_read")

    def plan(
        self,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        delta: float = 0.0,
        rows: float | None = None,
        at_most: int | None = None,
        between: Mapping[str, Any] | None = None,
        epsilon: float | None = None,
    ) -> Budget:
        """The least epsilon whose widest error bar is at most `within`, to one part in a thousand; guesses as there."""
        if within is None or epsilon is not None:  # a price is turned into an accuracy by another verb
            raise InvalidParameter("tables.plan_is_for_accuracy", parameter="within", spent="nothing")
        guess, level = Guess(rows, at_most, between or {}), strict_probability("confidence", confidence)

        def widest(budget: Budget) -> float:
            plan = self.plan_release(budget).take_some_groups()
            return max(float(np.max(bar)) for bar in plan.errors(plan.assume(guess), level).values())

        hint = "Means, medians and spreads need a guess of the rows in a group as well: rows=... (--rows)."
        return find_least_budget(widest, within=within, delta=delta, hint="" if rows is not None else hint)

    def explain(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        statements: bool = False,
    ) -> str:
        """What a release does, in a few sentences: who is hidden, how far anybody counts, noise, bars, price, payer.

        Args:
            epsilon: the price, as for `release`; or
            rho: the same.
            delta: the same.
            statements: the bounded SQL that will run in the engine, with the price of each part, in their place.
        """
        plan = self.plan_release(Budget(epsilon=epsilon, delta=delta, rho=rho))
        return Prose(plan.explain() if statements else explain_release(plan, self.title, self.unit, self.account))


def _is_person(expression: Expression, relation: Relation) -> bool:
    return isinstance(expression, Column) and expression.name == relation.person
