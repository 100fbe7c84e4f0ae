"""Which of many candidates are the most frequent: a choice that costs nothing for those that are not chosen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mosha.connect.engines.source import answer
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Bound, NormBound, Unbounded
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Exponential
from mosha.core.language import make_note
from mosha.core.measurement import Rng
from mosha.noise import exponential_choice
from mosha.noise.parameters import enlarge_scale
from mosha.tables.parts.bounds import Limits, limits_of
from mosha.tables.parts.part import Frame, choice_epsilon
from mosha.tables.parts.part import Rows as Keys

__all__ = ["TopSelection"]


@dataclass(frozen=True, eq=False)
class TopSelection:
    """The k candidates with the most rows, one exponential mechanism after the other.

    Guarantee:
        A unit's rows weigh at most W together. Adding them raises every score by something between 0 and W, so scores
        move within a range of W (of 2 W when a unit is replaced), and a choice with the scale W / epsilon costs
        Exponential(epsilon). Each of the k choices is among the candidates that are left, which earlier ones fixed.
    """

    limits: Limits
    epsilon: float
    k: int

    @staticmethod
    def plan(frame: Frame, budget: Budget, share: float, k: int) -> TopSelection:
        limits = limits_of(frame.unit, frame.relation, persons=False)
        if limits.automatic:
            raise InvalidParameter("tables.top_needs_limit")
        if limits.truncation is not None:
            rows, groups, per_group = limits.truncation
            most = groups * per_group
            limits = Limits(norm=most if rows is None else min(rows, most), by_person=True, twice=limits.twice)
        return TopSelection(limits, choice_epsilon(budget, share / k), k)

    def check(self) -> None:
        """Any price will do."""

    @property
    def event(self) -> Event:
        return Exponential(self.epsilon) * self.k

    def select(self, frame: Frame, key: bytes, rng: Rng) -> Keys:
        del key
        norm = self.limits.norm or 0
        bits = max(0, 12 - norm.bit_length())
        bound: Bound = NormBound(1, {"rows": norm}, bits) if self.limits.by_person else Unbounded()
        weight = norm << bits if self.limits.by_person else self.limits.rows or 1
        totals = answer(Aggregation(frame.relation, frame.keys, (("rows", Rows()),), bound=bound, only=frame.only))
        candidates = list(frame.only or ())
        scores = np.asarray(totals["rows"]).astype(np.int64)
        if len(scores) != len(candidates):
            scores = np.zeros(len(candidates), np.int64)
        scale = enlarge_scale(Fraction(weight * (2 if self.limits.twice else 1)) / Fraction(self.epsilon))
        left = list(range(len(candidates)))
        chosen = [left.pop(exponential_choice(scores[left], scale, rng=rng)) for _ in range(self.k)]
        return tuple(candidates[place] for place in chosen)

    def note(self) -> str:
        return make_note("tables.note_top")
