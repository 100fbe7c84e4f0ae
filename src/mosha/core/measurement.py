"""A measurement: a price tag and a pair of pure functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.number import positive_integer, strict_probability
from mosha.core.randomness import Rng
from mosha.core.unit import Unit

__all__ = ["Measurement"]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What may be asked of private data, with the price of the whole run.

    Guarantee:
        For every neighbouring pair of data sequences under `unit`, and for asks chosen with knowledge of all
        earlier answers, the joint distribution of `horizon` answers is no easier to tell apart than `event` says.
        Where `event` is a repetition, e * horizon, the first k answers are no easier to tell apart than e * k, so
        that an account may hand back steps that were never taken.
        The factory that makes a measurement proves this beside its code.

    Fields:
        unit: whose presence is hidden.
        event: what all `horizon` steps cost together, known before any data is read.
        step: (state, data, ask, rng) -> (answer, next state), pure; `ask` is public, `rng` the only randomness.
        init: the state before the first step.
        horizon: how many steps `event` pays for.
        resume: (state, answer) -> the state after a step that an earlier process answered, where the state can be had
            from the answers (and from what the measurement keeps elsewhere): a run that is opened again under its key
            goes on after the last answer. None where the state ends with the process.
        replays: a step whose answer was written down is answered so for ever, and one that was not has left nothing, so
            that it may be started as often as it takes.
        passed: (state) -> how many steps lie behind it, where one answer may cover several; None where each is for one.
        covers: (data) -> how many steps an answer about such data covers: a public number, had without reading them.
        error: (confidence, answer) -> half-width of the error bar of each part of the answer; `answer` is None
            for a forecast. A function of public things only.
        draw: (answer, error at 95%) -> a picture.
        name: what to call it in a ledger and in error messages.
        question: a public fingerprint of what is asked, where the event alone does not tell it from other questions: a
            payment that is found again by its key must have been made for the same one.
        delta: the delta that it was asked for with, where that was an epsilon and a delta and all parameters were fixed
            by them: then an account may charge the whole as one piece, `Plan(event, delta)`.
    """

    unit: Unit
    event: Event
    step: Callable[[Any, Any, Any, Rng], tuple[Any, Any]]
    init: Callable[[], Any] = lambda: None
    horizon: int = 1
    resume: Callable[[Any, Any], Any] | None = None
    replays: bool = False
    passed: Callable[[Any], int] | None = None
    covers: Callable[[Any], int] | None = None
    error: Callable[[float, Any], Any] | None = None
    draw: Callable[[Any, Any], Any] | None = None
    name: str = "measurement"
    question: str = ""
    delta: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", positive_integer("horizon", self.horizon))
        if not isinstance(self.unit, Unit):
            raise InvalidParameter("core.measurement_without_unit", parameter="unit")
        if not isinstance(self.event, Event):
            raise InvalidParameter("core.measurement_without_event", parameter="event")
        if self.delta is not None:
            object.__setattr__(self, "delta", strict_probability("delta", self.delta))

    def forecast(self, confidence: float = 0.95) -> Any:
        """The half-width of the error bar that an answer will have, before anything is spent."""
        if self.error is None:
            raise InvalidParameter("core.no_forecast", measurement=self.name)
        return self.error(strict_probability("confidence", confidence), None)

    def map(self, function: Callable[[Any], Any]) -> Measurement:
        """The same measurement with post-processed answers: the price stays."""

        def step(state: Any, data: Any, ask: Any, rng: Rng) -> tuple[Any, Any]:
            answer, state = self.step(state, data, ask, rng)
            return function(answer), state

        return replace(self, step=step, resume=None, error=None, draw=None)
