"""A part of a release: something exact that is asked of the engine, its noise, its price, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mosha.connect.expression import Expression
from mosha.connect.relation import Relation
from mosha.core.event import Event
from mosha.core.randomness import Rng
from mosha.core.unit import Unit

__all__ = ["Frame", "Part"]

Keys = tuple[tuple[str, Expression], ...]
Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, eq=False)
class Frame:
    """What all parts of a release have in common: the rows, whose they are, and the groups they fall into.

    `only` lists the groups that are shown, public ones or those that were selected; without keys there is one group
    that holds everything.
    """

    relation: Relation
    unit: Unit
    keys: Keys = ()
    only: Rows | None = None
    most_groups: int = 1

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

    def ask(self, frame: Frame, key: bytes, rng: Rng) -> dict[str, Any]:
        """The noisy numbers, as plain data: the only place where data meet randomness."""

    def answers(self, noisy: Mapping[str, Any]) -> dict[str, Any]:
        """What the noisy numbers say, for each aggregate and group."""

    def errors(self, noisy: Mapping[str, Any], confidence: float) -> dict[str, Any]:
        """Half-widths of error bars, for each aggregate and group."""

    def assumed(self, frame: Frame, rows: float | None) -> dict[str, Any]:
        """Noisy numbers as they might be, from public guesses alone: what a forecast is made of."""

    def notes(self, noisy: Mapping[str, Any]) -> list[str]:
        """What a reader should know, from public numbers alone."""

    def sql(self, frame: Frame) -> str:
        """The bounded SQL that runs in the engine."""
