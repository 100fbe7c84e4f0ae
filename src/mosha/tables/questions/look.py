"""The look before payment: the very steps that will run, on engines that analyze statements and read no row.

What a look finds follows from the question, the budget, the tables as the engine sees them, and how many calls Python
has left. Where none of them has changed since a look of this process, the statements that will run were analysed then,
and no second look is made.

Under a key a retry finds the earlier release again, and is told from a first answer.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

from mosha.connect.engines.local_source import LocalSource
from mosha.connect.engines.source import look_only
from mosha.connect.language.checking import type_of
from mosha.connect.language.schema import Type
from mosha.connect.plan.source import Source
from mosha.connect.sql.statement import FEW
from mosha.core.account import Run
from mosha.core.budget import Budget
from mosha.core.errors import Interrupted, InvalidParameter, SourceUnavailable
from mosha.core.fingerprint import fingerprint_plan
from mosha.core.measurement import Measurement, Rng
from mosha.core.release import Release
from mosha.noise import secure
from mosha.tables.parts.counted_keys import CountedKeys
from mosha.tables.parts.distinct_values import DistinctPart
from mosha.tables.parts.part import Frame, Part, Rows, Selection
from mosha.tables.parts.quantiles import QuantilesPart
from mosha.tables.parts.sums import Sums

__all__ = ["EARLIER", "Looked", "describe_look", "is_known", "look", "notice_data", "remember", "take_answer"]

DEEPER = 64  # calls that a paid step may have around it, more than the look
LEAST_KEY, LARGEST_KEY = bytes(32), b"\xff" * 32


def look(frame: Frame, selection: Selection | None, parts: Sequence[Part]) -> None:
    """Build every statement of a release and let the engine analyze it; whatever would fail without data fails here.

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


MOST_KEPT = 256
"""So many questions of one table are remembered."""

MOST_KEYS = 64
"""Questions with more listed groups are looked at every time: to tell them apart would take as long."""


@dataclass(frozen=True)
class Looked:
    """What a look depends on.

    Fields:
        question: a hash of all that is asked, and of the budget.
        tables: the tables that are read, in their order; none of them is kept alive.
        forms: what the engine knows of each.
        room: how many calls Python had left, or more.
    """

    question: str
    tables: tuple[ReferenceType[Source], ...]
    forms: tuple[str, ...]
    room: int

    def covers(self, other: Looked) -> bool:
        """Whether another look would find what this one found."""
        same = [mine() is theirs() is not None for mine, theirs in zip(self.tables, other.tables, strict=False)]
        return (
            len(self.tables) == len(other.tables)
            and all(same)
            and self.forms == other.forms
            and self.room <= other.room
        )


_known: WeakKeyDictionary[Source, dict[str, Looked]] = WeakKeyDictionary()


def describe_look(frame: Frame, budget: Budget, asked: str) -> Looked | None:
    """What a look at a question would depend on; None where that cannot be told, or not cheaply.

    Servers are asked every time: their tables change without our notice.
    """
    if frame.groups > MOST_KEYS:
        return None
    forms = [source.read_form() if isinstance(source, LocalSource) else None for source in frame.relation.sources]
    if None in forms:
        return None
    tables = tuple(ref(source) for source in frame.relation.sources)
    return Looked(fingerprint_plan(asked, repr(budget)), tables, tuple(map(str, forms)), _count_calls_left())


def _count_calls_left() -> int:
    calls, frame = 0, inspect.currentframe()
    while frame is not None:
        calls, frame = calls + 1, frame.f_back
    return sys.getrecursionlimit() - calls


def is_known(looked: Looked | None) -> bool:
    """Whether such a look was made, with no more room than there is now."""
    if looked is None or (table := looked.tables[0]()) is None:
        return False
    earlier = _known.get(table, {}).get(looked.question)
    return earlier is not None and earlier.covers(looked)


def remember(looked: Looked | None) -> None:
    """Note that a look was made and found nothing amiss."""
    if looked is None or (table := looked.tables[0]()) is None:
        return
    kept = _known.setdefault(table, {})
    kept.pop(looked.question, None)
    kept[looked.question] = looked
    for oldest in list(kept)[:-MOST_KEPT]:
        kept.pop(oldest, None)


EARLIER = "tables.note_earlier"


def take_answer(run: Run, key: str | None) -> Release:
    """The release; where it was lost on its way, the error has the key under which the payment waits (`retry_key`)."""
    try:
        return run.step(None)
    except (SourceUnavailable, Interrupted) as problem:
        if key is not None:
            problem.spent, problem.retry_key = "waits", key
        raise


def notice_data(measurement: Measurement) -> tuple[Measurement, list[bool]]:
    """The same measurement, and a list that stays empty where the answer was kept and no data were met."""
    met: list[bool] = []

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[Any, Any]:
        met.append(True)
        return measurement.step(state, data, ask, rng)

    return replace(measurement, step=step), met
