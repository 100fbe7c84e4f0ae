"""The k best labels at once: one exponential mechanism after the other, each on the labels that are left."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mosha.accounting.numerics.price import round_down
from mosha.core.errors import InvalidParameter
from mosha.core.events import Exponential
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, positive_integer, strict_probability
from mosha.core.unit import Unit
from mosha.exact.statistic import Statistic
from mosha.mechanisms.choice import check_candidates, exponential_regret
from mosha.mechanisms.noisy_statistic import exact_steps, title
from mosha.noise import exponential_choice

__all__ = ["TopError", "top_k"]


@explain_wrong_calls
def top_k(statistic: Statistic, *, unit: Unit, k: int, epsilon: float) -> Measurement:
    """The k best labels, best first: the law of one-shot Gumbel noise (Durfee and Rogers 2019), drawn exactly.

    Each of the k choices is paid with epsilon / k; composed as k choices of bounded range they cost an account for
    zero-concentrated privacy only epsilon^2 / (8 k).

    Guarantee:
        Every choice is `exponential` among the labels left, which the earlier answers, being public, have fixed; its
        scores have no larger span. So k events Exponential(epsilon / k) compose adaptively. (The k largest of
        score + Gumbel noise of scale b have the same law: given the first r, the next is again
        proportional to exp(score / b) among the rest. Gumbel noise is real-valued, this is exact on integers.)

    Units:
        Scores are in steps of the statistic's grid; error bars say how far each chosen score may be below the best
        score that was left.

    Args:
        statistic: a statistic that scores two labels or more, such as `Histogram(...)`.
        unit: whose presence is hidden, such as `mosha.Row()` or `mosha.Person(...)`.
        k: how many labels to choose.
        epsilon: the epsilon of all k choices together.

    >>> from mosha import Row, noise
    >>> from mosha.mechanisms import Histogram
    >>> wards = top_k(Histogram(keys=["A", "B", "C"]), unit=Row(), k=2, epsilon=2)
    >>> wards.event, wards.step(None, ["B"] * 200 + ["C"] * 100, None, noise.SeededRandom(1))[0]
    (Exponential(epsilon=1.0) * 2, ['B', 'C'])
    """
    statistic, unit, labels = check_candidates(statistic, unit)
    epsilon, k = positive("epsilon", epsilon), positive_integer("k", k)
    if k > len(labels):
        raise InvalidParameter("mechanisms.k_too_large", parameter="k", labels=len(labels))
    each = positive("epsilon / k", round_down(Fraction(epsilon) / k))
    scale = statistic.sensitivity(unit).span / Fraction(each)

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
        del ask
        scores, left = exact_steps(statistic, data, unit), list(range(len(labels)))
        chosen = [left.pop(exponential_choice(scores[left], scale, rng=rng)) for _ in range(k)]
        return [labels[index] for index in chosen], state

    return Measurement(
        unit=unit,
        event=Exponential(each) * k,
        step=step,
        error=TopError(len(labels), k, float(scale), statistic.grid),
        name=f"top_k({title(statistic)})",
        question=fingerprint(statistic, unit),
    )


@dataclass(frozen=True)
class TopError:
    """For each place: how far the chosen score may be below the best one left."""

    labels: int
    k: int
    scale: float
    grid: float

    def __call__(self, confidence: float, answer: object = None) -> float | NDArray[np.float64]:
        del answer
        strict_probability("confidence", confidence)
        left = range(self.labels, self.labels - self.k, -1)
        regrets = [exponential_regret(count, confidence) if count > 1 else 0.0 for count in left]
        return np.array(regrets) * self.scale * self.grid
