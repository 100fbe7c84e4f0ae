"""The look before payment: the very steps that will run, on engines that analyse statements and read no row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mosha.connect.engines.asking import look_only
from mosha.connect.language.checking import type_of
from mosha.connect.language.schema import Type
from mosha.connect.sql.listed_groups import FEW
from mosha.core.errors import InvalidParameter
from mosha.noise import secure
from mosha.tables.parts.counted_keys import CountedKeys
from mosha.tables.parts.distinct_values import DistinctPart
from mosha.tables.parts.part import Frame, Part, Rows, Selection
from mosha.tables.parts.quantiles import QuantilesPart
from mosha.tables.parts.sums import Sums

__all__ = ["look"]

DEEPER = 64  # calls that a paid step may have around it, more than the look
LEAST_KEY, LARGEST_KEY = bytes(32), b"\xff" * 32


def look(frame: Frame, selection: Selection | None, parts: Sequence[Part]) -> None:
    """Build every statement of a release and let the engine analyse it; whatever would fail without data fails here.

    It is the code of the release itself, answered as by an empty table: groups that are to be selected stand for
    themselves with other values than they will have. Whatever a statement will hold that is not known yet (bounds and
    ranges that are to be bought, the keys by which rows are picked) is tried at its least and at its largest. Python
    allows a number of calls inside each other; the look goes ahead with fewer of them left than the release will have.
    """
    try:
        with look_only():
            _call_deeper(DEEPER, lambda: _ask(frame, selection, parts))
    except RecursionError:
        pass
    else:
        return
    raise InvalidParameter("tables.nested_too_deeply", spent="nothing")


def _ask(frame: Frame, selection: Selection | None, parts: Sequence[Part]) -> None:
    rng = secure()
    found: list[Rows] = []
    rest = list(parts)
    if selection is not None:
        for key in (LEAST_KEY, LARGEST_KEY):
            selection.select(frame, key, rng)
        found = _stand_in(frame)
    elif isinstance(first := rest[0], CountedKeys):
        rest = rest[1:]
        first.select(frame, LEAST_KEY, rng)
        first.sums.rehearse(frame, LARGEST_KEY, rng)
        found = _stand_in(frame)
    frames = [replace(frame, only=only) for only in found] or [frame]
    for part in rest:
        for shown in frames:
            part.ask(shown, LEAST_KEY, rng)
    for part in rest:
        if isinstance(part, Sums | QuantilesPart | DistinctPart):
            part.rehearse(frames[0], LARGEST_KEY, rng)


def _stand_in(frame: Frame) -> list[Rows]:
    """Groups such as may be found: one with a name and the one without, each alone, and more than SQL lists."""
    kinds = [type_of(expression, frame.relation.schema) for _, expression in frame.keys]
    listed = dict(frame.listed)
    first = tuple(
        listed[name][0] if name in listed else _name(kind, 0) for (name, _), kind in zip(frame.keys, kinds, strict=True)
    )
    nobody = (None,) * len(kinds)
    many = {tuple(_name(kind, place) for kind in kinds) for place in range(FEW + 1)}
    return [(first,), (nobody,), (first, nobody), tuple(sorted(many))]


def _name(kind: Type, place: int) -> Any:
    """A value of a key."""
    if kind.temporal:
        moment = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=place)
        if kind is Type.DATE:
            return moment.date()
        return moment if kind is Type.INSTANT else moment.replace(tzinfo=None)  # else a wall clock
    return {Type.TEXT: str(place), Type.INTEGER: place, Type.REAL: place + 0.5, Type.BOOLEAN: place % 2 == 0}[kind]


def _call_deeper(calls: int, work: Callable[[], None]) -> None:
    """Do something inside of so many calls."""
    if calls:
        _call_deeper(calls - 1, work)
    else:
        work()
