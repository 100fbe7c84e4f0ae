"""How long an answer takes is an answer too: an attack on time alone, sound on a machine that others use.

Times are not independent: machines get busy. So the two worlds take turns in pairs, in random order, and only pairs
whose two members fall on different sides of a threshold count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.audit.attacks.interval import at_least
from mosha.audit.claims.target import target_of
from mosha.audit.reporting.outcome import Outcome
from mosha.audit.reporting.report import Report
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import renamed_argument
from mosha.core.number import non_negative, positive_integer, strict_probability

__all__ = ["TimingAttack", "attack_timing"]


@dataclass(frozen=True)
class TimingAttack(Report):
    """What the duration of answers shows.

    Fields:
        lower: the least epsilon that explains it.
        slower: in so many of `pairs` pairs the named neighbor alone was slower than `threshold` nanoseconds.
    """

    outcome: Outcome
    name: str
    epsilon: float
    lower: float
    slower: int
    pairs: int
    neighbor: str
    threshold: float
    confidence: float

    @property
    def broken(self) -> bool:
        return self.outcome is Outcome.BROKEN

    def __str__(self) -> str:
        return say("audit.timing", **(vars(self) | {"outcome": self.outcome.describe().upper()}))


@renamed_argument(neighbours="neighbors")
def attack_timing(
    target: Measurement | Callable[[object], object],
    *,
    neighbors: tuple[object, object],
    epsilon: float,
    runs: int = 2_000,
    confidence: float = 0.999,
    asks: Sequence[object] | None = None,
    stream: bool = False,
    rng: Rng | None = None,
) -> TimingAttack:
    """Try to tell two neighbors apart by how long an answer takes.

    Guarantee:
        Suppose that at every moment, busy or not, the duration is epsilon-private, and that what a run leaves behind
        on the machine (caches) does not depend on its data. For an event with probabilities p1, q1 in the first and
        p2, q2 in the second place of a pair, in fair order, p1 (1 - q2) <= e^(2 epsilon) q1 (1 - p2), and so with 1
        and 2 swapped: given all that came before, the members of a pair that differ do so in one direction with odds
        of at most e^(2 epsilon). The count is dominated by a binomial; `lower` is half the logit of its exact bound.

    Args:
        target: a measurement, or a function of the data.
        neighbors: two data sets that differ in one unit.
        epsilon: what is claimed to hold for the answer together with its duration.
        runs: pairs of runs; half choose the threshold, half are counted.
        confidence: the probability that a target that keeps its claim is not called broken.
        asks: as for `attack`.
        stream: as for `attack`.
        rng: as for `attack`.

    >>> attack_timing(lambda data: 0, neighbors=(0, 1), epsilon=9, runs=40).outcome.name
    'NO_POWER'
    """
    epsilon = non_negative("epsilon", epsilon)
    alpha = (1 - strict_probability("confidence", confidence)) / 2
    if positive_integer("runs", runs) < 20:
        raise InvalidParameter("audit.too_few_runs", parameter="runs", least=20)
    aim = target_of(target, batch=False, asks=asks, stream=stream, rng=rng)
    times = _times(aim.answers, neighbors, runs)
    half = runs // 2
    threshold = _threshold(times[:half])
    slow = times[half:] > threshold
    alone = [int((slow[:, i] & ~slow[:, 1 - i]).sum()) for i in (0, 1)]
    found = [_least(count, sum(alone), alpha) for count in alone]
    worse = int(np.argmax(found))
    outcome = Outcome.BROKEN if found[worse] > epsilon else Outcome.CONSISTENT
    if outcome is Outcome.CONSISTENT and _least(runs - half, runs - half, alpha) <= epsilon:
        outcome = Outcome.NO_POWER
    label = f"neighbor {worse + 1}"
    return TimingAttack(
        outcome, aim.name, epsilon, found[worse], alone[worse], sum(alone), label, threshold, confidence
    )


def _times(
    answers: Callable[[object, int], object], neighbors: tuple[object, object], runs: int
) -> NDArray[np.float64]:
    """Durations in nanoseconds, one row a pair; each pair runs in an order of its own."""
    for data in neighbors:
        answers(data, 3)  # the first calls pay for what is loaded lazily
    orders = np.random.default_rng().integers(0, 2, runs)
    times = np.empty((runs, 2))
    for i, order in enumerate(orders):
        for place in (order, 1 - order):
            start = time.perf_counter_ns()
            answers(neighbors[place], 1)
            times[i, place] = time.perf_counter_ns() - start
    return times


def _threshold(times: NDArray[np.float64]) -> float:
    """The threshold that shows most on the pairs set aside for choosing."""
    levels = np.quantile(times, np.linspace(0.02, 0.98, 49))
    slow = times[:, :, None] > levels
    alone = np.stack([(slow[:, i] & ~slow[:, 1 - i]).sum(axis=0) for i in (0, 1)])
    gap = np.abs(alone[0] - alone[1]) / np.sqrt(alone.sum(axis=0) + 1.0)
    return float(levels[int(np.argmax(gap))])


def _least(count: int, pairs: int, alpha: float) -> float:
    """Half the logit of the exact lower bound of the odds; zero where there is nothing to see."""
    if not pairs:
        return 0.0
    share = at_least(count, pairs, alpha=alpha)
    return max(0.0, math.log(share / (1 - share)) / 2) if share > 0 else 0.0
