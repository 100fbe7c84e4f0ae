"""Releases about a model: how often it is right on private examples, and which of several is right most often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive_integer, strict_probability
from mosha.core.release import Release
from mosha.core.unit import Neighbors, Person, Unit
from mosha.exact.bounding import keep_at_most, rows_per_unit
from mosha.exact.statistic import Sensitivity, Steps, root_up
from mosha.learning.linear.rows import label_codes
from mosha.mechanisms import additive, exponential, gaussian, permute_and_flip

__all__ = ["Correct", "accuracy", "accuracy_interval", "choose_model", "validation_parts"]

Predict = Callable[[Any], Any]


@dataclass(frozen=True)
class Correct:
    """How many private examples each of some models gets right; data are (X, y), or (X, y, persons) for a Person.

    `models` holds functions from X to labels, by name; they are public (released before).

    Methods take the `unit` whose presence is hidden, and `data`: (features, labels), with the persons as a third entry
    where the unit is one.

    Guarantee:
        Every model must label a row by itself: what it says of a row may not change with the other rows. (Mosha's
        linear models do so bit for bit; of others it is assumed.) Then an example moves every count by 0 or 1, all up
        when it is added and all down when it is removed: span 1, where a unit with m rows has m, and twice that when
        it is replaced. A label that is not among `classes` is never right.

    >>> from mosha import Row
    >>> right = Correct({"yes": lambda rows: [1] * len(rows), "no": lambda rows: [0] * len(rows)}, classes=(0, 1))
    >>> right.evaluate(([[5], [6], [7]], [1, 0, 1]), Row()).tolist(), right.sensitivity(Row()).span
    ([2, 1], 1)
    """

    models: Mapping[str, Predict]
    classes: tuple[Any, ...]
    grid: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if not isinstance(self.models, Mapping) or not self.models or not all(map(callable, self.models.values())):
            raise InvalidParameter("learning.models_by_name", parameter="models")
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise InvalidParameter("learning.two_classes", parameter="classes")

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.models)

    def __repr__(self) -> str:
        return f"Correct({list(self.models)}, classes={self.classes})"

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves it, in grid steps."""
        rows, count = rows_per_unit(unit), len(self.models)
        if unit.neighbors is Neighbors.ADD_REMOVE:
            return Sensitivity(
                l0=count, l1=count * rows, l2=root_up(count * rows**2), linf=rows, span=rows, monotone=True
            )
        return Sensitivity(l0=count, l1=count * rows, l2=root_up(count * rows**2), linf=rows, span=2 * rows)

    def evaluate(self, data: object, unit: Unit) -> Steps:
        """The exact counts or sums, in grid steps: as private as the data."""
        features, labels, persons = validation_parts(data, unit)
        codes = label_codes(labels, self.classes)
        right = np.column_stack([self._count_right(model, features, codes) for model in self.models.values()])
        if isinstance(unit, Person):
            right = right[keep_at_most(rows_per_unit(unit), persons, right)]
        return np.asarray(right.sum(axis=0, dtype=np.int64))

    def _count_right(self, model: Predict, features: object, codes: NDArray[np.intp]) -> NDArray[np.int64]:
        said = label_codes(model(features), self.classes) if codes.size else codes
        if said.size != codes.size:
            raise DataError("learning.label_of_each")
        return np.asarray((said == codes) & (codes >= 0), np.int64)


def validation_parts(data: object, unit: Unit) -> tuple[Any, Any, Any]:
    if not isinstance(data, tuple) or len(data) != 2 + isinstance(unit, Person):
        raise DataError("learning.validation_pair")
    persons = data[2] if len(data) == 3 else None
    if persons is not None and len(persons) != len(data[1]):
        raise DataError("learning.one_person_each")
    return data[0], data[1], persons


def accuracy(
    predict: Predict,
    *,
    classes: Sequence[object],
    examples: int,
    unit: Unit,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
) -> Measurement:
    """The share of validation examples that a released model gets right, with its error bar.

    Args:
        predict: rows -> a class for each.
        classes: the labels, declared in advance.
        unit: whose presence is hidden.
        epsilon: the price, or
        delta: together with epsilon, or
        rho: the price in zero-concentrated privacy.

    Guarantee:
        Noise on a count that one example moves by one (`Correct`), divided by the declared number of
        examples: the share moves by 1 / examples. Held within [0, 1]: post-processing.

    Units:
        A share; `examples` is how many validation examples there are, which is public.

    >>> from mosha import Example, noise
    >>> said = lambda rows: [1] * len(rows)
    >>> asked = accuracy(said, classes=(0, 1), examples=2000, unit=Example(), epsilon=0.5)
    >>> round(asked.forecast(0.95), 4)
    0.003
    """
    count = positive_integer("examples", examples)
    right = Correct({"model": predict}, tuple(classes))
    if (epsilon is None) == (rho is None):
        raise InvalidParameter("learning.epsilon_or_rho")
    if epsilon is not None:
        inner = additive(right, unit=unit, epsilon=epsilon, delta=delta)
    else:
        inner = gaussian(right, unit=unit, rho=rho)

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[float, Any]:
        noisy, state = inner.step(state, data, ask, rng)
        return min(1.0, max(0.0, float(noisy[0]) / count)), state

    def error(confidence: float, answer: Any) -> float:
        assert inner.error is not None
        return min(1.0, float(np.ravel(inner.error(confidence, None if answer is None else [answer]))[0]) / count)

    question = f"{inner.question} {count}"
    return replace(inner, step=step, error=error, draw=None, name="accuracy", question=question)


def accuracy_interval(release: Release, *, examples: int, confidence: float = 0.95) -> tuple[float, float]:
    """Where the accuracy on new examples lies: noise and the luck of the validation sample together.

    `release` is that of `accuracy`; the interval holds with probability `confidence`.

    Guarantee:
        Half of what may be missed goes to the noise, half to Clopper and Pearson's exact interval for the number
        of right answers among `examples` independent ones. Post-processing.

    >>> import numpy as np
    >>> import mosha
    >>> account = mosha.Ledger.memory().account("test", unit=mosha.Example(), epsilon=10)
    >>> asked = accuracy(lambda rows: rows > 0, classes=[False, True], examples=100, unit=mosha.Example(), epsilon=10)
    >>> with account.open(asked) as run:
    ...     release = run.step((np.arange(-50, 50), np.arange(-50, 50) > 0))
    >>> accuracy_interval(release, examples=100)[0] > 0.5
    True
    """
    from scipy.special import betaincinv  # noqa: PLC0415  (only where an interval is asked for)

    count = positive_integer("examples", examples)
    missed = 1 - strict_probability("confidence", confidence)
    noise = release.error(1 - missed / 2)
    fewest = max(0, int(np.floor((release.value - noise) * count)))
    most = min(count, int(np.ceil((release.value + noise) * count)))
    low = 0.0 if fewest == 0 else float(betaincinv(fewest, count - fewest + 1, missed / 4))
    high = 1.0 if most == count else float(betaincinv(most + 1, count - most, 1 - missed / 4))
    return low, high


def choose_model(
    models: Mapping[str, Predict], *, classes: Sequence[object], unit: Unit, epsilon: float, bounded_range: bool = False
) -> Measurement:
    """The name of the model that is (nearly) most often right on private validation examples.

    By permute-and-flip, or with `bounded_range` by the exponential mechanism, which composes more cheaply. The models
    themselves must have been released (paid for) before: this price is that of the choice.

    `models` are functions by name that predict one of `classes`; the choice costs `epsilon` for `unit`.

    Guarantee:
        The scores are counts of right answers, of span 1 (`Correct`): accuracies move by 1/m for m examples.

    >>> from mosha import Example, noise
    >>> constant = lambda label: lambda rows: [label] * len(rows)
    >>> choice = choose_model({"a": constant(0), "b": constant(1)}, classes=(0, 1), unit=Example(), epsilon=1)
    >>> choice.step(None, ([[0]] * 200, [1] * 200), None, noise.SecureRandom())[0]
    'b'
    """
    scores = Correct(models, tuple(classes))
    choose = exponential if bounded_range else permute_and_flip
    return choose(scores, unit=unit, epsilon=epsilon)
