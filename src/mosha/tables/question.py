"""A question about a protected table: frozen, data-free, with its price and its error known before it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mosha.connect.expression import Expression
from mosha.connect.relation import Relation
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING
from mosha.core.measurement import Measurement
from mosha.core.number import positive, strict_probability
from mosha.core.randomness import Rng
from mosha.core.unit import Unit
from mosha.tables.aggregates import Additive, Aggregate, CountPersons
from mosha.tables.answer import Answer
from mosha.tables.budget import Budget
from mosha.tables.keys import MOST_KEYS, KeySelection
from mosha.tables.part import Frame, Part
from mosha.tables.quantiles import Quantile, QuantilesPart, columns_of
from mosha.tables.sums import Sums

__all__ = ["Question"]

SHARE_FOR_KEYS = 0.3


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """What is asked of each group of a protected table. Nothing is read before `release`.

    Guarantee:
        The measurement's event prices every part, and what follows is post-processing. A part may use what an earlier
        one released (a bound that was bought) to scale data and noise alike: no noise multiplier depends on it.
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
        self.parts(Budget(epsilon=1.0))

    @property
    def frame(self) -> Frame:
        most = MOST_KEYS if self.keys and self.only is None else len(self.only or ((),))
        return Frame(self.relation, self.unit, self.keys, self.only, most)

    @property
    def private_keys(self) -> bool:
        """Whether the groups come from the data."""
        return bool(self.keys) and self.only is None

    @property
    def title(self) -> str:
        by = f" by {', '.join(name for name, _ in self.keys)}" if self.keys else ""
        return f"{', '.join(self.aggregates)}{by}"

    def parts(self, budget: Budget) -> list[Part]:
        """The parts of a release: sums of rows, counts of persons, quantiles of each column, by how many they serve."""
        rows = {n: a for n, a in self.aggregates.items() if isinstance(a, Additive) and not isinstance(a, CountPersons)}
        people = {n: a for n, a in self.aggregates.items() if isinstance(a, CountPersons)}
        quantiles = {n: a for n, a in self.aggregates.items() if isinstance(a, Quantile)}
        sums = [group for group in (rows, people) if group]
        frame, all_of_them = self.frame, len(self.aggregates)
        delta = budget.delta / max(1, len(sums))
        parts: list[Part] = [Sums.plan(frame, group, budget, len(group) / all_of_them, delta) for group in sums]
        columns = columns_of(quantiles)
        return parts + [QuantilesPart.plan(frame, asked, budget, len(asked) / all_of_them) for asked in columns]

    def measurement(self, budget: Budget) -> Measurement:
        """The whole release as one measurement; its data are the table's own, or a source to put in its place."""
        selection, parts = self._plan(budget)

        def step(state: Any, data: Any, ask: Any, rng: Rng) -> tuple[Any, Any]:
            del ask
            frame = self.frame if data is None else self.on(data).frame
            key = rng.bytes(32)
            if selection is not None:
                frame = replace(frame, only=selection.select(frame, key, rng))
            noisy = [part.ask(frame, key, rng) for part in parts] if frame.groups else []
            return {"parts": noisy, "keys": [list(row) for row in frame.only or ()]}, state

        def error(confidence: float, value: Any) -> Any:
            return self._errors(parts, value or self._assumed(parts, None), confidence)

        event = sum((part.event for part in parts), start=selection.event if selection else NOTHING)
        return Measurement(unit=self.unit, event=event, step=step, error=error, name=self.title)

    def _plan(self, budget: Budget) -> tuple[KeySelection | None, list[Part]]:
        """The selection of groups, where there is one, and the parts, which share what is left of the budget."""
        if not self.private_keys:
            return None, self.parts(budget)
        delta = budget.delta / 2
        selection = KeySelection.plan(self.frame, budget, SHARE_FOR_KEYS, delta)
        rest = budget.scaled(1 - SHARE_FOR_KEYS)
        return selection, self.parts(replace(rest, delta=delta if rest.epsilon is not None else 0.0))

    def on(self, data: Any) -> Question:
        """The same question about other data: a source, in the place of the private table."""
        return replace(self, relation=_rebased(self.relation, data))

    def _answers(self, parts: list[Part], value: Any) -> dict[str, Any]:
        """What each aggregate says of each group; nothing where no group is shown."""
        found = {
            name: column
            for part, noisy in zip(parts, value["parts"], strict=False)
            for name, column in part.answers(noisy).items()
        }
        return {name: found.get(name, np.zeros(0)) for name in self.aggregates}

    def _errors(self, parts: list[Part], value: Any, confidence: float) -> dict[str, Any]:
        found = {
            name: bar
            for part, noisy in zip(parts, value["parts"], strict=False)
            for name, bar in part.errors(noisy, confidence).items()
        }
        return {name: found.get(name, np.zeros(0)) for name in self.aggregates}

    def _assumed(self, parts: list[Part], rows: float | None) -> dict[str, Any]:
        return {"parts": [part.assumed(self.frame, rows) for part in parts]}

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
        _, parts = self._plan(Budget(epsilon=epsilon, delta=delta, rho=rho))
        return self._errors(parts, self._assumed(parts, rows), strict_probability("confidence", confidence))

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
        selection, parts = self._plan(budget)
        notes = [note for part, noisy in zip(parts, release.value["parts"], strict=False) for note in part.notes(noisy)]
        return Answer(
            keys=tuple(name for name, _ in self.keys),
            rows=tuple(tuple(row) for row in release.value["keys"]) if self.keys else ((),),
            columns=self._answers(parts, release.value),
            receipt=release.receipt,
            notes=tuple(notes + ([selection.note()] if selection else [])),
            errors=lambda level: self._errors(parts, release.value, level),
        )

    def plan(self, *, within: float, confidence: float | None, delta: float = 0.0, rows: float | None = None) -> Budget:
        """The least epsilon whose widest error bar is at most `within`, to one part in a thousand."""
        target, level = positive("within", within), strict_probability("confidence", confidence)

        def widest(epsilon: float) -> float:
            _, parts = self._plan(Budget(epsilon=epsilon, delta=delta))
            bars = self._errors(parts, self._assumed(parts, rows), level)
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
        selection, parts = self._plan(Budget(epsilon=epsilon, delta=delta, rho=rho))
        first = [f"-- selection of groups: {selection.event}"] if selection else []
        return "\n".join(
            first + [f"-- {', '.join(part.names)}: {part.event}\n{part.sql(self.frame)}" for part in parts]
        )


def _rebased(relation: Any, data: Any) -> Any:
    """The same plan over another table."""
    if hasattr(relation, "source"):
        return replace(relation, source=data) if relation.private else relation
    changed = {
        name: _rebased(getattr(relation, name), data) for name in ("parent", "left", "right") if hasattr(relation, name)
    }
    return replace(relation, **changed)
