"""Linear regression from noisy moments: least squares with intervals that hold, ridge, and the lasso."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import non_negative, strict_probability
from mosha.learning.linear.estimator import explain_variance
from mosha.models.model import MomentModel
from mosha.models.ranges import Ranges
from mosha.models.regression_noise import interval_deviations
from mosha.models.sums.moments import Moments, MomentSums
from mosha.models.sums.row_sums import Floats

__all__ = ["Lasso", "LinearRegression", "Ridge"]


@dataclass(kw_only=True, eq=False, repr=False)
class LeastSquares(MomentModel):
    """What the three regressions share: moments of features and target, and a line in the units of both."""

    _kind: ClassVar[str] = "regressor"
    _fitted: ClassVar[str] = "coef_"
    _target: ClassVar[bool] = True
    target: tuple[float, float] | None = None
    norm: float | None = None

    def _target_range(self) -> tuple[float, float] | None:
        return self.target

    def sums(self, ranges: Ranges) -> MomentSums:
        return MomentSums(ranges, norm=self.norm)

    def _solve(self, design: Floats, goals: Floats, moments: Moments) -> Floats:
        """The weights (the constant first), features and target from -1 to 1."""
        raise NotImplementedError

    def _learn(self, moments: Moments) -> None:
        design, goals = normal_equations(moments)
        self._weights = self._solve(design, goals, moments)
        halves, middles = self.ranges_.halves, self.ranges_.middles
        self.coef_ = self._weights[1:] * halves[-1] / halves[:-1]
        self.intercept_ = float(middles[-1] + halves[-1] * self._weights[0] - self.coef_ @ middles[:-1])

    def predict(self, X: object) -> Floats:  # noqa: N803
        """The target that is expected of each example, whose features are clamped into their ranges."""
        rows = self._read(X)
        held = np.clip(rows, self.ranges_.lows[:-1], self.ranges_.highs[:-1])
        return np.asarray(held @ self.coef_ + self.intercept_)

    def score(self, X: object, y: object) -> float:  # noqa: N803
        """The coefficient of determination on *public* examples."""
        return explain_variance(y, self.predict(X))


def normal_equations(moments: Moments) -> tuple[Floats, Floats]:
    """The matrix and the right-hand side of least squares with a constant; the last feature is the target."""
    p = moments.firsts.shape[1] - 1
    design = np.empty((p + 1, p + 1))
    design[0, 0] = moments.counts[0]
    design[0, 1:] = design[1:, 0] = moments.firsts[0, :p]
    design[1:, 1:] = moments.seconds[0, :p, :p]
    return design, np.concatenate([moments.firsts[0, p:], moments.seconds[0, :p, p]])


def make_positive(design: Floats, floor: float) -> Floats:
    """The nearest symmetric matrix without eigenvalues below `floor`."""
    values, vectors = np.linalg.eigh((design + design.T) / 2)
    return np.asarray((vectors * np.maximum(values, max(floor, 1e-9))) @ vectors.T)


@explain_wrong_calls
class LinearRegression(LeastSquares):
    """Least squares on noisy sufficient statistics, with confidence intervals for the coefficients.

    One statement on the engine of a protected table, whatever its size. (`mosha.learning.LinearRegression` descends
    instead: better for very many features.)

    Args:
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        target: the declared range of the target.
        norm: the length (features and target from -1 to 1) that examples are shortened to.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        `MomentSums` with products, released once; coefficients and intervals are post-processing.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(0, 10, size=(50000, 1))
    >>> y = 3 * X[:, 0] + 5 + np.random.default_rng().normal(size=50000)
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> model = LinearRegression(between=(0, 10), target=(0, 50), epsilon=1).fit(X, y, account=account)
    >>> low, high = model.intervals(0.999)[1]
    >>> low < 3 < high and high - low < 0.5
    np.True_
    """

    def _solve(self, design: Floats, goals: Floats, moments: Moments) -> Floats:
        self._moments = moments
        floor = moments.deviation * math.sqrt(len(design))
        return np.asarray(np.linalg.solve(make_positive(design, floor), goals))

    def intervals(self, confidence: float = 0.95) -> Floats:
        """A row (low, high) for the constant and each coefficient, in their own units.

        Sampling and noise are both in them, for errors of one variance: each interval holds the coefficient of the
        population in at least `confidence` of all releases. Where noise could make the features look dependent, it is
        the whole line.
        """
        self._check_fitted()
        level = strict_probability("confidence", confidence)
        design, goals = normal_equations(self._moments)
        wide = interval_deviations(self._moments, design, goals)
        points = np.concatenate([[self.intercept_], self.coef_])
        if wide is None:
            return np.column_stack([np.full_like(points, -np.inf), np.full_like(points, np.inf)])
        halves, middles = self.ranges_.halves, self.ranges_.middles
        turned = np.diag(np.concatenate([[halves[-1]], halves[-1] / halves[:-1]]))
        turned[0, 1:] = -halves[-1] * middles[:-1] / halves[:-1]
        deviations = np.sqrt(np.diag(turned @ wide.covariance @ turned.T)) * wide.quantile(level)
        return np.column_stack([points - deviations, points + deviations])


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(LeastSquares):
    """Least squares with a penalty on the squares of the coefficients (features and target from -1 to 1).

    Args:
        alpha: the weight of the penalty, beside the sum of squares over examples; noise adds to it what it must.
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        target: the declared range of the target.
        norm: the length (features and target from -1 to 1) that examples are shortened to.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        `MomentSums` with products, released once.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(0, 10, size=(50000, 1))
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> Ridge(between=(0, 10), target=(0, 50), epsilon=1).fit(X, 3 * X[:, 0], account=account).coef_.round()
    array([3.])
    """

    alpha: float = 1.0

    def _solve(self, design: Floats, goals: Floats, moments: Moments) -> Floats:
        """A penalty of the size of the noise's largest eigenvalue keeps coefficients from exploding."""
        noise = moments.deviation * math.sqrt(len(design))
        penalty = np.full(len(design), non_negative("alpha", self.alpha) + noise)
        penalty[0] = 0.0
        return np.asarray(np.linalg.solve(make_positive(design, noise) + np.diag(penalty), goals))


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class Lasso(LeastSquares):
    """Least squares with a penalty on the sizes of the coefficients: many of them are zero.

    Args:
        alpha: the weight of the penalty, per example, as in scikit-learn (features and target from -1 to 1); noise
            adds to it what noise alone would make of a coefficient.
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        target: the declared range of the target.
        norm: the length (features and target from -1 to 1) that examples are shortened to.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        `MomentSums` with products, released once.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(0, 10, size=(50000, 2))
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> model = Lasso(alpha=0.01, between=(0, 10), target=(0, 50), epsilon=1)
    >>> model.fit(X, 3 * X[:, 0], account=account).coef_.round().tolist()
    [3.0, 0.0]
    """

    alpha: float = 0.01

    def _solve(self, design: Floats, goals: Floats, moments: Moments) -> Floats:
        """Coordinate descent on the normal equations."""
        matrix = make_positive(design, moments.deviation * math.sqrt(len(design)))
        penalty = non_negative("alpha", self.alpha) * float(moments.usable_counts[0]) + moments.deviation
        weights = np.zeros(len(goals))
        for _ in range(1000):
            before = weights.copy()
            for place in range(len(goals)):
                pull = goals[place] - matrix[place] @ weights + matrix[place, place] * weights[place]
                size = max(0.0, abs(pull) - penalty) if place else abs(pull)
                weights[place] = math.copysign(size, pull) / matrix[place, place] if size else 0.0
            if np.abs(weights - before).max() < 1e-10:
                break
        return weights
