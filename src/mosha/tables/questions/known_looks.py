"""Looks that need not be made again: the same question, for the same price, about tables whose columns are the same.

What a look finds follows from the question, the budget, the tables as the engine sees them, and how many calls Python
has left. Where none of them has changed since a look of this process, the statements that will run were analysed then.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from weakref import ReferenceType, WeakKeyDictionary, ref

from mosha.connect.engines.local_source import LocalSource
from mosha.connect.plan.source import Source
from mosha.core.budget import Budget
from mosha.core.fingerprint import fingerprint_plan
from mosha.tables.parts.part import Frame

__all__ = ["Looked", "describe_look", "is_known", "remember"]

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
