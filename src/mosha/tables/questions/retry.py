"""A release under a key: what a retry finds again, and how it is told from a first answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mosha.core.account import Run
from mosha.core.errors import Interrupted, SourceUnavailable
from mosha.core.measurement import Measurement
from mosha.core.randomness import Rng
from mosha.core.release import Release

__all__ = ["EARLIER", "notice_data", "take_answer"]

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
