"""Choosing hyperparameters: the whole search is priced, or it is not called private.

Trying ten learning rates and keeping the best model tells more about the data than that model alone. Papernot and
Steinke (2022): make the number of trials random, and the best of them costs little more than two or three trials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mosha import accounting
from mosha.accounting.measures import concentrated
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, Unpriced
from mosha.core.event import NOTHING, Event
from mosha.core.events import Plan, Selected, ZeroConcentrated
from mosha.core.fingerprint import fingerprint
from mosha.core.guarantee import Approx
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import real
from mosha.core.options import RunsName
from mosha.core.release import Receipt
from mosha.core.unit import Unit
from mosha.learning.choosing.selection_runs import number_of_runs
from mosha.noise import uniform

__all__ = ["SearchResult", "best_of_random_runs", "explore", "search"]

Score: TypeAlias = Callable[[str, Any], Any]


def best_of_random_runs(
    candidates: Mapping[str, Measurement],
    *,
    score: Score,
    score_event: Event = NOTHING,
    mean: float,
    distribution: RunsName = "negative-binomial",
    shape: float = 1.0,
    delta: float | None = None,
) -> Measurement:
    """The best of a random number of runs, each of a candidate drawn at random; its data are (training, validation).

    `score(name, answer)` judges a model: a number, if it looks at public data alone; or a measurement of the private
    validation data, whose event must be `score_event`. The answer is (name, answer, score), or None where a Poisson
    number of runs is zero. With `delta` the search is sold as one `Plan`, which every account can pay; without, as a
    `Selected` event, which accounts of the Rényi rule pay best.

    `candidates` are measurements by name. `distribution` says how the number of runs is drawn, "negative-binomial" (of
    this `shape`, at most 1) or "poisson".

    Guarantee:
        A run draws a candidate with public coins, trains and scores it, and ends with a uniform number that breaks
        ties: given the coins, the composition of its two events, and so at most the dearest candidate's. That the best
        of a random number of such runs costs `Selected(run)` is theorem 2 of Papernot and Steinke (for Poisson numbers
        see the accounting's `renyi.md`). The number is drawn exactly and told to nobody (`number_of_runs`).

    Units:
        `mean` counts runs.

    >>> from mosha import Row, mechanisms as m
    >>> trials = {str(w): m.laplace(m.Count(), unit=Row(), epsilon=0.1) for w in (1, 2)}
    >>> tuned = best_of_random_runs(trials, score=lambda name, answer: -abs(answer - 50), mean=5)
    >>> round(accounting.epsilon(tuned.event, 1e-6), 3)
    0.3
    """
    if not isinstance(candidates, Mapping) or not candidates:
        raise InvalidParameter("learning.candidates_by_name", parameter="candidates")
    if distribution == "negative-binomial" and real("shape", shape) > 1:
        raise InvalidParameter("learning.shape_at_most_one", parameter="shape")
    names, measurements = tuple(candidates), tuple(candidates.values())
    unit = _one_unit(measurements)
    run = _dearest([candidate.event for candidate in measurements])
    event = Selected(run if score_event == NOTHING else run + score_event, mean, distribution, shape)

    def step(state: object, data: Any, ask: object, rng: Rng) -> tuple[Any, Any]:
        training, validation = data if score_event != NOTHING else (data, None)
        best: tuple[Any, int] | None = None
        kept: Any = None
        for _ in range(number_of_runs(event, rng=rng)):
            chosen = uniform(len(names), rng=rng)
            candidate = measurements[chosen]
            answer, _ = candidate.step(candidate.init(), training, ask, rng)
            judged = _judge_candidate(score(names[chosen], answer), unit, score_event, validation, rng)
            rank = (judged, int.from_bytes(rng.bytes(16), "big"))
            if best is None or rank > best:
                best, kept = rank, (names[chosen], answer, judged)
        return kept, state

    return Measurement(
        unit=unit,
        event=event if delta is None else Plan(event, delta),
        step=step,
        name="the best of a random number of runs",
        question=fingerprint("search", unit, names, *(candidate.question for candidate in measurements)),
    )


def _judge_candidate(given: object, unit: Unit, score_event: Event, validation: object, rng: Rng) -> float:
    if score_event == NOTHING:
        if isinstance(given, Measurement):
            raise InvalidParameter("learning.score_needs_price", parameter="score_event")
        return real("score", given)
    if not isinstance(given, Measurement) or given.event != score_event or given.horizon != 1:
        raise InvalidParameter("learning.score_of_one_step", parameter="score")
    if not given.unit.protects_same(unit):
        raise InvalidParameter("learning.score_of_other_unit", parameter="score")
    return real("score", given.step(given.init(), validation, None, rng)[0])


def _one_unit(measurements: tuple[Measurement, ...]) -> Any:
    if not all(isinstance(candidate, Measurement) and candidate.horizon == 1 for candidate in measurements):
        raise InvalidParameter("learning.candidates_of_one_step", parameter="candidates")
    unit = measurements[0].unit
    if not all(candidate.unit.protects_same(unit) for candidate in measurements):
        raise InvalidParameter("learning.candidates_of_one_unit", parameter="candidates")
    return unit


def _dearest(events: list[Event]) -> Event:
    """One event that covers whichever candidate is drawn: the common one, or the largest rho."""
    if all(event == events[0] for event in events):
        return events[0]
    costs = [concentrated.cost_of(event) for event in events]
    if any(cost.delta > 0 or not cost.is_finite for cost in costs):
        raise Unpriced("learning.no_common_measure")
    return ZeroConcentrated(max(cost.amount for cost in costs))


@dataclass(frozen=True)
class SearchResult:
    """The chosen candidate: its `name`, `answer` and `score`. `receipt` is None for a search that nobody paid for.

    >>> SearchResult("small", answer=None, score=0.8).receipt is None
    True
    """

    name: str
    answer: Any
    score: float
    receipt: Receipt | None = None

    @property
    def private(self) -> bool:
        """Whether the whole search, and not only its last training, was paid for."""
        return self.receipt is not None

    def guarantee(self, delta: float) -> Approx:
        """What the whole search promises at `delta`.

        Raises:
            Unpriced: for a search by `explore`, whatever noise its trainings had.
        """
        if self.receipt is None:
            raise Unpriced("learning.search_not_private")
        return Approx(accounting.epsilon(self.receipt.event, delta), delta)

    def __repr__(self) -> str:
        word = "private" if self.private else "NOT PRIVATE"
        return f"<{word} search: {self.name!r}, score {self.score:.6g}>"


def search(measurement: Measurement, data: object, *, account: Account, key: str | None = None) -> SearchResult | None:
    """Pay for a search made by `best_of_random_runs`, and run it; None where a Poisson number of runs was zero.

    `measurement` is that search, `data` are what its candidates take, `account` pays; a retry under the same `key` is
    free.

    >>> import mosha
    >>> from mosha import mechanisms as m
    >>> trials = {str(w): m.laplace(m.Count(), unit=mosha.Row(), epsilon=0.1) for w in (1, 2)}
    >>> tuned = best_of_random_runs(trials, score=lambda name, answer: answer, mean=5)
    >>> account = mosha.Ledger.memory().account("trials", unit=mosha.Row(), epsilon=1)
    >>> search(tuned, [1, 2, 3], account=account).name in {"1", "2"}
    True
    """
    with account.open(measurement, key=key) as run:
        release = run.step(data)
    if release.value is None:
        return None
    name, answer, score = release.value
    return SearchResult(name, answer, score, release.receipt)


def explore(candidates: Mapping[str, Callable[[], object]], *, score: Score) -> SearchResult:
    """Try every one of `candidates` once and keep the one of highest `score`: for public data.

    The result is refused the word private.

    >>> found = explore({"one": lambda: 1, "two": lambda: 2}, score=lambda name, answer: answer)
    >>> found, found.private
    (<NOT PRIVATE search: 'two', score 2>, False)
    """
    if not candidates:
        raise InvalidParameter("learning.candidates_by_name", parameter="candidates")
    tried = [(name, train()) for name, train in candidates.items()]
    scored = [SearchResult(name, answer, real("score", score(name, answer))) for name, answer in tried]
    return max(scored, key=lambda result: result.score)
