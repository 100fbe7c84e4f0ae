"""Choices: the label whose score is (nearly) the highest, by the exponential mechanism or by permute-and-flip.

The scores are the coordinates of a statistic, so their sensitivity is derived like any other. What counts is the
*span*: adding one number to all scores changes no choice, so a unit that moves scores one way only, like counts
under add/remove, tells half as much as one that moves some up and others down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mosha.core.errors import InvalidParameter
from mosha.core.events import Exponential, Pure
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, strict_probability
from mosha.core.unit import Unit
from mosha.exact.statistic import Statistic
from mosha.mechanisms.noisy_statistic import check_moving, exact_steps, title
from mosha.noise import exponential_choice, permute_and_flip_choice

__all__ = [
    "Regret",
    "check_candidates",
    "exponential",
    "exponential_regret",
    "permute_and_flip",
    "permute_and_flip_regret",
]


@explain_wrong_calls
def exponential(statistic: Statistic, *, unit: Unit, epsilon: float) -> Measurement:
    """One label, with probability proportional to exp(epsilon * score / span) (McSherry and Talwar 2007).

    Prefer `permute_and_flip`, unless many choices are composed: the exponential mechanism has bounded range, which an
    accountant prices lower.

    Guarantee:
        Neighbors change score i by d_i with max d - min d <= span. With b = span / epsilon the log-probability
        of i changes by d_i / b minus the change of log sum exp(scores / b), which is the same for every i and lies
        between min d / b and max d / b. So all changes lie in one interval of length epsilon that holds 0:
        epsilon-bounded range (Durfee and Rogers 2019), hence epsilon-differential privacy. Exact on integers, no gap.

    Units:
        Scores are in steps of the statistic's grid, like the span. The error bar is how far the chosen
        score may be below the best one.

    Args:
        statistic: a statistic that scores two labels or more, such as `Histogram(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon that a release costs.

    >>> from mosha import Row, noise
    >>> from mosha.mechanisms import Histogram
    >>> ward = exponential(Histogram(keys=["A", "B"]), unit=Row(), epsilon=1)
    >>> ward.event, ward.step(None, ["B"] * 100, None, noise.SeededRandom(1))[0]
    (Exponential(epsilon=1.0), 'B')
    """
    event = Exponential(epsilon)
    return _make_choice(statistic, unit, choose=exponential_choice, regret=exponential_regret, event=event)


@explain_wrong_calls
def permute_and_flip(statistic: Statistic, *, unit: Unit, epsilon: float) -> Measurement:
    """One label by permute-and-flip (McKenna and Sheldon 2020): never worse than `exponential`, up to twice as good.

    Labels are visited in random order; the first one to throw heads with a coin of bias exp(-(best - score) / b),
    b = span / epsilon, is the answer.

    Guarantee:
        It chooses like the largest of score + exponential noise of scale b (Ding et al. 2021): noise lifts label i over
        the best score with its coin's bias, and by how much is exponential again, so the largest is any of the lifted.
        Fix the noise of all labels but r, let M be the largest of their noisy scores: r wins with probability
        min(1, exp(-(M - score_r) / b)). Neighbors move M by some d, min d_i <= d <= max d_i, and score_r by d_r, so
        M - score_r by at most the span: a factor of at most exp(span / b) = e^epsilon. Exact on integers, no gap.

    Units:
        As in `exponential`.

    Args:
        statistic: a statistic that scores two labels or more, such as `Histogram(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        epsilon: the epsilon that a release costs.

    >>> from mosha import Row, noise
    >>> from mosha.mechanisms import Histogram
    >>> ward = permute_and_flip(Histogram(keys=["A", "B"]), unit=Row(), epsilon=1)
    >>> ward.event, ward.step(None, ["B"] * 100, None, noise.SeededRandom(1))[0]
    (Pure(epsilon=1.0), 'B')
    """
    event = Pure(positive("epsilon", epsilon))
    return _make_choice(statistic, unit, choose=permute_and_flip_choice, regret=permute_and_flip_regret, event=event)


def check_candidates(statistic: object, unit: object) -> tuple[Statistic, Unit, tuple[object, ...]]:
    """A statistic that scores at least two labels."""
    statistic, unit = check_moving(statistic, unit)
    if statistic.labels is None or len(statistic.labels) < 2:
        raise InvalidParameter("mechanisms.two_labels", parameter="statistic", kind=title(statistic))
    return statistic, unit, statistic.labels


def _make_choice(
    statistic: Statistic,
    unit: Unit,
    *,
    choose: Callable[..., int],
    regret: Callable[[int, float], float],
    event: Exponential | Pure,
) -> Measurement:
    statistic, unit, labels = check_candidates(statistic, unit)
    scale = statistic.sensitivity(unit).span / Fraction(event.epsilon)

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
        del ask
        return labels[choose(exact_steps(statistic, data, unit), scale, rng=rng)], state

    return Measurement(
        unit=unit,
        event=event,
        step=step,
        error=Regret(regret, len(labels), float(scale), statistic.grid),
        name=f"{'exponential' if isinstance(event, Exponential) else 'permute_and_flip'}({title(statistic)})",
        question=fingerprint(statistic, unit),
    )


@dataclass(frozen=True)
class Regret:
    """How far the score of the chosen label may be below the best score: true for all scores there could be."""

    worst: Callable[[int, float], float]
    labels: int
    scale: float
    grid: float

    def __call__(self, confidence: float, answer: object = None) -> float:
        del answer
        return self.worst(self.labels, strict_probability("confidence", confidence)) * self.scale * self.grid


def exponential_regret(labels: int, confidence: float) -> float:
    """The t, in scales, such that the best score minus the chosen one exceeds t with probability <= 1 - confidence.

    Guarantee:
        Labels more than t below the best weigh at most x = (labels - 1) e^-t together, the best weighs 1: they
        are chosen with probability at most x / (1 + x). Solved for t.

    >>> round(exponential_regret(100, 0.95), 3)
    7.54
    """
    return max(0.0, math.log((labels - 1) * confidence) - math.log1p(-confidence))


def permute_and_flip_regret(labels: int, confidence: float) -> float:
    """The same for permute-and-flip.

    Guarantee:
        The worst is all others t below the best, heads with probability p = e^-t each: the best wins with
        E[1 / (1 + Binomial(labels - 1, p))] = (1 - (1 - p)^labels) / (labels p), which falls in p. Solved for p.

    >>> round(permute_and_flip_regret(100, 0.95), 3)
    6.864
    """
    low, high = -745.0, 0.0  # ln p
    for _ in range(60):
        middle = (low + high) / 2
        p = math.exp(middle)
        wins = -math.expm1(labels * math.log1p(-p)) / (labels * p) if p < 1 else 1 / labels
        low, high = (middle, high) if wins >= confidence else (low, middle)
    return max(0.0, -low)
