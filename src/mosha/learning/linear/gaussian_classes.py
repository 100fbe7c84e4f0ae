"""A private generative model in closed form: the number, the mean and the covariance of every class, in one release.

One noisy table of sums pays for a classifier (the likeliest class) and for as many made-up examples as one likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.number import positive, positive_integer, probability
from mosha.core.unit import Example, Neighbors, Person, Unit
from mosha.exact.bounding import keep_at_most, rows_per_unit, to_numbers
from mosha.exact.clip import clip_vectors
from mosha.exact.grid import sum_steps
from mosha.exact.statistic import Sensitivity, Steps, root_up
from mosha.learning.linear.descent_model import count_features
from mosha.learning.linear.estimator import Estimator
from mosha.learning.linear.rows import label_codes
from mosha.mechanisms import gaussian

__all__ = ["ClassMoments", "GaussianClasses"]

RADIUS = 1 << 10
"""The norm of a row, in steps."""

BLOCK = 1 << 11
Floats = NDArray[np.float64]


class ClassMoments:
    """For each class: the number of its rows, their sum, and the sum of their squares and products.

    Guarantee:
        A row is a whole vector x of norm at most R (`clip_vectors`). It adds to one class alone the vector of R^2 / 2,
        R x and all x_i x_j with i <= j, whose squared norm is at most R^4 / 4 + R^2 |x|^2 + |x|^4 <= (9/4) R^4. So m
        rows of a unit move the table by at most 1.5 R^2 m in the l2 norm, twice that when it is replaced. Products
        and sums of whole numbers below 2**53 are exact.

    >>> from mosha import Row
    >>> table = ClassMoments(features=2, classes=("a", "b"), norm=1.0)
    >>> table.coordinates, table.sensitivity(Row()).l2 / RADIUS**2
    (12, 1.5)
    """

    grid: ClassVar[float] = 1.0

    def __init__(self, *, features: int, classes: Sequence[object], norm: float) -> None:
        self.features = positive_integer("features", features)
        self.classes = tuple(classes)
        self.norm = positive("norm", norm)
        if len(self.classes) < 1 or len(set(self.classes)) != len(self.classes):
            raise InvalidParameter("learning.different_classes", parameter="classes")
        if not 2.0**-400 < self.norm < 2.0**400 or self.features > 1 << 12:
            raise InvalidParameter("learning.norm_and_features", parameter="norm")
        self._upper = np.triu_indices(self.features)

    def __repr__(self) -> str:
        return f"ClassMoments(features={self.features}, classes={self.classes}, norm={self.norm})"

    @property
    def width(self) -> int:
        """How many sums there are for one class."""
        return 1 + self.features + self._upper[0].size

    @property
    def coordinates(self) -> int:
        return self.width * len(self.classes)

    @property
    def labels(self) -> tuple[int, ...]:
        return tuple(range(self.coordinates))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        replaced = 2 if unit.neighbors is Neighbors.REPLACE_ONE else 1
        step = RADIUS**2 * 3 * rows_per_unit(unit) * replaced // 2
        l1 = int(root_up(self.coordinates * step**2))
        return Sensitivity(l0=self.coordinates, l1=l1, l2=float(step), linf=step, span=2 * step)

    @np.errstate(all="ignore")
    def evaluate(self, data: object, unit: Unit) -> Steps:
        if not isinstance(data, tuple) or len(data) != 2 + isinstance(unit, Person):
            raise DataError("learning.data_pair")
        rows = clip_vectors(to_numbers(data[0], width=self.features), RADIUS, 2, self.norm / RADIUS)
        codes = label_codes(data[1], self.classes)
        if codes.size != rows.shape[0]:
            raise DataError("learning.one_label_each")
        if isinstance(unit, Person):
            kept = keep_at_most(rows_per_unit(unit), data[2], np.column_stack([rows, codes]))
            rows, codes = rows[kept], codes[kept]
        return np.concatenate([self._sums(rows[codes == code]) for code in range(len(self.classes))])

    def _sums(self, rows: NDArray[np.int64]) -> Steps:
        products = np.zeros((self.features, self.features), np.int64)
        for start in range(0, rows.shape[0], BLOCK):
            block = rows[start : start + BLOCK].astype(np.float64)
            products += (block.T @ block).astype(np.int64)
        first = sum_steps(rows * RADIUS, RADIUS**2)
        return np.concatenate([[rows.shape[0] * (RADIUS**2 // 2)], first, products[self._upper]]).astype(np.int64)

    def unpack(self, table: Floats) -> tuple[Floats, Floats, Floats]:
        """Numbers, means and raw second moments of the classes, in the units of the rows: post-processing."""
        sums = np.asarray(table, np.float64).reshape(len(self.classes), self.width)
        counts = np.maximum(1.0, sums[:, 0] / (RADIUS**2 / 2))
        unit = self.norm / RADIUS
        means = sums[:, 1 : 1 + self.features] / RADIUS / counts[:, None] * unit
        seconds = np.zeros((len(self.classes), self.features, self.features))
        seconds[:, self._upper[0], self._upper[1]] = sums[:, 1 + self.features :] / counts[:, None] * unit**2
        lower = seconds.transpose(0, 2, 1) * (1 - np.eye(self.features))
        return counts, means, seconds + lower


class GaussianClasses(Estimator):
    """Every class is a normal distribution; `predict` finds the likeliest one, `sample` makes examples up.

    `shared` is how much of the covariance is that of all classes together, which has less noise.

    `classes` are the declared labels, `norm` is the length to which examples are cut. The price is `epsilon` with
    `delta`, or `rho`, or `mu`; `unit` is `Example()` by default.

    Guarantee:
        `fit` releases `ClassMoments` with Gaussian noise, once; everything else is post-processing.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().normal(size=(4000, 2)) * 0.1
    >>> y = (X[:, 0] > 0).astype(int)
    >>> account = Ledger.memory().account("a", unit=Example(), mu=1, delta=1e-6)
    >>> model = GaussianClasses(classes=(0, 1), norm=0.5, mu=0.9).fit(X, y, account=account)
    >>> model.score(X, y) > 0.9, model.sample(3, of=1).shape
    (True, (3, 2))
    """

    _fitted = "means_"

    def __init__(
        self,
        *,
        classes: Sequence[object],
        norm: float,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        unit: Unit | None = None,
        shared: float = 0.5,
    ) -> None:
        self.classes, self.norm, self.unit, self.shared = classes, norm, unit, shared
        self.epsilon, self.delta, self.rho, self.mu = epsilon, delta, rho, mu

    def measurement(self, features: int) -> Measurement:
        """What `fit` opens: data are (X, y) or (X, y, persons)."""
        table = ClassMoments(features=features, classes=self.classes, norm=self.norm)
        unit = Example() if self.unit is None else self.unit
        return gaussian(table, unit=unit, epsilon=self.epsilon, delta=self.delta, rho=self.rho, mu=self.mu)

    def fit(
        self,
        X: Any,  # noqa: N803
        y: object,
        *,
        account: Account,
        persons: object = None,
        key: str | None = None,
    ) -> Self:
        """Pay from `account`, then learn."""
        features = count_features(X)
        measurement = self.measurement(features)
        with account.open(measurement, key=key) as run:
            release = run.step((X, y) if persons is None else (X, y, persons))
        self.receipt_ = release.receipt
        sigma = float(np.ravel(measurement.forecast(0.6826894921370859))[0])  # one standard deviation
        return self._repair_moments(release.value, features, sigma)

    def _repair_moments(self, table: Floats, features: int, sigma: float) -> Self:
        """Means and covariances that could be: symmetric, and with no spread below what noise alone makes."""
        moments = ClassMoments(features=features, classes=self.classes, norm=self.norm)
        counts, means, seconds = moments.unpack(table)
        unit, shared = (self.norm / RADIUS) ** 2, probability("shared", self.shared)
        own = seconds - means[:, :, None] * means[:, None, :]
        pooled = (own * counts[:, None, None]).sum(axis=0) / counts.sum()
        floor = 2 * np.sqrt(features) * sigma * unit / counts.sum()
        noisy = [_proper((1 - shared) * each + shared * pooled, floor) for each in own]
        self.counts_, self.means_, self.covariances_ = counts, means, np.array(noisy)
        self.n_features_in_ = features
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        return np.array(self.classes)

    def log_likelihood(self, X: object) -> Floats:  # noqa: N803
        """Up to a constant, of each example under each class, its frequency included."""
        self._check_fitted()
        rows = to_numbers(X, width=self.n_features_in_)
        found = np.empty((rows.shape[0], len(self.means_)))
        for k, (mean, covariance) in enumerate(zip(self.means_, self.covariances_, strict=True)):
            root = np.linalg.cholesky(covariance)
            white = np.linalg.solve(root, (rows - mean).T)
            found[:, k] = np.log(self.counts_[k]) - np.log(np.diag(root)).sum() - (white**2).sum(axis=0) / 2
        return found

    def predict(self, X: object) -> NDArray[Any]:  # noqa: N803
        """The likeliest class of each example."""
        return np.asarray(self.classes_[np.argmax(self.log_likelihood(X), axis=1)])

    def score(self, X: object, y: object) -> float:  # noqa: N803
        """The exact accuracy on *public* examples."""
        codes = label_codes(y, tuple(self.classes))
        return float((label_codes(self.predict(X), tuple(self.classes)) == codes)[codes >= 0].mean())

    def sample(self, count: int, *, of: object, generator: np.random.Generator | None = None) -> Floats:
        """Examples `of` one class, `count` of them, made up with any `generator`: post-processing."""
        self._check_fitted()
        number = positive_integer("count", count)
        if of not in tuple(self.classes):
            raise InvalidParameter("learning.of_a_class", parameter="of")
        k = tuple(self.classes).index(of)
        normal = (generator or np.random.default_rng()).normal(size=(number, self.n_features_in_))
        return np.asarray(self.means_[k] + normal @ np.linalg.cholesky(self.covariances_[k]).T)


def _proper(covariance: Floats, floor: float) -> Floats:
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((vectors * np.maximum(values, max(floor, 1e-12))) @ vectors.T)
