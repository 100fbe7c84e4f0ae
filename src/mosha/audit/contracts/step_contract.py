"""The contract that every measurement signs, whatever is inside: pure steps, answers for all data, an honest price.

same randomness, same answer    all randomness comes from the generator that the door hands over
nothing is kept between runs    a run does not remember another one
data are left as they were      a step changes nothing in place
an answer for all data          no row makes a step fail: an error would tell
the price allows what is seen   a quick attack on each pair of neighbors
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mosha.audit.attacks.black_box import attack
from mosha.audit.claims.neighbors import Proposal
from mosha.audit.contracts.contract import Check, Contract
from mosha.audit.reporting.fingerprint import fingerprint
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import renamed_argument
from mosha.core.number import positive_integer, strict_probability

__all__ = ["step_contract"]


@renamed_argument(neighbours="neighbors")
def step_contract(
    measurement: Measurement,
    neighbors: Sequence[Proposal | tuple[Any, Any]],
    *,
    asks: Sequence[object] | None = None,
    stream: bool = False,
    runs: int = 400,
    false_alarms: float = 1e-9,
) -> Contract:
    """Check from the inside what the door takes for granted of any measurement.

    Guarantee:
        All clauses but the last are exact. The last one attacks every pair of neighbors; where the price is honest,
        it is called broken with probability at most `false_alarms`, shared by the pairs.

    Args:
        measurement: any measurement.
        neighbors: pairs of data sets, see `mosha.audit.neighbors`.
        asks: the public asks of the steps, one each.
        stream: each data set is a sequence with the data of each step.
        runs: runs a world of the quick attack.
        false_alarms: the false-alarm rate of the whole contract.

    >>> from mosha import Row, mechanisms
    >>> step_contract(mechanisms.laplace(mechanisms.Count(), unit=Row(), epsilon=1), [([], [1])]).kept
    True
    """
    pairs = [item.pair if isinstance(item, Proposal) else item for item in neighbors]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidParameter("audit.contract_without_pairs", parameter="neighbors")
    alpha = strict_probability("false_alarms", false_alarms) / len(pairs)
    play = _Play(measurement, asks, stream=stream)
    data = [side for pair in pairs for side in pair]
    return Contract(
        measurement.name,
        (
            _check_untouched(play, data),  # first: what it looks for would spoil the others
            *_repeatable(play, data),
            _total(play, data),
            _check_price(measurement, pairs, asks, stream=stream, runs=positive_integer("runs", runs), alpha=alpha),
        ),
        false_alarms,
    )


class _Play:
    """All answers of one run under a seed, as bytes; an error is an answer."""

    def __init__(self, measurement: Measurement, asks: Sequence[Any] | None, *, stream: bool) -> None:
        steps = measurement.horizon if asks is None else len(asks)
        self.asks = [None] * steps if asks is None else list(asks)
        self.measurement, self.stream = measurement, stream

    def feed(self, data: Any) -> list[Any]:
        return list(data)[: len(self.asks)] if self.stream else [data] * len(self.asks)

    def start(self, data: object, seed: int) -> _Run:
        from mosha.noise import SeededRandom  # noqa: PLC0415  (loaded when it is needed)

        return _Run(self.measurement, self.feed(data), self.asks, SeededRandom(seed))


class _Run:
    def __init__(self, measurement: Measurement, feed: list[Any], asks: list[Any], rng: Rng) -> None:
        self.step, self.state, self.rng = measurement.step, measurement.init(), rng
        self.left = list(zip(feed, asks, strict=True))
        self.answers: list[str] = []
        self.error = ""

    def advance(self) -> bool:
        if not self.left or self.error:
            return False
        data, ask = self.left.pop(0)
        try:
            answer, self.state = self.step(self.state, data, ask, self.rng)
        except Exception as error:  # noqa: BLE001  (an error is an answer, and a breach of the contract)
            self.error = type(error).__name__
            return False
        self.answers.append(repr(answer))
        return True

    def finish(self) -> list[str]:
        while self.advance():
            pass
        return [*self.answers, self.error]


def _repeatable(play: _Play, data: list[object]) -> list[Check]:
    same, alone = True, True
    for seed, side in enumerate(data):
        first = play.start(side, seed).finish()
        same &= first == play.start(side, seed).finish()
        one, other = play.start(side, seed), play.start(data[0], seed + 1)
        while one.advance():
            other.advance()
        alone &= first == one.finish()
    return [
        Check("same randomness, same answer", same, "two runs with one seed"),
        Check("nothing is kept between runs", alone, "two runs side by side, and one alone"),
    ]


def _check_untouched(play: _Play, data: list[object]) -> Check:
    clause = "data are left as they were"
    try:
        before = [fingerprint(side) for side in data]
    except Exception:  # noqa: BLE001  (a live source has nothing to compare)
        return Check(clause, kept=True, seen="not data that could be compared")
    for side in data:
        play.start(side, 1).finish()
    return Check(clause, before == [fingerprint(side) for side in data], "fingerprints before and after a run")


def _total(play: _Play, data: list[object]) -> Check:
    errors = sorted({run.error for side in data if (run := play.start(side, 2)).finish() and run.error})
    return Check("an answer for all data", not errors, f"errors: {', '.join(errors)}" if errors else "no error")


def _check_price(
    measurement: Measurement,
    pairs: list[tuple[Any, Any]],
    asks: Sequence[object] | None,
    *,
    stream: bool,
    runs: int,
    alpha: float,
) -> Check:
    verdicts = [
        attack(measurement, neighbors=pair, asks=asks, stream=stream, runs=runs, confidence=1 - alpha) for pair in pairs
    ]
    worst = max(verdicts, key=lambda verdict: (verdict.broken, verdict.lower))
    seen = f"at least {worst.lower:.4g} of {worst.claim.describe()}, {runs} runs a world"
    return Check("the price allows what is seen", not worst.broken, seen, alpha if worst.broken else 1.0)
