"""Is a model as sure as it should be? One private table of confidences; curve, error and temperature follow from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.number import positive, positive_integer
from mosha.core.unit import Person, Unit
from mosha.exact.bounding import keep_at_most, rows_per_unit
from mosha.exact.counts import Histogram
from mosha.exact.statistic import Sensitivity, Steps
from mosha.learning.choosing.accuracy import validation_parts
from mosha.learning.linear.rows import label_codes
from mosha.mechanisms import additive

__all__ = ["Calibration", "ConfidenceTable", "calibration", "with_temperature"]

Probabilities = Callable[[Any], Any]


@dataclass(frozen=True)
class ConfidenceTable:
    """How many examples there are in each bin of the model's confidence, right ones and wrong ones.

    `model` gives a row of probabilities for each example, each row by itself (see `Correct`).

    Guarantee:
        An example is in one of the 2 `bins` cells, or, with an unknown label, in none: the sensitivity is that of a
        `Histogram` with so many keys.

    >>> from mosha import Row
    >>> table = ConfidenceTable(lambda rows: [[0.2, 0.8]] * len(rows), classes=(0, 1), bins=4)
    >>> table.evaluate(([[0], [0]], [1, 0]), Row()).tolist()
    [0, 0, 1, 0, 0, 0, 1, 0]
    """

    model: Probabilities
    classes: tuple[Any, ...]
    bins: int = 10
    grid: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        object.__setattr__(self, "bins", positive_integer("bins", self.bins))
        if not callable(self.model) or len(set(self.classes)) < 2:
            raise InvalidParameter("learning.confidences_need")

    def __repr__(self) -> str:
        return f"ConfidenceTable(classes={self.classes}, bins={self.bins})"

    @property
    def labels(self) -> tuple[tuple[str, int], ...]:
        return tuple((word, i) for word in ("wrong", "right") for i in range(self.bins))

    @property
    def least(self) -> float:
        """The least confidence of the likeliest class."""
        return 1 / len(self.classes)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        return Histogram(keys=self.labels).sensitivity(unit)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        features, labels, persons = validation_parts(data, unit)
        codes = label_codes(labels, self.classes)
        table = np.asarray(self.model(features) if codes.size else np.zeros((0, len(self.classes))), np.float64)
        if table.shape != (codes.size, len(self.classes)):
            raise DataError("learning.probability_of_each")
        sure = np.nan_to_num(table, nan=0.0)
        share = (sure.max(axis=1) - self.least) / (1 - self.least)
        place = np.clip(np.nan_to_num(share) * self.bins, 0, self.bins - 1).astype(np.int64)
        cell = np.where(codes < 0, 2 * self.bins, place + self.bins * (sure.argmax(axis=1) == codes))
        if isinstance(unit, Person):
            cell = cell[keep_at_most(rows_per_unit(unit), persons, cell)]
        return np.bincount(cell, minlength=2 * self.bins + 1)[: 2 * self.bins].astype(np.int64)


@dataclass(frozen=True)
class Calibration:
    """A released table of confidences; everything here is post-processing.

    For each bin of confidence from `least` to 1: how many answers were `wrong` and how many `right`, with noise.

    >>> table = Calibration(wrong=np.array([5.0, 1.0]), right=np.array([5.0, 9.0]), least=0.5)
    >>> table.confidence.tolist(), table.accuracy.tolist()
    ([0.625, 0.875], [0.5, 0.9])
    """

    wrong: NDArray[np.float64]
    right: NDArray[np.float64]
    least: float

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The middle of each bin."""
        bins = self.wrong.size
        return np.asarray(self.least + (1 - self.least) * (np.arange(bins) + 0.5) / bins, np.float64)

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """The share of right answers in each bin; NaN in bins that look empty."""
        total = self.wrong + self.right
        return np.asarray(np.divide(self.right, total, out=np.full(total.shape, np.nan), where=total > 0))

    @property
    def expected_error(self) -> float:
        """The mean distance of confidence and accuracy, weighted by the (noisy) size of the bins."""
        total = self.wrong + self.right
        distance = np.abs(np.nan_to_num(self.accuracy - self.confidence))
        return float((total * distance).sum() / max(1.0, float(total.sum())))

    def temperature(self) -> float:
        """The T that makes confidences likeliest after dividing their log-odds by it; above 1: the model is too sure.

        Exact for two classes; for more it treats the likeliest class against all others.
        """
        odds = np.log(self.confidence) - np.log1p(-self.confidence)
        grid = np.exp(np.linspace(math.log(0.05), math.log(20.0), 400))
        scaled = odds[None, :] / grid[:, None]
        likelihood = -(self.right * np.logaddexp(0, -scaled) + self.wrong * np.logaddexp(0, scaled)).sum(axis=1)
        return float(grid[np.argmax(likelihood)])


def calibration(
    model: Probabilities,
    *,
    classes: Sequence[object],
    unit: Unit,
    epsilon: float,
    delta: float = 0.0,
    bins: int = 10,
) -> Measurement:
    """A private table of how sure a model is and how often it is right; `Calibration(...)` of it tells the rest.

    Args:
        model: rows -> the probability of each class.
        classes: the labels, declared in advance.
        unit: whose presence is hidden.
        epsilon: the price.
        delta: together with epsilon.
        bins: into so many equal parts probabilities are split.

    Guarantee:
        Noise on the cells of `ConfidenceTable`; negative cells are set to zero afterwards.

    Units:
        Counts of examples.

    >>> from mosha import Example, noise
    >>> sure = lambda rows: [[0.11, 0.89]] * len(rows)
    >>> asked = calibration(sure, classes=(0, 1), unit=Example(), epsilon=1, bins=5)
    >>> found, _ = asked.step(None, ([[0]] * 4000, [1, 0] * 2000), None, noise.SecureRandom())
    >>> found.temperature() > 5, bool(abs(found.accuracy[3] - 0.5) < 0.05)
    (True, True)
    """
    table = ConfidenceTable(model, tuple(classes), bins)
    inner = additive(table, unit=unit, epsilon=positive("epsilon", epsilon), delta=delta)

    def step(state: object, data: object, ask: object, rng: Any) -> tuple[Calibration, Any]:
        noisy, state = inner.step(state, data, ask, rng)
        cells = np.maximum(0.0, np.asarray(noisy, np.float64))
        return Calibration(cells[: table.bins], cells[table.bins :], table.least), state

    return replace(inner, step=step, error=None, draw=None, name="calibration")


def with_temperature(probabilities: object, temperature: float) -> NDArray[np.float64]:
    """The `probabilities` of classes, softened (`temperature` above 1) or sharpened: p^(1/T), again summing to one.

    >>> with_temperature([[0.9, 0.1]], 2.0).round(3).tolist()
    [[0.75, 0.25]]
    """
    exponent = 1 / positive("temperature", temperature)
    logs = np.log(np.maximum(np.asarray(probabilities, np.float64), 1e-300)) * exponent
    powers = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
