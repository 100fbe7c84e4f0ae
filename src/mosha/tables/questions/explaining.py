"""A release in five sentences: what is asked, who is bounded how, which noise, which bars, what price and who pays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.language import Phrase, make_note, say
from mosha.core.showing import write_number
from mosha.tables.parts.assumptions import Guess
from mosha.tables.parts.counted_keys import CountedKeys
from mosha.tables.parts.norm_choice import SHARE_FOR_BOUNDS
from mosha.tables.parts.sums import Sums
from mosha.tables.questions.release_plan import Released, ReleasePlan

if TYPE_CHECKING:
    from mosha.core.unit import Unit

__all__ = ["explain_release"]

MOST_BARS, MANY_ROWS = 6, 1e6
BOUNDS = ("tables.note_bound_declared", "tables.note_nothing_cut")
NAMES_FIRST = ("tables.note_extremes", "tables.note_laplace", "tables.note_gaussian")
"""Notes that begin with a name, which keeps its first letter."""


def explain_release(plan: ReleasePlan, title: str, unit: Unit, account: Account | None) -> str:
    """Five sentences for people, a line for each; nothing in them depends on rows."""
    assumed: Released = {"parts": []}
    with suppress(InvalidParameter):  # bounds and ranges that are to be bought have no bars yet
        assumed = plan.assume(Guess())
    notes = list(dict.fromkeys(_list_notes(plan, assumed)))
    bounds = [note for note in notes if note.code in BOUNDS]
    noise = [note for note in notes if note not in bounds]
    declared = " ".join(bounds) or say("tables.explain_unbounded")
    bound = declared if assumed["parts"] else _tell_bought(plan)
    room = say("tables.explain_no_account")
    if account is not None:
        room = say("tables.explain_account", name=account.name, room=account.describe_room())
    asked = say("tables.explain_asked", question=title, unit=unit.describe())
    price = say("tables.explain_price", budget=str(plan.budget), room=room)
    return "\n".join(line for line in (asked, bound, _join_notes(noise), _tell_bars(plan, assumed), price) if line)


def _list_notes(plan: ReleasePlan, assumed: Released) -> Iterator[Phrase]:
    """What readers of the answer will be told, as far as it is known before bounds are bought."""
    for part, noisy in zip(plan.parts, assumed["parts"], strict=False):
        with suppress(KeyError):
            yield from (note for note in part.notes(noisy) if isinstance(note, Phrase))
    if not assumed["parts"]:
        yield from (_tell_noise(part) for part in _list_sums(plan))
        shown = (part.note({}) for part in plan.parts if isinstance(part, CountedKeys))
        yield from (note for note in shown if isinstance(note, Phrase))
    if plan.selection is not None and isinstance(note := plan.selection.note(), Phrase):
        yield note


def _list_sums(plan: ReleasePlan) -> list[Sums]:
    parts = (part.sums if isinstance(part, CountedKeys) else part for part in plan.parts)
    return [part for part in parts if isinstance(part, Sums)]


def _tell_noise(part: Sums) -> Phrase:
    """Which noise there will be, before a bound is bought that decides."""
    names = ", ".join(part.names)
    return make_note("tables.explain_either_noise" if part.other else f"tables.note_{part.noise.kind}", names=names)


def _tell_bought(plan: ReleasePlan) -> str:
    """How far anybody will count, where that is bought."""
    if any(part.limits.automatic for part in _list_sums(plan)) or not _list_sums(plan):
        return say("tables.explain_bound_bought", share=f"{SHARE_FOR_BOUNDS:.0%}")
    return say("tables.explain_range_bought")


def _join_notes(notes: list[Phrase]) -> str:
    """Notes as one sentence.

    >>> from mosha.core.language import make_note
    >>> _join_notes([make_note("tables.note_laplace", names="n"), make_note("tables.note_top")])
    'Laplace noise for n; half of the budget chose which values are shown, the other half counted them.'
    """
    said = ""
    for note in notes:
        same = not said or note.code in NAMES_FIRST
        added = (note if same else note[:1].lower() + note[1:]).rstrip(".。")
        said = say("tables.explain_join", first=said, second=added) if said else str(added)
    return say("tables.explain_end", said=said) if said else ""


def _tell_bars(plan: ReleasePlan, assumed: Released) -> str:
    """How wide error bars are, as far as that is known."""
    bars = {name: float(np.max(bar)) for name, bar in plan.errors(assumed, 0.95).items() if len(bar)}
    known = [f"{name} ± {write_number(width, width)}" for name, width in bars.items() if math.isfinite(width)]
    if not known:
        return say("tables.explain_no_bars")
    other = plan.errors(plan.assume(Guess(rows=MANY_ROWS)), 0.95)
    narrower = any(float(np.max(bar)) < bars.get(name, 0) for name, bar in other.items() if len(bar))
    return say("tables.explain_bars_by_rows" if narrower else "tables.explain_bars", bars=known[:MOST_BARS])
