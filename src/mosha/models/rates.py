"""Poisson regression: how often something happens, by private descent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, cast

import numpy as np

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive
from mosha.core.options import LossName
from mosha.learning.linear.descent import logits_of
from mosha.learning.linear.descent_model import DescentModel
from mosha.learning.linear.losses import SCALE, rates_of
from mosha.models.paying import pay_for_table
from mosha.models.ranges import Between, read_ranges
from mosha.models.sums.row_sums import Floats, read_matrix
from mosha.models.sums.table_rows import rows_of_table
from mosha.models.sums.table_sums import choose_columns, is_remote
from mosha.tables import Table

__all__ = ["PoissonRegressor"]


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class PoissonRegressor(DescentModel):
    """A count whose logarithm of the expectation is linear in the features, by full-batch private gradient descent.

    Args:
        most: the largest count; larger ones are taken for it.
        examples: the declared number of examples (public; the true number is never read).
        between: the declared range of the features, one (low, high) for all or (lows, highs); or
        norm: the declared bound on the norm of a row.
        epsilon: the price, together with `delta`; or
        delta: the probability that goes with epsilon; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.
        steps: the number of descent steps.
        learning_rate: the length of a step.
        momentum: how much of the last step goes into the next one.
        clip: what an example's residual is clipped to, in parts of `most`.
        penalty: the weight of the squared norm of the coefficients.
        average: the share of the last steps whose weights are averaged.

    Guarantee:
        `fit` releases the weights of `Descent` with the Poisson loss; everything else is post-processing of them.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(0, 1, size=(20000, 1))
    >>> y = np.random.default_rng().poisson(np.exp(2 * X[:, 0]))
    >>> account = Ledger.memory().account("demo", unit=Example(), mu=1, delta=1e-6)
    >>> model = PoissonRegressor(most=20, examples=20000, between=(0, 1), mu=0.9).fit(X, y, account=account)
    >>> model.predict([[0.0], [1.0]]).round(0).tolist()
    [1.0, 7.0]
    """

    _kind: ClassVar[str] = "regressor"
    _loss: ClassVar[LossName] = "poisson"
    _steps: ClassVar[int] = 100
    _rate: ClassVar[float] = 8.0
    _clip: ClassVar[float] = 0.5

    most: float
    between: Between = None
    fit_intercept: bool = field(default=True, init=False)
    rate: float = field(default=1.0, init=False)

    def fit(
        self,
        X: object,  # noqa: N803
        y: object,
        *,
        account: Account | None = None,
        persons: object = None,
        key: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Pay, then learn; nothing is read where the account refuses.

        Args:
            X: examples (an array or a data frame), or a protected table, whose own account pays.
            y: the count of each example; of a table, the name of a column.
            account: who pays for examples.
            persons: whose each example is, where the unit is a Person.
            key: makes a retry free: the same key finds the payment and the answer again.
            columns: the features of a table; all columns of numbers where it is left out.
        """
        if not isinstance(X, Table):
            return super().fit(X, y, account=cast("Account", account), persons=persons, key=key)
        if not isinstance(y, str):
            raise InvalidParameter("models.target_column", parameter="y", spent="nothing")
        names = choose_columns(X, columns, y)
        planned = replace(self, unit=X.unit)
        if self.norm is None:
            ranges = read_ranges(self.between, len(names), names, X.declared.ranges)
            planned = replace(planned, between=(ranges.lows, ranges.highs))
        rows = rows_of_table(X, names, (y,))
        measurement = rows.ask_by(planned.measurement(len(names)))
        release = pay_for_table(X.account, measurement, rows.look, remote=is_remote(rows.relation), key=key)
        planned.with_weights(release.value, len(names))
        vars(self).update({name: value for name, value in vars(planned).items() if name not in self._names()})
        self.receipt_ = release.receipt
        return self

    def _question(self) -> str:
        return repr(positive("most", self.most))

    @np.errstate(all="ignore")
    def _targets(self, y: object) -> Floats:
        counts = read_matrix(np.asarray(y, object).reshape(-1, 1), 1)
        return np.asarray(np.clip(counts, 0.0, self.most) / self.most)

    def with_weights(self, weights: Floats, features: int) -> Self:
        """Take over `weights` that were released before: post-processing."""
        super().with_weights(weights, features)
        self.coef_ = self.coef_[0]
        self.intercept_ = float(np.ravel(self.intercept_)[0]) + math.log(self.most)
        return self

    def predict(self, X: object) -> Floats:  # noqa: N803
        """The expected count of each example."""
        self._check_fitted()
        return np.asarray(rates_of(logits_of(self._rows.steps(X), self.weights_))[:, 0] / SCALE * self.most)

    def score(self, X: object, y: object) -> float:  # noqa: N803
        """The share of the deviance explained, on *public* examples (scikit-learn's D squared)."""
        true, said = read_matrix(np.asarray(y, object).reshape(-1, 1), 1)[:, 0], self.predict(X)
        return float(1 - _deviance(true, said) / _deviance(true, np.full_like(said, true.mean())))


def _deviance(true: Floats, said: Floats) -> float:
    safe = np.maximum(said, 1e-9)
    logs = np.where(true > 0, true * np.log(np.where(true > 0, true, 1.0) / safe), 0.0)
    return float(2 * (logs - true + safe).sum())
