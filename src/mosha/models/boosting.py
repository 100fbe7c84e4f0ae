"""Gradient boosting of trees on one feature at a time: each step releases noisy sums of residuals in a few leaves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.fingerprint import write_as_stored
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, positive_integer
from mosha.core.options import LossName
from mosha.core.unit import Unit
from mosha.learning.linear.estimator import explain_variance
from mosha.learning.linear.losses import LOGIT, SCALE, loss_of, softmax_probabilities
from mosha.models.bayes import Likelihoods
from mosha.models.model import RowModel
from mosha.models.paying import Price
from mosha.models.ranges import Between, Ranges, read_ranges
from mosha.models.several_steps import StepNoise, share_price
from mosha.models.sums.moments import check_labels
from mosha.models.sums.residual_sums import FINE, BinCounts, ResidualSums
from mosha.models.sums.row_sums import Floats, Wholes
from mosha.models.trees import bin_rows

__all__ = ["GradientBoostingClassifier", "GradientBoostingRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class Boosting(RowModel):
    """What both boosted models share."""

    between: Between = None
    rounds: int = 16
    bins: int = 32
    leaves: int = 4
    learning_rate: float = 0.4

    @abstractmethod
    def _shape(self) -> tuple[LossName, int, tuple[object, ...] | None]:
        """The loss, the number of outputs and the classes."""

    def _ranges(self, features: int, names: Sequence[str] | None) -> Ranges:
        return self._read_ranges(self.between, features, names)

    def measurement(self, features: int, names: Sequence[str] | None = None) -> Measurement:
        """What `fit` opens: data are (X, y, persons), the answer is the scores of all bins and the constant."""
        ranges = self._ranges(features, names)
        plan = BoostingPlan(
            ranges, self._shape(), positive_integer("rounds", self.rounds), positive_integer("bins", self.bins),
            positive_integer("leaves", self.leaves), positive("learning_rate", self.learning_rate), features,
        )  # fmt: skip
        return plan.measurement(self.protected, self.price)

    def _learn(self, value: Any, measurement: Measurement, names: Sequence[str] | None) -> None:
        del measurement
        features = self.n_features_in_
        self.ranges_ = self._ranges(features, names)
        outputs = self._shape()[1]
        found = np.asarray(value, np.int64).reshape(features * self.bins + 1, outputs)
        self.intercepts_, self.scores_ = found[-1] * FINE, found[:-1].reshape(features, self.bins, outputs) * FINE

    def _add_scores(self, X: object) -> Floats:  # noqa: N803
        """The score of each output for each public example: a sum over features."""
        rows = self._read(X)
        lows, highs = self.ranges_.lows[: rows.shape[1]], self.ranges_.highs[: rows.shape[1]]
        binned = bin_rows(rows, Ranges(lows, highs), self.bins)
        return np.asarray(self.intercepts_ + sum(self.scores_[j, binned[:, j]] for j in range(rows.shape[1])))


@dataclass(frozen=True)
class BoostingPlan:
    """All steps, fixed before any data is read: the features in turn, each with leaves that are drawn at random."""

    ranges: Ranges
    shape: tuple[LossName, int, tuple[object, ...] | None]
    rounds: int
    bins: int
    leaves: int
    learning_rate: float
    features: int

    def measurement(self, unit: Unit, price: Price) -> Measurement:
        """As `Boosting.measurement`."""
        if not 2 <= self.bins <= 1 << 10 or self.leaves > self.bins or self.rounds > 1 << 12:
            raise InvalidParameter("models.size_of_boosting", parameter="bins")
        counts = BinCounts(Ranges(self.ranges.lows[: self.features], self.ranges.highs[: self.features]), self.bins)
        steps = self.rounds * self.features
        prices = share_price(price, [0.1, 0.9 / steps])
        look, move = (
            StepNoise.plan(like, unit, part, times)
            for like, part, times in ((counts, prices[0], 1), (self._sums(), prices[1], steps))
        )

        def step(state: object, data: object, ask: object, rng: Rng) -> tuple[Wholes, object]:
            del ask
            assert isinstance(data, tuple)
            weights = look.ask(counts, (data[0], None, data[2]), rng).reshape(self.features, self.bins)
            return self._boost(np.maximum(weights, 0.0), data, move, rng), state

        question = f"boosting {self!r} {write_as_stored(unit)}"
        event = look.event + move.event
        return Measurement(
            unit=unit, event=event, step=step, name="gradient boosting", question=question, delta=price.delta or None
        )

    def _sums(self, scores: Wholes | None = None, start: Wholes | None = None, feature: int = 0) -> ResidualSums:
        loss, outputs, classes = self.shape
        clip = int(min(loss_of(loss).longest, 1.4144) * SCALE) if outputs > 1 else SCALE
        leaves = self._draw_leaves() if scores is not None else np.zeros(self.bins, np.int64)
        empty = np.zeros((self.features, self.bins, outputs), np.int64)
        return ResidualSums(
            self.ranges, self.bins, loss, clip, outputs, self.leaves, classes,
            empty if scores is None else scores, np.zeros(outputs, np.int64) if start is None else start,
            feature, leaves,
        )  # fmt: skip

    def _draw_leaves(self) -> Wholes:
        """Runs of bins, cut at random places: public."""
        cuts = np.random.default_rng().choice(np.arange(1, self.bins), self.leaves - 1, replace=False)
        return np.searchsorted(np.sort(cuts), np.arange(self.bins), side="right").astype(np.int64)

    def _boost(self, weights: Floats, data: object, move: StepNoise, rng: Rng) -> Wholes:
        loss, outputs, _ = self.shape
        scores = np.zeros((self.features, self.bins, outputs), np.int64)
        start, total = np.zeros(outputs, np.int64), max(1.0, float(weights.sum(axis=1).mean()))
        curvature = 1.0 if loss == "squared" else 0.25
        floor = 2 * move.deviation / SCALE + 1.0
        for turn in range(self.rounds * self.features):
            feature = turn % self.features
            sums = self._sums(scores, start, feature)
            noisy = move.ask(sums, data, rng).reshape(self.leaves, outputs) / SCALE
            size = np.bincount(sums.leaf_of_bin, weights[feature], minlength=self.leaves)
            values = -self.learning_rate * noisy / (curvature * np.maximum(size, floor))[:, None]
            change = np.clip(values, -1.0, 1.0)[sums.leaf_of_bin]
            middle = (change * weights[feature][:, None]).sum(axis=0) / total
            scores[feature] += np.rint((change - middle) / FINE).astype(np.int64)
            start = start + np.rint(middle / FINE).astype(np.int64)
        return np.vstack([scores.reshape(-1, outputs), start])


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class GradientBoostingClassifier(Boosting, Likelihoods):
    """Additive scores of the features, learnt by boosting; a model that can be drawn feature by feature.

    Args:
        classes: the labels, declared in advance.
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        rounds: how often each feature has its turn.
        bins: into so many equal parts each range is split.
        leaves: how many runs of bins a step tells apart.
        learning_rate: how much of a step is taken.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, by Gaussian noise (better: there are many steps); or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        One release of `BinCounts` and `rounds` of `ResidualSums` for each feature, priced together before the first
        (after Nori et al. 2021). Leaves are drawn at random, and data decide about none of them.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(0, 1, size=(8000, 2))
    >>> account = Ledger.memory().account("demo", unit=Example(), mu=1, delta=1e-6)
    >>> model = GradientBoostingClassifier(classes=(0, 1), between=(0, 1), rounds=8, mu=0.9)
    >>> model.fit(X, (X[:, 1] > 0.5).astype(int), account=account).predict([[0.5, 0.1], [0.5, 0.9]]).tolist()
    [0, 1]
    """

    _kind: ClassVar[str] = "classifier"
    _fitted: ClassVar[str] = "scores_"
    classes: Sequence[object]

    def _shape(self) -> tuple[LossName, int, tuple[object, ...] | None]:
        labels = check_labels(self.classes)
        return ("logistic", 1, labels) if len(labels) == 2 else ("softmax", len(labels), labels)

    def decision_function(self, X: object) -> Floats:  # noqa: N803
        """The score of each class (of the second one, where there are two) for each public example."""
        return self._add_scores(X)

    def log_likelihood(self, X: object) -> Floats:  # noqa: N803
        scores = self._add_scores(X)
        if scores.shape[1] == 1:
            return np.asarray(np.column_stack([-np.logaddexp(0, scores[:, 0]), -np.logaddexp(0, -scores[:, 0])]))
        return np.asarray(np.log(softmax_probabilities(scores / LOGIT) + 1e-300))


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class GradientBoostingRegressor(Boosting):
    """The same for a target that is a number.

    Args:
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        target: the declared range of the target.
        rounds: how often each feature has its turn.
        bins: into so many equal parts each range is split.
        leaves: how many runs of bins a step tells apart.
        learning_rate: how much of a step is taken.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, by Gaussian noise (better: there are many steps); or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        As `GradientBoostingClassifier`; residuals are held within half of the target's range.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(0, 1, size=(8000, 1))
    >>> account = Ledger.memory().account("demo", unit=Example(), mu=1, delta=1e-6)
    >>> model = GradientBoostingRegressor(between=(0, 1), target=(0, 10), rounds=8, mu=0.9)
    >>> bool(np.diff(model.fit(X, 10 * (X[:, 0] > 0.5), account=account).predict([[0.1], [0.9]])) > 7)
    True
    """

    _kind: ClassVar[str] = "regressor"
    _fitted: ClassVar[str] = "scores_"
    target: tuple[float, float] | None = None

    def _shape(self) -> tuple[LossName, int, tuple[object, ...] | None]:
        return "squared", 1, None

    def _ranges(self, features: int, names: Sequence[str] | None) -> Ranges:
        found, last = self._read_ranges(self.between, features, names), read_ranges(self.target, 1)
        return Ranges(found.lows + last.lows, found.highs + last.highs)

    def predict(self, X: object) -> Floats:  # noqa: N803
        """The target that is expected of each example."""
        scores = np.clip(self._add_scores(X)[:, 0], -1.0, 1.0)
        return np.asarray(self.ranges_.middles[-1] + self.ranges_.halves[-1] * scores)

    def score(self, X: object, y: object) -> float:  # noqa: N803
        """The coefficient of determination on *public* examples."""
        return explain_variance(y, self.predict(X))
