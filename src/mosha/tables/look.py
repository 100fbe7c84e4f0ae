"""The look before payment: the very steps that will run, on engines that analyse statements and read no row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mosha.connect.asking import look_only
from mosha.core.errors import InvalidParameter
from mosha.noise import secure
from mosha.tables.part import Frame, Part, Selection

__all__ = ["look"]


def look(frame: Frame, selection: Selection | None, parts: Sequence[Part]) -> None:
    """Build every statement of a release and let the engine analyse it; whatever would fail without data fails here.

    It is the code of the release itself, answered as by an empty table: bounds and ranges that are to be bought, and
    groups that are to be selected, stand for themselves with other numbers than they will have.
    """
    rng = secure()
    key = rng.bytes(32)
    try:
        with look_only():
            if selection is not None:
                found = selection.select(frame, key, rng)
                frame = replace(frame, only=found or ((None,) * len(frame.keys),))
            for part in parts:
                part.ask(frame, key, rng)
    except RecursionError:
        pass
    else:
        return
    raise InvalidParameter(
        "this question is nested too deeply: it has too many conditions, columns or joins on top of each other. "
        "Compute fewer at a time, or join conditions in one list (is_in). No data was read. Nothing was spent."
    )
