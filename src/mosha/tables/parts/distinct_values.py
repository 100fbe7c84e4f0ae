"""The part of a release that counts distinct values, or adds them up."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mosha.connect.engines.source import answer, explain
from mosha.connect.language.value import Persons
from mosha.connect.plan.aggregation import Distinct as DistinctQuestion
from mosha.core.budget import Budget
from mosha.core.event import NOTHING, Event
from mosha.core.language import make_note
from mosha.core.measurement import Rng
from mosha.tables.mechanisms.joint_noise import BoxNoise
from mosha.tables.parts.additive import Distinct, DistinctSum
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.bounds import Limits, bounded_note, limits_of, name_bound
from mosha.tables.parts.norm_choice import NormChoice, thresholds
from mosha.tables.parts.part import Columns, Frame, Keys, Noisy, pure_epsilon, within

__all__ = ["DistinctPart"]


@dataclass(frozen=True, eq=False)
class DistinctPart:
    """How many different values of a column each group has, or their sum.

    Guarantee:
        Each person keeps at most m pairs of a group and a value (`connect.Distinct`), so without that person at most m
        pairs leave the union and none is added: the counts of all groups move by at most m together, 2 m when a
        person is replaced. Where a unit is m rows, it brings at most m pairs. A pair that leaves takes its value from
        one sum, at most V in magnitude on the grid, so sums move by at most V times as much. Discrete Laplace noise of
        that scale.
    """

    name: str
    asked: Distinct
    limits: Limits
    noise: BoxNoise
    choice: NormChoice | None

    @staticmethod
    def plan(frame: Frame, name: str, asked: Distinct, budget: Budget, share: float) -> DistinctPart:
        limits = limits_of(frame.unit, frame.relation, persons=False)
        if limits.truncation is not None:
            rows, groups, per_group = limits.truncation
            most = groups * per_group
            limits = Limits(norm=most if rows is None else min(rows, most), by_person=True, twice=limits.twice)
        choice, left = None, 1.0
        if limits.automatic:
            choice = NormChoice.plan(budget, share, 1, twice=limits.twice)
            left -= choice.share
        noise = BoxNoise(pure_epsilon(budget, share * left), 1, frame.most_groups)
        return DistinctPart(name, asked, limits, noise, choice)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def event(self) -> Event:
        return self.noise.event + (self.choice.event if self.choice else NOTHING)

    def question(self, frame: Frame, norm: int | None, key: bytes) -> DistinctQuestion:
        """The exact question; without a person's column every row brings its own pair."""
        most = norm if self.limits.by_person else 1
        return DistinctQuestion(
            frame.relation, frame.keys, only=frame.only, of=self.asked.of, at_most=most or 1, key=key, add=self._adds
        )

    @property
    def _adds(self) -> bool:
        return isinstance(self.asked, DistinctSum)

    @property
    def _grid(self) -> float:
        """The unit of the exact numbers."""
        return self.asked.measured.grid if isinstance(self.asked, DistinctSum) else 1.0

    def _find_reach(self, norm: int | None) -> int:
        most = norm if self.limits.by_person else self.limits.rows
        each = self.asked.measured.plain.magnitude if isinstance(self.asked, DistinctSum) else 1
        return (most or 1) * (2 if self.limits.twice else 1) * max(each, 1)

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> Noisy:
        norm = self.limits.norm
        if self.choice is not None:
            pairs: Keys = (*frame.keys, ("value that is counted", self.asked.of))
            anyone = replace(frame, relation=within(frame, frame.relation), only=None)
            chosen = self.choice.choose(anyone, pairs, Persons(), {1: self.noise.deviation}, rng, groups=frame.groups)
            norm = chosen.norm
        totals = np.asarray(answer(self.question(frame, norm, key))["distinct"]).astype(object)
        exact = totals if len(totals) == frame.groups else np.array([0] * frame.groups, object)
        reach = self._find_reach(norm)
        return {
            "counts": self.noise.add(exact.reshape(-1, 1), [reach], rng)[:, 0].tolist(),
            "norm": norm,
            "reach": reach,
        }

    def rehearse(self, frame: Frame, key: bytes, rng: Rng) -> None:
        """Ask with the least and the largest bound that can be bought, and with this key."""
        del rng
        marks = thresholds()
        for norm in (marks[0], marks[-1]) if self.choice is not None else (self.limits.norm,):
            answer(self.question(frame, norm, key))

    def answers(self, noisy: Noisy) -> Columns:
        return {self.name: np.array(noisy["counts"], np.float64) * self._grid}

    def errors(self, noisy: Noisy, confidence: float) -> Columns:
        width = float(self.noise.width([np.array(noisy["reach"], np.float64)], confidence))
        return {self.name: np.full(len(noisy["counts"]), math.ceil(width) * self._grid)}

    def assume(self, frame: Frame, guess: Guess) -> Noisy:
        norm = guess.norm(self.limits)
        return {"counts": [0.0] * frame.groups, "norm": norm, "reach": self._find_reach(norm)}

    def notes(self, noisy: Noisy) -> list[str]:
        notes: list[str] = [make_note("tables.note_laplace", names=self.name)]
        if self.limits.by_person:
            most = name_bound("values", str(noisy["norm"]))
            notes.append(bounded_note(most, self.choice, how="cut"))
        return notes

    def sql(self, frame: Frame) -> str:
        return explain(self.question(frame, self.limits.norm or 1, bytes(32)))
