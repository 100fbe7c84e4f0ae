"""What is asked of a protected graph: a price, a forecast, a release. Nothing is read before `release`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mosha.accounting.measures import concentrated
from mosha.core.account import Account
from mosha.core.budget import Budget, choose_budget
from mosha.core.errors import InvalidParameter
from mosha.core.fingerprint import fingerprint_plan
from mosha.core.language import Language, say
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import strict_probability
from mosha.core.question import find_least_budget
from mosha.core.release import Receipt, Release
from mosha.core.showing import Card, Prose, Shown, make_value_card, summarize_value
from mosha.core.unit import Edge, Unit
from mosha.graphs.data.graph import AnyGraph, Graph
from mosha.graphs.data.reading import read
from mosha.graphs.statistics.directed import DirectedGraph

__all__ = ["VERBS", "Answer", "Question"]

VERBS = frozenset(
    [
        "adjacency",
        "average_degree",
        "best_partition",
        "clustering",
        "communities",
        "components",
        "cumulative_degrees",
        "degree_distribution",
        "degree_histogram",
        "degree_sequence",
        "density",
        "edges",
        "maximum_degree",
        "seeds",
        "stars",
        "synthetic",
        "triangles",
        "vertices",
    ]
)
"""The methods of a protected graph that make a question."""

ARC_VERBS = frozenset(["arcs", "feed_forward_loops", "in_degrees", "out_degrees"])
"""The methods of a protected directed graph that make a question."""


@explain_wrong_calls
@dataclass(frozen=True, repr=False)
class Answer(Shown):
    """A private `value`, its error bar, its receipt (both of `release`).

    `details` holds what else was released with it.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("graph", unit=mosha.Edge(), epsilon=2)
    >>> friends = mosha.graphs.protect([(0, 1), (1, 2)], vertices=50, unit=mosha.Edge(), account=account)
    >>> friends.edges().release(epsilon=1).error(0.95)
    3.0
    """

    value: Any
    details: dict[str, Any]
    release: Release

    def __repr__(self) -> str:
        return f"Answer({summarize_value(self.value, self.release.error_or_none())})"

    def make_card(self) -> Card:
        return make_value_card(self.value, self.release.error_or_none(), notes=(str(self.receipt),))

    @property
    def receipt(self) -> Receipt:
        """Who paid how much for it."""
        return self.release.receipt

    def error(self, confidence: float = 0.95) -> Any:
        """Half-width of the error bar: the noise stays within it with this probability.

        Args:
            confidence: the probability.
        """
        return self.release.error(confidence)

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Any:  # fmt: skip
        """A picture of the answer with its error bars (needs the extra `plot`).

        Args:
            ax: axes of matplotlib to draw on.
            title: what stands above, in place of what was asked.
            unit: what the numbers are counted in.
            lang: of the line beneath; the chosen language where it is left out.
        """
        return self.release.plot(ax=ax, title=title, unit=unit, lang=lang)

    def map(self, function: Callable[[object], object]) -> Answer:
        """Post-processing: free, under the same receipt.

        Args:
            function: what is made of the value.
        """
        return replace(self, value=function(self.value), release=self.release.map(function))

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """Plain data: the value, its error bar (None if it has none), the details and the receipt.

        Args:
            confidence: of the error bar.
        """
        try:
            bar = _to_plain(self.error(confidence))
        except InvalidParameter:
            bar = None
        details = {name: _to_plain(part) for name, part in self.details.items()}
        return {"value": _to_plain(self.value), "error": bar, "details": details, "receipt": self.receipt.to_dict()}


@explain_wrong_calls
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Question(Shown):
    """One question about one protected graph; it holds public facts and a reference to the graph, and no answer.

    Guarantee:
        `measurement_for(...)` proves its own price; reading the value out of its answer is post-processing.

    Fields:
        title: what is asked.
        unit: whose presence is hidden.
        verb: the method of `ProtectedGraph` that asks it.
        options: the public arguments of that method.
        build: (epsilon, delta) -> the measurement; the data of its step is the graph.
        graph: what is asked about.
        account: who pays.
        sensitivity: how far one unit moves the statistic in the worst case; None if there is no such bound.
        guess: (public graph) -> what a forecast assumes.

    >>> import mosha
    >>> edges = mosha.graphs.protect([(0, 1), (1, 2)], unit=mosha.Edge(), vertices=10).edges()
    >>> edges.forecast(epsilon=1), edges.plan(within=3)
    (3.0, Budget(epsilon=...))
    """

    title: str
    unit: Unit
    verb: str
    build: Callable[[float, float], Measurement]
    options: Mapping[str, object] = field(default_factory=dict)
    graph: AnyGraph | DirectedGraph
    account: Account | None = None
    sensitivity: float | None = None
    guess: Callable[[Graph], Mapping[str, float] | None] | None = None

    def __repr__(self) -> str:
        """Public words only."""
        return f"Question({self.title}, unit={self.unit.summarize()})"

    def make_card(self) -> Card:
        """What is asked and who is hidden."""
        payer = say("core.shown_nobody") if self.account is None else self.account.name
        facts = [(say("core.shown_hidden"), self.unit.describe()), (say("core.shown_account"), payer)]
        return Card(title=self.title, facts=facts, notes=[say("graphs.shown_forecast")])

    @property
    def vertices(self) -> int | None:
        """How many vertices there are, at edge level, where that is public."""
        return int(self.graph.vertices) if isinstance(self.unit, Edge) else None

    @property
    def fingerprint(self) -> str:
        """What tells this question from others that cost the same: a hash of its public fields."""
        options = {name: _to_plain(value) for name, value in sorted(self.options.items())}
        return fingerprint_plan("graph", self.unit, self.vertices, self.verb, options)

    def measurement(self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None) -> Measurement:
        """The whole release as one measurement; give its step a graph.

        Args:
            epsilon: the price, or
            rho: the price in zero-concentrated differential privacy.
            delta: goes with epsilon; it allows smooth sensitivity.
        """
        return self._measurement(Budget(epsilon=epsilon, delta=delta, rho=rho))

    def measurement_for(
        self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None
    ) -> Measurement:
        """What a release for this budget would run; `account.how_many(question, epsilon=...)` asks for it.

        Args:
            epsilon: as for `release`.
            delta: as for `release`.
            rho: as for `release`.
        """
        return self.measurement(epsilon=epsilon, delta=delta, rho=rho)

    def _measurement(self, budget: Budget) -> Measurement:
        if budget.epsilon is not None:
            return self.build(budget.epsilon, budget.delta)
        if budget.rho is None or budget.delta:
            raise InvalidParameter("graphs.budget_measure", spent="nothing")
        return self.build(self._epsilon_for(budget.rho), 0.0)

    def _epsilon_for(self, rho: float) -> float:
        """The largest epsilon, to a part in a thousand, whose release costs at most `rho`.

        Guarantee:
            What is returned was priced and costs at most `rho`; `build` is asked for the same number again.
        """
        low = math.sqrt(2 * rho) * (1 - 2.0**-30)  # pure epsilon is (epsilon^2 / 2)-zCDP
        if not self._costs_at_most(low, rho):
            raise InvalidParameter("graphs.no_rho", parameter="rho", question=self.title, spent="nothing")
        high = 2 * low
        while self._costs_at_most(high, rho):
            low, high = high, 2 * high
        while high > low * 1.001:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._costs_at_most(middle, rho) else (low, middle)
        return low

    def _costs_at_most(self, epsilon: float, rho: float) -> bool:
        amount, delta = concentrated.rho(self.build(epsilon, 0.0).event)
        return amount <= rho and delta == 0.0

    def forecast(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        confidence: float = 0.95,
        like: object = None,
    ) -> Any:
        """The half-width of the error bar, before anything is spent.

        Args:
            epsilon: the price, as for `release`; or
            rho: the same.
            delta: the same.
            confidence: how often the noise stays within the bar.
            like: a public graph of the kind that is expected, as `read` takes it: bars that depend on the graph are
                those of this one. Without it they are those of the worst graph.
        """
        return self._forecast(Budget(epsilon=epsilon, delta=delta, rho=rho), confidence, self._assume(like))

    def _assume(self, like: object) -> Mapping[str, float] | None:
        return self.guess(read(like)) if self.guess is not None and like is not None else None

    def _forecast(self, budget: Budget, confidence: float, assumed: Mapping[str, float] | None) -> Any:
        measurement = self._measurement(budget)
        if measurement.error is None:
            raise InvalidParameter("graphs.no_forecast", question=self.title)
        return measurement.error(strict_probability("confidence", confidence), assumed)

    def plan(self, *, within: float, confidence: float = 0.95, delta: float = 0.0, like: object = None) -> Budget:
        """The least epsilon whose widest error bar is at most `within`, to one part in a thousand.

        Args:
            within: how wide the widest error bar may be.
            confidence: how often the noise stays within it.
            delta: goes with epsilon.
            like: a public graph, as for `forecast`.
        """
        assumed = self._assume(like)

        def widest(budget: Budget) -> float:
            try:
                return float(np.max(self._forecast(budget, confidence, assumed)))
            except InvalidParameter:
                if budget.amount >= 1:  # not for being too small
                    raise
                return math.inf

        return find_least_budget(widest, within=within, delta=delta)

    def explain(self, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None) -> str:
        """What will run, and what it costs.

        Args:
            epsilon: as for `release`.
            delta: as for `release`.
            rho: as for `release`.
        """
        measurement = self.measurement(epsilon=epsilon, delta=delta, rho=rho)
        moved = "" if self.sensitivity is None else f", which one of them moves by at most {self.sensitivity:g}"
        return Prose(f"-- {self.title}: {measurement.event}\n{measurement.name}{moved}; hides {self.unit.describe()}")

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        within: float | None = None,
        confidence: float | None = None,
        like: object = None,
        key: str | None = None,
    ) -> Answer:
        """Pay, ask, and answer with an error bar.

        Args:
            epsilon: the price, or one of
            rho: the price in zero-concentrated differential privacy, or
            within: how wide the widest error bar may be; with `confidence`, the least epsilon for it is paid.
            delta: goes with epsilon; it allows smooth sensitivity.
            confidence: with `within`; 0.95 if it is left out.
            like: with `within`: a public graph of the kind that is expected.
            key: makes a retry free: the same key finds the payment and the answer again.
        """
        if like is not None and within is None:
            raise InvalidParameter("graphs.like_without_within", parameter="like")
        if self.account is None:
            raise InvalidParameter("graphs.no_account", parameter="account")
        budget = choose_budget(
            lambda width, level: self.plan(within=width, confidence=level, delta=delta, like=like),
            epsilon=epsilon, delta=delta, rho=rho, within=within, confidence=confidence,
        )  # fmt: skip
        run = self.account.open(replace(self._measurement(budget), question=self.fingerprint), key=key)
        released = run.step(self.graph)
        run.close()
        return answer_of(released)

    def to_dict(self) -> dict[str, Any]:
        """The question as plain data, which `from_dict` reads again; nothing of the graph is in it.

        >>> import mosha
        >>> graph = mosha.graphs.protect([(0, 1), (1, 2)], unit=mosha.Edge(), vertices=10)
        >>> Question.from_dict(graph, graph.stars(3).to_dict()).fingerprint == graph.stars(3).fingerprint
        True
        """
        options = {name: _to_plain(value) for name, value in self.options.items()}
        return {"graph": self.verb, "options": options, "unit": self.unit.to_dict(), "vertices": self.vertices}

    @staticmethod
    def from_dict(graph: object, data: Mapping[str, object]) -> Question:
        """The question that `to_dict` described, about this graph; anything else is refused.

        Args:
            graph: the protected graph to ask, directed or not, with the same unit and as many vertices.
            data: what `to_dict` gave.

        >>> import mosha
        >>> genes = mosha.graphs.protect_arcs([(0, 1), (1, 2)], vertices=10)
        >>> Question.from_dict(genes, genes.in_degrees(up_to=3).to_dict()).verb
        'in_degrees'
        """
        if not isinstance(data, Mapping) or set(data) != {"graph", "options", "unit", "vertices"}:
            raise InvalidParameter("graphs.not_a_question", parameter="data")
        verb, options = data["graph"], data["options"]
        if verb not in VERBS | ARC_VERBS or not isinstance(options, Mapping):
            raise InvalidParameter("graphs.not_a_question", parameter="data")
        if not all(isinstance(name, str) for name in options):
            raise InvalidParameter("graphs.not_a_question", parameter="data")
        try:
            asked: Question = getattr(graph, verb)(**options)
        except (AttributeError, TypeError):
            raise InvalidParameter("graphs.not_a_question", parameter="data") from None
        if (asked.unit.to_dict(), asked.vertices) != (data["unit"], data["vertices"]):
            raise InvalidParameter("graphs.question_of_other_graph", parameter="graph")
        return asked


def answer_of(released: Release) -> Answer:
    """An answer whose value is read out of what was released."""
    value = released.value
    if isinstance(value, dict) and "value" in value:
        return Answer(value["value"], {name: part for name, part in value.items() if name != "value"}, released)
    return Answer(value, {}, released)


def _to_plain(value: object) -> Any:
    """Arrays and numpy numbers as lists and numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_to_plain(part) for part in value]
    return value
