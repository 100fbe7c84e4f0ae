"""One run is enough: many canaries, each in or out by its own fair coin, and how well their presence is guessed.

A trainer inserts the canaries that `draw_inclusion` put in, trains once, and scores every canary (high: it looks
present). Two estimators turn the guesses into a verdict: `epsilon_of_guesses` (Steinke, Nasr and Jagielski 2023) and
`chance_of_guesses`, which takes any claim with a trade-off curve (after Mahloujifar, Melis and Chaudhuri 2025). Both
are proved in `canary.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.audit.claims.claim import ApproxClaim, Claim, CurveClaim, GaussianClaim
from mosha.audit.claims.priced import claim_of
from mosha.audit.reporting.outcome import Outcome
from mosha.audit.reporting.report import Report
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.guarantee import Guarantee
from mosha.core.language import phrase, say
from mosha.core.measurement import Rng
from mosha.core.number import positive_integer, probability, strict_probability

__all__ = ["Guesses", "OneRun", "audit_one_run", "chance_of_guesses", "draw_inclusion", "epsilon_of_guesses", "guess"]

SHARES = (1.0, 0.5, 0.25, 0.1, 0.04)  # shares of the canaries that are guessed; the others are passed over


def draw_inclusion(canaries: int, *, rng: Rng | None = None) -> NDArray[np.bool_]:
    """Which of so many `canaries` go in: a fair coin each, tossed with `rng` (a secure one where it is left out).

    >>> draw_inclusion(1000).shape
    (1000,)
    """
    if rng is None:
        from mosha.noise import secure  # noqa: PLC0415  (loaded when it is needed)

        rng = secure()
    count = positive_integer("canaries", canaries)
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-count // 8)), np.uint8))
    return bits[:count].astype(bool)


@dataclass(frozen=True)
class Guesses:
    """How many of `canaries` were guessed, and how many of the guesses were right."""

    correct: int
    made: int
    canaries: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.made <= self.canaries or self.made < 1:
            raise InvalidParameter("audit.impossible_guesses")


def guess(scores: ArrayLike, included: ArrayLike, *, made: int) -> Guesses:
    """Call the half of `made` canaries with the highest scores present and as many with the lowest absent.

    What is guessed depends on the scores alone, and how many is fixed beforehand: the estimators rest on both.
    """
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(included)
    if values.ndim != 1 or values.shape != truth.shape or truth.dtype != bool:
        raise InvalidParameter("audit.scores_shape", parameter="scores")
    if np.isnan(values).any():
        raise InvalidParameter("audit.score_nan", parameter="scores")
    made = positive_integer("made", made)
    order = np.argsort(values, kind="stable")
    low, high = order[: made // 2], order[len(order) - (made - made // 2) :]
    return Guesses(int((~truth[low]).sum() + truth[high].sum()), made, len(values))


def epsilon_of_guesses(guesses: Guesses, *, delta: float, confidence: float) -> float:
    """The greatest epsilon for which (epsilon, delta)-privacy would make so many right guesses too unlikely.

    Guarantee:
        If training is (epsilon, delta)-differentially private, the result exceeds epsilon with probability at most
        1 - confidence (Steinke, Nasr and Jagielski 2023, theorem 5.2; restated in `canary.md`).

    >>> round(epsilon_of_guesses(Guesses(100, 100, 1000), delta=0, confidence=0.95), 2)
    3.49
    """
    alpha = 1 - strict_probability("confidence", confidence)
    delta = probability("delta", delta)
    return _greatest(lambda epsilon: _chance_epsilon(guesses, epsilon, delta) <= alpha, start=1.0)


def _chance_epsilon(guesses: Guesses, epsilon: float, delta: float) -> float:
    """An upper bound of P(so many right guesses or more) under (epsilon, delta)-privacy."""
    from scipy.stats import binom  # noqa: PLC0415

    right, made = guesses.correct, guesses.made
    truth = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, made, truth))
    if delta == 0 or right == 0:
        return tail
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), made, truth))
    worst = float(np.max(below / np.arange(1, right + 1)))
    return min(1.0, tail + 2 * guesses.canaries * delta * worst)


def chance_of_guesses(guesses: Guesses, claim: Claim, *, alpha: float) -> bool:
    """Whether a trainer that keeps its claim makes so many right guesses with probability below alpha.

    Guarantee:
        True only if P(correct >= observed) < alpha under every trainer that keeps the claim: `canary.md`.
    """
    alpha = strict_probability("alpha", alpha)
    made, scale = guesses.made, float(guesses.canaries)
    tail, beyond = alpha, 0.0  # S_(j+1) and the sum of all S beyond it, as lower bounds
    for j in range(guesses.correct - 1, -1, -1):
        present = ((j + 1) * tail + beyond) / scale
        if present >= 1:
            return True
        beyond += tail
        tail = max(tail, (beyond + scale * _least_false(claim, present)) / (made - j))
        if tail > 1 + 1e-9:
            return True
    return False


def _least_false(claim: Claim, true: float) -> float:
    """The least false-positive rate at which the claim allows this true-positive rate."""
    match claim:
        case GaussianClaim(mu):
            from scipy.special import ndtr, ndtri  # noqa: PLC0415

            return float(ndtr(ndtri(true) - mu))
        case ApproxClaim(epsilon, delta):
            return _least_false_approx(true, epsilon, delta)
        case CurveClaim(epsilons, deltas):
            points = zip(epsilons, deltas, strict=True)
            return max(_least_false_approx(true, epsilon, delta) for epsilon, delta in points)
    raise InvalidParameter("audit.one_run_claim", parameter="claim")


def _least_false_approx(true: float, epsilon: float, delta: float) -> float:
    if epsilon > 700:
        return 0.0
    return max(0.0, math.exp(-epsilon) * (true - delta), 1 - delta - math.exp(epsilon) * (1 - true))


def _greatest(rejected: Any, *, start: float) -> float:
    """The greatest value that is rejected, from below, to 1e-4; rejection must be monotone."""
    if not rejected(0.0):
        return 0.0
    high = start
    while rejected(high):
        high *= 2
        if high > 1e3:
            return high / 2
    low = 0.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class OneRun(Report):
    """What one training run with canaries showed.

    Fields:
        lower: the greatest amount of the measure that is refuted: epsilon (at delta), or mu of Gaussian privacy.
        broken: whether the claim itself is refuted (None where none was given).
        measure: in words, such as "mu (Gaussian)".
        guesses: how many were made and how many were right.
        confidence: with which `lower` holds.
        claim, outcome: what was claimed, and whether it stands; None where nothing was claimed.

    >>> import numpy as np
    >>> included = np.arange(40) % 2 == 0
    >>> audit_one_run(np.zeros(40), included, confidence=1 - 1e-9).measure
    'mu (Gaussian)'
    """

    measure: str
    lower: float
    guesses: Guesses
    confidence: float
    claim: str | None = None
    outcome: Outcome | None = None

    @property
    def broken(self) -> bool:
        return self.outcome is Outcome.BROKEN

    def __str__(self) -> str:
        said = say(
            "audit.one_run",
            **vars(self.guesses),
            measure=self.measure,
            lower=self.lower,
            confidence=self.confidence,
        )
        if self.outcome is None:
            return said
        return say("audit.one_run_claimed", outcome=self.outcome.describe().upper(), claim=self.claim, said=said)

    def to_dict(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "lower": self.lower,
            "guesses": vars(self.guesses).copy(),
            "confidence": self.confidence,
            "claim": self.claim,
            "outcome": None if self.outcome is None else str(self.outcome),
        }


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    confidence: float = 0.999,
    delta: float | None = None,
    claim: Claim | Guarantee | Event | None = None,
) -> OneRun:
    """Judge one training run by how well the presence of its canaries can be guessed.

    Guarantee:
        If the trainer keeps the claim, it is called broken with probability at most 1 - confidence; `lower` exceeds
        the true amount with at most that probability. Several numbers of guesses are tried, each at its share.

    Args:
        scores: one for each canary, computed from what training published; high where it looks present.
        included: what `draw_inclusion` drew.
        confidence: of the whole statement.
        delta: measure epsilon at this delta; Gaussian privacy (mu) where it is left out.
        claim: what the trainer promises: a guarantee, an event or a claim.

    >>> import numpy as np
    >>> from mosha.events import Pure
    >>> included = np.arange(1_000) % 2 == 0
    >>> audit_one_run(included.astype(float), included, claim=Pure(epsilon=0.5)).broken
    True
    """
    alpha = (1 - strict_probability("confidence", confidence)) / len(SHARES)
    total = np.asarray(scores).size
    tries = [guess(scores, included, made=max(1, round(share * total))) for share in SHARES]
    if delta is None:
        measure: str = phrase("audit.mu_gaussian")
        found = [
            _greatest(lambda mu, g=g: chance_of_guesses(g, GaussianClaim(mu), alpha=alpha), start=1.0) for g in tries
        ]
    else:
        measure = phrase("audit.epsilon_at_delta", delta=delta) if delta else "epsilon"
        found = [epsilon_of_guesses(g, delta=delta, confidence=1 - alpha) for g in tries]
    best = int(np.argmax(found))
    if claim is None:
        return OneRun(measure, found[best], tries[best], confidence)
    promise = claim_of(claim)
    broken = any(chance_of_guesses(g, promise, alpha=alpha) for g in tries)
    outcome = Outcome.BROKEN if broken else Outcome.CONSISTENT
    return OneRun(measure, found[best], tries[best], confidence, promise.describe(), outcome)
