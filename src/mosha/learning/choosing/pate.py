"""Private aggregation of teacher ensembles (Papernot et al. 2018): teachers that never met vote on public questions.

The private examples are dealt out to teachers, each is trained on its own part by any means, and for every question
the class with the most votes, after noise, is told. A student that learns from these labels is post-processing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive_integer
from mosha.core.unit import Neighbors, Person, Row, Unit
from mosha.exact.bounding import hash_name, identify, rows_per_unit, to_array
from mosha.exact.statistic import Sensitivity, Steps, root_up
from mosha.learning.linear.descent import gaussian_budget
from mosha.learning.linear.rows import label_codes
from mosha.mechanisms import gaussian

__all__ = ["Votes", "deal", "teachers_labels"]

Teach = Callable[[Any, Any], Callable[[Any], Any]]


@dataclass(frozen=True)
class Votes:
    """How many teachers vote for each class, on one question; data are the counts.

    Guarantee:
        A unit whose examples reach t teachers changes t votes: each leaves one class and enters another, so
        the l2 norm of the change is at most t sqrt(2), its l1 norm 2 t, its span 2 t. A unit is at t = 1 teacher when
        it is a person or has one row, at most at m with m rows; replaced, at twice as many.

    >>> from mosha import Example
    >>> Votes(classes=(0, 1, 2)).sensitivity(Example()).l2
    1.4142135623730951
    """

    classes: tuple[Any, ...]
    grid: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise InvalidParameter("learning.two_classes", parameter="classes")

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.classes

    def sensitivity(self, unit: Unit) -> Sensitivity:
        reached = unit.at_most if isinstance(unit, Row) else 1
        if not isinstance(unit, Person):
            rows_per_unit(unit)  # refuses units that own no rows
        reached *= 2 if unit.neighbors is Neighbors.REPLACE_ONE else 1
        return Sensitivity(
            l0=min(2 * reached, len(self.classes)),
            l1=2 * reached,
            l2=root_up(2 * reached**2),
            linf=reached,
            span=2 * reached,
        )

    def evaluate(self, data: object, unit: Unit) -> Steps:
        del unit
        return np.asarray(data, np.int64)


def deal(count: int, rows: object, labels: object, persons: object = None) -> NDArray[np.intp]:
    """To which of `count` teachers each example goes: by a hash of its person, or of the example itself.

    Guarantee:
        Where an example goes depends on nothing else: neither on its place nor on the others, so that adding one
        does not move the next. All examples of one person go to one teacher.

    >>> deal(4, [[1.0], [2.0], [1.0]], ["a", "b", "a"]).tolist()[::2] == deal(4, [[1.0]], ["a"]).tolist() * 2
    True
    """
    if persons is not None:
        names = [identify(person) for person in to_array(persons)]
    else:
        table, said = np.asarray(rows, np.float64) + 0.0, to_array(labels).tolist()  # -0.0 is 0.0
        flat = table.reshape(table.shape[0], math.prod(table.shape[1:]))  # -1 would fail where there are no rows
        names = [f"{row.tobytes().hex()} {identify(label)!r}" for row, label in zip(flat, said, strict=True)]
    return np.array([int(hash_name(name)) % count for name in names], np.intp)


def teachers_labels(
    teach: Teach,
    *,
    teachers: int,
    classes: Sequence[object],
    questions: int,
    unit: Unit,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    mu: float | None = None,
) -> Measurement:
    """Labels for `questions` public inputs (the ask), by the noisy votes of teachers; data are (X, y[, persons]).

    `teach(X, y)` trains one teacher and gives its function from inputs to labels. A teacher that fails, for want of
    examples or otherwise, casts no vote.

    Args:
        teach: (X, y) -> what one teacher predicts.
        questions: how many public inputs are labelled.
        teachers: how many of them; each learns from people of its own.
        classes: the labels, declared in advance.
        unit: whose presence is hidden.
        epsilon: the price, or
        delta: together with epsilon, or
        rho: the price in zero-concentrated privacy, or
        mu: the price in Gaussian privacy.

    Guarantee:
        By `deal` a unit reaches at most the teachers that `Votes` counts; a teacher is a function of its own part
        (`teach` may keep nothing between calls: assumed). So each question is the Gaussian mechanism on `Votes`,
        squares of mu add over the questions, and the label of the largest noisy count is post-processing.

    Units:
        `questions` counts inputs; the price does not depend on how far teachers agree.

    >>> from mosha import Example, noise
    >>> def teach(X, y):
    ...     most = max(set(y), key=list(y).count)
    ...     return lambda inputs: [most] * len(inputs)
    >>> ask = teachers_labels(teach, teachers=50, classes=("no", "yes"), questions=2, unit=Example(), rho=0.1)
    >>> X = np.arange(2000.0)[:, None]
    >>> ask.step(None, (X, ["yes"] * 2000), [[0.0], [1.0]], noise.SecureRandom())[0].tolist()
    ['yes', 'yes']
    """
    count, asked = positive_integer("teachers", teachers), positive_integer("questions", questions)
    budget = gaussian_budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    votes = Votes(tuple(classes))
    each = math.sqrt(float(Fraction(budget) ** 2 / asked)) * (1 - 2.0**-50)
    one = gaussian(votes, unit=unit, mu=each)

    def step(state: object, data: object, ask: Any, rng: Rng) -> tuple[Any, Any]:
        if ask is None or len(ask) > asked:
            raise InvalidParameter("learning.questions_paid", asked=asked)
        counts = _count_votes(teach, count, votes.classes, data, ask, unit)
        noisy = [one.step(None, row, None, rng)[0] for row in counts]
        told = np.array([int(np.argmax(row)) for row in noisy], np.intp)
        return np.array(votes.classes)[told], state

    return Measurement(
        unit=unit,
        event=one.event * asked,
        step=step,
        name="labels by teachers",
        question=fingerprint(votes, unit, count, asked),
    )


def _count_votes(
    teach: Teach, count: int, classes: tuple[Any, ...], data: object, ask: Any, unit: Unit
) -> NDArray[np.int64]:
    """The votes (questions by classes) of all teachers."""
    if not isinstance(data, tuple) or len(data) != 2 + isinstance(unit, Person):
        raise DataError("learning.teachers_pair")
    rows, labels = np.asarray(data[0]), to_array(data[1])
    if rows.ndim < 2 or rows.dtype.kind not in "biuf" or labels.shape != rows.shape[:1]:
        raise DataError("learning.row_of_each_label", parameter="X")
    places = deal(count, rows, data[1], data[2] if len(data) == 3 else None)
    counts = np.zeros((len(ask), len(classes)), np.int64)
    for teacher in range(count):
        mine = places == teacher
        said = _ask_teacher(teach, rows[mine], labels[mine], ask, classes)
        known = np.flatnonzero(said >= 0)
        counts[known, said[known]] += 1
    return counts


def _ask_teacher(teach: Teach, rows: object, labels: object, ask: Any, classes: tuple[object, ...]) -> NDArray[np.intp]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning of a teacher speaks of one part of the data
            said = label_codes(teach(rows, labels)(ask), classes)
    except Exception:  # noqa: BLE001  (a failure depends on one part of the data: it may cost a vote, and say nothing)
        return np.full(len(ask), -1, np.intp)
    return said if said.size == len(ask) else np.full(len(ask), -1, np.intp)
