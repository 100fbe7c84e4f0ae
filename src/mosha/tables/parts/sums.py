"""The part of a release that is made of noisy sums: all channels share one weight for each person and one noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

import numpy as np

from mosha.connect.engines.source import answer, explain
from mosha.connect.language.exclusive import are_exclusive
from mosha.connect.language.value import Clamped, Persons, Rows, Value
from mosha.connect.plan.aggregation import Aggregation
from mosha.core.budget import Budget
from mosha.core.errors import Refused
from mosha.core.event import NOTHING, Event
from mosha.core.events import Parallel
from mosha.core.language import Phrase, make_note, phrase
from mosha.core.measurement import Rng
from mosha.tables.mechanisms.joint_noise import EXACT, BoxNoise, GaussianNoise, JointNoise
from mosha.tables.parts.additive import Additive, Channels, Count, CountPersons, Mean, Sum, fill_each, list_unknown
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.bought_range import EXTREMES, SHARE_FOR_RANGES, RangeChoice, range_note
from mosha.tables.parts.bounds import (
    Limits,
    Norm,
    bound_question,
    bounded_note,
    by_own_norm,
    fix_counts,
    limits_of,
    name_bound,
    truncated_note,
)
from mosha.tables.parts.norm_choice import SHARE_FOR_BOUNDS, NormChoice, thresholds
from mosha.tables.parts.part import Columns, Frame, Noisy, noise_multiplier, pure_epsilon

__all__ = ["Bought", "Sums", "find_limits", "is_shared", "share_for_noise", "values_of"]

MOST_CHANNELS = 16
CERTAIN = 0.95
"""How often what is said to be certain of a bound holds."""


@dataclass(frozen=True)
class Bought:
    """What a part has bought before its sums are asked: ranges, a bound, and which of two noises suits it."""

    norm: Norm | None
    ranges: Mapping[str, list[float]]
    tail: list[float] | None = None
    gaussian: bool = False

    @property
    def plain(self) -> dict[str, Any]:
        """As a release holds it."""
        norm = None if self.norm is None else float(self.norm)
        return {"norm": norm, "ranges": dict(self.ranges), "tail": self.tail, "gaussian": self.gaussian}


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums per group for some aggregates.

    Guarantee:
        `Limits.reach` bounds how one unit moves the exact sums, `noise` is made for that reach whatever it is, and
        its event does not depend on it. The choices of a norm and of ranges are paid for by `choice` and `ranges`;
        they scale data and noise alike. `fixed` channels are equal on all neighbors (`fix_counts`) and have no noise.
    """

    aggregates: Mapping[str, Additive]
    limits: Limits
    noise: JointNoise
    choice: NormChoice | None
    ranges: RangeChoice | None
    other: GaussianNoise | None = None
    counted: bool = False
    fixed: Mapping[str, Value] = field(default_factory=dict)

    @staticmethod
    def plan(
        frame: Frame,
        aggregates: Mapping[str, Additive],
        budget: Budget,
        share: float,
        gaussian: float | None,
        *,
        other: bool = False,
    ) -> Sums:
        """Within a share of the budget; `gaussian` is what all Gaussian noise has of it, None for the pure kind.

        With `other` (this part alone, nothing else Gaussian) the better of the two kinds is taken when the bound is
        known.
        """
        values, limits = values_of(aggregates), Sums.check(frame, aggregates)
        choice, ranges = None, None
        if limits.automatic:
            order = 1 if gaussian is None and not other else 2
            choice = NormChoice.plan(budget, share, order, twice=limits.twice)
        if bought := list_unknown(aggregates):
            ranges = RangeChoice.plan(budget, share * SHARE_FOR_RANGES, len(bought))
        left = share_for_noise(frame, aggregates)
        fixed = {} if frame.split else fix_counts(values, limits, frame.relation)
        moved = {name: value for name, value in values.items() if name not in fixed}
        shared = is_shared(frame, aggregates, moved, limits)
        noise: JointNoise
        shape = (len(moved), frame.most_groups, shared)
        if gaussian is None:
            noise = BoxNoise(pure_epsilon(budget, share * left), *shape)
        else:
            noise = GaussianNoise(noise_multiplier(budget, share * left, gaussian=gaussian), *shape)
        second = None
        if other:
            second = GaussianNoise(noise_multiplier(budget, share * left, gaussian=share * left), *shape)
        return Sums(aggregates, limits, noise, choice, ranges, second, fixed=fixed)

    @staticmethod
    def check(frame: Frame, aggregates: Mapping[str, Additive]) -> Limits:
        """What bounds one unit; refuse what nothing bounds, and more sums than can be noised together."""
        values = values_of(aggregates)
        if len(values) > MOST_CHANNELS:
            raise Refused("tables.too_many_sums", sums=len(values), most=MOST_CHANNELS, spent="nothing")
        return find_limits(frame, values)

    @property
    def values(self) -> Mapping[str, Value]:
        return {**values_of(self.aggregates), **self.fixed}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.aggregates)

    @property
    def estimated(self) -> tuple[str, ...]:
        """The aggregates whose bars hold an estimate of what a bound cuts that is bought: `tail_counts.md`."""
        if self.choice is None:
            return ()
        return tuple(name for name, a in self.aggregates.items() if isinstance(a, Count | CountPersons | Sum))

    @property
    def event(self) -> Event:
        return self.bought + self.noise_event

    @property
    def bought(self) -> Event:
        """What the choices of a norm and of ranges cost."""
        return sum((stage.event for stage in (self.choice, self.ranges) if stage is not None), start=NOTHING)

    @property
    def noise_event(self) -> Event:
        """One of two noises is drawn, which one is known from what was bought before: the dearer one is the price."""
        return self.noise.event if self.other is None else Parallel((self.noise.event, self.other.event))

    @property
    def order(self) -> int:
        return 2 if isinstance(self.noise, GaussianNoise) else 1

    def limits_at(self, norm: Norm | None) -> Limits:
        """What bounds a unit; where counts show groups, a unit must be in few of them (`counted_keys.md`)."""
        if not self.counted or not self.limits.by_person or self.limits.truncation is not None:
            return self.limits
        if self.order == 1:
            return self.limits.keep_whole_rows(norm, persons=_counts_people(self.values))
        return replace(self.limits, finest=EXACT)

    def question(self, frame: Frame, norm: Norm | None, key: bytes) -> tuple[Aggregation, int]:
        limits = self.limits_at(norm)
        return bound_question(
            frame.relation, frame.keys, frame.only, self.values, limits=limits, order=self.order, norm=norm, key=key
        )

    def reach(self, frame: Frame, norm: Norm | None) -> list[int]:
        values, split = list(self.values.values()), frame.split or self.noise.shared
        reach = self.limits_at(norm).reach(values, self.order, norm, split=split)
        return [0 if name in self.fixed else r for name, r in zip(self.values, reach, strict=True)]

    def fill_ranges(self, ranges: Mapping[str, Any]) -> Sums:
        """With the ranges that were bought."""
        return replace(self, aggregates=fill_each(self.aggregates, ranges))

    def take(self, noisy: Noisy) -> Sums:
        """With the ranges and the noise of a release."""
        asked = self.fill_ranges(noisy["ranges"])
        return replace(asked, noise=self.other, other=None) if noisy.get("gaussian") and self.other else asked

    def buy(self, frame: Frame, rng: Rng) -> tuple[Sums, Bought]:
        """The ranges and the bound that are yet to be bought, and what will be asked with them."""
        ranges = {}
        if self.ranges is not None:
            for number in list_unknown(self.aggregates):
                ranges[number.key] = self.ranges.choose(frame, number, self.limits, rng)
        asked = self.fill_ranges(ranges)
        if asked.choice is None:
            return asked, Bought(asked.limits.norm, ranges)
        leader = by_own_norm(list(asked.values.values())) or (Persons() if _counts_people(asked.values) else Rows())
        noises = [noise for noise in (asked.noise, asked.other) if noise is not None]
        spreads = {1 if isinstance(noise, BoxNoise) else 2: noise.deviation for noise in noises}
        chosen = asked.choice.choose(frame, frame.keys, leader, spreads, rng)
        gaussian = chosen.order == 2 and asked.other is not None
        if gaussian and asked.other is not None:
            asked = replace(asked, noise=asked.other, other=None)
        found, (mark, *tail) = chosen.norm, chosen.plain
        if isinstance(leader, Persons) and frame.only is not None:
            found = min(found, len(frame.only))
        if self.counted and asked.order == 2:
            found = min(found, EXACT)
        norm = Fraction(found, leader.magnitude)
        return asked, Bought(norm, ranges, [mark / leader.magnitude, *tail], gaussian=gaussian)

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> Noisy:
        asked, bought = self.buy(frame, rng)
        return asked.noisy(frame, key, bought.norm, rng) | bought.plain

    def rehearse(self, frame: Frame, key: bytes, rng: Rng) -> None:
        """Ask with the least and the largest bounds and ranges that can be bought: a look knows none of them yet.

        Where whole rows are picked, `key` says which; a statement that holds nothing unknown is not asked again.
        """
        if self.choice is None and self.ranges is None and self.limits.truncation is None:
            return
        unknowns = list_unknown(self.aggregates)
        for between in EXTREMES if unknowns else ((0.0, 1.0),):
            filled = self.fill_ranges({number.key: between for number in unknowns})
            if unknowns:
                replace(filled, ranges=None).buy(frame, rng)
            leader = by_own_norm(list(filled.values.values()))
            unit = leader.magnitude if leader is not None else 1
            for noise in [filled.noise, *([] if filled.other is None else [filled.other])]:
                asked = replace(filled, noise=noise, other=None)
                most = EXACT if asked.counted and asked.order == 2 else thresholds(unit)[-1]
                for norm in (thresholds(unit)[0], most) if self.choice else ():
                    answer(asked.question(frame, Fraction(norm, unit), key)[0])
                if self.choice is None:
                    answer(asked.question(frame, self.limits.norm, key)[0])

    def norm(self, frame: Frame, rng: Rng) -> Norm | None:
        """The declared bound, or one that is bought: in rows, or for a single sum in its own units."""
        return self.buy(frame, rng)[1].norm

    def noisy(self, frame: Frame, key: bytes, norm: Norm | None, rng: Rng) -> dict[str, Any]:
        """The exact sums with noise."""
        question, bits = self.question(frame, norm, key)
        totals = answer(question)
        exact = {name: _column(totals[name], frame.groups) for name in self.values}
        reach = self.reach(frame, norm)
        channels = {name: exact[name].astype(np.float64).tolist() for name in self.fixed}
        if moved := {name: r for name, r in zip(self.values, reach, strict=True) if r}:
            noisy = self.noise.add(np.stack([exact[name] for name in moved], axis=-1), list(moved.values()), rng)
            channels |= dict(zip(moved, np.ldexp(noisy, -bits).T.tolist(), strict=True))
        return {"channels": [channels[name] for name in self.values], "reach": [math.ldexp(r, -bits) for r in reach]}

    def read_channels(self, noisy: Noisy) -> Channels:
        """The channels that a release holds."""
        columns = {name: np.array(c, np.float64) for name, c in zip(self.values, noisy["channels"], strict=True)}
        return Channels(columns, dict(zip(self.values, noisy["reach"], strict=True)), self.noise)

    def answers(self, noisy: Noisy) -> Columns:
        asked = self.take(noisy)
        channels = asked.read_channels(noisy)
        return {name: aggregate.answer(channels) for name, aggregate in asked.aggregates.items()}

    def errors(self, noisy: Noisy, confidence: float) -> Columns:
        asked = self.take(noisy)
        channels = asked.read_channels(noisy)
        bars = {name: aggregate.error(channels, confidence) for name, aggregate in asked.aggregates.items()}
        tail = noisy.get("tail")
        cut = max(tail[3:5], default=0.0) if tail else 0.0  # answers of earlier versions hold less
        for name, aggregate in asked.aggregates.items():
            if cut > 0 and isinstance(aggregate, Count | CountPersons | Sum):
                bars[name] = bars[name] + cut * np.abs(aggregate.answer(channels))
        return bars

    def assume(self, frame: Frame, guess: Guess) -> Noisy:
        norm = guess.norm(self.limits)
        ranges = {number.key: list(guess.range(number)) for number in list_unknown(self.aggregates)}
        asked = self.fill_ranges(ranges)
        _, bits = asked.question(frame, norm, bytes(32))
        rows = 0.0 if guess.rows is None else float(guess.rows)
        evenly = {name for a in asked.aggregates.values() for name in a.squares()}
        typical = {n: v.magnitude / 3 if n in evenly else float(v.magnitude == 1) for n, v in asked.values.items()}
        columns = [[rows * typical[name]] * frame.groups for name in asked.values]
        reach = [math.ldexp(r, -bits) for r in asked.reach(frame, norm)]
        return {"channels": columns, "reach": reach, "norm": None if norm is None else float(norm), "ranges": ranges}

    def notes(self, noisy: Noisy) -> list[str]:
        noise = self.take(noisy).noise
        notes: list[str] = [make_note(f"tables.note_{noise.kind}", names=", ".join(self.names))]
        if self.fixed:
            notes = [make_note("tables.note_fixed_rows"), *(notes if noise.channels else [])]
        if self.limits.truncation is not None:
            notes.append(truncated_note(*self.limits.truncation))
        elif self.limits.by_person:
            told = None
            if (tail := noisy.get("tail")) is not None:
                told = (
                    self._most({**noisy, "norm": tail[0]}),
                    tail[1],
                    int(tail[2]),
                    tail[3] if len(tail) > 3 else 0.0,
                    tail[4] if len(tail) > 4 else 0.0,
                    len(tail) > 5 and tail[5] > 0,
                )
            rest = "picked" if self.counted and isinstance(noise, BoxNoise) else "scaled"
            how = "complete" if self.limits.complete else rest
            notes.append(bounded_note(self._most(noisy), self.choice, told, how=how))
        return notes + self._note_least(noisy) + [range_note(key, found) for key, found in noisy["ranges"].items()]

    def _note_least(self, noisy: Noisy) -> list[str]:
        """What is certain where a bound was bought: `tail_counts.md`, "What is certain"."""
        if self.counted:  # groups are shown because their noise is large
            return []
        asked, notes = self.take(noisy), list[str]()
        channels = asked.read_channels(noisy)
        for name in self.estimated:
            aggregate = asked.aggregates[name]
            own = set(aggregate.channels()) <= set(asked.values)  # whose parts are scaled down, and not moved
            if isinstance(aggregate, Sum) and (aggregate.measured.between[0] < 0 or not own):
                continue
            numbers, widths = aggregate.answer(channels), aggregate.error(channels, 2 * CERTAIN - 1)
            said, whole = {"name": name, "confidence": f"{CERTAIN:.0%}"}, not isinstance(aggregate, Sum)
            if len(numbers) > 1:
                width = _write_floor(-float(np.max(widths)), whole=whole).removeprefix("-")
                notes.append(make_note("tables.note_at_least_each", width=width, **said))
            elif (least := float(numbers[0] - widths[0])) > 0:
                notes.append(make_note("tables.note_at_least", least=_write_floor(least, whole=whole), **said))
        return notes

    def _most(self, noisy: Noisy) -> Phrase:
        """The bound on one person, in words."""
        asked = self.fill_ranges(noisy["ranges"])
        value, norm = by_own_norm(list(asked.values.values())), float(noisy["norm"])
        aggregate = next(iter(asked.aggregates.values()))
        if isinstance(value, Clamped) and isinstance(aggregate, Sum):
            return phrase("tables.most_in_sum", count=f"{norm * value.magnitude * aggregate.measured.grid:.6g}")
        return name_bound("groups" if _counts_people(self.values) else "rows", f"{norm:.6g}")

    def sql(self, frame: Frame) -> str:
        return explain(self.question(frame, self.limits.norm or 1, bytes(32))[0])


def values_of(aggregates: Mapping[str, Additive]) -> dict[str, Value]:
    """The channels of some aggregates, each once; a sum that a mean's channels give needs none of its own."""
    others = {
        name: value for a in aggregates.values() if not isinstance(a, Sum) for name, value in a.channels().items()
    }
    sums = [a for a in aggregates.values() if isinstance(a, Sum) and not a.is_made_of(others)]
    return others | {name: value for a in sums for name, value in a.channels().items()}


def _write_floor(number: float, *, whole: bool) -> str:
    """A number rounded down: to a whole one, or to six digits."""
    if whole:
        return f"{math.floor(number):,}"
    return f"{Context(prec=6, rounding=ROUND_FLOOR).create_decimal_from_float(number):,f}"


def _is_one_mean(aggregates: Mapping[str, Additive], moved: AbstractSet[str], limits: Limits) -> bool:
    """Whether what moves is the count and the sum of one mean, a unit of whole rows being replaced by another."""
    means = [aggregate for aggregate in aggregates.values() if isinstance(aggregate, Mean)]
    return limits.twice and not limits.by_person and len(means) > 0 and moved == set(means[0].channels())


def is_shared(frame: Frame, aggregates: Mapping[str, Additive], moved: Mapping[str, Value], limits: Limits) -> bool:
    """Whether a unit's shares of all reaches together are bounded: those of one mean, or of counts and sums of cases.

    Of two or three exclusive cases a box is smaller where a row is replaced by another, for it moves two of them.
    """
    if not frame.split and _is_one_mean(aggregates, moved.keys(), limits):
        return True
    few = 4 if limits.twice and not limits.by_person and not frame.split else 2
    plain = not list_unknown(aggregates) and all(isinstance(each, Count | Sum) for each in aggregates.values())
    return plain and len(moved) >= few and are_exclusive(list(moved.values()))


def _counts_people(values: Mapping[str, Value]) -> bool:
    return any(isinstance(value, Persons) for value in values.values())


def find_limits(frame: Frame, values: Mapping[str, Value]) -> Limits:
    """What bounds one unit's part of these channels."""
    listed = None if frame.keys and frame.only is None else frame.most_groups
    return limits_of(frame.unit, frame.relation, persons=_counts_people(values), groups=listed)


def share_for_noise(frame: Frame, aggregates: Mapping[str, Additive]) -> float:
    """What is left of a part's budget for its noise, after bounds and ranges are bought."""
    automatic = find_limits(frame, values_of(aggregates)).automatic
    bounds = SHARE_FOR_BOUNDS if automatic else 0.0
    return 1.0 - bounds - (SHARE_FOR_RANGES if list_unknown(aggregates) else 0.0)


def _column(totals: object, groups: int) -> Any:
    """Exact integers of 64 bits or any size; a relation without rows has no group, and sums of zero."""
    column = np.asarray(totals)
    return column if len(column) == groups else np.zeros(groups, np.int64)
