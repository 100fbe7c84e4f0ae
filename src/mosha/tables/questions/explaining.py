"""A release in a few sentences: who is hidden, how far anybody counts, which noise and bars, what price, who pays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.showing import write_number
from mosha.tables.parts.assumptions import Guess
from mosha.tables.questions.release_plan import Released, ReleasePlan

if TYPE_CHECKING:
    from mosha.core.unit import Unit

__all__ = ["explain_release"]

MOST_BARS, MANY_ROWS = 6, 1e6


def _list_notes(plan: ReleasePlan, assumed: Released) -> Iterator[str]:
    """What readers of the answer will be told, as far as it is known before bounds are bought."""
    for part, noisy in zip(plan.parts, assumed["parts"], strict=False):
        with suppress(KeyError):
            yield from part.notes(noisy)


def explain_release(plan: ReleasePlan, title: str, unit: Unit, account: Account | None) -> str:
    """Sentences for people; nothing in them depends on rows."""
    assumed: Released = {"parts": []}
    with suppress(InvalidParameter):  # bounds and ranges that are to be bought have no bars yet
        assumed = plan.assume(Guess())
    notes = dict.fromkeys(_list_notes(plan, assumed))
    sentences = [say("tables.explain_asked", question=title, unit=unit.describe()), *notes]
    if plan.selection is not None:
        sentences.append(plan.selection.note())
    bars = {name: float(np.max(bar)) for name, bar in plan.errors(assumed, 0.95).items() if len(bar)}
    known = [f"{name} ± {write_number(width, width)}" for name, width in bars.items() if math.isfinite(width)]
    if known:
        sentences.append(say("tables.explain_bars", bars=known[:MOST_BARS]))
        other = plan.errors(plan.assume(Guess(rows=MANY_ROWS)), 0.95)
        if any(float(np.max(bar)) < bars.get(name, 0) for name, bar in other.items() if len(bar)):
            sentences.append(say("tables.explain_rows"))
    sentences.append(say("tables.explain_price", budget=str(plan.budget)))
    room = "" if account is None else account.describe_room()
    if account is None:
        sentences.append(say("tables.explain_no_account"))
    else:
        sentences.append(say("tables.explain_account", name=account.name, room=room))
    return "\n".join(sentences)
