"""A part of a release: something exact that is asked of the engine, its noise, its price, and what is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.connect.language.expression import Expression
from mosha.connect.plan.relation import Relation
from mosha.core.event import Event
from mosha.core.randomness import Rng
from mosha.core.unit import Unit

if TYPE_CHECKING:
    from mosha.tables.parts.assumptions import Guess

__all__ = ["Columns", "Frame", "Keys", "Noisy", "Part", "Rows", "Selection", "within"]

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
    """

    relation: Relation
    unit: Unit
    keys: Keys = ()
    only: Rows | None = None
    most_groups: int = 1
    listed: tuple[tuple[str, tuple[Any, ...]], ...] = ()

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
