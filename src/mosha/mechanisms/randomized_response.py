"""Randomized response: one's own answer, deniable before it leaves one's hands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.events import RandomizedResponse
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive
from mosha.core.unit import Own, Row, Unit
from mosha.exact.counts import Histogram
from mosha.noise import exponential_choice, uniform

__all__ = ["randomized_response", "response_frequencies", "truth_probability"]


@explain_wrong_calls
def randomized_response(categories: Sequence[object], *, unit: Unit, epsilon: float) -> Measurement:
    """The truth with probability e^epsilon / (e^epsilon + k - 1), else one of the other k - 1 categories, uniformly.

    The data is one value, that of the unit `Own`. A value that is no category is answered with any category at
    random, so that nobody can tell that it was none.

    Guarantee:
        P(report y | value x) is e^epsilon / Z for y = x and 1 / Z otherwise, Z = e^epsilon + k - 1 for every x: no two
        values differ by more than e^epsilon on any report. The uniform report is the average over all x, so by
        convexity it is no easier to tell from the report of a value than two values are. It is drawn as an
        exponential mechanism with score 1 for the truth and 0 for the rest: exact, no gap.

    Units:
        `epsilon` is a pure number. The error bar is the probability that the report is not the truth.

    Args:
        categories: the public categories, at least two.
        unit: `mosha.Own()`: the device's own value is hidden.
        epsilon: the epsilon that a release costs.

    >>> from mosha import Own, noise
    >>> smoker = randomized_response(["yes", "no"], unit=Own(), epsilon=20)
    >>> smoker.event, smoker.step(None, "no", None, noise.SeededRandom(1))[0]
    (RandomizedResponse(epsilon=20.0, categories=2), 'no')
    """
    labels = Histogram(keys=categories).labels
    if len(labels) < 2:
        raise InvalidParameter("mechanisms.two_categories", parameter="categories")
    if not isinstance(unit, Own):
        raise InvalidParameter("mechanisms.response_of_own_value", parameter="unit")
    epsilon = positive("epsilon", epsilon)
    scale = 1 / Fraction(epsilon)

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[object, object]:
        del ask
        truth = _find_position(labels, data)
        if truth is None:
            return labels[uniform(len(labels), rng=rng)], state
        scores = np.zeros(len(labels), np.int64)
        scores[truth] = 1
        return labels[exponential_choice(scores, scale, rng=rng)], state

    lie = 1 - truth_probability(len(labels), epsilon)
    return Measurement(
        unit=unit,
        event=RandomizedResponse(epsilon, len(labels)),
        step=step,
        error=lambda confidence, answer: lie,  # noqa: ARG005  (a report is the truth, or it is not)
        name="randomized_response",
        question=fingerprint(labels, unit),
    )


def _find_position(labels: tuple[object, ...], value: object) -> int | None:
    return next((position for position, label in enumerate(labels) if _is_equal(label, value)), None)


def _is_equal(label: object, value: object) -> bool:
    try:
        return bool(label == value)
    except Exception:  # noqa: BLE001  (what a value does when it is compared must not be heard)
        return False


def truth_probability(categories: int, epsilon: float) -> float:
    """e^epsilon / (e^epsilon + k - 1).

    >>> truth_probability(2, math.log(3))
    0.75
    """
    return 1 / (1 + (categories - 1) * math.exp(-positive("epsilon", epsilon)))


@explain_wrong_calls
def response_frequencies(
    reports: Sequence[object], categories: Sequence[object], *, epsilon: float
) -> NDArray[np.float64]:
    """The estimated share of each category among those who reported: unbiased, post-processing, free.

    With p the probability of the truth and q = (1 - p) / (k - 1) of each other category, a share f is reported with
    probability q + f (p - q); the reported shares are turned around. An estimate may be negative.

    Args:
        reports: what the devices reported.
        categories: the public categories, in the order of the answer.
        epsilon: the epsilon that the reports were made with.

    >>> response_frequencies(["yes"] * 60 + ["no"] * 40, ["yes", "no"], epsilon=math.log(3)).round(3).tolist()
    [0.7, 0.3]
    """
    counts = Histogram(keys=categories).evaluate(reports, Row())
    if counts.sum() == 0:
        raise InvalidParameter("mechanisms.no_reports", parameter="reports")
    p = truth_probability(len(counts), epsilon)
    q = (1 - p) / (len(counts) - 1)
    return np.asarray((counts / counts.sum() - q) / (p - q))
