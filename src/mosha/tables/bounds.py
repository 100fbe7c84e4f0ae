"""How far one unit can move the channels of a release: by declared limits, or by one bought from the budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.connect.aggregation import Aggregation, Norms
from mosha.connect.bounding import Bound, NormBound, Truncate, Unbounded
from mosha.connect.relation import Relation
from mosha.connect.source import answer
from mosha.connect.value import Persons, Rows, Value
from mosha.core.errors import InvalidParameter
from mosha.core.errors import Unbounded as UnboundedError
from mosha.core.event import Event
from mosha.core.events import DiscreteLaplace
from mosha.core.randomness import Rng
from mosha.core.unit import Neighbours, Person, Row, Unit
from mosha.mechanisms.grid import enlarged, noised
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import discrete_laplace
from mosha.tables.budget import Budget
from mosha.tables.part import Frame, Keys

__all__ = [
    "SHARE_FOR_BOUNDS",
    "WEIGHT",
    "Limits",
    "NormChoice",
    "bound_question",
    "bounded_note",
    "filled",
    "fraction_bits",
    "limits_of",
    "thresholds",
]

WEIGHT = "weight"
"""The name of the count of rows whose norm weighs a person's rows; it is summed and never released."""

SHARE_FOR_BOUNDS = 0.1
FEW_GROUPS = 4
EMPTY = 0.01
"""How often one of the buckets without people may look as if it had some."""

LITTLE = 2.0
_ROOM = 38
_LARGEST = 2**20


@dataclass(frozen=True)
class Limits:
    """What bounds a unit's part: so many whole rows, a truncation, or a norm (None: chosen from the data, paid for)."""

    rows: int | None = None
    truncation: tuple[int | None, int, int] | None = None
    norm: int | None = None
    by_person: bool = False
    twice: bool = False

    @property
    def automatic(self) -> bool:
        return self.by_person and self.truncation is None and self.norm is None

    def reach(self, values: Sequence[Value], order: int, norm: int | None, *, split: bool) -> list[int]:
        """How far one unit moves each channel, in units of `bound_question`'s answers.

        Guarantee:
            A unit moves channel j in group g by at most reach_j c_g, where c has norm at most 1 (order 1: the sum,
            order 2: the root of the sum of squares over groups): `joint_noise.md`.
        """
        factor = self._factor(order, norm, values)
        if self.twice and not split and not self.by_person:
            return [max(1, (value.high - value.low) * factor) for value in values]
        return [max(1, value.magnitude * factor * (2 if self.twice else 1)) for value in values]

    def _factor(self, order: int, norm: int | None, values: Sequence[Value]) -> int:
        if not self.by_person:
            assert self.rows is not None
            return self.rows
        if self.truncation is None:
            assert norm is not None
            return norm << fraction_bits(norm, values)
        rows, groups, per_group = self.truncation
        spread = groups * per_group if order == 1 else math.isqrt(groups * per_group**2 - 1) + 1
        return spread if rows is None else min(spread, rows)


def fraction_bits(norm: int, values: Sequence[Value]) -> int:
    """So many bits after the point that scaled-down rows keep their fractions and sums keep their room."""
    largest = max(value.magnitude for value in values) * norm
    return max(0, min(16, _ROOM - largest.bit_length()))


def limits_of(unit: Unit, relation: Relation, *, persons: bool, groups: int | None = None) -> Limits:
    """What the unit's declaration says about one unit's part in this relation.

    With `persons`, a person counts once in each group, so in no more than there are public `groups`.
    """
    twice = unit.neighbours is Neighbours.REPLACE_ONE
    if isinstance(unit, Row):
        changed = relation.stability.per_row
        if persons:
            raise InvalidParameter("persons can be counted where the unit is a Person: nothing says whose a row is.")
        if changed is None:
            raise UnboundedError("after this join one row can change any number of rows: bound the join.")
        return Limits(rows=changed * unit.at_most, twice=twice)
    if not isinstance(unit, Person):
        raise InvalidParameter(f"a table protects rows or persons, not {unit.noun}.")
    if relation.person is None:
        changed = relation.stability.per_person
        if changed is None:
            raise UnboundedError("after this join one person can change any number of rows: bound the join.")
        return Limits(rows=changed, twice=twice)
    per_group = 1 if persons else unit.per_group
    if unit.groups is not None and per_group is not None:
        return Limits(
            truncation=(None if persons else unit.at_most, unit.groups, per_group), by_person=True, twice=twice
        )
    norm = unit.at_most if unit.total is None else max(1, math.floor(unit.total))
    if persons and groups is not None:
        known = norm is not None or groups <= FEW_GROUPS  # a bound is bought only where it can help
        norm = min(norm or groups, groups) if known else None
    return Limits(norm=norm, by_person=True, twice=twice)


def bound_question(
    relation: Relation,
    keys: Any,
    only: Any,
    values: Mapping[str, Value],
    *,
    limits: Limits,
    order: int,
    norm: int | None,
    key: bytes,
) -> tuple[Aggregation, int]:
    """The exact question, and by how many bits its answers are finer than the values' own units."""
    bound: Bound
    listed = list(values.values())
    if not limits.by_person:
        return Aggregation(relation, keys, tuple(values.items()), bound=Unbounded(), only=only), 0
    if limits.truncation is not None:
        rows, groups, per_group = limits.truncation
        bound = Truncate(key, rows=rows, groups=groups, per_group=per_group)
        return Aggregation(relation, keys, tuple(values.items()), bound=bound, only=only), 0
    assert norm is not None
    bits = fraction_bits(norm, listed)
    if len(listed) == 1:
        single = listed[0]
        limit = norm * single.magnitude
        if not isinstance(single, Persons) and limit << bits < 2**52:
            bound = NormBound(order, {next(iter(values)): limit}, bits)
            return Aggregation(relation, keys, tuple(values.items()), bound=bound, only=only), bits
    if any(isinstance(value, Persons) for value in listed):
        bound = NormBound(order, dict.fromkeys(values, norm), bits)
        return Aggregation(relation, keys, tuple(values.items()), bound=bound, only=only), bits
    counted = [name for name, value in values.items() if isinstance(value, Rows) and value.of is None]
    leader = counted[0] if counted else WEIGHT
    weighted = {leader: Rows(), **values}
    bound = NormBound(order, {(leader, *(name for name in weighted if name != leader)): norm}, bits)
    return Aggregation(relation, keys, tuple(weighted.items()), bound=bound, only=only), bits


def thresholds() -> tuple[int, ...]:
    """The candidates for a norm: about two for each doubling."""
    return tuple(sorted({round(2 ** (i / 2)) for i in range(2 * _LARGEST.bit_length())}))


@dataclass(frozen=True)
class NormChoice:
    """The norm that keeps bias and noise together smallest, judged by noisy histograms of persons' norms.

    Guarantee:
        A person is in one bucket of a histogram: it has l1 sensitivity 1 (2 when one is replaced by another), and
        discrete Laplace noise of that scale over epsilon makes it epsilon-differentially private (its end: `held.md`).
        For order 2 there are two, of the norms and of the numbers of rows. The choice is post-processing.
    """

    epsilon: float
    order: int
    twice: bool

    @staticmethod
    def plan(budget: Budget, share: float, order: int, *, twice: bool) -> NormChoice:
        """Bought with a share of the budget."""
        return NormChoice(budget.epsilon_of(share / order), order, twice)

    @property
    def event(self) -> Event:
        return DiscreteLaplace(laplace_multiplier(self.epsilon)) * self.order

    def choose(self, frame: Frame, keys: Keys, leader: Value, spread: Callable[[float], float], rng: Rng) -> int:
        """`spread(norm)` is the standard deviation that the noise would have in each group."""
        marks = np.array(thresholds(), np.float64)
        people = self._people(frame, keys, leader, self.order, rng)
        rows = marks if self.order == 1 else _matched(people, self._people(frame, keys, leader, 1, rng), marks)
        groups = frame.groups
        costs = []
        for norm in marks:
            kept = np.minimum(1.0, norm / marks)
            lost = float(np.sum(people * rows * (1 - kept)))
            costs.append(lost**2 / groups + groups * spread(float(norm)) ** 2)
        return int(marks[int(np.argmin(costs))])

    def _people(self, frame: Frame, keys: Keys, leader: Value, order: int, rng: Rng) -> NDArray[np.float64]:
        """About how many persons have a norm in each bucket; buckets that noise alone would fill are empty."""
        question = Norms(frame.relation, keys, only=frame.only, value=leader, order=order, thresholds=thresholds())
        exact = np.asarray(answer(question)["persons"]).astype(np.int64)
        scale = enlarged(Fraction(laplace_multiplier(self.epsilon)) * (2 if self.twice else 1))
        noisy = noised(exact, discrete_laplace(scale, len(exact), rng=rng)).astype(np.float64)
        noisy[-2] += noisy[-1]
        noisy[filled(noisy / float(scale))[1] + 1 :] = 0.0
        return np.maximum(noisy, 0.0)[:-1]


def filled(noisy: NDArray[np.float64]) -> tuple[int, int]:
    """The first and the last bucket with more than noise, in scales of it, and neighbours with little more."""
    full = np.flatnonzero(noisy > math.log(len(noisy) / (2 * EMPTY)))
    first, last = (int(full[0]), int(full[-1])) if full.size else (int(np.argmax(noisy)),) * 2
    while first > 0 and noisy[first - 1] > LITTLE:
        first -= 1
    while last < len(noisy) - 1 and noisy[last + 1] > LITTLE:
        last += 1
    return first, last


def _matched(people: NDArray[np.float64], counted: NDArray[np.float64], marks: NDArray[np.float64]) -> Any:
    """How many rows persons of each norm have, if the order of norms is that of numbers of rows."""
    ranks = np.concatenate([[0.0], np.cumsum(people)])
    upto = np.cumsum(counted)
    if not upto[-1]:
        return marks
    middle = (ranks[:-1] + ranks[1:]) / 2 / max(ranks[-1], 1.0) * upto[-1]
    found = marks[np.minimum(np.searchsorted(upto, middle), len(marks) - 1)]
    return np.clip(found, marks, marks**2)


def bounded_note(norm: int, choice: NormChoice | None, what: str = "rows") -> str:
    bought = " (chosen with a tenth of the budget)" if choice else ""
    return (
        f"Nobody counts for more than {norm} {what}{bought}: larger parts are scaled down, and error bars are about "
        "what is left."
    )
