"""One release, planned once: which parts share the budget, what they cost, and what is read out of their answers.

The sums of a release have the pure noise or the Gaussian one, whichever has the smaller predicted error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from mosha.connect.plan.relation import rebase
from mosha.connect.plan.source import Source
from mosha.core.budget import Budget
from mosha.core.event import NOTHING
from mosha.core.language import make_note
from mosha.core.measurement import Measurement, Rng
from mosha.tables.mechanisms.grouping_noise import Grouping
from mosha.tables.mechanisms.joint_noise import FEW_GROUPS, BoxNoise, GaussianNoise
from mosha.tables.parts.additive import Additive, Aggregate, CountPersons, Distinct
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.bounds import limits_of
from mosha.tables.parts.counted_keys import CountedKeys
from mosha.tables.parts.distinct_values import DistinctPart
from mosha.tables.parts.key_values import from_plain, to_plain
from mosha.tables.parts.keys import KeySelection
from mosha.tables.parts.mixed_keys import MixedKeys
from mosha.tables.parts.part import Frame, Noisy, Part, Rows, Selection, noise_multiplier, pure_epsilon
from mosha.tables.parts.quantiles import Quantile, QuantilesPart
from mosha.tables.parts.sums import Sums, find_limits, is_shared, share_for_noise, values_of
from mosha.tables.parts.top import TopSelection
from mosha.tables.questions.groupings import choose_noise, is_planned, show_grouping

__all__ = [
    "ReleasePlan",
    "Released",
    "check_parts",
    "compares_noises",
    "plan_parts",
    "plan_release",
    "prefers_gaussian",
]

TOO_FEW = 8
"""In so many groups Gaussian noise cannot be better than the pure kind."""

TYPICAL = 50
"""Rows of a person with much, where nothing is known before the bound is bought."""

FILLED = 0.5
"""The share of groups that such a person is in: evenly in all of them would flatter Gaussian noise."""


def compares_noises(frame: Frame, aggregates: Mapping[str, Additive], budget: Budget) -> bool:
    """Whether pure and Gaussian noise are compared when the bound is known, and not before.

    Norms of order 1 are at most sqrt(groups) times those of order 2: in few groups the pure kind always wins.
    """
    limits = find_limits(frame, values_of(aggregates))
    possible = budget.epsilon is not None and budget.delta > 0 and not limits.twice
    return possible and limits.automatic and frame.most_groups > TOO_FEW


def prefers_gaussian(frame: Frame, aggregates: Mapping[str, Additive], budget: Budget, share: float) -> bool:
    """Whether Gaussian noise has the smaller predicted error, this share of the budget being spent on either."""
    if not budget.allows_gaussian:
        return False
    if budget.epsilon is None:
        return True
    values = values_of(aggregates)
    limits = find_limits(frame, values)
    shape = (len(values), frame.most_groups, is_shared(frame, aggregates, values, limits))
    box = BoxNoise(pure_epsilon(budget, share), *shape)
    gaussian = GaussianNoise(noise_multiplier(budget, share, gaussian=share), *shape)
    if limits.automatic:
        together = math.sqrt(TYPICAL + TYPICAL**2 / max(1.0, frame.most_groups * FILLED))
        return gaussian.deviation(together) < box.deviation(TYPICAL)
    reach = [limits.reach(list(values.values()), order, limits.norm, split=frame.split)[0] for order in (1, 2)]
    return gaussian.deviation(reach[1]) < box.deviation(reach[0])


SHARE_FOR_KEYS = 0.3
SHARE_FOR_TOP = 0.5

Columns = dict[str, NDArray[np.float64]]


class Released(TypedDict, total=False):
    """What a release holds, as plain data: the noisy numbers of each part, and the groups that were selected."""

    parts: list[Noisy]
    keys: list[list[object]]


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """All parts of one release within its budget, and the selection of groups before them, if there is one."""

    frame: Frame
    names: tuple[str, ...]
    budget: Budget
    selection: Selection | None
    parts: Sequence[Part]
    best: int | None = None

    def measurement(self, title: str) -> Measurement:
        """The whole release as one measurement; its data are the table's own, or a source to put in its place."""
        if self.selection is not None:
            self.selection.check()

        def step(state: object, data: Source | None, ask: object, rng: Rng) -> tuple[Released, object]:
            del ask
            frame = self.frame if data is None else replace(self.frame, relation=rebase(self.frame.relation, data))
            return self._ask(frame, rng), state

        def error(confidence: float, value: Released | None) -> Columns:
            return self.errors(value or self.assume(Guess()), confidence)

        event = sum((part.event for part in self.parts), start=self.selection.event if self.selection else NOTHING)
        delta = self.budget.delta or None
        return Measurement(unit=self.frame.unit, event=event, step=step, error=error, name=title, delta=delta)

    def _ask(self, frame: Frame, rng: Rng) -> Released:
        key = rng.bytes(32)
        parts, noisy = list(self.parts), []
        if self.selection is not None:
            frame = replace(frame, only=self.selection.select(frame, key, rng))
        elif isinstance(first := parts[0], CountedKeys):
            shown, counts = first.select(frame, key, rng)
            frame, parts, noisy = replace(frame, only=shown), parts[1:], [counts]
        noisy += [part.ask(frame, key, rng) for part in parts] if frame.groups else []
        return {"parts": noisy, "keys": [to_plain(row) for row in frame.only or ()] if self._finds_keys else []}

    @property
    def estimated(self) -> tuple[str, ...]:
        """The aggregates whose bars hold an estimate beside the noise."""
        parts = (part.sums if isinstance(part, CountedKeys) else part for part in self.parts)
        return tuple(name for part in parts if isinstance(part, Sums) for name in part.estimated)

    @property
    def _finds_keys(self) -> bool:
        return self.selection is not None or isinstance(self.parts[0], CountedKeys)

    def answers(self, value: Released) -> Columns:
        """What each aggregate says about each group; nothing if no group is shown."""
        return self._join_columns(part.answers(noisy) for part, noisy in zip(self.parts, value["parts"], strict=False))

    def errors(self, value: Released, confidence: float) -> Columns:
        """The half-widths of the error bars."""
        pairs = zip(self.parts, value["parts"], strict=False)
        return self._join_columns(part.errors(noisy, confidence) for part, noisy in pairs)

    def _join_columns(self, columns: Iterable[Columns]) -> Columns:
        found = {name: column for part in columns for name, column in part.items()}
        return {name: found.get(name, np.zeros(0)) for name in self.names}

    def notes(self, value: Released) -> list[str]:
        """What a reader of the answer should know."""
        notes = [note for part, noisy in zip(self.parts, value["parts"], strict=False) for note in part.notes(noisy)]
        notes += [make_note("tables.note_listed_groups")] if self.frame.sets else []
        notes += [make_note("tables.note_groupings")] if self.is_for_groupings else []
        return notes + ([self.selection.note()] if self.selection else [])

    def rows(self, value: Released) -> Rows:
        """The keys of the groups that are shown."""
        if not self.frame.keys:
            return ((),)
        if not self._finds_keys:
            return self.frame.only or ()
        return tuple(from_plain(row, self.frame.relation, self.frame.keys) for row in value["keys"])

    def assume(self, guess: Guess) -> Released:
        """A release as it might be, from public guesses alone."""
        frame = self.frame
        if frame.keys and frame.only is None:
            frame = replace(frame, only=((None,) * len(frame.keys),))
        elif self.best is not None:
            frame = replace(frame, only=(frame.only or ())[: self.best])
        return {"parts": [part.assume(frame, guess) for part in self.parts]}

    def take_some_groups(self) -> ReleasePlan:
        """The same plan for some of its public groups: to a forecast all are alike.

        They are more than FEW_GROUPS where there are more, because error bars of many groups are rounded up to fewer
        shapes; noise and price are those of all groups.
        """
        if self.frame.only is None:
            return self
        return replace(self, frame=replace(self.frame, only=self.frame.only[: FEW_GROUPS + 1]))

    def show_grouping(self, kept: Grouping) -> ReleasePlan:
        """The same plan, whose error bars are those of the grouping that keeps these keys; infinite if nobody asked."""
        return replace(self, parts=[show_grouping(p, kept) for p in self.parts]) if self.frame.sets else self

    @property
    def is_for_groupings(self) -> bool:
        """Whether its noise is planned for several groupings together."""
        return bool(self.frame.sets) and any(map(is_planned, self.parts))

    def explain(self) -> str:
        """The bounded SQL of each part, with its price."""
        first = [f"-- selection of groups: {self.selection.event}"] if self.selection else []
        parts = [f"-- {', '.join(part.names)}: {part.event}\n{part.sql(self.frame)}" for part in self.parts]
        return "\n".join(first + parts)


def plan_release(
    frame: Frame,
    aggregates: Mapping[str, Aggregate],
    weights: Mapping[str, float],
    budget: Budget,
    best: int | None = None,
) -> ReleasePlan:
    """The selection of groups, if there is one, and the parts, which share what is left of the budget."""
    selection: Selection | None = None
    rest = budget
    if frame.only is not None and best is not None:
        selection = TopSelection.plan(frame, budget, SHARE_FOR_TOP, best)
        rest = budget.scale(1 - SHARE_FOR_TOP)
    elif frame.keys and frame.only is None:
        delta = budget.delta / 2
        if not frame.listed and (counted := _plan_counted_keys(frame, aggregates, weights, budget)):
            return ReleasePlan(frame, tuple(aggregates), budget, None, counted, best)
        selection = KeySelection.plan(frame, budget, SHARE_FOR_KEYS, delta)
        if frame.listed:
            selection = MixedKeys(selection)
        rest = budget.scale(1 - SHARE_FOR_KEYS)
        rest = replace(rest, delta=delta if rest.epsilon is not None else 0.0)
    return ReleasePlan(frame, tuple(aggregates), budget, selection, plan_parts(frame, aggregates, weights, rest), best)


def _plan_counted_keys(
    frame: Frame, aggregates: Mapping[str, Aggregate], weights: Mapping[str, float], budget: Budget
) -> list[Part]:
    """All parts, the first of which shows groups by their noisy counts; none if no count can do that."""
    if budget.delta <= 0:
        return []
    delta = budget.delta / 2
    parts = plan_parts(frame, aggregates, weights, replace(budget, delta=delta if budget.epsilon is not None else 0.0))
    for place, part in enumerate(parts):
        if isinstance(part, Sums) and (counted := CountedKeys.plan(part, delta)):
            return [counted, *parts[:place], *parts[place + 1 :]]
    return []


def plan_parts(
    frame: Frame, aggregates: Mapping[str, Aggregate], weights: Mapping[str, float], budget: Budget
) -> list[Part]:
    """The parts of a release: sums of rows, counts of persons, distinct values, quantiles of each column."""
    sums = [(group, _share(group, aggregates, weights)) for group in _split_sums(aggregates)]
    other = len(sums) == 1 and compares_noises(frame, sums[0][0], budget)
    gaussian = [not other and prefers_gaussian(frame, group, budget, share) for group, share in sums]
    noise = sum(
        share * share_for_noise(frame, group) for (group, share), normal in zip(sums, gaussian, strict=True) if normal
    )
    parts: list[Part] = [
        Sums.plan(frame, group, budget, share, noise if normal else None, other=other)
        for (group, share), normal in zip(sums, gaussian, strict=True)
    ]
    for name, aggregate in aggregates.items():
        if isinstance(aggregate, Distinct):
            share = _share([name], aggregates, weights)
            parts.append(DistinctPart.plan(frame, name, aggregate, budget, share))
    quantiles = [(group, _share(group, aggregates, weights)) for group in _split_quantiles(aggregates)]
    if frame.sets and not quantiles and len(parts) == 1 and isinstance(only := parts[0], Sums):
        return [choose_noise(frame, only, budget)]
    return parts + [QuantilesPart.plan(frame, group, budget, share) for group, share in quantiles]


def check_parts(frame: Frame, aggregates: Mapping[str, Aggregate]) -> None:
    """Refuse what no budget could pay for: a unit or a join that bounds nothing, too many sums at once."""
    for group in _split_sums(aggregates):
        Sums.check(frame, group)
    if any(not isinstance(aggregate, Additive) for aggregate in aggregates.values()):
        limits_of(frame.unit, frame.relation, persons=False)


def _split_sums(aggregates: Mapping[str, Aggregate]) -> list[dict[str, Additive]]:
    """Sums of rows, and counts of persons: those that share one noise."""
    people: dict[str, Additive] = {n: a for n, a in aggregates.items() if isinstance(a, CountPersons)}
    rows = {n: a for n, a in aggregates.items() if isinstance(a, Additive) and n not in people}
    return [group for group in (rows, people) if group]


def _split_quantiles(aggregates: Mapping[str, Aggregate]) -> Iterable[dict[str, Quantile]]:
    """The quantiles of each column by themselves: they share one grid."""
    found: dict[str, dict[str, Quantile]] = {}
    for name, asked in aggregates.items():
        if isinstance(asked, Quantile):
            found.setdefault(asked.measured.key, {})[name] = asked
    return found.values()


def _share(names: Iterable[str], aggregates: Mapping[str, Aggregate], weights: Mapping[str, float]) -> float:
    """What some aggregates have of the budget; rounded so that all shares sum to at most 1."""
    weighed = {name: weights.get(name, 1.0) for name in aggregates}
    if len(chosen := list(names)) == len(weighed):
        return 1.0
    return sum(weighed[name] for name in chosen) / sum(weighed.values()) * (1 - 2.0**-40)
