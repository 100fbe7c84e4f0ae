"""Several parts as one measurement: one price, one payment, one key, and a step for each part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Event
from mosha.core.measurement import Measurement, StatePolicy
from mosha.core.randomness import Rng
from mosha.reports.parts import ReadyPart

__all__ = ["PartAnswer", "join_parts"]


class PartAnswer(TypedDict):
    """What a step answers: which part it was, and its value."""

    part: int
    value: Any


def join_parts(parts: Sequence[ReadyPart], *, name: str, question: str, delta: float) -> Measurement:
    """All parts as one measurement; `ask` is the place of the part that a step is for.

    Guarantee:
        All answers together cost the sum of the parts' events (`together.md`).

    Args:
        parts: with their budgets.
        name: in the ledger.
        question: a hash of all that is asked, so that a changed report is not taken for this one.
        delta: at which the whole may be priced as one piece; 0 for none.
    """
    events = [part.measurement.event for part in parts]

    def step(state: int, data: object, ask: int, rng: Rng) -> tuple[PartAnswer, int]:
        del data
        if isinstance(ask, bool) or not isinstance(ask, int) or not state < ask < len(parts):
            raise InvalidParameter("reports.part_out_of_order", parameter="ask")
        chosen = parts[ask]
        value, _ = chosen.measurement.step(chosen.measurement.init(), chosen.data, None, rng)
        return {"part": ask, "value": value}, ask

    def resume(state: int, answer: PartAnswer) -> int:
        return max(state, answer["part"])

    return Measurement(
        unit=parts[0].measurement.unit,
        event=sum(events, start=NOTHING),
        step=step,
        init=lambda: -1,
        horizon=_find_horizon(events),
        state=StatePolicy(resume=resume),
        name=name,
        question=question,
        delta=delta or None,
    )


def _find_horizon(events: Sequence[Event]) -> int:
    """How many steps: so many that nothing is handed back which was spent (`together.md`)."""
    whole, steps = sum(events, start=NOTHING), len(events)
    if all(event == events[0] for event in events):
        return steps
    while whole.per_step(steps) is not None:
        steps += 1
    return steps
