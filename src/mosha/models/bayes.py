"""Naive Bayes: features that are normal or categorical in each class, from one private release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.exact.bounding import to_array
from mosha.exact.statistic import Steps
from mosha.learning.linear.rows import label_codes
from mosha.models.model import Model, MomentModel
from mosha.models.paying import add_noise_to, noise_deviation, pay_for_table, pay_from
from mosha.models.ranges import Ranges
from mosha.models.sums.moments import Moments, MomentSums, check_labels
from mosha.models.sums.row_sums import Floats, RowSums, Wholes, feature_names
from mosha.models.sums.table_sums import is_remote, table_cells
from mosha.tables import Table

__all__ = ["CategoricalNB", "CategoryCounts", "GaussianNB"]

_NO_CATEGORY = object()  # equal to no value that anybody lists


class Likelihoods(Model):
    """A classifier by the likelihoods of classes."""

    classes: Sequence[object]

    @property
    def classes_(self) -> NDArray[np.generic]:
        return np.array(self.classes)

    def log_likelihood(self, X: object) -> Floats:  # noqa: N803
        """Of each example and each class, the frequency of the class included."""
        raise NotImplementedError

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """The probability of each class."""
        found = self.log_likelihood(X)
        weights = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def predict(self, X: object) -> NDArray[np.generic]:  # noqa: N803
        """The likeliest class of each example."""
        return np.asarray(self.classes_[np.argmax(self.log_likelihood(X), axis=1)])

    def score(self, X: object, y: object) -> float:  # noqa: N803
        """The exact accuracy on *public* examples; that on private ones is bought (`mosha.learning.accuracy`)."""
        return float(np.mean(label_codes(self.predict(X), tuple(self.classes)) == label_codes(y, tuple(self.classes))))


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class GaussianNB(MomentModel, Likelihoods):
    """Every feature is normal in each class, and independent of the others.

    Args:
        classes: the labels, declared in advance.
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        norm: the length (features from -1 to 1) that examples are shortened to: less noise where few are longer.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        `MomentSums` with squares by class, released once.

    >>> from mosha import Example, Ledger
    >>> y = np.arange(8000) % 2
    >>> X = np.random.default_rng().normal(size=(8000, 2)) * 0.1 + y[:, None] * 0.5
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> model = GaussianNB(classes=(0, 1), between=(-1, 1), epsilon=1).fit(X, y, account=account)
    >>> model.predict([[0, 0], [0.5, 0.5]]).tolist()
    [0, 1]
    """

    _kind: ClassVar[str] = "classifier"
    _fitted: ClassVar[str] = "theta_"
    _labels: ClassVar[bool] = True
    classes: Sequence[object]
    norm: float | None = None

    def sums(self, ranges: Ranges) -> MomentSums:
        """What `fit` releases, for examples in these `ranges`."""
        return MomentSums(ranges, check_labels(self.classes), "squares", self.norm)

    def _learn(self, moments: Moments) -> None:
        """Each class's variances are pulled towards those of all classes as far as noise drowns them."""
        own, counts = moments.variances(), moments.usable_counts[:, None]
        within = (own * counts).sum(axis=0) / counts.sum()
        trust = counts / (counts + 8 * moments.deviation)
        self._means, self._variances = moments.means, trust * own + (1 - trust) * within
        self.class_count_ = moments.usable_counts
        self.class_prior_ = self.class_count_ / self.class_count_.sum()
        self.theta_ = self.ranges_.middles + self.ranges_.halves * self._means
        self.var_ = self.ranges_.halves**2 * self._variances

    def log_likelihood(self, X: object) -> Floats:  # noqa: N803
        rows = self.ranges_.to_unit(self._read(X))
        distances = (rows[:, None, :] - self._means) ** 2 / self._variances + np.log(self._variances)
        return np.asarray(np.log(self.class_prior_) - distances.sum(axis=2) / 2)


@dataclass(frozen=True)
class CategoryCounts(RowSums):
    """How often each of the listed `categories` of each feature stands in each class.

    Guarantee:
        An example adds at most 1 to one cell of each of the p features, in its own class: l1 norm and squared l2 norm
        at most p. Labels and categories that are not listed count nowhere.

    >>> from mosha import Row
    >>> counts = CategoryCounts((("a", "b"), ("x",)), (0, 1))
    >>> counts.evaluate(([["a", "x"], ["b", "?"]], [0, 1], None), Row()).tolist()
    [1, 0, 1, 0, 1, 0]
    """

    categories: tuple[tuple[object, ...], ...]
    classes: tuple[object, ...]

    @property
    def width(self) -> int:
        return sum(map(len, self.categories))

    @property
    def coordinates(self) -> int:
        return self.width * len(self.classes)

    @property
    def longest(self) -> int:
        return len(self.categories)

    @property
    def longest_square(self) -> int:
        return len(self.categories)

    def code(self, features: object) -> Wholes:
        """The place of each category in its list, -1 where it has none."""
        columns = split_columns(features, len(self.categories))
        return np.column_stack([label_codes(c, listed) for c, listed in zip(columns, self.categories, strict=True)])

    def turn_rows(self, features: object, targets: object) -> Wholes:
        return np.column_stack([self.code(features), label_codes(targets, self.classes)]).astype(np.int64)

    def add_up(self, rows: Wholes) -> Steps:
        found = []
        for label in range(len(self.classes)):
            own = rows[rows[:, -1] == label]
            for place, listed in enumerate(self.categories):
                codes = own[:, place]
                found.append(np.bincount(codes[codes >= 0], minlength=len(listed)))
        return np.concatenate(found).astype(np.int64)


def split_columns(features: object, width: int) -> list[NDArray[np.generic]]:
    """The columns of a frame, of an array, or of rows; one category may not change what the others are.

    A row of another width has no category in any column.
    """
    names = feature_names(features)
    if names is not None:
        columns = [to_array(features[name]) for name in names]  # type: ignore[index]
    else:
        array = features if isinstance(features, np.ndarray) else None
        rows = np.empty((0, width), object) if array is None else array
        if array is None:
            listed = list(features)  # type: ignore[call-overload]
            rows = np.full((len(listed), width), _NO_CATEGORY, object)
            for place, row in enumerate(listed):
                if isinstance(row, list | tuple | np.ndarray) and len(row) == width:
                    for column, value in enumerate(row):
                        rows[place, column] = value
        columns = list(rows.T) if rows.ndim == 2 else []
    if len(columns) != width:
        raise DataError("models.features_of_each", parameter="X")
    return columns


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class CategoricalNB(Likelihoods):
    """Every feature is one of a list of categories, with frequencies of its own in each class.

    Args:
        classes: the labels, declared in advance.
        categories: the lists of categories, one for each feature (by name for frames and tables), declared in advance.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.
        alpha: what is added to every count before frequencies are made of them.

    Guarantee:
        `CategoryCounts`, released once.

    >>> from mosha import Example, Ledger
    >>> X = [["sun", "warm"], ["rain", "cold"]] * 2000
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> model = CategoricalNB(classes=("go", "stay"), categories=(("sun", "rain"), ("warm", "cold")), epsilon=1)
    >>> model.fit(X, ["go", "stay"] * 2000, account=account).predict([["rain", "cold"]]).tolist()
    ['stay']
    """

    _kind: ClassVar[str] = "classifier"
    _fitted: ClassVar[str] = "feature_log_prob_"
    classes: Sequence[object]
    categories: Sequence[Sequence[object]] | Mapping[str, Sequence[object]]
    alpha: float = 1.0

    def counts(self) -> CategoryCounts:
        """What is counted."""
        said = self.categories
        lists = list(said.values()) if isinstance(said, Mapping) else list(said)
        if not lists or any(len(each) < 1 or len(set(each)) != len(each) for each in lists):
            raise InvalidParameter("models.lists_of_categories", parameter="categories")
        return CategoryCounts(tuple(tuple(each) for each in lists), check_labels(self.classes))

    def measurement(self) -> Measurement:
        """What `fit` opens: data are (X, y, persons)."""
        return add_noise_to(self.counts(), self.protected, self.price)

    def fit(
        self,
        X: object,  # noqa: N803
        y: object,
        *,
        account: Account | None = None,
        persons: object = None,
        key: str | None = None,
    ) -> Self:
        """Pay, then learn; of a protected table, `y` names the column of the class and `categories` the features."""
        counts = self.counts()
        if isinstance(X, Table):
            if not isinstance(self.categories, Mapping) or not isinstance(y, str):
                raise InvalidParameter("models.categories_by_name", parameter="categories", spent="nothing")
            exact = table_cells(X, counts, self.categories, y, counts.classes)
            measurement = add_noise_to(exact, X.unit, self.price)
            release = pay_for_table(X.account, measurement, exact.look, remote=is_remote(exact.relation), key=key)
        else:
            measurement = add_noise_to(counts, self.protected, self.price)
            release = pay_from(account, measurement, (X, y, persons), key)
        self.receipt_ = release.receipt
        self._keep_names(
            len(counts.categories), list(self.categories) if isinstance(self.categories, Mapping) else None
        )
        return self._learn(counts, np.asarray(release.value, np.float64), noise_deviation(measurement))

    def _learn(self, counts: CategoryCounts, noisy: Floats, deviation: float) -> Self:
        table = noisy.reshape(len(counts.classes), counts.width)
        cuts = np.cumsum([len(listed) for listed in counts.categories])[:-1]
        parts = np.split(table, cuts, axis=1)
        totals = np.maximum(np.mean([part.sum(axis=1) for part in parts], axis=0), 1.0)
        smooth = self.alpha + deviation / 4
        held = [np.maximum(part, 0.0) + smooth for part in parts]
        self._counts, self.class_count_ = counts, totals
        self.class_prior_ = totals / totals.sum()
        self.feature_log_prob_ = [np.log(part / part.sum(axis=1, keepdims=True)) for part in held]
        return self

    def log_likelihood(self, X: object) -> Floats:  # noqa: N803
        self._check_fitted()
        codes = self._counts.code(X)
        found = np.tile(np.log(self.class_prior_), (codes.shape[0], 1))
        for place, table in enumerate(self.feature_log_prob_):
            known = codes[:, place] >= 0
            found[known] += table[:, codes[known, place]].T
        return found
