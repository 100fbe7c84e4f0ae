"""What is asked of a protected graph: a price, a forecast, a release. Nothing is read before `release`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.number import positive, probability, strict_probability
from mosha.core.release import Receipt, Release
from mosha.graphs.data.reading import read

__all__ = ["Answer", "Question"]


@dataclass(frozen=True)
class Answer:
    """A private answer: its value, its error bar, its receipt. `details` holds whatever else was released with it."""

    value: Any
    details: dict[str, Any]
    release: Release

    @property
    def receipt(self) -> Receipt:
        return self.release.receipt

    def error(self, confidence: float = 0.95) -> Any:
        """Half-width of the error bar: the noise stays within it with this probability."""
        return self.release.error(confidence)

    def plot(self) -> Any:
        """A picture of the answer with its error bars (needs the extra `plot`)."""
        return self.release.plot()

    def map(self, function: Callable[[Any], Any]) -> Answer:
        """Post-processing: free, under the same receipt."""
        return replace(self, value=function(self.value), release=self.release.map(function))


@dataclass(frozen=True)
class Question:
    """One question about one protected graph.

    Guarantee:
        `measurement(...)` proves its own price; reading the value out of its answer is post-processing.

    Fields:
        title: what is asked.
        build: (epsilon, delta) -> the measurement; the data of its step is the graph.
        sensitivity: how far one unit moves the statistic in the worst case; None where there is no such bound.
    """

    title: str
    build: Callable[[float, float], Measurement]
    graph: Any
    account: Account | None
    sensitivity: float | None = None
    guess: Callable[[Any], Any] | None = None

    def measurement(self, *, epsilon: float, delta: float = 0.0) -> Measurement:
        """The whole release as one measurement; give its step a graph."""
        return self.build(positive("epsilon", epsilon), probability("delta", delta))

    def measurement_for(self, *, epsilon: float, delta: float = 0.0) -> Measurement:
        """What a release for this budget would run; `account.how_many(question, epsilon=...)` asks for it."""
        return self.measurement(epsilon=epsilon, delta=delta)

    def forecast(self, *, epsilon: float, delta: float = 0.0, confidence: float = 0.95, like: Any = None) -> Any:
        """The half-width of the error bar, before anything is spent.

        Args:
            epsilon: the price, as for `release`.
            delta: the same.
            confidence: how often the noise stays within the bar.
            like: a public graph of the kind that is expected, as `read` takes it: bars that depend on the graph are
                those of this one.
                Without it they are those of the worst graph.
        """
        measurement = self.measurement(epsilon=epsilon, delta=delta)
        if measurement.error is None:
            raise InvalidParameter(
                f"{self.title} has no forecast: try it on a public graph with .measurement(...).step."
            )
        assumed = self.guess(read(like)) if self.guess is not None and like is not None else None
        return measurement.error(strict_probability("confidence", confidence), assumed)

    def release(self, *, epsilon: float, delta: float = 0.0, key: str | None = None) -> Answer:
        """Pay, ask, and answer with an error bar; `key` makes a retry free."""
        measurement = self.measurement(epsilon=epsilon, delta=delta)
        if self.account is None:
            raise InvalidParameter("this graph has no account to pay from: protect(..., account=...).")
        run = self.account.open(measurement, key=key)
        released = run.step(self.graph)
        run.close()
        return answer_of(released)


def answer_of(released: Release) -> Answer:
    """An answer whose value is read out of what was released."""
    value = released.value
    if isinstance(value, dict) and "value" in value:
        return Answer(value["value"], {name: part for name, part in value.items() if name != "value"}, released)
    return Answer(value, {}, released)
