"""Several parts as one measurement: one price, one payment, one key, and a step for each part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Event
from mosha.core.measurement import Measurement, Rng, StatePolicy
from mosha.reports.parts import ReadyPart

__all__ = ["PartAnswer", "join_parts"]


class PartAnswer(TypedDict):
    """What a step answers: which part it was, and its value."""

    part: int
    value: Any


def join_parts(parts: Sequence[ReadyPart], *, name: str, question: str, delta: float) -> Measurement:
    """All parts as one measurement; `ask` is the place of the part that a step is for.

    There is a step for each part, and as many again for parts whose step broke.

    Guarantee:
        All answers together cost the sum of the parts' events (`together.md`).

    Args:
        parts: with their budgets.
        name: in the ledger.
        question: a hash of all that is asked, so that a changed report is not taken for this one.
        delta: at which the whole may be priced as one piece; 0 for none.
    """
    events = [part.measurement.event for part in parts]

    def step(state: frozenset[int], data: object, ask: int, rng: Rng) -> tuple[PartAnswer, frozenset[int]]:
        del data
        if isinstance(ask, bool) or not isinstance(ask, int) or not 0 <= ask < len(parts) or ask in state:
            raise InvalidParameter("reports.part_answered", parameter="ask")
        chosen = parts[ask]
        value, _ = chosen.measurement.step(chosen.measurement.init(), chosen.data, None, rng)
        return {"part": ask, "value": value}, state | {ask}

    def resume(state: frozenset[int], answer: PartAnswer) -> frozenset[int]:
        return state | {answer["part"]}

    return Measurement(
        unit=parts[0].measurement.unit,
        event=sum(events, start=NOTHING),
        step=step,
        init=frozenset,
        horizon=_find_horizon(events),
        state=StatePolicy(resume=resume),
        name=name,
        question=question,
        delta=delta or None,
    )


def _find_horizon(events: Sequence[Event]) -> int:
    """Two steps for each part, or so many more that nothing is ever handed back (`together.md`)."""
    whole, steps = sum(events, start=NOTHING), 2 * len(events)
    while whole.per_step(steps) is not None:
        steps += 1
    return steps
