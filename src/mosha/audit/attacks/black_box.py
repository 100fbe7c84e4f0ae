"""The attack: learn on some answers which events tell two neighboring worlds apart, then count them on others.

runs a world ──┬── half: learn scores ── choose thresholds ──► a few events
               └── half, unseen until now: count each event ──► exact bounds ──► verdict
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.audit.attacks.features import features_of
from mosha.audit.attacks.interval import rough_bounds
from mosha.audit.attacks.region import Counts, explain, weights_for
from mosha.audit.attacks.score import BinnedScore, Score, combine_scores, learn_bins, order_by_number
from mosha.audit.claims.answers import Answers
from mosha.audit.claims.claim import Claim
from mosha.audit.claims.priced import claim_of
from mosha.audit.claims.target import Drawn, has_failed, target_of
from mosha.audit.reporting.outcome import Outcome, Witness
from mosha.audit.reporting.verdict import Verdict
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.guarantee import Guarantee
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import renamed_argument
from mosha.core.number import positive_integer, strict_probability

__all__ = ["attack"]

Floats = NDArray[np.float64]
EVENTS = 3  # how many events are confirmed; each gets its share of 1 - confidence
TRAINING = 0.3  # the share of the runs on which events are chosen
COMBINED = 8  # how many single features the combined score weighs
HALF_LINES = 12  # how many single features are tried as they are
LEARNED = 20_000  # runs that are enough to learn scores from
LEAST_RUNS = 100


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A threshold on a score, and what it promises to show; `high` favours the first world."""

    score: Score
    threshold: float
    high: bool
    promise: float
    weights: tuple[float, float]

    def happens(self, scores: Floats) -> int:
        return int(np.count_nonzero(scores >= self.threshold if self.high else scores <= self.threshold))


@dataclass(frozen=True)
class _Report:
    """What a verdict says about the question, whatever the answer."""

    name: str
    claim: Claim
    confidence: float
    runs: int
    neighbors: tuple[str, str]


@renamed_argument(neighbours="neighbors")
def attack(
    target: Measurement | Callable[..., object],
    *,
    neighbors: tuple[object, object],
    claim: Claim | Guarantee | Event | None = None,
    confidence: float = 0.999,
    runs: int = 200_000,
    batch: bool = False,
    asks: Sequence[object] | None = None,
    stream: bool = False,
    delta: float | None = None,
    name: str | None = None,
    rng: Rng | None = None,
) -> Verdict:
    """Try to show that a mechanism leaks more on two neighboring data sets than it claims.

    Guarantee:
        Let the runs be independent. Events, thresholds and weights are chosen on some of them, so that their
        counts in the others are binomial. For each of m events, the least amount that explains its counts
        (`mosha.audit.attacks.region.explain`) exceeds the true amount with probability at most (1 - confidence) / m;
        with probability `confidence` it does so for none.

    Units:
        `lower` of the verdict is in the measure of the claim.

    Args:
        target: a measurement, or a function of the data alone. A measurement runs all its steps from `init`.
        neighbors: two data sets that differ in one unit. They are the attacker's own: the report shows them.
        claim: a guarantee, an event or a claim; the event of the measurement by default.
        confidence: the probability that a mechanism that keeps its claim is not called broken.
        runs: how often the target is run on each of the two data sets.
        batch: the function takes (data, size) and gives `size` independent answers along its first axis.
        asks: the public asks of the steps of a measurement, one each.
        stream: each neighbor is a sequence with the data of each step.
        delta: where a curve of an event is named in the report.
        name: what to call it in the report.
        rng: the randomness of a measurement; the operating system's by default.

    >>> import numpy as np
    >>> def rounded_coin(bit, size):  # says the truth with probability 0.8: epsilon is log 4
    ...     return np.where(np.random.default_rng().random(size) < 0.8, bit, 1 - bit)
    >>> from mosha.core.guarantee import Pure
    >>> attack(rounded_coin, neighbors=(0, 1), claim=Pure(1), runs=20_000, batch=True).outcome
    <Outcome.BROKEN: 'broken'>
    """
    if claim is None and not isinstance(target, Measurement):
        raise InvalidParameter("audit.no_claim", parameter="claim")
    promise = claim_of(target.event if claim is None else claim, delta=delta)  # type: ignore[union-attr]
    alpha = 1 - strict_probability("confidence", confidence)
    if positive_integer("runs", runs) < LEAST_RUNS:
        raise InvalidParameter("audit.too_few_runs", parameter="runs", least=LEAST_RUNS)
    if not isinstance(neighbors, tuple | list) or len(neighbors) != 2:
        raise InvalidParameter("audit.not_a_pair", parameter="neighbors")
    aim = target_of(target, batch=batch, asks=asks, stream=stream, rng=rng)
    drawn = [aim.answers(data, runs) for data in neighbors]
    first, second = _read_worlds(*drawn)
    trained = int(TRAINING * runs)
    chosen = _choose(first.part(0, trained), second.part(0, trained), promise, confirmed=runs - trained)
    labels = (_label(neighbors[0]), _label(neighbors[1]))
    rest = (first.part(trained, runs), second.part(trained, runs))
    scores = {c.score: (c.score(rest[0]), c.score(rest[1])) for c in chosen}
    witnesses = [_count(c, scores[c.score], promise, labels, alpha / len(chosen)) for c in chosen]
    report = _Report(name or aim.name, promise, confidence, runs, labels)
    verdict = _judge(report, witnesses, [scores[c.score] for c in chosen])
    if not verdict.broken and all(has_failed(answer) for answers in drawn for answer in answers):
        raise InvalidParameter("audit.never_answers", parameter="target", name=report.name, runs=runs)
    return verdict


def _read_worlds(one: Drawn, two: Drawn) -> tuple[Answers, Answers]:
    runs = len(one)
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray) and one.shape == two.shape:
        both = Answers.of(np.concatenate([one, two]))
    else:
        both = Answers.of([*one, *two])
    return both.part(0, runs), both.part(runs, 2 * runs)


def _label(data: object) -> str:
    text = " ".join(repr(data).split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def _choose(first: Answers, second: Answers, claim: Claim, *, confirmed: int) -> list[_Candidate]:
    """Learn on the first half of the training answers, choose thresholds on the second."""
    learned = min(len(first) // 2, LEARNED)
    learn = first.part(0, learned), second.part(0, learned)
    select = first.part(learned, len(first)), second.part(learned, len(second))
    singles: list[BinnedScore] = [learn_bins(feature, *learn) for feature in features_of(*learn)]
    promising = [_thresholds(score, *select, claim, confirmed) for score in singles]
    order = sorted(range(len(singles)), key=lambda i: -max(c.promise for c in promising[i]))
    half_lines = [score for i in order[:HALF_LINES] for score in order_by_number(singles[i].feature, *learn)]
    found = promising + [_thresholds(score, first, second, claim, confirmed) for score in half_lines]
    if len(singles) > 1:
        joint = combine_scores([singles[i] for i in order[:COMBINED]], *learn)
        found.append(_thresholds(joint, *select, claim, confirmed))
    candidates = sorted((c for pair in found for c in pair), key=lambda c: -c.promise)
    best = [next(c for c in candidates if c.high is side) for side in (True, False)]
    others = [c for c in candidates if c not in best]
    return best + others[: EVENTS - len(best)]


def _thresholds(score: Score, first: Answers, second: Answers, claim: Claim, confirmed: int) -> list[_Candidate]:
    """The most promising threshold for each of the two directions."""
    one, two = np.sort(score(first)), np.sort(score(second))
    levels = np.unique(np.concatenate([one, two]))
    if len(levels) > 512:
        levels = levels[np.unique(np.linspace(0, len(levels) - 1, 512).astype(np.intp))]
    size = len(one)
    above = [(size - np.searchsorted(world, levels, "left")) / size for world in (one, two)]
    below = [np.searchsorted(world, levels, "right") / size for world in (two, one)]
    candidates = []
    for high, (p, q) in ((True, above), (False, below)):
        promise = _promise(p, q, claim, (size, score.doubt), confirmed)
        best = int(np.argmax(promise))
        weights = weights_for(float(p[best]), float(q[best]), claim)
        candidates.append(_Candidate(score, float(levels[best]), high, float(promise[best]), weights))
    return candidates


def _promise(p: Floats, q: Floats, claim: Claim, chosen_on: tuple[int, float], confirmed: int) -> Floats:
    """A cautious guess at what the confirmation will show; `chosen_on` is the size of the choice and its doubt."""
    size, doubt = chosen_on
    low, up = rough_bounds(p, size, deviations=doubt)[0], rough_bounds(q, size, deviations=doubt)[1]
    return claim.least(rough_bounds(low, confirmed, deviations=2.5)[0], rough_bounds(up, confirmed, deviations=2.5)[1])


def _count(
    candidate: _Candidate, worlds: tuple[Floats, Floats], claim: Claim, labels: tuple[str, str], alpha: float
) -> Witness:
    """Count one event on the scores of fresh answers; its bound fails with probability at most alpha."""
    likely, unlikely = (0, 1) if candidate.high else (1, 0)
    happened = [candidate.happens(scores) for scores in worlds]
    counts = Counts(happened[likely], len(worlds[likely]), happened[unlikely], len(worlds[unlikely]))
    found = explain(counts, claim, weights=candidate.weights, alpha=alpha)
    return Witness(
        event=candidate.score.describe(candidate.threshold, high=candidate.high),
        likely=labels[likely],
        unlikely=labels[unlikely],
        count=counts.likely,
        trials=counts.trials,
        count_against=counts.against,
        trials_against=counts.trials_against,
        probability=found.p,
        probability_against=found.q,
        least=found.least,
    )


def _judge(report: _Report, witnesses: list[Witness], scores: list[tuple[Floats, Floats]]) -> Verdict:
    strongest = max(range(len(witnesses)), key=lambda i: witnesses[i].least)
    lower, amount = witnesses[strongest].least, report.claim.amount
    share = (1 - report.confidence) / len(witnesses)
    ceiling = _ceiling(report.claim, report.runs - int(TRAINING * report.runs), share)
    outcome = Outcome.CONSISTENT if ceiling > amount else Outcome.NO_POWER
    if lower > amount:
        outcome = Outcome.BROKEN
    return Verdict(
        outcome=outcome,
        lower=lower,
        ceiling=ceiling,
        runs_needed=_runs_needed(report.claim, share),
        witness=witnesses[strongest],
        curve=_curve(*scores[strongest]),
        **vars(report),
    )


def _ceiling(claim: Claim, trials: int, alpha: float) -> float:
    """What `trials` fresh runs a world show when the event always happens in one world and never in the other."""
    return explain(Counts(trials, trials, 0, trials), claim, weights=(1.0, 1.0), alpha=alpha).least


def _runs_needed(claim: Claim, alpha: float) -> float:
    """The least number of runs a world whose confirmation could show a breach."""
    high = 100
    while _ceiling(claim, high, alpha) <= claim.amount:
        high *= 2
        if high > 10**15:
            return float("inf")
    low = 0
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        enough = middle > 0 and _ceiling(claim, middle, alpha) > claim.amount
        low, high = (low, middle) if enough else (middle, high)
    return float(math.ceil(high / (1 - TRAINING)))


def _curve(first: Floats, second: Floats) -> tuple[tuple[float, float], ...]:
    """(false positives, true positives) of thresholds on a score."""
    one, two = np.sort(first), np.sort(second)
    levels = np.unique(np.quantile(np.concatenate([one, two]), np.linspace(0, 1, 101), method="nearest"))
    true = 1 - np.searchsorted(one, levels, "left") / len(one)
    false = 1 - np.searchsorted(two, levels, "left") / len(two)
    return (*zip(false.tolist(), true.tolist(), strict=True), (0.0, 0.0))
