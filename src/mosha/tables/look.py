"""The look before payment: the very steps that will run, on engines that analyse statements and read no row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mosha.connect.engines.asking import look_only
from mosha.core.errors import InvalidParameter
from mosha.noise import secure
from mosha.tables.parts.counted_keys import CountedKeys
from mosha.tables.parts.part import Frame, Part, Selection
from mosha.tables.parts.sums import Sums

__all__ = ["look"]

DEEPER = 64  # calls that a paid step may have around it, more than the look


def look(frame: Frame, selection: Selection | None, parts: Sequence[Part]) -> None:
    """Build every statement of a release and let the engine analyse it; whatever would fail without data fails here.

    It is the code of the release itself, answered as by an empty table: groups that are to be selected stand for
    themselves with other values than they will have. Bounds and ranges that are to be bought are tried at their least
    and at their largest. Python allows a number
    of calls inside each other; the look goes ahead with fewer of them left than the release will have.
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
    key = rng.bytes(32)
    rest, asked = list(parts), frame
    nobody = ((None,) * len(frame.keys),)
    if selection is not None:
        frame = replace(frame, only=selection.select(frame, key, rng) or nobody)
    elif isinstance(first := rest[0], CountedKeys):
        frame, rest = replace(frame, only=first.select(frame, key, rng)[0] or nobody), rest[1:]
    for part in rest:
        part.ask(frame, key, rng)
    for part in parts:
        sums = part.sums if isinstance(part, CountedKeys) else part
        if isinstance(sums, Sums) and (sums.choice is not None or sums.ranges is not None):
            sums.rehearse(asked if isinstance(part, CountedKeys) else frame, key)


def _call_deeper(calls: int, work: Callable[[], None]) -> None:
    """Do something inside of so many calls."""
    if calls:
        _call_deeper(calls - 1, work)
    else:
        work()
