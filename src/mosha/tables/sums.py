"""The part of a release that is made of noisy sums: all channels share one weight for each person and one noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosha.connect.aggregation import Aggregation, Norms
from mosha.connect.source import answer, explain
from mosha.connect.value import Persons, Rows, Value
from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Event
from mosha.core.number import positive
from mosha.core.randomness import Rng
from mosha.tables.aggregates import Additive, Channels
from mosha.tables.bounds import Limits, NormChoice, bound_question, limits_of, thresholds
from mosha.tables.budget import Budget
from mosha.tables.joint_noise import BoxNoise, GaussianNoise, JointNoise
from mosha.tables.part import Frame

__all__ = ["SHARE_FOR_BOUNDS", "Sums", "chosen_norm"]

SHARE_FOR_BOUNDS = 0.1
MANY_GROUPS = 8


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums per group for some aggregates.

    Guarantee:
        `Limits.reach` bounds how one unit moves the exact sums, `noise` is made for that reach whatever it is, and
        its event does not depend on it. The choice of a norm is paid for by `choice`; it scales data and noise alike.
    """

    aggregates: Mapping[str, Additive]
    values: Mapping[str, Value]
    limits: Limits
    noise: JointNoise
    choice: NormChoice | None

    @staticmethod
    def plan(frame: Frame, aggregates: Mapping[str, Additive], budget: Budget, share: float, delta: float) -> Sums:
        """The better noise for these aggregates within a share of the budget."""
        values = {name: value for a in aggregates.values() for name, value in a.channels().items()}
        people = any(isinstance(value, Persons) for value in values.values())
        limits = limits_of(frame.unit, frame.relation, persons=people)
        choice = None
        if limits.automatic:
            choice = NormChoice(budget.epsilon_of(share * SHARE_FOR_BOUNDS), limits.twice)
            share *= 1 - SHARE_FOR_BOUNDS
        options: list[JointNoise] = []
        if budget.epsilon is not None:
            options.append(BoxNoise(budget.epsilon_of(share), len(values), frame.most_groups))
        if budget.allows_gaussian:
            multiplier = budget.multiplier_of(share, delta=delta)
            options.append(GaussianNoise(multiplier, len(values), frame.most_groups))
        return Sums(aggregates, values, limits, _better(options, list(values.values()), limits, frame), choice)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.aggregates)

    @property
    def event(self) -> Event:
        return self.noise.event + (self.choice.event if self.choice else NOTHING)

    @property
    def order(self) -> int:
        return 1 if isinstance(self.noise, BoxNoise) else 2

    def question(self, frame: Frame, norm: int | None, key: bytes) -> tuple[Aggregation, int]:
        return bound_question(
            frame.relation,
            frame.keys,
            frame.only,
            self.values,
            limits=self.limits,
            order=self.order,
            norm=norm,
            key=key,
        )

    def reach(self, frame: Frame, norm: int | None) -> list[int]:
        return self.limits.reach(list(self.values.values()), self.order, norm, split=frame.split)

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> dict[str, Any]:
        norm = self.limits.norm
        if self.choice is not None:
            people = any(isinstance(value, Persons) for value in self.values.values())
            leader: Value = Persons() if people else Rows()
            norm = chosen_norm(frame, self.choice, leader, self.order, self.noise.deviation, rng)
        question, bits = self.question(frame, norm, key)
        totals = answer(question)
        exact = np.stack([_column(totals[name], frame.groups) for name in self.values], axis=-1)
        reach = self.reach(frame, norm)
        finer = self.noise.finer(reach)
        noisy = exact * finer + self.noise.draw(reach, frame.groups, rng)
        unit = finer << bits
        channels = {name: [n / unit for n in noisy[:, j].tolist()] for j, name in enumerate(self.values)}
        return {"channels": channels, "reach": [r / (1 << bits) for r in reach], "norm": norm}

    def _channels(self, noisy: Mapping[str, Any]) -> Channels:
        columns = {name: np.array(column, np.float64) for name, column in noisy["channels"].items()}
        return Channels(columns, dict(zip(self.values, noisy["reach"], strict=True)), self.noise)

    def answers(self, noisy: Mapping[str, Any]) -> dict[str, Any]:
        channels = self._channels(noisy)
        return {name: aggregate.answer(channels) for name, aggregate in self.aggregates.items()}

    def errors(self, noisy: Mapping[str, Any], confidence: float) -> dict[str, Any]:
        channels = self._channels(noisy)
        return {name: aggregate.error(channels, confidence) for name, aggregate in self.aggregates.items()}

    def assumed(self, frame: Frame, rows: float | None) -> dict[str, Any]:
        if self.limits.automatic:
            raise InvalidParameter(
                "the error depends on how much one person may contribute, which is to be chosen from the data: "
                "declare it (Person(column, at_most=...)) for a forecast."
            )
        _, bits = self.question(frame, self.limits.norm, bytes(32))
        guess = 0.0 if rows is None else positive("rows", rows)
        columns = {name: [guess if value.magnitude == 1 else 0.0] * frame.groups for name, value in self.values.items()}
        return {"channels": columns, "reach": [r / (1 << bits) for r in self.reach(frame, self.limits.norm)]}

    def notes(self, noisy: Mapping[str, Any]) -> list[str]:
        kind = "Gaussian" if isinstance(self.noise, GaussianNoise) else "Laplace" if len(self.values) == 1 else "Box"
        notes = [f"{kind} noise for {', '.join(self.names)}."]
        if self.limits.by_person and self.limits.truncation is None:
            bought = " (chosen with a tenth of the budget)" if self.choice else ""
            notes.append(f"Nobody counts for more than {noisy['norm']} rows{bought}: larger parts are scaled down.")
        return notes

    def sql(self, frame: Frame) -> str:
        return explain(self.question(frame, self.limits.norm or 1, bytes(32))[0])


def _better(options: list[JointNoise], values: list[Value], limits: Limits, frame: Frame) -> JointNoise:
    """The noise with the smaller standard deviation; where the bound is yet to be chosen, the one for many groups."""
    if len(options) == 1:
        return options[0]
    if limits.automatic:
        return options[1] if frame.most_groups > MANY_GROUPS else options[0]
    spread = [
        option.deviation(limits.reach(values, order, limits.norm, split=frame.split)[0])
        for order, option in zip((1, 2), options, strict=True)
    ]
    return options[0] if spread[0] <= spread[1] else options[1]


def chosen_norm(frame: Frame, choice: NormChoice, leader: Value, order: int, deviation: Any, rng: Rng) -> int:
    """The norm for a person's rows (or groups), bought with `choice`; `deviation(norm)` is that of the noise."""
    norms = Norms(frame.relation, frame.keys, only=frame.only, value=leader, order=order, thresholds=thresholds())
    return choice.choose(norms, lambda norm: deviation(norm) ** 2, frame.groups, rng)


def _column(totals: Any, groups: int) -> Any:
    """Exact integers as Python numbers; a relation without rows has no group, and sums of zero."""
    column = np.asarray(totals).astype(object)
    return column if len(column) == groups else np.array([0] * groups, object)
