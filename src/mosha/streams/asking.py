"""Questions about steps that are all there, by the protocol of tables and graphs; `serve` is for steps to come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.budget import Budget, choose_budget
from mosha.core.errors import InvalidParameter
from mosha.core.fingerprint import fingerprint_plan
from mosha.core.language import say
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import strict_probability
from mosha.core.question import find_least_budget
from mosha.core.release import Release
from mosha.core.showing import Card, Shown
from mosha.core.unit import Unit
from mosha.streams import questions
from mosha.streams.batches import Batches, leave_rows_out
from mosha.streams.bounding import exact_steps
from mosha.streams.readout import Decayed, Instant, Readout, Running, Sliding, readout_of
from mosha.streams.stream import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ProtectedSteps", "Question", "protect"]

VERBS: Mapping[str, Callable[..., Stream]] = {
    "counter": questions.counter,
    "histogram": questions.histogram,
    "mean": questions.mean,
    "series": questions.series,
    "total": questions.total,
}
"""The methods of protected steps that make a question."""


@explain_wrong_calls
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Question(Shown):
    """One question about all steps of a stream; it holds public facts and a reference to the steps, and no answer.

    Guarantee:
        A release is the steps of one `Stream` in their order, whose event pays for all of them together.

    Args:
        steps: what is asked about.
        verb: the method of `ProtectedSteps` that asks it.
        options: the public arguments of that method.

    >>> import mosha
    >>> week = mosha.streams.protect([[1] * 90] * 7, unit=mosha.Reading())
    >>> question = week.counter()
    >>> question.forecast(epsilon=1).max() <= 20, question.plan(within=20).epsilon <= 1
    (np.True_, True)
    """

    steps: ProtectedSteps
    verb: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What is asked, in a few public words."""
        of = self.options.get("column")
        return f"{self.verb}({'' if of is None else of}), {self.steps.horizon:,} steps"

    @property
    def unit(self) -> Unit:
        """Whose presence is hidden."""
        return self.steps.unit

    @property
    def fingerprint(self) -> str:
        """What tells this question from others that cost the same: a hash of its public fields."""
        return fingerprint_plan("stream", self.unit, self.steps.horizon, self.verb, self._plain_options())

    def __repr__(self) -> str:
        """Public words alone."""
        return f"Question({self.title}, unit={self.unit.summarize()})"

    def make_card(self) -> Card:
        """What is asked, over how many steps, and who is hidden."""
        payer = say("core.shown_nobody") if self.steps.account is None else self.steps.account.name
        facts = [
            (say("core.shown_hidden"), self.unit.describe()),
            (say("streams.shown_horizon"), f"{self.steps.horizon:,}"),
            (say("core.shown_account"), payer),
        ]
        return Card(title=self.title, facts=facts)

    def stream(self, budget: Budget) -> Stream:
        """The stream that a release for this `budget` runs, and why it was chosen (`stream.reason`)."""
        price = {"epsilon": budget.epsilon, "rho": budget.rho, "mu": budget.mu, "delta": budget.delta}
        return VERBS[self.verb](unit=self.unit, horizon=self.steps.horizon, **self.options, **price)

    def measurement_for(
        self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None, mu: float | None = None
    ) -> Measurement:
        """What a release for this budget would run, with its price: all steps as one.

        Args:
            epsilon: as for `release`.
            delta: as for `release`.
            rho: as for `release`.
            mu: as for `release`.
        """
        return self._measurement(self.stream(Budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu)))

    def _measurement(self, stream: Stream) -> Measurement:
        def step(state: object, data: Batches, ask: object, rng: Rng) -> tuple[list[Any], object]:
            del ask
            values, _ = stream.step(stream.init(), data, None, rng)
            return np.asarray(values, np.float64).tolist(), state

        def error(confidence: float, answer: object) -> NDArray[np.float64]:
            del answer
            return _find_widths(stream, confidence)

        return Measurement(
            unit=stream.unit,
            event=stream.event,
            step=step,
            name=self.title,
            question=self.fingerprint,
            delta=stream.delta,
            error=None if stream.error is None else error,
            draw=self._draw,
        )

    def _draw(self, value: NDArray[np.float64], errors: NDArray[np.float64] | None) -> Figure:
        """Each series over the steps, with the band that holds its noise."""
        from mosha.pictures.curves import draw_with  # noqa: PLC0415  (pictures are drawn when they are asked for)

        lines = np.asarray(value, np.float64).reshape(self.steps.horizon, -1)
        widths = np.zeros_like(lines) if errors is None else np.asarray(errors).reshape(lines.shape)
        places = np.arange(1, len(lines) + 1)
        labels = [str(key) for key in self.options.get("keys", [""])]

        def paint(axes: Axes) -> None:
            for line, width, label in zip(lines.T, widths.T, labels, strict=True):
                (drawn,) = axes.plot(places, line, linewidth=1.6, label=label)
                axes.fill_between(places, line - width, line + width, color=drawn.get_color(), alpha=0.25, linewidth=0)
            if len(labels) > 1:
                axes.legend(frameon=False)

        return draw_with(paint, title=say(f"streams.picture_{self.verb}"), across=say("streams.shown_step"))

    def forecast(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        mu: float | None = None,
        confidence: float = 0.95,
    ) -> NDArray[np.float64]:
        """Half the width of the error bar at each step, before anything is spent.

        Args:
            epsilon: the price, as for `release`; or
            rho: the same; or
            mu: the same.
            delta: the same.
            confidence: how often the noise of a step stays within its bar.
        """
        measurement = self.measurement_for(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
        return np.asarray(measurement.forecast(strict_probability("confidence", confidence)))

    def plan(self, *, within: float, confidence: float = 0.95, delta: float = 0.0) -> Budget:
        """The least epsilon whose widest error bar is at most `within`, to one part in a thousand.

        Args:
            within: how wide the widest error bar may be.
            confidence: how often the noise of a step stays within it.
            delta: goes with epsilon; it allows Gaussian noise.
        """
        return find_least_budget(
            lambda budget: float(np.max(self._measurement(self.stream(budget)).forecast(confidence))),
            within=within,
            delta=delta,
        )

    def explain(
        self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None, mu: float | None = None
    ) -> str:
        """What will run, what it costs, what is promised, and why this mechanism was chosen.

        Args:
            epsilon: as for `release`.
            delta: as for `release`.
            rho: as for `release`.
            mu: as for `release`.
        """
        stream = self.stream(Budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu))
        return f"-- {self.title}: {stream.event}\n{stream.describe()}\n{stream.reason}"

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        mu: float | None = None,
        within: float | None = None,
        confidence: float | None = None,
        key: str | None = None,
    ) -> Release:
        """Pay for all steps, then answer each with its error bar.

        Args:
            epsilon: the price, or one of
            rho: the price in zero-concentrated differential privacy, or
            mu: the price in Gaussian differential privacy, or
            within: how wide the widest error bar may be; with `confidence`, the least epsilon for it is paid.
            delta: goes with epsilon; it allows Gaussian noise.
            confidence: with `within`; 0.95 if it is left out.
            key: makes a retry free: the same key finds the payment and the answer again.
        """
        if self.steps.account is None:
            raise InvalidParameter("streams.no_account", parameter="account", spent="nothing")
        budget = choose_budget(
            lambda width, level: self.plan(within=width, confidence=level, delta=delta),
            epsilon=epsilon, delta=delta, rho=rho, mu=mu, within=within, confidence=confidence,
        )  # fmt: skip
        stream = self.stream(budget)
        self.steps.look(stream)
        with self.steps.account.open(self._measurement(stream), key=key) as run:
            released = run.step(self.steps.batches)
        return replace(released, value=np.asarray(released.value, np.float64))

    def _plain_options(self) -> dict[str, Any]:
        return {name: _write_plain(value) for name, value in sorted(self.options.items())}

    def to_dict(self) -> dict[str, Any]:
        """The question as plain data, which `from_dict` reads again; nothing of the rows is in it.

        >>> import mosha
        >>> week = mosha.streams.protect([[1] * 90] * 7, unit=mosha.Reading())
        >>> asked = week.total(between=(0, 5), release=mosha.streams.Sliding(3))
        >>> Question.from_dict(week, asked.to_dict()).fingerprint == asked.fingerprint
        True
        """
        described = {"stream": self.verb, "options": self._plain_options()}
        return described | {"unit": self.unit.to_dict(), "horizon": self.steps.horizon}

    @staticmethod
    def from_dict(steps: ProtectedSteps, data: Mapping[str, Any]) -> Question:
        """The question that `to_dict` described, about these steps; anything else is refused.

        Args:
            steps: the protected steps to ask: as many as before, with the same unit.
            data: what `to_dict` gave.
        """
        if not isinstance(data, Mapping) or set(data) != {"stream", "options", "unit", "horizon"}:
            raise InvalidParameter("streams.not_a_question", parameter="data", spent="nothing")
        verb, options = data["stream"], data["options"]
        if verb not in list(VERBS) or not isinstance(options, Mapping):
            raise InvalidParameter("streams.not_a_question", parameter="data", spent="nothing")
        try:
            asked: Question = getattr(steps, verb)(**{name: _read_plain(name, part) for name, part in options.items()})
        except (TypeError, ValueError):
            raise InvalidParameter("streams.not_a_question", parameter="data", spent="nothing") from None
        if (asked.unit.to_dict(), steps.horizon) != (data["unit"], data["horizon"]):
            raise InvalidParameter("streams.question_of_other_steps", parameter="steps", spent="nothing")
        return asked


@explain_wrong_calls
@dataclass(frozen=True, eq=False, repr=False)
class ProtectedSteps:
    """All steps of a stream, behind glass: its methods make questions, and only `release` reads a row.

    Args:
        batches: the rows of each step.
        unit: whose presence is hidden.
        account: who pays.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("door", unit=mosha.Reading(), epsilon=2)
    >>> week = protect([[1] * 90] * 7, unit=mosha.Reading(), account=account)
    >>> week, week.counter().release(epsilon=1).value.shape
    (ProtectedSteps(7 steps, unit=Reading()), (7,))
    """

    batches: Batches
    unit: Unit
    account: Account | None = None

    @property
    def horizon(self) -> int:
        """How many steps there are, which is public."""
        return self.batches.count

    def __repr__(self) -> str:
        """Public words alone: never the number of rows."""
        return f"ProtectedSteps({self.horizon:,} steps, unit={self.unit.summarize()})"

    def counter(self, *, release: str | Readout = "running") -> Question:
        """How many rows there were; `release` says what is published of each step, as in `streams.counter`."""
        return self._ask("counter", release)

    def total(
        self, *, between: tuple[float, float], column: str | None = None, release: str | Readout = "running"
    ) -> Question:
        """The sum of `column`, each value clamped into `between`; `release` as in `streams.total`."""
        return self._ask("total", release, between=tuple(between), column=column)

    def mean(
        self, *, between: tuple[float, float], column: str | None = None, release: str | Readout = "running"
    ) -> Question:
        """The mean of `column`, within `between`; `release` as in `streams.mean`. It has no error bar."""
        return self._ask("mean", release, between=tuple(between), column=column)

    def histogram(
        self, *, keys: Sequence[object], column: str | None = None, release: str | Readout = "running"
    ) -> Question:
        """The number of rows for each of some public `keys` of `column`; `release` as in `streams.histogram`."""
        return self._ask("histogram", release, keys=tuple(keys), column=column)

    def series(
        self,
        *,
        keys: Sequence[object],
        key: str,
        between: tuple[float, float],
        column: str,
        release: str | Readout = "running",
    ) -> Question:
        """For each of some public `keys` of the column `key` the sum of `column`, clamped into `between`."""
        return self._ask("series", release, keys=tuple(keys), key=key, between=tuple(between), column=column)

    def _ask(self, verb: str, release: str | Readout, **options: object) -> Question:
        asked = Question(steps=self, verb=verb, options={**options, "release": readout_of(release)})
        asked.stream(Budget(epsilon=1.0))  # every option is checked where it is given
        return asked

    def look(self, stream: Stream) -> None:
        """Let what a `stream` runs read the columns without their rows: names that are missing cost nothing."""
        given = [self.batches.rows] if self.batches.per_step() is not None else self.batches.list_batches()
        exact_steps(stream.plan.statistic, stream.plan.presence, Batches([leave_rows_out(b) for b in given]), 0, {})


@explain_wrong_calls
def protect(batches: Batches | Iterable[object], *, unit: Unit, account: Account | None = None) -> ProtectedSteps:
    """Steps that are all there, to be asked as tables and graphs are: forecast, plan, explain, release, JSON.

    Args:
        batches: the rows of each step, in their order, or `Batches`; how many steps there are is public.
        unit: whose presence is hidden: `Reading()`, `Person(column, at_most=...)` or `Window(column, steps)`.
        account: who pays; without one nothing can be released.

    >>> import mosha
    >>> print(protect([[1], [1, 1]], unit=mosha.Reading()).counter().explain(epsilon=1).splitlines()[0])
    -- counter(), 2 steps: DiscreteLaplace(noise_multiplier=1.0, sensitivity=1)
    """
    return ProtectedSteps(batches if isinstance(batches, Batches) else Batches(batches), unit, account)


def _find_widths(stream: Stream, confidence: float) -> NDArray[np.float64]:
    """Half the width of the bar at each step; of many series, the same for each."""
    widths = np.array([stream.error_at(step, confidence) for step in range(1, stream.horizon + 1)])
    if stream.plan.statistic.labels is None:
        return widths
    return np.repeat(widths[:, None], stream.plan.width, axis=1)


def _write_plain(value: Any) -> Any:
    if isinstance(value, Sliding):
        return {"sliding": value.steps}
    if isinstance(value, Decayed):
        return {"decayed": value.factor}
    if isinstance(value, Running | Instant):
        return type(value).__name__.lower()
    return list(value) if isinstance(value, tuple) else value


def _read_plain(name: str, value: Any) -> Any:
    if name == "release" and isinstance(value, Mapping):
        ((word, number),) = value.items()
        return {"sliding": Sliding, "decayed": Decayed}.get(word, dict)(number)
    return value
