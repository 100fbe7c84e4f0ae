"""A measurement: a price tag and a pair of pure functions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast, runtime_checkable

from mosha.core.errors import InvalidParameter, MoshaError
from mosha.core.event import Event
from mosha.core.language import say
from mosha.core.number import positive_integer, strict_probability
from mosha.core.showing import Card, Shown, find_widest, write_number
from mosha.core.unit import Unit

__all__ = ["Measurement", "Rng", "StatePolicy"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Data = TypeVar("Data", default=Any)
    Ask = TypeVar("Ask", default=Any)
    State = TypeVar("State", default=Any)
    Answer = TypeVar("Answer", default=Any)
    Mapped = TypeVar("Mapped")
else:  # a parameter that is left out is anything; Python 3.13 can say so itself
    from typing import TypeVar

    Data, Ask, State, Answer, Mapped = (TypeVar(name) for name in ("Data", "Ask", "State", "Answer", "Mapped"))


@runtime_checkable
class Rng(Protocol):
    """A source of uniform random bytes.

    `secure` is true only for a generator whose output nobody outside can predict;
    an account refuses every other one.
    """

    @property
    def secure(self) -> bool: ...

    def bytes(self, n: int, /) -> bytes: ...


@dataclass(frozen=True, kw_only=True)
class StatePolicy(Generic[Data, State, Answer]):
    """What becomes of the state of a run between its steps and between processes.

    Fields:
        resume: (state, answer) -> the state after a step that an earlier process answered, if the state can be found
            from the answers (and from what the measurement keeps elsewhere): a run that is opened again under its key
            goes on after the last answer. None if the state ends with the process.
        replays: a step whose answer was written down is always answered so, and one that was not has left nothing, so
            it may be started as often as it takes.
        passed: (state) -> how many steps lie behind it, if one answer may cover several; None if each covers one.
        covers: (data) -> how many steps an answer about such data covers: a public number, known without reading them.
    """

    resume: Callable[[State, Answer], State] | None = None
    replays: bool = False
    passed: Callable[[State], int] | None = None
    covers: Callable[[Data], int] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Measurement(Shown, Generic[Data, Ask, State, Answer]):
    """What may be asked of private data, with the price of the whole run.

    Guarantee:
        For every neighboring pair of data sequences under `unit`, and for asks chosen with knowledge of all
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
        state: what becomes of the state between steps and between processes.
        error: (confidence, answer) -> half-width of the error bar of each part of the answer; `answer` is None
            for a forecast. A function of public things only.
        draw: (answer, error at 95%) -> a picture.
        name: what to call it in a ledger and in error messages.
        question: a public fingerprint of what is asked, where the event alone does not tell it from other questions: a
            payment that is found again by its key must have been made for the same one.
        delta: the delta that it was asked for with, where that was an epsilon and a delta and all parameters were fixed
            by them: then an account may charge the whole as one piece, `Plan(event, delta)`.

    >>> import mosha
    >>> from mosha.mechanisms import Count, laplace
    >>> measurement = laplace(Count(), unit=mosha.Row(), epsilon=0.5)
    >>> measurement.event, measurement.horizon
    (DiscreteLaplace(noise_multiplier=2.0, sensitivity=1), 1)
    """

    unit: Unit
    event: Event
    step: Callable[[State, Data, Ask, Rng], tuple[Answer, State]]
    init: Callable[[], State] = lambda: None  # type: ignore[assignment, return-value]
    horizon: int = 1
    state: StatePolicy[Data, State, Answer] = StatePolicy()
    error: Callable[[float, Answer | None], Any] | None = None
    draw: Callable[[Answer, Any], Any] | None = None
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

    def __repr__(self) -> str:
        """What it is called, whom it hides, what it costs and how long it is; functions are left out."""
        steps = "" if self.horizon == 1 else f", horizon={self.horizon}"
        return f"{type(self).__name__}({self.name}, unit={self.unit.summarize()}, event={self.event}{steps})"

    def make_card(self) -> Card:
        """What it is called, whom it hides, what is charged, and how wide its error bar will be."""
        facts = [
            (say("core.shown_hidden"), self.unit.describe()),
            (say("core.shown_charged"), str(self.event)),
            *([(say("core.shown_steps"), f"{self.horizon:,}")] if self.horizon > 1 else []),
        ]
        with suppress(MoshaError):  # one that cannot be said before there is an answer
            widest = find_widest(self.forecast())
            facts += [] if widest is None else [(say("core.shown_bar"), f"± {write_number(widest, widest)}")]
        return Card(title=self.name, facts=facts, notes=(say("core.shown_measurement"),))

    def forecast(self, confidence: float = 0.95) -> Any:
        """The half-width that an answer's error bar will have at `confidence`, before anything is spent."""
        if self.error is None:
            raise InvalidParameter("core.no_forecast", measurement=self.name)
        return self.error(strict_probability("confidence", confidence), None)

    def find_error(self, state: State) -> Callable[[float, Answer | None], Any] | None:
        """The error bars of the answer after which a run is in this `state`; here those of every answer."""
        del state
        return self.error

    def map(self, function: Callable[[Answer], Mapped]) -> Measurement[Data, Ask, State, Mapped]:
        """The same measurement with its answers passed through `function`: the price stays."""

        def step(state: State, data: Data, ask: Ask, rng: Rng) -> tuple[Mapped, State]:
            answer, state = self.step(state, data, ask, rng)
            return function(answer), state

        policy: Any = replace(self.state, resume=None)
        changed: Any = replace(self, state=policy, error=None, draw=None)
        return cast("Measurement[Data, Ask, State, Mapped]", replace(changed, step=step))
