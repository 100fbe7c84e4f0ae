"""Linear, logistic and softmax regression: private, without PyTorch, by scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mosha.core.options import LossName
from mosha.exact.bounding import to_numbers
from mosha.exact.grid import check_bounds as checked_bounds
from mosha.learning.linear.descent import Floats
from mosha.learning.linear.descent_model import DescentClassifier, DescentModel, check_classes
from mosha.learning.linear.estimator import explain_variance
from mosha.learning.linear.losses import LOGIT, softmax_probabilities
from mosha.learning.linear.rows import label_codes

__all__ = ["LinearRegression", "LogisticRegression", "SoftmaxRegression"]


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(DescentClassifier):
    """Two classes, by full-batch private gradient descent.

    Say the price by `epsilon` and `delta`, by `rho` or by `mu`; an account of exactly that limit pays for it.

    Args:
        classes: the negative and the positive label, declared in advance.
        examples: the declared number of examples (public; the true number is never read).
        epsilon, delta: the price as (epsilon, delta); or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        between: the declared range of the features, one (low, high) for all or one for each; or
        norm: the declared bound on the norm of a row.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.
        fit_intercept: whether the model has an intercept.
        steps: the number of descent steps.
        learning_rate: the length of a step.
        momentum: how much of the last step goes into the next one.
        clip: the norm that one example's gradient is clipped to.
        penalty: the weight of the squared norm of the coefficients.
        average: the share of the last steps whose weights are averaged.
        rate: the probability that an example is in a step; 1 for full batches.

    Guarantee:
        `fit` releases the weights of `Descent` with this loss; everything else is post-processing of them.

    >>> import numpy as np
    >>> from mosha import Example, Ledger
    >>> X = np.linspace(-1, 1, 4001)[:, None]
    >>> account = Ledger.memory().account("demo", unit=Example(), mu=1, delta=1e-6)
    >>> model = LogisticRegression(classes=("low", "high"), examples=4000, norm=1.0, mu=0.9)
    >>> model = model.fit(X, np.where(X[:, 0] > 0, "high", "low"), account=account)
    >>> model.predict([[-0.8], [0.8]]).tolist()
    ['low', 'high']
    """

    _loss: ClassVar[LossName] = "logistic"
    _rate: ClassVar[float] = 12.0

    classes: Sequence[object] = (0, 1)

    def _labels(self) -> tuple[Any, ...]:
        return check_classes(self.classes, exactly=2)

    def _targets(self, y: object) -> Floats:
        codes = label_codes(y, self._labels()).astype(np.float64)
        return np.where(codes < 0, np.nan, codes)[:, None]

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """Probabilities of the two classes."""
        logits = self.decision_function(X)[:, 0]
        positive = 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
        return np.column_stack([1 - positive, positive])


class SoftmaxRegression(DescentClassifier):
    """Several classes, by full-batch private gradient descent.

    Args:
        classes: the labels, declared in advance.
        examples: the declared number of examples (public; the true number is never read).
        epsilon, delta: the price as (epsilon, delta); or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        between: the declared range of the features, one (low, high) for all or one for each; or
        norm: the declared bound on the norm of a row.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.
        fit_intercept: whether the model has an intercept.
        steps: the number of descent steps.
        learning_rate: the length of a step.
        momentum: how much of the last step goes into the next one.
        clip: the norm that one example's gradient is clipped to.
        penalty: the weight of the squared norm of the coefficients.
        average: the share of the last steps whose weights are averaged.
        rate: the probability that an example is in a step; 1 for full batches.

    Guarantee:
        `fit` releases the weights of `Descent` with this loss; everything else is post-processing of them.

    >>> model = SoftmaxRegression(classes=range(10), examples=60_000, norm=1.0, epsilon=1, delta=1e-5)
    >>> model.plan(features=784).width
    785
    """

    _loss: ClassVar[LossName] = "softmax"
    _clip: ClassVar[float] = 1.0

    def _labels(self) -> tuple[Any, ...]:
        return check_classes(self.classes)

    def _outputs(self) -> int:
        return len(self._labels())

    def _targets(self, y: object) -> Floats:
        codes = label_codes(y, self._labels())
        targets = np.eye(self._outputs())[np.maximum(codes, 0)]
        targets[codes < 0] = np.nan
        return targets

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """Probabilities of the classes, in their declared order."""
        return softmax_probabilities(self.decision_function(X) / LOGIT)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(DescentModel):
    """A number, by full-batch private gradient descent on residuals that are clipped: Huber's loss.

    Args:
        target: the declared range (low, high) of y; predictions stay within it.
        examples: the declared number of examples (public; the true number is never read).
        epsilon, delta: the price as (epsilon, delta); or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        between: the declared range of the features, one (low, high) for all or one for each; or
        norm: the declared bound on the norm of a row.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.
        fit_intercept: whether the model has an intercept.
        steps: the number of descent steps.
        learning_rate: the length of a step.
        momentum: how much of the last step goes into the next one.
        clip: the norm that one example's gradient is clipped to.
        penalty: the weight of the squared norm of the coefficients.
        average: the share of the last steps whose weights are averaged.
        rate: the probability that an example is in a step; 1 for full batches.

    Guarantee:
        `fit` releases the weights of `Descent` with this loss; everything else is post-processing of them.

    >>> import numpy as np
    >>> from mosha import Example, Ledger
    >>> X = np.linspace(0, 10, 5001)[:, None]
    >>> account = Ledger.memory().account("demo", unit=Example(), mu=1, delta=1e-6)
    >>> line = LinearRegression(target=(0, 100), examples=5000, between=(0, 10), mu=0.9, steps=100)
    >>> bool(abs(line.fit(X, 20 + 5 * X[:, 0], account=account).predict([[4.0]])[0] - 40) < 5)
    True
    """

    _loss: ClassVar[LossName] = "squared"
    _kind: ClassVar[str] = "regressor"
    _rate: ClassVar[float] = 1.0
    _clip: ClassVar[float] = 0.5

    target: tuple[float, float]

    def _question(self) -> str:
        return repr(checked_bounds("target", self.target))

    def _scale(self) -> tuple[float, float]:
        low, high = checked_bounds("target", self.target)
        return (low + high) / 2, (high - low) / 2

    def _targets(self, y: object) -> Floats:
        middle, half = self._scale()
        with np.errstate(all="ignore"):
            scaled = np.clip((to_numbers(y) - middle) / half, -1.0, 1.0)
        return np.rint(scaled / LOGIT)[:, None]

    def with_weights(self, weights: Floats, features: int) -> Self:
        super().with_weights(weights, features)
        middle, half = self._scale()
        self.coef_ = self.coef_[0] * half
        self.intercept_ = self.intercept_[0] * half + middle
        return self

    def predict(self, X: object) -> Floats:  # noqa: N803
        """The expected number, within the declared range."""
        middle, half = self._scale()
        return middle + half * np.clip(self.decision_function(X)[:, 0], -1.0, 1.0)

    def score(self, X: object, y: object) -> float:  # noqa: N803
        """The share of the variance explained, on *public* examples."""
        return explain_variance(y, self.predict(X))
