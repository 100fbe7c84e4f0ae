"""A part of a release: something exact that is asked of the engine, in which groups, its noise, its price, its answers.

Parts share the budget of their release.

Guarantee:
    Parts whose shares sum to at most 1 cost together at most the budget. Pure parts: epsilons add. Gaussian parts with
    shares w_i, W together, have the multipliers m sqrt(W / w_i), where one Gaussian of multiplier m costs
    (W epsilon, delta): squares of 1 / multiplier add up to 1 / m^2, so that all of them cost what that one does. The
    two kinds add by basic composition. Under rho a pure part of share w has epsilon^2 / 2 <= w rho, a choice of
    bounded range epsilon^2 / 8 <= w rho, and a Gaussian part 1 / (2 multiplier^2) <= w rho.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.accounting.numerics.price import round_down
from mosha.connect.language.checking import type_of
from mosha.connect.language.expression import Column, Expression, lit
from mosha.connect.language.schema import Type
from mosha.connect.plan.aggregation import Question, are_plain
from mosha.connect.plan.relation import Relation
from mosha.core.budget import Budget
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.event import Event
from mosha.core.measurement import Rng
from mosha.core.number import positive
from mosha.core.unit import Unit
from mosha.mechanisms.gaussian import gaussian_multiplier
from mosha.tables.parts.key_values import in_utc

if TYPE_CHECKING:
    from mosha.tables.parts.assumptions import Guess

__all__ = [
    "Columns", "Frame", "Keys", "Noisy", "Part", "Rows", "Selection", "choice_epsilon", "list_values",
    "noise_multiplier", "public_rows", "pure_epsilon", "within",
]  # fmt: skip

Keys = tuple[tuple[str, Expression], ...]
Rows = tuple[tuple[Any, ...], ...]
Noisy = dict[str, Any]
"""The noisy numbers of one part, as plain data."""
Columns = dict[str, NDArray[np.float64]]
"""A number for each group, by aggregate."""


@dataclass(frozen=True, eq=False)
class Frame:
    """What all parts of a release have in common: the rows, whose they are, and the groups they fall into.

    `only` lists the groups that are shown, public ones or those that were selected; without keys there is one group
    that holds everything. `listed` has the public values of some keys, where those of the others come from the data.
    `sets` are the groupings that are made of the groups, each by the places of the keys that it keeps.
    """

    relation: Relation
    unit: Unit
    keys: Keys = ()
    only: Rows | None = None
    most_groups: int = 1
    listed: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()

    @property
    def groups(self) -> int:
        """How many groups are shown."""
        return 1 if self.only is None else len(self.only)

    @property
    def split(self) -> bool:
        """Whether one unit's rows can lie in several groups."""
        return bool(self.keys)


class Part(Protocol):
    """One part: the aggregates it answers, its price, and the three things that are done with it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The aggregates that this part answers."""

    @property
    def event(self) -> Event: ...

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> Noisy:
        """The noisy numbers, as plain data: the only place where data meet randomness."""

    def answers(self, noisy: Noisy) -> Columns:
        """What the noisy numbers say, for each aggregate and group."""

    def errors(self, noisy: Noisy, confidence: float) -> Columns:
        """Half-widths of error bars, for each aggregate and group."""

    def assume(self, frame: Frame, guess: Guess) -> Noisy:
        """Noisy numbers as they might be, from public guesses alone: what a forecast is made of."""

    def notes(self, noisy: Noisy) -> list[str]:
        """What a reader should know, from public numbers alone."""

    def sql(self, frame: Frame) -> str:
        """The bounded SQL that runs in the engine."""


class Selection(Protocol):
    """What decides which groups are shown, before anything is asked of them."""

    @property
    def event(self) -> Event: ...

    def check(self) -> None:
        """Refuse what could not be selected, before it is paid for."""

    def select(self, frame: Frame, key: bytes, rng: Rng) -> Rows:
        """The groups that are shown."""

    def note(self) -> str: ...


def public_rows(relation: Relation, keys: Keys, only: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """Public keys in plain form, checked against the types of the key columns; plain ones pass at once."""
    rows = tuple(only)
    kinds = [type_of(expression, relation.schema) for _, expression in keys]
    if are_plain(rows, kinds):
        return rows
    for place, (name, expression) in enumerate(keys):
        undeclared = isinstance(expression, Column) and expression.name in relation.schema.loose
        if undeclared and any(isinstance(row[place], int | float) for row in rows if len(row) > place):
            raise InvalidParameter("tables.key_of_undeclared", parameter="keys", column=name, spent="nothing")
        for value in (row[place] for row in rows if len(row) > place and row[place] is not None):
            if not _can_be_key(given := lit(value).type, kinds[place]):
                shown = {"kind": str(kinds[place]), "given": str(given), "value": repr(value)[:60]}
                raise DataError("tables.key_of_other_type", column=name, spent="nothing", **shown)
    return in_utc(Question(relation, keys, only=rows).only or (), kinds)


def _can_be_key(given: Type, kind: Type) -> bool:
    """Whether a constant may be a key of a column; what clocks may be mixed is told where they meet."""
    return given is kind or (given.temporal and kind.temporal) or (given, kind) == (Type.INTEGER, Type.REAL)


def within(frame: Frame, relation: Relation) -> Relation:
    """The rows that can lie in a public group (each key column on its own: a superset, which is as private)."""
    if frame.only is None:
        return relation
    for place, (_, expression) in enumerate(frame.keys):
        values = [key[place] for key in frame.only]
        present = [value for value in dict.fromkeys(values) if value is not None]
        allowed = expression.is_in(*present) if present else expression.is_null()
        relation = relation.where(allowed | expression.is_null() if None in values and present else allowed)
    return relation


def list_values(
    relation: Relation, keys: Keys, listed: Sequence[tuple[str, Sequence[object]]]
) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Public values of some keys in plain form, checked against the types of their columns."""
    kinds = dict(keys)
    rows = {name: public_rows(relation, ((name, kinds[name]),), [(v,) for v in values]) for name, values in listed}
    return tuple((name, tuple(value for (value,) in found)) for name, found in rows.items())


def pure_epsilon(budget: Budget, share: float) -> float:
    """The epsilon of a pure part with this share of the budget.

    >>> pure_epsilon(Budget(epsilon=1), 0.5), round(pure_epsilon(Budget(rho=0.5), 1.0), 9)
    (0.5, 1.0)
    """
    if budget.epsilon is not None:
        return positive("epsilon of a part", round_down(Fraction(budget.epsilon) * Fraction(share)))
    return positive("epsilon of a part", math.sqrt(2 * _rho(budget) * share) * (1 - 2.0**-50))


def choice_epsilon(budget: Budget, share: float) -> float:
    """The epsilon of a choice of bounded range (an exponential mechanism) with this share of the budget.

    >>> choice_epsilon(Budget(epsilon=1), 0.5), round(choice_epsilon(Budget(rho=0.5), 1.0), 9)
    (0.5, 2.0)
    """
    if budget.epsilon is not None:
        return pure_epsilon(budget, share)
    return positive("epsilon of a part", math.sqrt(8 * _rho(budget) * share) * (1 - 2.0**-50))


def noise_multiplier(budget: Budget, share: float, *, gaussian: float) -> float:
    """The noise multiplier of a Gaussian part with this share, all Gaussian parts together having `gaussian`."""
    if budget.epsilon is None:
        return gaussian_multiplier(rho=round_down(Fraction(_rho(budget)) * Fraction(share)))
    together = _multiplier(pure_epsilon(budget, gaussian), budget.delta)
    return together * math.sqrt(max(1.0, gaussian / share)) * (1 + 2.0**-50)


def _rho(budget: Budget) -> float:
    if budget.rho is None:
        raise InvalidParameter("tables.budget_in_mu", parameter="mu")
    return budget.rho


@lru_cache(maxsize=256)
def _multiplier(epsilon: float, delta: float) -> float:
    return gaussian_multiplier(epsilon=epsilon, delta=delta)
