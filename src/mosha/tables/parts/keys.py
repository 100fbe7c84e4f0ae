"""Groups that nobody listed: shown only if enough people are in them, which costs a delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mosha.accounting.numerics.price import round_down
from mosha.connect.engines.source import answer_in_batches
from mosha.connect.language.value import Persons, Rows, Value
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Bound, NormBound, Truncate, Unbounded
from mosha.connect.plan.source import Totals
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Approx, DiscreteGaussian, Failure
from mosha.core.language import make_note
from mosha.core.measurement import Rng
from mosha.core.unit import Neighbors, Person, Row
from mosha.mechanisms.gaussian import gaussian_multiplier
from mosha.mechanisms.partition_selection import keeping_probabilities
from mosha.noise import bernoulli, discrete_gaussian
from mosha.noise.parameters import enlarge_scale
from mosha.tables.parts.part import Frame, pure_epsilon
from mosha.tables.parts.part import Rows as Keys
from mosha.tables.parts.shown_groups import MOST_KEYS, ShownGroups

__all__ = ["KeySelection"]

Counts = NDArray[np.int64]
Pick = Callable[[Counts, Rng], Counts]
"""Which of these groups are shown, by their people or weights."""

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
        twice = unit.neighbors is Neighbors.REPLACE_ONE
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
        pick = self._pick_few() if self.few else self._pick_many()
        shown = ShownGroups(frame)

        def show(totals: Totals) -> None:
            shown.add(totals, pick(np.asarray(totals["people"]).astype(np.int64), rng))

        answer_in_batches(Aggregation(frame.relation, frame.keys, (("people", value),), bound=bound), show)
        return shown.list()[0]

    def _pick_few(self) -> Pick:
        probabilities = keeping_probabilities(*self._each)

        def pick(people: Counts, rng: Rng) -> Counts:
            picked = np.zeros(len(people), bool)
            for count in np.unique(people).tolist():
                at = np.flatnonzero(people == count)
                chance = Fraction(probabilities[min(count, len(probabilities) - 1)], 1 << 128)
                picked[at] = bernoulli(chance, at.size, rng=rng)
            return np.flatnonzero(picked)

        return pick

    def _pick_many(self) -> Pick:
        sigma = enlarge_scale(Fraction(self._multiplier) * (2 if self.twice else 1) * (1 << self.bits))
        least = math.ceil(self.threshold * (1 << self.bits))

        def pick(weights: Counts, rng: Rng) -> Counts:
            noisy = weights + discrete_gaussian(sigma, len(weights), rng=rng)
            return np.flatnonzero((weights > 0) & (noisy > least))

        return pick

    def note(self) -> str:
        return make_note(f"tables.note_{'few_people' if self.few else 'little_weight'}", delta=f"{self.delta:.3g}")
