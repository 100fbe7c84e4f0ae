"""A question about a protected table: frozen, data-free, with its price and its error known before it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mosha.connect.aggregation import Norms
from mosha.connect.expression import Expression
from mosha.connect.relation import Relation
from mosha.connect.source import answer, explain
from mosha.connect.value import Persons, Rows, Value
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Event
from mosha.core.measurement import Measurement
from mosha.core.number import positive, strict_probability
from mosha.core.randomness import Rng
from mosha.core.unit import Unit
from mosha.tables.aggregates import Additive, Aggregate, Channels
from mosha.tables.answer import Answer
from mosha.tables.bounds import WEIGHT, Limits, NormChoice, bound_question, limits_of, thresholds
from mosha.tables.budget import Budget
from mosha.tables.joint_noise import BoxNoise, GaussianNoise, JointNoise

__all__ = ["Question"]

SHARE_FOR_BOUNDS = 0.1
MANY_GROUPS = 8


@dataclass(frozen=True, eq=False)
class Part:
    """Channels that share one weight for each person, and one noise."""

    values: Mapping[str, Value]
    limits: Limits
    noise: JointNoise
    choice: NormChoice | None
    order: int

    @property
    def event(self) -> Event:
        return self.noise.event + (self.choice.event if self.choice else NOTHING)


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """What is asked of each group of a protected table. Nothing is read before `release`.

    Guarantee:
        The measurement's event prices every noisy number that `release` returns, and the choice of a bound where
        one is made; all that follows is post-processing. Later parts use the chosen bound, which is a release itself,
        to scale data and noise alike: their noise multipliers do not depend on it.
    """

    relation: Relation
    unit: Unit
    account: Account | None
    keys: tuple[tuple[str, Expression], ...] = ()
    only: tuple[tuple[Any, ...], ...] | None = None
    aggregates: Mapping[str, Aggregate]

    def __post_init__(self) -> None:
        if not self.aggregates:
            raise InvalidParameter("ask for at least one thing: count(), sum(...), mean(...), ...")
        for name, aggregate in self.aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise InvalidParameter(f"{name}=... must be an aggregate such as count() or mean(...).")
            if name in dict(self.keys):
                raise InvalidParameter(f"{name!r} is a key already: give the aggregate another name.")
            aggregate.check(self.relation.schema)
        if self.keys and self.only is None:
            raise InvalidParameter("group_by needs keys=[...]: the public list of groups that the answer shows.")
        self._limits()

    @property
    def groups(self) -> int:
        return len(self.only) if self.only is not None else 1

    @cached_property
    def _channels(self) -> tuple[dict[str, Value], dict[str, Value]]:
        """The channels of rows and the channels of persons, each once."""
        rows: dict[str, Value] = {}
        people: dict[str, Value] = {}
        for aggregate in self.aggregates.values():
            assert isinstance(aggregate, Additive)
            for name, value in aggregate.channels().items():
                (people if isinstance(value, Persons) else rows)[name] = value
        return rows, people

    def _limits(self) -> list[tuple[dict[str, Value], Limits]]:
        rows, people = self._channels
        found = [(rows, limits_of(self.unit, self.relation, persons=False))] if rows else []
        return found + ([(people, limits_of(self.unit, self.relation, persons=True))] if people else [])

    def _parts(self, budget: Budget) -> list[Part]:
        """The parts of a release, which share the budget by how many aggregates they serve."""
        found = self._limits()
        share = 1.0 / len(found)
        return [self._part(values, limits, budget, share) for values, limits in found]

    def _part(self, values: dict[str, Value], limits: Limits, budget: Budget, share: float) -> Part:
        choice = None
        if limits.automatic:
            choice = NormChoice(budget.epsilon_of(share * SHARE_FOR_BOUNDS), limits.twice)
            share *= 1 - SHARE_FOR_BOUNDS
        options: list[JointNoise] = []
        if budget.epsilon is not None:
            options.append(BoxNoise(budget.epsilon_of(share), len(values), self.groups))
        if budget.allows_gaussian:
            multiplier = budget.multiplier_of(share, delta=budget.delta / len(self._limits()))
            options.append(GaussianNoise(multiplier, len(values), self.groups))
        noise = self._better(options, list(values.values()), limits)
        return Part(values, limits, noise, choice, 1 if isinstance(noise, BoxNoise) else 2)

    def _better(self, options: list[JointNoise], values: list[Value], limits: Limits) -> JointNoise:
        """The noise with the smaller standard deviation; of bounds yet to be chosen, the one for many groups."""
        if len(options) == 1:
            return options[0]
        if limits.automatic:
            return options[1] if self.groups > MANY_GROUPS else options[0]
        split = self.only is not None
        spread = [
            option.deviation(limits.reach(values, order, limits.norm, split=split)[0])
            for order, option in zip((1, 2), options, strict=True)
        ]
        return options[0] if spread[0] <= spread[1] else options[1]

    def measurement(self, budget: Budget) -> Measurement:
        """The whole release as one measurement; its data are the table's own, or tables to put in their place."""
        parts = self._parts(budget)
        event = sum((part.event for part in parts), start=NOTHING)

        def step(state: Any, data: Any, ask: Any, rng: Rng) -> tuple[Any, Any]:
            del ask
            question = self if data is None else self.on(data)
            key = rng.bytes(32)
            return {"parts": [question._ask(part, key, rng) for part in parts]}, state  # noqa: SLF001

        def error(confidence: float, value: Any) -> Any:
            if value is None:
                return self._forecast(parts, confidence, None)
            return self._errors(parts, value, confidence)

        return Measurement(unit=self.unit, event=event, step=step, error=error, name=self.title)

    @property
    def title(self) -> str:
        by = f" by {', '.join(name for name, _ in self.keys)}" if self.keys else ""
        return f"{', '.join(self.aggregates)}{by}"

    def on(self, data: Any) -> Question:
        """The same question about other data: a source, in the place of the only table there is."""
        return replace(self, relation=_rebased(self.relation, data))

    def _ask(self, part: Part, key: bytes, rng: Rng) -> dict[str, Any]:
        norm = part.limits.norm
        if part.choice is not None:
            norm = self._choose(part, part.choice, rng)
        split = self.only is not None
        question, bits = bound_question(
            self.relation, self.keys, self.only, part.values, limits=part.limits, order=part.order, norm=norm, key=key
        )
        reach = part.limits.reach(list(part.values.values()), part.order, norm, split=split)
        totals = answer(question)
        exact = np.stack([_column(totals[name], self.groups) for name in part.values], axis=-1)
        finer = part.noise.finer(reach)
        noisy = exact * finer + part.noise.draw(reach, rng)
        unit = finer << bits
        channels = {name: [float(n) / unit for n in noisy[:, j].tolist()] for j, name in enumerate(part.values)}
        return {"channels": channels, "reach": [r / (1 << bits) for r in reach], "norm": norm}

    def _choose(self, part: Part, choice: NormChoice, rng: Rng) -> int:
        values = list(part.values.values())
        leader: Value = values[0] if isinstance(values[0], Persons) else Rows()
        norms = Norms(self.relation, self.keys, only=self.only, value=leader, order=part.order, thresholds=thresholds())
        return choice.choose(norms, lambda norm: part.noise.deviation(norm) ** 2, self.groups, rng)

    def _read(self, parts: list[Part], value: Any) -> dict[str, tuple[Channels, Additive]]:
        """The noisy channels that each aggregate is made of."""
        found: dict[str, tuple[Channels, Additive]] = {}
        for part, stored in zip(parts, value["parts"], strict=True):
            columns = {name: np.array(column, np.float64) for name, column in stored["channels"].items()}
            reach = dict(zip(part.values, stored["reach"], strict=True))
            channels = Channels(columns, reach, part.noise)
            for name, aggregate in self.aggregates.items():
                assert isinstance(aggregate, Additive)
                if set(aggregate.channels()) <= set(columns):
                    found[name] = (channels, aggregate)
        return {name: found[name] for name in self.aggregates}

    def _answers(self, parts: list[Part], value: Any) -> dict[str, Any]:
        return {name: aggregate.answer(channels) for name, (channels, aggregate) in self._read(parts, value).items()}

    def _errors(self, parts: list[Part], value: Any, confidence: float) -> dict[str, Any]:
        found = self._read(parts, value)
        return {name: aggregate.error(channels, confidence) for name, (channels, aggregate) in found.items()}

    def _forecast(self, parts: list[Part], confidence: float, rows: float | None) -> dict[str, Any]:
        made = []
        for part in parts:
            if part.limits.automatic:
                raise InvalidParameter(
                    "the error depends on how much one person may contribute, which is to be chosen from the data: "
                    "declare it (Person(column, at_most=...)) for a forecast."
                )
            reach = part.limits.reach(
                list(part.values.values()), part.order, part.limits.norm, split=self.only is not None
            )
            bits = 0
            if part.limits.by_person and part.limits.truncation is None:
                _, bits = bound_question(
                    self.relation, self.keys, self.only, part.values,
                    limits=part.limits, order=part.order, norm=part.limits.norm, key=bytes(32),
                )  # fmt: skip
            columns = {name: [_assumed(value, rows)] * self.groups for name, value in part.values.items()}
            made.append({"channels": columns, "reach": [r / (1 << bits) for r in reach]})
        return self._errors(parts, {"parts": made}, confidence)

    def forecast(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        rows: float | None = None,
        confidence: float = 0.95,
    ) -> dict[str, Any]:
        """The half-width of the error bar of every cell, before anything is spent.

        Args:
            epsilon: the budget, as for `release`; or
            rho: the same.
            delta: the same.
            rows: how many rows a group is assumed to have, a public guess: means and spreads depend on it.
            confidence: how often the noise stays within the bar.
        """
        parts = self._parts(Budget(epsilon=epsilon, delta=delta, rho=rho))
        return self._forecast(parts, strict_probability("confidence", confidence), rows)

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
    ) -> Answer:
        """Pay, ask, and answer with error bars.

        Args:
            epsilon: the price, or one of
            rho: the price in zero-concentrated differential privacy, or
            within: how wide the widest error bar may be; with `confidence`, the least epsilon for it is paid.
            delta: allows Gaussian noise, which is better for many groups.
            confidence: with `within`.
            rows: with `within`: how many rows a group is assumed to have.
            key: makes a retry free: the same key finds the payment and the answer again.
        """
        if self.account is None:
            raise InvalidParameter("this table has no account to pay from: protect(..., account=...).")
        if within is not None:
            budget = self.plan(within=within, confidence=confidence, delta=delta, rows=rows)
        else:
            budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
        measurement = self.measurement(budget)
        with self.account.open(measurement, key=key) as run:
            release = run.step(None)
        parts = self._parts(budget)
        return Answer(
            keys=tuple(name for name, _ in self.keys),
            rows=self.only if self.only is not None else ((),),
            columns=self._answers(parts, release.value),
            receipt=release.receipt,
            notes=self._notes(parts, release.value),
            errors=lambda level: self._errors(parts, release.value, level),
        )

    def plan(self, *, within: float, confidence: float | None, delta: float = 0.0, rows: float | None = None) -> Budget:
        """The least epsilon whose widest error bar is at most `within`, to one part in a thousand."""
        target, level = positive("within", within), strict_probability("confidence", confidence)

        def widest(epsilon: float) -> float:
            parts = self._parts(Budget(epsilon=epsilon, delta=delta))
            bars = self._forecast(parts, level, rows)
            return max(float(np.max(bar)) for bar in bars.values())

        low, high = 2.0**-20, 2.0**10
        if widest(high) > target:
            raise InvalidParameter("no epsilon below 1024 is so accurate: ask for a wider error bar.")
        while high > low * 1.001:
            middle = (low * high) ** 0.5
            low, high = (low, middle) if widest(middle) <= target else (middle, high)
        return Budget(epsilon=high, delta=delta)

    def explain(self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None) -> str:
        """The bounded SQL that will run in the engine, with the price of each part."""
        lines = []
        for part in self._parts(Budget(epsilon=epsilon, delta=delta, rho=rho)):
            norm = part.limits.norm or 1
            question, _ = bound_question(
                self.relation, self.keys, self.only, part.values,
                limits=part.limits, order=part.order, norm=norm, key=bytes(32),
            )  # fmt: skip
            lines += [f"-- {', '.join(part.values)}: {part.event}", explain(question)]
        return "\n".join(lines)

    def _notes(self, parts: list[Part], value: Any) -> tuple[str, ...]:
        notes = []
        for part, stored in zip(parts, value["parts"], strict=True):
            kind = "Laplace or box" if isinstance(part.noise, BoxNoise) else "Gaussian"
            names = ", ".join(name for name in part.values if name != WEIGHT)
            notes.append(f"{kind} noise on {names}.")
            if part.choice is not None:
                notes.append(f"A person's part was scaled down to a norm of {stored['norm']}, chosen from the budget.")
            elif part.limits.norm is not None:
                notes.append(f"A person's part was scaled down to a norm of {part.limits.norm}.")
        return tuple(notes)


def _assumed(value: Value, rows: float | None) -> float:
    if isinstance(value, Rows | Persons):
        if rows is None:
            return 0.0
        return positive("rows", rows)
    return 0.0


def _column(totals: Any, groups: int) -> Any:
    """Exact integers as Python numbers; a relation without rows has no group, and sums of zero."""
    column = np.asarray(totals).astype(object)
    return column if len(column) == groups else np.array([0] * groups, object)


def _rebased(relation: Any, data: Any) -> Any:
    """The same plan over another table."""
    if hasattr(relation, "source"):
        return replace(relation, source=data) if relation.private else relation
    changed = {
        name: _rebased(getattr(relation, name), data) for name in ("parent", "left", "right") if hasattr(relation, name)
    }
    return replace(relation, **changed)
