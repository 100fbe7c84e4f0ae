"""The part of a release that is made of noisy sums: all channels share one weight for each person and one noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mosha.connect.engines.source import answer, explain
from mosha.connect.language.value import Clamped, Persons, Rows, Value
from mosha.connect.plan.aggregation import Aggregation
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.randomness import Rng
from mosha.tables.parts.additive import Additive, Channels, Sum
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.bought_range import SHARE_FOR_RANGES, RangeChoice, range_note, unknown
from mosha.tables.parts.bounds import Limits, Norm, bound_question, by_own_norm, limits_of
from mosha.tables.parts.joint_noise import BoxNoise, GaussianNoise, JointNoise
from mosha.tables.parts.norm_choice import NormChoice, bounded_note, share_for_bounds
from mosha.tables.parts.part import Columns, Frame, Noisy
from mosha.tables.parts.shares import noise_multiplier, pure_epsilon

__all__ = ["Sums", "prefers_gaussian", "share_for_noise", "values_of"]

MOST_CHANNELS = 16
TYPICAL = 50
"""Rows of a person with much, where nothing is known before the bound is bought."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums per group for some aggregates.

    Guarantee:
        `Limits.reach` bounds how one unit moves the exact sums, `noise` is made for that reach whatever it is, and
        its event does not depend on it. The choices of a norm and of ranges are paid for by `choice` and `ranges`;
        they scale data and noise alike.
    """

    aggregates: Mapping[str, Additive]
    limits: Limits
    noise: JointNoise
    choice: NormChoice | None
    ranges: RangeChoice | None

    @staticmethod
    def plan(
        frame: Frame, aggregates: Mapping[str, Additive], budget: Budget, share: float, gaussian: float | None
    ) -> Sums:
        """Within a share of the budget; `gaussian` is what all Gaussian noise has of it, None for the pure kind."""
        values, limits = values_of(aggregates), Sums.check(frame, aggregates)
        choice, ranges = None, None
        if limits.automatic:
            order = 1 if gaussian is None else 2
            choice = NormChoice.plan(budget, share, order, frame.most_groups, twice=limits.twice)
        if bought := unknown(aggregates):
            ranges = RangeChoice.plan(budget, share * SHARE_FOR_RANGES, len(bought))
        left = share_for_noise(frame, aggregates)
        noise: JointNoise
        if gaussian is None:
            noise = BoxNoise(pure_epsilon(budget, share * left), len(values), frame.most_groups)
        else:
            multiplier = noise_multiplier(budget, share * left, gaussian=gaussian)
            noise = GaussianNoise(multiplier, len(values), frame.most_groups)
        return Sums(aggregates, limits, noise, choice, ranges)

    @staticmethod
    def check(frame: Frame, aggregates: Mapping[str, Additive]) -> Limits:
        """What bounds one unit; refuse what nothing bounds, and more sums than can be noised together."""
        values = values_of(aggregates)
        if len(values) > MOST_CHANNELS:
            raise InvalidParameter("tables.too_many_sums", sums=len(values), most=MOST_CHANNELS)
        return _limits(frame, values)

    @property
    def values(self) -> Mapping[str, Value]:
        return values_of(self.aggregates)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.aggregates)

    @property
    def event(self) -> Event:
        bought = (stage.event for stage in (self.choice, self.ranges) if stage is not None)
        return sum(bought, start=self.noise.event)

    @property
    def order(self) -> int:
        return 1 if isinstance(self.noise, BoxNoise) else 2

    def question(self, frame: Frame, norm: Norm | None, key: bytes) -> tuple[Aggregation, int]:
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

    def reach(self, frame: Frame, norm: Norm | None) -> list[int]:
        return self.limits.reach(list(self.values.values()), self.order, norm, split=frame.split)

    def fill_ranges(self, ranges: Mapping[str, Any]) -> Sums:
        """With the ranges that were bought."""
        bought = {key: (float(low), float(high)) for key, (low, high) in ranges.items()}
        return replace(self, aggregates={name: a.fill_ranges(bought) for name, a in self.aggregates.items()})

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> Noisy:
        ranges = {}
        if self.ranges is not None:
            for number in unknown(self.aggregates):
                ranges[number.key] = list(self.ranges.choose(frame, number, self.limits, rng))
        asked = self.fill_ranges(ranges)
        norm, tail = asked.bound(frame, rng)
        shown = None if norm is None else float(norm)
        return asked.noisy(frame, key, norm, rng) | {"norm": shown, "ranges": ranges, "tail": tail}

    def norm(self, frame: Frame, rng: Rng) -> Norm | None:
        """The declared bound, or one that is bought: in rows, or for a single sum in its own units."""
        return self.bound(frame, rng)[0]

    def bound(self, frame: Frame, rng: Rng) -> tuple[Norm | None, list[float] | None]:
        """The bound, and what was bought with it about persons above it (the mark in rows, or as the bound is)."""
        if self.choice is None:
            return self.limits.norm, None
        values = list(self.values.values())
        leader = by_own_norm(values) or (Persons() if _counts_people(self.values) else Rows())
        chosen = self.choice.choose(frame, frame.keys, leader, self.noise.deviation, rng)
        found, (mark, *tail) = chosen.norm, chosen.plain
        if isinstance(leader, Persons) and frame.only is not None:
            found = min(found, len(frame.only))
        return Fraction(found, leader.magnitude), [mark / leader.magnitude, *tail]

    def noisy(self, frame: Frame, key: bytes, norm: Norm | None, rng: Rng) -> dict[str, Any]:
        """The exact sums with noise."""
        question, bits = self.question(frame, norm, key)
        totals = answer(question)
        exact = np.stack([_column(totals[name], frame.groups) for name in self.values], axis=-1)
        reach = self.reach(frame, norm)
        noisy = np.ldexp(self.noise.add(exact, reach, rng), -bits)
        return {"channels": noisy.T.tolist(), "reach": [math.ldexp(r, -bits) for r in reach]}

    def read_channels(self, noisy: Noisy) -> Channels:
        """The channels that a release holds."""
        columns = {name: np.array(c, np.float64) for name, c in zip(self.values, noisy["channels"], strict=True)}
        return Channels(columns, dict(zip(self.values, noisy["reach"], strict=True)), self.noise)

    def answers(self, noisy: Noisy) -> Columns:
        asked = self.fill_ranges(noisy["ranges"])
        channels = asked.read_channels(noisy)
        return {name: aggregate.answer(channels) for name, aggregate in asked.aggregates.items()}

    def errors(self, noisy: Noisy, confidence: float) -> Columns:
        asked = self.fill_ranges(noisy["ranges"])
        channels = asked.read_channels(noisy)
        return {name: aggregate.error(channels, confidence) for name, aggregate in asked.aggregates.items()}

    def assume(self, frame: Frame, guess: Guess) -> Noisy:
        norm = guess.norm(self.limits)
        ranges = {number.key: list(guess.range(number)) for number in unknown(self.aggregates)}
        asked = self.fill_ranges(ranges)
        _, bits = asked.question(frame, norm, bytes(32))
        rows = 0.0 if guess.rows is None else float(guess.rows)
        evenly = {name for a in asked.aggregates.values() for name in a.squares()}
        typical = {n: v.magnitude / 3 if n in evenly else float(v.magnitude == 1) for n, v in asked.values.items()}
        columns = [[rows * typical[name]] * frame.groups for name in asked.values]
        reach = [math.ldexp(r, -bits) for r in asked.reach(frame, norm)]
        return {"channels": columns, "reach": reach, "norm": None if norm is None else float(norm), "ranges": ranges}

    def notes(self, noisy: Noisy) -> list[str]:
        kind = "Gaussian" if isinstance(self.noise, GaussianNoise) else "Laplace" if len(self.values) == 1 else "Box"
        notes = [f"{kind} noise for {', '.join(self.names)}."]
        if self.limits.by_person and self.limits.truncation is None:
            tail = noisy.get("tail")
            told = None if tail is None else (self._most({**noisy, "norm": tail[0]}), tail[1], int(tail[2]))
            notes.append(bounded_note(self._most(noisy), self.choice, told))
        return notes + [range_note(key, found) for key, found in noisy["ranges"].items()]

    def _most(self, noisy: Noisy) -> str:
        """The bound on one person, in words."""
        asked = self.fill_ranges(noisy["ranges"])
        value, norm = by_own_norm(list(asked.values.values())), float(noisy["norm"])
        aggregate = next(iter(asked.aggregates.values()))
        if isinstance(value, Clamped) and isinstance(aggregate, Sum):
            return f"{norm * value.magnitude * aggregate.measured.grid:.6g} in a sum"
        return f"{norm:.6g} {'groups' if _counts_people(self.values) else 'rows'}"

    def sql(self, frame: Frame) -> str:
        return explain(self.question(frame, self.limits.norm or 1, bytes(32))[0])


def values_of(aggregates: Mapping[str, Additive]) -> dict[str, Value]:
    """The channels of some aggregates, each once; a sum that a mean's channels give needs none of its own."""
    others = {
        name: value for a in aggregates.values() if not isinstance(a, Sum) for name, value in a.channels().items()
    }
    sums = [a for a in aggregates.values() if isinstance(a, Sum) and not a.is_made_of(others)]
    return others | {name: value for a in sums for name, value in a.channels().items()}


def _counts_people(values: Mapping[str, Value]) -> bool:
    return any(isinstance(value, Persons) for value in values.values())


def _limits(frame: Frame, values: Mapping[str, Value]) -> Limits:
    listed = None if frame.keys and frame.only is None else frame.most_groups
    return limits_of(frame.unit, frame.relation, persons=_counts_people(values), groups=listed)


def share_for_noise(frame: Frame, aggregates: Mapping[str, Additive]) -> float:
    """What is left of a part's budget for its noise, after bounds and ranges are bought."""
    automatic = _limits(frame, values_of(aggregates)).automatic
    bounds = share_for_bounds(frame.most_groups) if automatic else 0.0
    return 1.0 - bounds - (SHARE_FOR_RANGES if unknown(aggregates) else 0.0)


def prefers_gaussian(frame: Frame, aggregates: Mapping[str, Additive], budget: Budget, share: float) -> bool:
    """Whether Gaussian noise has the smaller predicted error, this share of the budget being spent on either."""
    if not budget.allows_gaussian:
        return False
    if budget.epsilon is None:
        return True
    values = values_of(aggregates)
    limits = _limits(frame, values)
    box = BoxNoise(pure_epsilon(budget, share), len(values), frame.most_groups)
    gaussian = GaussianNoise(noise_multiplier(budget, share, gaussian=share), len(values), frame.most_groups)
    if limits.automatic:
        together = math.sqrt(TYPICAL + TYPICAL**2 / frame.most_groups)
        return gaussian.deviation(together) < box.deviation(TYPICAL)
    reach = [limits.reach(list(values.values()), order, limits.norm, split=frame.split)[0] for order in (1, 2)]
    return gaussian.deviation(reach[1]) < box.deviation(reach[0])


def _column(totals: Any, groups: int) -> Any:
    """Exact integers as Python numbers; a relation without rows has no group, and sums of zero."""
    column = np.asarray(totals).astype(object)
    return column if len(column) == groups else np.array([0] * groups, object)
