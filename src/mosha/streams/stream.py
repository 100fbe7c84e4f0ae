"""A stream as a measurement: what `account.open` takes, and what `describe` says about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, SourceUnavailable
from mosha.core.fingerprint import fingerprint
from mosha.core.language import say
from mosha.core.measurement import Measurement, Rng, StatePolicy
from mosha.core.showing import MISSING, Card, write_number
from mosha.core.unit import Unit
from mosha.mechanisms.noisy_statistic import title
from mosha.streams.batches import Batches, steps_in
from mosha.streams.bounding import exact_step, exact_steps
from mosha.streams.noise.exact_toeplitz import LiftedToeplitz
from mosha.streams.noise.exact_toeplitz_blocks import SPAN
from mosha.streams.noise.tape import BLOCK, Tape
from mosha.streams.plan import Plan, StreamState, to_data_unit
from mosha.streams.promise import describe

__all__ = ["Stream", "stream_of"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Stream(Measurement):
    """A measurement of many steps that also knows its `plan`, the `alternatives` and the `reason` for this one.

    `options` are what it was made with, `replan` makes it again for another budget, and `error_from` gives the error
    bars of what was answered last from the state after it.

    >>> import mosha
    >>> stream = mosha.streams.counter(unit=mosha.Reading(), horizon=100, epsilon=1)
    >>> stream.horizon, stream.plan.name
    (100, '15-ary tree with negative digits, 2 levels')
    """

    plan: Plan
    alternatives: tuple[tuple[str, float], ...] = ()
    reason: str = ""
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    replan: Callable[..., Stream] | None = field(default=None, repr=False, compare=False)
    error_from: Callable[[StreamState], Callable[[float, Any], Any] | None] | None = field(
        default=None, repr=False, compare=False
    )

    def __repr__(self) -> str:
        """Public words alone."""
        return f"Stream({self.name}, {self.horizon:,} steps, unit={self.unit.summarize()})"

    def make_card(self) -> Card:
        """What is streamed, for how long, who is hidden, and how wide its error bars are."""
        facts = [
            (say("core.shown_hidden"), self.unit.describe()),
            (say("streams.shown_horizon"), f"{self.horizon:,}"),
            (say("streams.shown_bar"), f"± {write_number(width, width)}" if (width := self._find_width()) else MISSING),
        ]
        return Card(title=str(self.name), facts=facts, notes=[self.reason] if self.reason else [])

    def _find_width(self) -> float | None:
        """The widest error bar of 95%, where there is one."""
        try:
            return float(np.max(self.forecast(0.95)))
        except InvalidParameter:
            return None

    def deviation(self, step: int) -> float:
        """The standard deviation of what is published at a step (1 is the first), in the unit of the data."""
        return self.plan.deviation(step)

    def error_at(self, step: int, confidence: float = 0.95) -> float:
        """Half the width of the error bar at `step` and `confidence`; `forecast` gives the widest one."""
        if self.error is None:  # that of a mean is known with the answer
            raise InvalidParameter("core.no_forecast", measurement=self.name)
        return self.plan.width_at(confidence, step)

    def find_error(self, state: StreamState) -> Callable[[float, Any], Any] | None:
        """The error bar of the step that was answered last; of several steps that of each."""
        return None if self.error_from is None else self.error_from(state)

    def map(self, function: Callable[[Any], Any]) -> Measurement:
        """The same stream with its answers passed through `function`; they have no error bars."""
        return super(Stream, replace(self, error_from=None)).map(function)

    def describe(self) -> str:
        """What is promised, in a sentence or two, how it is done, and what the other unit would cost."""
        return describe(self.plan, self.unit, options=self.options, replan=self.replan)


def new_tape(plan: Plan, source: Any) -> Tape:
    """The tape of a plan, in blocks of whole spans: short streams draw no more than they need, wide ones less."""
    need, room = 2 * (plan.horizon // SPAN + 1) * SPAN, max(1, BLOCK // plan.width // SPAN) * SPAN
    return Tape(plan.law, plan.width, source, min(room, need))


def take_step(plan: Plan, state: StreamState, data: object) -> tuple[Any, StreamState]:
    """One step: bound, add, remember. `state.tape` must be there."""
    exact, memory = exact_step(plan.statistic, plan.presence, data, state.time, state.memory)
    increment, inner = plan.mechanism.step(state.inner, _give_steps(plan, exact), state.tape)
    value, readout = plan.readout.step(state.readout, increment)
    return to_data_unit(plan, value), StreamState(state.time + 1, inner, readout, memory, state.tape)


def _give_steps(plan: Plan, exact: NDArray[np.int64]) -> Any:
    """A number for one series, else an array: of 64 bits where the mechanism knows when they do not suffice."""
    if plan.width == 1:
        return int(exact[0])
    return exact if isinstance(plan.mechanism, LiftedToeplitz) else exact.astype(object)


def take_steps(plan: Plan, state: StreamState, batches: Batches) -> tuple[Any, StreamState]:
    """Several steps: the numbers of single ones, in an array with a row for each."""
    exact, memory = exact_steps(plan.statistic, plan.presence, batches, state.time, state.memory)
    inner, readout, end = state.inner, state.readout, state.time + len(exact)  # what is answered is what counts
    if end > plan.horizon:
        raise SourceUnavailable(
            "streams.too_many_steps", given=len(exact), left=plan.horizon - state.time, horizon=plan.horizon
        )
    if plan.width == 1 and isinstance(plan.mechanism, LiftedToeplitz):
        increments, inner = plan.mechanism.step_many(inner, exact[:, 0], state.tape)
        values, readout = plan.readout.step_many(readout, increments)
        return to_data_unit(plan, values), StreamState(end, inner, readout, memory, state.tape)
    found = []
    for row in exact:
        increment, inner = plan.mechanism.step(inner, _give_steps(plan, row), state.tape)
        value, readout = plan.readout.step(readout, increment)
        found.append(to_data_unit(plan, value))
    return np.array(found), StreamState(end, inner, readout, memory, state.tape)


def begin(plan: Plan) -> StreamState:
    return StreamState(0, plan.mechanism.start(plan.width), plan.readout.start(), {})


def find_widths(plan: Plan, last: int) -> Callable[[float, Any], Any]:
    """The error bar of a step, the `last` one that was answered, or of each where several were answered at once."""
    one = plan.statistic.labels is None

    def error(confidence: float, answer: Any) -> Any:
        shape = np.shape(answer)
        if len(shape) == (0 if one else 1):
            width = plan.width_at(confidence, last)
            return width if one else np.full(plan.width, width)
        widths = np.array([plan.width_at(confidence, step) for step in range(last - shape[0] + 1, last + 1)])
        return widths if one else np.repeat(widths[:, None], plan.width, axis=1)

    return error


def stream_of(plan: Plan, unit: Unit, *, name: str, **told: Any) -> Stream:
    """The measurement that runs a plan."""

    def step(state: StreamState, data: object, ask: object, rng: Rng) -> tuple[Any, StreamState]:
        del ask
        if state.tape is None:
            state = StreamState(state.time, state.inner, state.readout, state.memory, new_tape(plan, lambda _: rng))
        if type(data) is Batches:
            return take_steps(plan, state, data)
        return take_step(plan, state, data)

    def error(confidence: float, answer: object) -> Any:
        del answer
        width = plan.width_at(confidence)
        return width if plan.statistic.labels is None else np.full(plan.width, width)

    return Stream(
        unit=unit,
        event=plan.event,
        step=step,
        init=lambda: begin(plan),
        horizon=plan.horizon,
        state=StatePolicy(passed=lambda state: state.time, covers=steps_in),
        error=error,
        error_from=lambda state: find_widths(plan, state.time),
        name=f"{name}({title(plan.statistic)})",
        question=fingerprint(plan.statistic, unit, name, plan.name, plan.readout, plan.horizon, plan.presence),
        plan=plan,
        **told,
    )
