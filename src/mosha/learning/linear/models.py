"""Linear, logistic and softmax regression: private, without PyTorch, by scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.unit import Example, Unit
from mosha.exact.bounding import to_numbers
from mosha.exact.grid import check_bounds as checked_bounds
from mosha.learning.linear.descent import Descent, Floats, logits_of
from mosha.learning.linear.estimator import Estimator
from mosha.learning.linear.losses import LOGIT, softmax_probabilities
from mosha.learning.linear.rows import BoundedRows, label_codes

__all__ = ["LinearRegression", "LogisticRegression", "SoftmaxRegression"]


class _Linear(Estimator):
    """What the three share: bounded rows, a plan, one payment, one release."""

    _loss: ClassVar[str]
    _steps: ClassVar[int] = 60
    _rate: ClassVar[float] = 8.0
    _clip: ClassVar[float] = 1.0

    def __init__(
        self,
        *,
        examples: int,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        between: Any = None,
        norm: float | None = None,
        unit: Unit | None = None,
        fit_intercept: bool = True,
        steps: int | None = None,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        clip: float | None = None,
        penalty: float = 0.0,
        average: float = 0.3,
        rate: float = 1.0,
    ) -> None:
        self.examples = examples
        self.epsilon, self.delta, self.rho, self.mu = epsilon, delta, rho, mu
        self.between, self.norm, self.unit, self.fit_intercept = between, norm, unit, fit_intercept
        self.steps, self.learning_rate, self.momentum = steps, learning_rate, momentum
        self.clip, self.penalty, self.average, self.rate = clip, penalty, average, rate

    def _outputs(self) -> int:
        return 1

    def _targets(self, y: Any) -> Floats:
        raise NotImplementedError

    def rows(self, features: int) -> BoundedRows:
        """How examples with so many features are bounded."""
        return BoundedRows(features, self.between, self.norm, self.fit_intercept)

    def plan(self, features: int) -> Descent:
        """The descent, fixed before any data is read."""
        return Descent(
            width=self.rows(features).width,
            outputs=self._outputs(),
            loss=self._loss,
            examples=self.examples,
            steps=self._steps if self.steps is None else self.steps,
            learning_rate=self._rate if self.learning_rate is None else self.learning_rate,
            momentum=self.momentum,
            clip=self._clip if self.clip is None else self.clip,
            penalty=self.penalty,
            average=self.average,
            rate=self.rate,
        )

    def measurement(self, features: int) -> Measurement:
        """What `fit` opens: data are (X, y) or (X, y, persons), the answer is the weights on bounded rows."""
        rows, unit = self.rows(features), Example() if self.unit is None else self.unit
        inner = self.plan(features).measurement(
            unit=unit, epsilon=self.epsilon, delta=self.delta, rho=self.rho, mu=self.mu
        )

        def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Floats, Any]:
            if not isinstance(data, tuple) or len(data) not in (2, 3):
                raise DataError("the data of a regression are (X, y), or (X, y, persons).")
            steps, targets = rows.steps(data[0]), self._targets(data[1])
            return inner.step(state, (steps, targets, data[2] if len(data) == 3 else None), ask, rng)

        question = f"{inner.question} {rows!r} {self._question()}"
        return replace(inner, step=step, question=question)

    def _question(self) -> str:
        return ""

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        account: Account,
        persons: Any = None,
        key: str | None = None,
    ) -> Self:
        """Pay from `account`, then learn; nothing is read where the account refuses.

        `persons` says whose each example is, where the unit is a Person.
        """
        if not isinstance(account, Account):
            raise InvalidParameter("fit(X, y, account=...) needs the account that pays, such as ledger.account(...).")
        features = _features(X)
        data = (X, y) if persons is None else (X, y, persons)
        with account.open(self.measurement(features), key=key) as run:
            release = run.step(data)
        self.receipt_ = release.receipt
        return self.with_weights(release.value, features)

    def with_weights(self, weights: Floats, features: int) -> Self:
        """Take over weights that were released before: post-processing."""
        rows = self.rows(features)
        if np.shape(weights) != (rows.width, self._outputs()):
            raise InvalidParameter("these weights have another shape than this model's.")
        self.weights_, self._rows = weights, rows
        coefficients, intercepts = rows.in_units(weights)
        self.coef_, self.intercept_ = coefficients, cast("Any", intercepts)
        self.n_features_in_, self.n_iter_ = features, self.plan(features).steps
        return self

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Logits (examples by outputs): each a function of its own row, bit for bit."""
        self._check_fitted()
        return logits_of(self._rows.steps(X), self.weights_) * LOGIT


class _Classifier(_Linear):
    def _labels(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _question(self) -> str:
        return repr(self._labels())

    @property
    def classes_(self) -> NDArray[Any]:
        return np.array(self._labels())

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The likeliest class of each example."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The exact accuracy on *public* examples; that on private ones is bought (`mosha.learning.accuracy`)."""
        codes = label_codes(y, self._labels())
        return float((label_codes(self.predict(X), self._labels()) == codes)[codes >= 0].mean())


class LogisticRegression(_Classifier):
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

    _loss = "logistic"
    _rate = 12.0

    def __init__(
        self,
        *,
        classes: Sequence[Any] = (0, 1),
        examples: int,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        between: Any = None,
        norm: float | None = None,
        unit: Unit | None = None,
        fit_intercept: bool = True,
        steps: int | None = None,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        clip: float | None = None,
        penalty: float = 0.0,
        average: float = 0.3,
        rate: float = 1.0,
    ) -> None:
        super().__init__(
            examples=examples,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            mu=mu,
            between=between,
            norm=norm,
            unit=unit,
            fit_intercept=fit_intercept,
            steps=steps,
            learning_rate=learning_rate,
            momentum=momentum,
            clip=clip,
            penalty=penalty,
            average=average,
            rate=rate,
        )
        self.classes = classes

    def _labels(self) -> tuple[Any, ...]:
        return _distinct(self.classes, exactly=2)

    def _targets(self, y: Any) -> Floats:
        codes = label_codes(y, self._labels()).astype(np.float64)
        return np.where(codes < 0, np.nan, codes)[:, None]

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Probabilities of the two classes."""
        logits = self.decision_function(X)[:, 0]
        positive = 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
        return np.column_stack([1 - positive, positive])


class SoftmaxRegression(_Classifier):
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

    _loss = "softmax"
    _clip = 1.0

    def __init__(
        self,
        *,
        classes: Sequence[Any],
        examples: int,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        between: Any = None,
        norm: float | None = None,
        unit: Unit | None = None,
        fit_intercept: bool = True,
        steps: int | None = None,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        clip: float | None = None,
        penalty: float = 0.0,
        average: float = 0.3,
        rate: float = 1.0,
    ) -> None:
        super().__init__(
            examples=examples,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            mu=mu,
            between=between,
            norm=norm,
            unit=unit,
            fit_intercept=fit_intercept,
            steps=steps,
            learning_rate=learning_rate,
            momentum=momentum,
            clip=clip,
            penalty=penalty,
            average=average,
            rate=rate,
        )
        self.classes = classes

    def _labels(self) -> tuple[Any, ...]:
        return _distinct(self.classes)

    def _outputs(self) -> int:
        return len(self._labels())

    def _targets(self, y: Any) -> Floats:
        codes = label_codes(y, self._labels())
        targets = np.eye(self._outputs())[np.maximum(codes, 0)]
        targets[codes < 0] = np.nan
        return targets

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Probabilities of the classes, in their declared order."""
        return softmax_probabilities(self.decision_function(X) / LOGIT)


class LinearRegression(_Linear):
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

    _loss = "squared"
    _kind = "regressor"
    _rate = 1.0
    _clip = 0.5

    def __init__(
        self,
        *,
        target: tuple[float, float],
        examples: int,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        between: Any = None,
        norm: float | None = None,
        unit: Unit | None = None,
        fit_intercept: bool = True,
        steps: int | None = None,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        clip: float | None = None,
        penalty: float = 0.0,
        average: float = 0.3,
        rate: float = 1.0,
    ) -> None:
        super().__init__(
            examples=examples,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            mu=mu,
            between=between,
            norm=norm,
            unit=unit,
            fit_intercept=fit_intercept,
            steps=steps,
            learning_rate=learning_rate,
            momentum=momentum,
            clip=clip,
            penalty=penalty,
            average=average,
            rate=rate,
        )
        self.target = target

    def _question(self) -> str:
        return repr(checked_bounds("target", self.target))

    def _scale(self) -> tuple[float, float]:
        low, high = checked_bounds("target", self.target)
        return (low + high) / 2, (high - low) / 2

    def _targets(self, y: Any) -> Floats:
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

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """The expected number, within the declared range."""
        middle, half = self._scale()
        return middle + half * np.clip(self.decision_function(X)[:, 0], -1.0, 1.0)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The share of the variance explained, on *public* examples."""
        truth = to_numbers(y)
        missed = float(((truth - self.predict(X)) ** 2).sum())
        return 1 - missed / float(((truth - truth.mean()) ** 2).sum())


def _features(X: Any) -> int:  # noqa: N803
    shape = getattr(X, "shape", None) or np.shape(X)
    if len(shape) != 2 or shape[1] < 1:
        raise DataError("X must be an array with one row for each example and one column for each feature.")
    return int(shape[1])


def _distinct(classes: Sequence[Any], exactly: int | None = None) -> tuple[Any, ...]:
    labels = tuple(classes)
    if len(set(labels)) != len(labels) or (len(labels) < 2 if exactly is None else len(labels) != exactly):
        raise InvalidParameter(f"classes must be {exactly or 'two or more'} different labels, declared in advance.")
    return labels
