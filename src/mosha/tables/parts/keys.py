"""Groups that nobody listed: shown only if enough people are in them, which costs a delta."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mosha.accounting.numerics.rounding import round_down
from mosha.connect.engines.source import answer
from mosha.connect.language.checking import type_of
from mosha.connect.language.value import Persons, Rows, Value
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Bound, NormBound, Truncate, Unbounded
from mosha.connect.plan.totals import Totals
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Approx, DiscreteGaussian, Failure
from mosha.core.randomness import Rng
from mosha.core.unit import Neighbors, Person, Row
from mosha.exact.grid import enlarge_scale
from mosha.mechanisms.gaussian import gaussian_multiplier
from mosha.mechanisms.partition_selection import keeping_probabilities
from mosha.noise import bernoulli, discrete_gaussian
from mosha.tables.parts.key_values import in_utc
from mosha.tables.parts.part import Frame
from mosha.tables.parts.part import Rows as Keys
from mosha.tables.parts.shares import pure_epsilon

__all__ = ["MOST_KEYS", "KeySelection", "read_groups", "sort_groups"]

MOST_KEYS = 1 << 20
"""A release shows no more groups than this; noise is priced for so many."""

FEW = 3
MOST_ROWS = 1000
UNLIMITED = 8


@dataclass(frozen=True, eq=False)
class KeySelection:
    """Which groups may be shown.

    Guarantee:
        Up to three groups a person: each group is kept by a coin whose bias depends on its number of people alone
        and is the greatest that (epsilon / k, delta / k) allows; a person moves the number of k groups by one each.
        Rows of a unit may all lie in one group, so for them the deltas grow from row to row. More groups: a group is
        shown if its people's weights and Gaussian noise exceed a threshold (Gopi et al. 2020). Proofs: `keys.md`.
    """

    limit: int
    epsilon: float
    delta: float
    twice: bool
    by_person: bool

    @staticmethod
    def plan(frame: Frame, budget: Budget, share: float, delta: float) -> KeySelection:
        if delta <= 0:
            raise InvalidParameter("tables.keys_cost_delta", parameter="delta", column=frame.keys[0][0])
        unit = frame.unit
        twice = unit.neighbours is Neighbors.REPLACE_ONE
        by_person = isinstance(unit, Person) and frame.relation.person is not None
        if by_person:
            assert isinstance(unit, Person)
            limit = min((n for n in (unit.groups, unit.at_most) if n is not None), default=FEW + 1)
        else:
            stability = frame.relation.stability
            changed = stability.per_person if isinstance(unit, Person) else stability.per_row
            if changed is None:
                raise InvalidParameter("tables.join_unbounded_groups")
            limit = changed * unit.at_most if isinstance(unit, Row) else changed
            if limit > MOST_ROWS:
                raise InvalidParameter("tables.too_many_rows_for_keys", rows=limit)
        if budget.rho is not None and limit <= FEW:
            epsilon = pure_epsilon(budget, share / limit) * limit
        else:
            epsilon = pure_epsilon(budget, share)
        return KeySelection(limit, min(epsilon, 100.0), delta, twice, by_person)

    def check(self) -> None:
        """Refuse a price for which no group could be shown for sure, before it is paid."""
        if self.few:
            keeping_probabilities(*self._each)

    @property
    def few(self) -> bool:
        return self.limit <= FEW or not self.by_person

    @property
    def _moved(self) -> int:
        return self.limit * (2 if self.twice else 1)

    @property
    def _each(self) -> tuple[float, float]:
        """What one group (or one row) may cost."""
        epsilon = round_down(Fraction(self.epsilon) / self._moved)
        if self.by_person:
            return epsilon, round_down(Fraction(self.delta) / self._moved)
        steps = sum(math.exp(epsilon * i) for i in range(self._moved)) * (1 + 2.0**-40)
        return epsilon, self.delta / steps

    @property
    def _multiplier(self) -> float:
        return gaussian_multiplier(epsilon=self.epsilon, delta=self.delta / 2)

    @property
    def event(self) -> Event:
        if self.few:
            return Approx(*self._each) * self._moved if self.by_person else Approx(self.epsilon, self.delta)
        return Failure(DiscreteGaussian(self._multiplier, 2.0**self.bits, MOST_KEYS), self.delta / 2)

    @property
    def bits(self) -> int:
        """Of a weight after the point, three more than the declared number of groups needs: tiny weights are none."""
        return min(10, (math.isqrt(self.limit - 1) + 1).bit_length() + 3) if self.limit > FEW + 1 else UNLIMITED

    @property
    def threshold(self) -> float:
        """T, in weights: the largest over m of 1 / sqrt(m) + sigma z, z the quantile at (1 - delta / 2) ** (1 / m)."""
        from scipy.special import ndtri_exp  # noqa: PLC0415  (slow to import)

        failing = self.delta / (4 if self.twice else 2)
        sigma = self._multiplier * (2 if self.twice else 1)
        least = 0.0
        for exponent in range(8 * self.bits + 1):  # in more than 4**bits groups nobody has a weight
            m = 2 ** (exponent / 4)
            quantile = -float(ndtri_exp(math.log(-math.expm1(math.log1p(-failing) / m))))
            least = max(least, 2 ** (1 / 8) / math.sqrt(m) + sigma * quantile)
        return least * (1 + 2.0**-20) + 2.0 ** (2 - self.bits)

    def select(self, frame: Frame, key: bytes, rng: Rng) -> Keys:
        """The groups that are shown, in the order of their names."""
        value: Value = Persons() if self.by_person else Rows()
        bound: Bound = Unbounded()
        if self.by_person:
            few = Truncate(key, groups=self.limit, per_group=1)
            bound = few if self.few else NormBound(2, {"people": 1}, self.bits)
        totals = answer(Aggregation(frame.relation, frame.keys, (("people", value),), bound=bound))
        people = np.asarray(totals["people"]).astype(np.int64)
        kept = self._kept_few(people, rng) if self.few else self._kept_many(people, rng)
        return sort_groups(read_groups(frame, totals), kept)[0]

    def _kept_few(self, people: Any, rng: Rng) -> list[int]:
        probabilities = keeping_probabilities(*self._each)
        kept: list[int] = []
        for count in np.unique(people).tolist():
            at = np.flatnonzero(people == count)
            chance = Fraction(probabilities[min(count, len(probabilities) - 1)], 1 << 128)
            kept += at[bernoulli(chance, at.size, rng=rng)].tolist()
        return kept

    def _kept_many(self, weights: Any, rng: Rng) -> list[int]:
        sigma = enlarge_scale(Fraction(self._multiplier) * (2 if self.twice else 1) * (1 << self.bits))
        noisy = weights + discrete_gaussian(sigma, len(weights), rng=rng)
        present = weights > 0
        return np.flatnonzero(present & (noisy > math.ceil(self.threshold * (1 << self.bits)))).tolist()

    def note(self) -> str:
        how = "few people" if self.few else "little weight"
        return f"Groups with {how} are not shown: keys came from the data and cost delta {self.delta:.3g}."


def read_groups(frame: Frame, totals: Totals) -> Keys:
    """The keys of all groups that an engine found."""
    kinds = [type_of(expression, frame.relation.schema) for _, expression in frame.keys]
    return in_utc(zip(*(column.tolist() for column in totals.keys), strict=True), kinds)


def sort_groups(groups: Keys, places: Iterable[int]) -> tuple[Keys, list[int]]:
    """The groups at these places that a constant can name, and their places, in the order of their names."""
    named = sorted((place for place in places if _can_be_named(groups[place])), key=lambda i: _order(groups[i]))
    return tuple(groups[place] for place in named[:MOST_KEYS]), named[:MOST_KEYS]


def _can_be_named(key: tuple[Any, ...]) -> bool:
    """Whether a constant can say the key: text with NUL and the least 64-bit integer have none on some engine."""
    texts = (part for part in key if isinstance(part, str))
    least = (part for part in key if isinstance(part, int) and part == -(2**63))
    return not any("\x00" in text for text in texts) and not any(least)


def _order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((part is not None, type(part).__name__, part) for part in key)
