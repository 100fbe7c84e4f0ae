"""What linear models that are fitted by private descent share: bounded rows, a plan, one payment, one release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.measurement import Measurement, Rng
from mosha.core.options import LossName
from mosha.core.unit import Example, Unit
from mosha.exact.bounding import count_width
from mosha.learning.linear.descent import Descent, Floats, logits_of
from mosha.learning.linear.estimator import Estimator
from mosha.learning.linear.losses import LOGIT
from mosha.learning.linear.rows import BoundedRows, label_codes

__all__ = ["DescentClassifier", "DescentModel", "check_classes", "count_features"]


@dataclass(kw_only=True, eq=False, repr=False)
class DescentModel(Estimator):
    """What the three share: bounded rows, a plan, one payment, one release."""

    _loss: ClassVar[LossName]
    _steps: ClassVar[int] = 60
    _rate: ClassVar[float] = 8.0
    _clip: ClassVar[float] = 1.0

    examples: int
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    between: object = None
    norm: float | None = None
    unit: Unit | None = None
    fit_intercept: bool = True
    steps: int | None = None
    learning_rate: float | None = None
    momentum: float = 0.9
    clip: float | None = None
    penalty: float = 0.0
    average: float = 0.3
    rate: float = 1.0

    def _outputs(self) -> int:
        return 1

    def _targets(self, y: object) -> Floats:
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

        def step(state: object, data: object, ask: object, rng: Rng) -> tuple[Floats, Any]:
            if not isinstance(data, tuple) or len(data) not in (2, 3):
                raise DataError("learning.regression_data")
            steps, targets = rows.steps(data[0]), self._targets(data[1])
            return inner.step(state, (steps, targets, data[2] if len(data) == 3 else None), ask, rng)

        question = f"{inner.question} {rows!r} {self._question()}"
        return replace(inner, step=step, question=question)

    def _question(self) -> str:
        return ""

    def fit(
        self,
        X: object,  # noqa: N803
        y: object,
        *,
        account: Account,
        persons: object = None,
        key: str | None = None,
    ) -> Self:
        """Pay from `account`, then learn; nothing is read where the account refuses.

        `persons` says whose each example is, where the unit is a Person.
        """
        if not isinstance(account, Account):
            raise InvalidParameter("learning.account_that_pays", parameter="account")
        features = count_features(X)
        data = (X, y) if persons is None else (X, y, persons)
        with account.open(self.measurement(features), key=key) as run:
            release = run.step(data)
        self.receipt_ = release.receipt
        return self.with_weights(release.value, features)

    def with_weights(self, weights: Floats, features: int) -> Self:
        """Take over `weights` that were released before: post-processing."""
        rows = self.rows(features)
        if np.shape(weights) != (rows.width, self._outputs()):
            raise InvalidParameter("learning.weights_of_other_shape")
        self.weights_, self._rows = weights, rows
        coefficients, intercepts = rows.in_units(weights)
        self.coef_, self.intercept_ = coefficients, cast("Any", intercepts)
        self.n_features_in_, self.n_iter_ = features, self.plan(features).steps
        return self

    def decision_function(self, X: object) -> Floats:  # noqa: N803
        """Logits (examples by outputs): each a function of its own row, bit for bit."""
        self._check_fitted()
        return logits_of(self._rows.steps(X), self.weights_) * LOGIT


@dataclass(kw_only=True, eq=False, repr=False)
class DescentClassifier(DescentModel):
    """A model whose answers are classes."""

    classes: Sequence[object]

    def _labels(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _question(self) -> str:
        return repr(self._labels())

    @property
    def classes_(self) -> NDArray[Any]:
        return np.array(self._labels())

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        raise NotImplementedError

    def predict(self, X: object) -> NDArray[Any]:  # noqa: N803
        """The likeliest class of each example."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def score(self, X: object, y: object) -> float:  # noqa: N803
        """The exact accuracy on *public* examples; that on private ones is bought (`mosha.learning.accuracy`)."""
        codes = label_codes(y, self._labels())
        return float((label_codes(self.predict(X), self._labels()) == codes)[codes >= 0].mean())


def count_features(X: object) -> int:  # noqa: N803
    """How many features each example has."""
    width = count_width(X)
    if width < 1:
        raise DataError("learning.features_of_each", parameter="X")
    return width


def check_classes(classes: Sequence[object], exactly: int | None = None) -> tuple[Any, ...]:
    labels = tuple(classes)
    if len(set(labels)) != len(labels) or (len(labels) < 2 if exactly is None else len(labels) != exactly):
        if exactly is None:
            raise InvalidParameter("learning.two_classes", parameter="classes")
        raise InvalidParameter("learning.so_many_classes", parameter="classes", count=exactly)
    return labels
