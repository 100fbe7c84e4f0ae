"""How often one unit may count in a stream: what the sensitivity of the whole released sequence is derived from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer
from mosha.core.unit import Neighbors, Person, Reading, Unit, Window
from mosha.exact.statistic import Sensitivity, Statistic

__all__ = ["Presence", "contribution", "presence_of"]


@dataclass(frozen=True)
class Presence:
    """At most `most` contributions of one unit count, each at a step of its own, two of them `apart` steps or more.

    `column` names the persons (None: one event is one unit). `within` is the window that `most` is for, None for the
    whole horizon. `limited` says that one contribution at every allowed step would be more than `most`. `sides` is 2
    where a unit is replaced: one leaves and one enters.
    """

    most: int
    apart: int
    sides: int
    column: str | None
    within: int | None = None
    limited: bool = False

    @property
    def remembers(self) -> bool:
        """Whether earlier steps of a person must be remembered to enforce this."""
        return self.column is not None and (self.apart > 1 or self.limited)


def presence_of(unit: Unit, horizon: int, apart: int = 1) -> Presence:
    """The declared limits of a unit; bounding enforces them on each person alone.

    >>> presence_of(Person("id", at_most=12), 365, 30)
    Presence(most=12, apart=30, sides=1, column='id', within=None, limited=True)
    >>> presence_of(Window("id", 48), 10**6).most
    48
    """
    apart = positive_integer("apart", apart)
    if not isinstance(unit, Reading | Person | Window):
        raise InvalidParameter("streams.unit_of_stream", parameter="unit")
    sides = 2 if unit.neighbors is Neighbors.REPLACE_ONE else 1
    if isinstance(unit, Reading):
        if apart != 1:
            raise InvalidParameter("streams.apart_of_reading", parameter="apart")
        return Presence(1, 1, sides, None)
    if isinstance(unit, Window):
        if apart != 1:
            raise InvalidParameter("streams.apart_in_window", parameter="apart")
        return Presence(unit.steps, 1, sides, unit.column, unit.steps)
    if unit.groups or unit.per_group or unit.total:
        raise InvalidParameter("streams.other_limits", parameter="unit")
    room = math.ceil(horizon / apart)
    most = min(unit.at_most or room, room)
    return Presence(most, apart, sides, unit.column, limited=most < room)


def contribution(statistic: Statistic) -> Sensitivity:
    """How far one contribution moves the data of one step: one row of one person, added or removed.

    >>> from mosha.mechanisms import ClippedSum
    >>> contribution(ClippedSum(between=(0, 30), grid=1)).l1
    30
    """
    return statistic.sensitivity(Reading())
