"""Windows for learners: exact probabilities, the loss of one output, sensitivities, prices side by side.

Everything here is about numbers that the learner gives; nothing reads data about people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mosha import accounting
from mosha.accounting import advanced, renyi
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.events import Laplace
from mosha.core.number import positive, positive_integer, real, strict_probability

__all__ = [
    "Composition",
    "SequenceSensitivity",
    "compare_compositions",
    "exponential_probabilities",
    "privacy_loss",
    "sequence_sensitivities",
]


def exponential_probabilities(
    scores: Sequence[float], *, sensitivity: float, epsilon: float, monotone: bool = False
) -> list[float]:
    """The exact probabilities with which the exponential mechanism chooses each score.

    Guarantee:
        P(r) is proportional to exp(epsilon * score / (2 * sensitivity)); without the 2 if `monotone`: one person then
        moves all scores in the same direction, and the normalizing sum moves along.

    Args:
        scores: public scores, one for each candidate.
        sensitivity: how far one person moves a score at most.
        epsilon: the price of the choice.
        monotone: all scores move in the same direction.

    >>> [round(p, 3) for p in exponential_probabilities([5, 3, 1], sensitivity=1, epsilon=1)]
    [0.665, 0.245, 0.09]
    """
    if not scores:
        raise InvalidParameter("classroom.no_scores", parameter="scores")
    rate = positive("epsilon", epsilon) / positive("sensitivity", sensitivity) / (1 if monotone else 2)
    values = [real("scores", score) for score in scores]
    weights = [math.exp(rate * (value - max(values))) for value in values]
    return [weight / math.fsum(weights) for weight in weights]


def privacy_loss(
    output: float, *, first: float, second: float, scale: float, noise: Literal["laplace", "gaussian"] = "laplace"
) -> float:
    """The privacy loss of one output: the logarithm of how much likelier it is in one world than in the other.

    `noise` is "laplace" or "gaussian".

    Guarantee:
        ln(p(output | first) / p(output | second)), where p is the density of the noise around each exact answer. For
        Laplace noise it never exceeds |first - second| / scale; for Gaussian noise it does, rarely: that is delta.

    Units:
        `output`, `first`, `second` and `scale` (the standard deviation of Gaussian noise) are in the answer's unit.

    >>> privacy_loss(12.0, first=10, second=11, scale=1)
    -1.0
    >>> round(privacy_loss(14.0, first=11, second=10, scale=2, noise="gaussian"), 3)
    0.875
    """
    output, first, second = real("output", output), real("first", first), real("second", second)
    scale = positive("scale", scale)
    if noise == "laplace":
        return (abs(output - second) - abs(output - first)) / scale
    if noise == "gaussian":
        return ((output - second) ** 2 - (output - first) ** 2) / (2 * scale**2)
    raise InvalidParameter("classroom.no_such_noise", parameter="noise", name=noise)


@dataclass(frozen=True)
class SequenceSensitivity:
    """How far one event, or one person who comes at every step, moves a published sequence.

    `published` is what is published at each step; the others are how far one event, and one person, move all of it, by
    the sum of absolute values (`event_l1`, `person_l1`) and by the Euclidean length (`event_l2`, `person_l2`).

    >>> each, running = sequence_sensitivities(10)
    >>> each.event_l1, running.event_l1
    (1.0, 10.0)
    """

    published: str
    event_l1: float
    event_l2: float
    person_l1: float
    person_l2: float


def sequence_sensitivities(length: int) -> tuple[SequenceSensitivity, SequenceSensitivity]:
    """The sensitivities of `length` counts: of each step by itself, and of the running counts.

    Guarantee:
        An event moves one count, and the running counts from its step on: `length` of them at most, by one each. A
        person who comes once at every step moves count t by 1 and running count t by t; the sums are closed forms.

    >>> single, running = sequence_sensitivities(24)
    >>> running.event_l1, running.person_l1, round(running.person_l2, 1)
    (24.0, 300.0, 70.0)
    """
    steps = positive_integer("length", length)
    squares = steps * (steps + 1) * (2 * steps + 1) / 6
    return (
        SequenceSensitivity("each step", 1.0, 1.0, float(steps), math.sqrt(steps)),
        SequenceSensitivity("running", float(steps), math.sqrt(steps), steps * (steps + 1) / 2, math.sqrt(squares)),
    )


@dataclass(frozen=True)
class Composition:
    """What a number of equal questions costs together, by four rules.

    Fields:
        order: the Renyi order that gave `renyi`.
        questions: how many there are.
        basic, advanced, renyi, tight: the epsilon of all of them by addition, by the advanced theorem, by Renyi's, and
            by the tight accountant.

    >>> (found,) = compare_compositions(epsilon=0.1, delta=1e-6, questions=[100])
    >>> round(found.basic, 6), found.tight < found.advanced
    (10.0, True)
    """

    questions: int
    basic: float
    advanced: float
    renyi: float
    order: float
    tight: float


def compare_compositions(*, epsilon: float, delta: float, questions: Sequence[int]) -> list[Composition]:
    """The epsilon of many Laplace questions at delta: added up, by the advanced theorem, by Renyi, and tightly.

    Each question costs `epsilon`; `questions` lists how many of them are asked.

    Guarantee:
        Each column is a valid epsilon at `delta` for questions that are fixed in advance.

    >>> few, many = compare_compositions(epsilon=0.1, delta=1e-6, questions=[1, 100])
    >>> round(many.basic, 2), round(many.advanced, 2), round(many.renyi, 2), round(many.tight, 2)
    (10.0, 5.76, 4.98, 4.69)
    >>> 2 < many.order < 20
    True
    """
    epsilon, delta = positive("epsilon", epsilon), strict_probability("delta", delta)
    one = Laplace(1 / epsilon)
    return [_compose(one * positive_integer("questions", count), epsilon, delta, count) for count in questions]


def _compose(event: Event, epsilon: float, delta: float, count: int) -> Composition:
    orders = [1 + 10 ** (place / 40 - 2) for place in range(201)]  # 1.01 to 1001, six in a hundred apart
    by_order = {order: renyi.epsilon(event, delta, [order]) for order in orders}
    best = min(by_order, key=lambda order: by_order[order])
    return Composition(
        questions=count,
        basic=epsilon * count,
        advanced=advanced.kairouz_oh_viswanath([(epsilon, count)], delta),
        renyi=renyi.epsilon(event, delta),
        order=best,
        tight=accounting.epsilon(event, delta),
    )
