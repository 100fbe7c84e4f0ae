"""How far one unit can move the channels of a release: by declared limits, or by one bought from the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

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
from mosha.mechanisms.grid import enlarged
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import discrete_laplace

__all__ = ["WEIGHT", "Limits", "bound_question", "fraction_bits", "limits_of", "thresholds"]

WEIGHT = "weight"
"""The name of the count of rows whose norm weighs a person's rows; it is summed and never released."""

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
            A unit adds c_g in [0, ...] whole or fractional rows to group g, and channel j moves by at most
            magnitude_j * c_g. Rows of a Row unit: sum and root of sum of squares of c are at most `rows`. Truncated to
            k groups of r rows: at most k r and sqrt(k) r (also at most `rows`, where that is given). Norm bounding:
            at most the limit by construction. A unit that is replaced is one taken away and one added: twice as
            much; within one single group the two move a channel by at most its range.
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


def limits_of(unit: Unit, relation: Relation, *, persons: bool) -> Limits:
    """What the unit's declaration says about one unit's part in this relation."""
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
    bound = NormBound(order, {(WEIGHT, *values): norm}, bits)
    weighted = ((WEIGHT, Rows()), *values.items())
    return Aggregation(relation, keys, weighted, bound=bound, only=only), bits


def thresholds() -> tuple[int, ...]:
    """The candidates for a norm: about two for each doubling."""
    return tuple(sorted({round(2 ** (i / 2)) for i in range(2 * _LARGEST.bit_length())}))


@dataclass(frozen=True)
class NormChoice:
    """The norm that keeps bias and noise together smallest, judged by a noisy histogram of persons' norms.

    Guarantee:
        A person is in one bucket: the histogram has l1 sensitivity 1 (2 when one is replaced by another), and discrete
        Laplace noise of that scale over epsilon makes it epsilon-differentially private. The choice is
        post-processing.
    """

    epsilon: float
    twice: bool

    @property
    def event(self) -> Event:
        return DiscreteLaplace(laplace_multiplier(self.epsilon))

    def choose(self, question: Norms, spread: Any, groups: int, rng: Rng) -> int:
        """`spread(norm)` is the variance that noise would have in each group."""
        exact = np.asarray(answer(question)["persons"]).astype(np.int64)
        scale = enlarged(Fraction(laplace_multiplier(self.epsilon)) * (2 if self.twice else 1))
        noisy = exact + discrete_laplace(scale, len(exact), rng=rng)
        certain = float(scale) * math.log(2 * len(exact) / 0.05)
        people = np.where(noisy > certain, noisy, 0).astype(np.float64)
        marks = np.array([*question.thresholds, 2 * question.thresholds[-1]], np.float64)
        costs = []
        for norm in question.thresholds:
            lost = float(np.sum(people * np.maximum(0.0, marks - norm)))
            costs.append(lost**2 / groups + groups * spread(norm))
        return int(question.thresholds[int(np.argmin(costs))])
