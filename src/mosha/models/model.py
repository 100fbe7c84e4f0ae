"""What the classic models share: a price, a unit, public names of features, one payment and one release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.release import Release
from mosha.core.unit import Example, Unit
from mosha.learning.linear.estimator import Estimator
from mosha.models.paying import Price, add_noise_to, noise_deviation, pay_for_table, pay_from
from mosha.models.ranges import Between, Ranges, read_ranges
from mosha.models.sums.moments import Moments, MomentSums
from mosha.models.sums.row_sums import Floats, count_columns, feature_names, read_matrix
from mosha.models.sums.table_rows import rows_of_table
from mosha.models.sums.table_sums import choose_columns, is_remote, table_moments
from mosha.tables import Table

__all__ = ["Model", "MomentModel", "RowModel"]


@dataclass(kw_only=True, eq=False, repr=False)
class Model(Estimator):
    """An estimator with a price: `epsilon` alone, `epsilon` with `delta`, `rho` or `mu`."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    unit: Unit | None = None
    _table: ClassVar[Table | None] = None  # the one that is learnt from, while it is

    @property
    def price(self) -> Price:
        """What a fit costs."""
        return Price(self.epsilon, self.delta, self.rho, self.mu)

    @property
    def protected(self) -> Unit:
        """Whose presence is hidden: an example, unless something else was said; of a table, what it protects."""
        if self._table is not None:
            return self._table.unit
        return Example() if self.unit is None else self.unit

    @contextmanager
    def _reading(self, data: object) -> Iterator[None]:
        """Inside, a protected table says whose presence is hidden, and the ranges that were not said."""
        if isinstance(data, Table):
            vars(self)["_table"] = data
        try:
            yield
        finally:
            vars(self).pop("_table", None)

    def _read_ranges(self, between: Between, features: int, names: Sequence[str] | None) -> Ranges:
        return read_ranges(between, features, names, None if self._table is None else self._table.declared.ranges)

    def _keep_names(self, features: int, names: Sequence[str] | None) -> None:
        self.n_features_in_ = features
        if names is not None:
            self.feature_names_in_ = np.array(list(map(str, names)), object)

    def __sklearn_tags__(self) -> object:  # called by scikit-learn alone, which is then there
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags, TransformerTags  # noqa: PLC0415

        learns = self._kind in ("classifier", "regressor")
        tags = Tags(
            estimator_type=None if self._kind == "transformer" else self._kind,
            target_tags=TargetTags(required=learns),
            non_deterministic=True,
            input_tags=InputTags(allow_nan=True),
        )
        tags.transformer_tags = TransformerTags() if hasattr(self, "transform") else None
        tags.classifier_tags = ClassifierTags() if self._kind == "classifier" else None
        tags.regressor_tags = RegressorTags() if self._kind == "regressor" else None
        return tags

    def _read(self, features: object) -> Floats:
        """Public rows to predict or to transform."""
        self._check_fitted()
        return read_matrix(features, self.n_features_in_)


class RowModel(Model):
    """A model that one release of rows decides: whatever is done with what it says is post-processing."""

    _targets: ClassVar[int] = 1
    """How many columns a target has."""

    def measurement(self, features: int, names: Sequence[str] | None = None) -> Measurement:
        """What `fit` opens for examples of so many features: data are (X, y, persons)."""
        raise NotImplementedError

    def _learn(self, value: Any, measurement: Measurement, names: Sequence[str] | None) -> None:
        """Make the model of what was released."""
        raise NotImplementedError

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
        """Pay for all of it, then learn; nothing is read where the account refuses.

        Args:
            X: examples (an array or a data frame), or a protected table, whose own account pays.
            y: the target of each example; of a table, the name of a column (of two, where a target has two numbers).
            account: who pays for examples.
            persons: whose each example is, where the unit is a Person.
            key: makes a retry free: the same key finds the payment and the answer again.
            columns: the features of a table; all columns of numbers where it is left out.
        """
        with self._reading(X):
            self._fit_rows(X, y, account, persons, key, columns)
        return self

    def _fit_rows(
        self,
        X: object,  # noqa: N803
        y: object,
        account: Account | None,
        persons: object,
        key: str | None,
        columns: Sequence[str] | None,
    ) -> None:
        release, measurement, names = self._pay_for_rows(X, y, account, persons, key, columns)
        self.receipt_ = release.receipt
        self._learn(release.value, measurement, names)

    def _pay_for_rows(
        self,
        X: object,  # noqa: N803
        y: object,
        account: Account | None,
        persons: object,
        key: str | None,
        columns: Sequence[str] | None,
    ) -> tuple[Release, Measurement, Sequence[str] | None]:
        """What was released, by what, and what the features are called."""
        if not isinstance(X, Table):
            features, names = count_columns(X), feature_names(X)
            measurement = self.measurement(features, names)
            release = pay_from(account, measurement, (X, y, persons), key)
            self._keep_names(features, names)
            return release, measurement, names
        targets = _name_targets(y, self._targets)
        listed = tuple(n for n in choose_columns(X, columns) if columns is not None or n not in targets)
        measurement = self.measurement(len(listed), listed)
        rows = rows_of_table(X, listed, targets)
        asked, remote = rows.ask_by(measurement), is_remote(rows.relation)
        release = pay_for_table(X.account, asked, rows.look, remote=remote, key=key)
        self._keep_names(len(listed), listed)
        return release, measurement, listed


def _name_targets(y: object, count: int) -> tuple[str, ...]:
    """The names of so many columns of a table."""
    named = (y,) if isinstance(y, str) else () if y is None else y
    if not isinstance(named, tuple | list) or len(named) != count or not all(isinstance(name, str) for name in named):
        raise InvalidParameter("models.target_column", parameter="y", spent="nothing")
    return tuple(named)


@dataclass(kw_only=True, eq=False, repr=False)
class MomentModel(Model):
    """A model that is a function of noisy moments.

    Guarantee:
        `fit` releases `MomentSums` once, with the noise of its price; everything else is post-processing.
    """

    between: Between = None
    _labels: ClassVar[bool] = False
    """Whether the target is a class."""
    _target: ClassVar[bool] = False
    """Whether the target is a number, which has moments too."""

    def sums(self, ranges: Ranges) -> MomentSums:
        """The moments that this model needs."""
        raise NotImplementedError

    def _learn(self, moments: Moments) -> None:
        raise NotImplementedError

    def _target_range(self) -> tuple[float, float] | None:
        return None

    def _find_ranges(self, features: int, names: Sequence[str] | None, table: Table | None, target: object) -> Ranges:
        declared = None if table is None else table.declared.ranges
        found = read_ranges(self.between, features, names, declared)
        if not self._target:
            return found
        said = self._target_range()
        if said is None and declared is not None and isinstance(target, str):
            said = declared.get(target)
        last = read_ranges(None if said is None else (said[0], said[1]), 1)
        return Ranges(found.lows + last.lows, found.highs + last.highs)

    def measurement(self, features: int, names: Sequence[str] | None = None) -> Measurement:
        """What `fit` opens for examples of so many features: data are (X, y, persons)."""
        return add_noise_to(self.sums(self._find_ranges(features, names, None, None)), self.protected, self.price)

    def fit(
        self,
        X: object,  # noqa: N803
        y: object = None,
        *,
        account: Account | None = None,
        persons: object = None,
        key: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Pay, then learn; nothing is read where the account refuses.

        Args:
            X: examples (an array or a data frame), or a protected table, whose own account pays.
            y: the target of each example; of a table, the name of a column.
            account: who pays for examples.
            persons: whose each example is, where the unit is a Person.
            key: makes a retry free: the same key finds the payment and the answer again.
            columns: the features of a table; all columns of numbers where it is left out.
        """
        if isinstance(X, Table):
            return self._fit_table(X, y, key, columns)
        features, names = count_columns(X), feature_names(X)
        if y is None and (self._target or self._labels):
            raise InvalidParameter("models.target_needed", parameter="y", spent="nothing")
        ranges = self._find_ranges(features, names, None, None)
        sums = self.sums(ranges)
        measurement = add_noise_to(sums, self.protected, self.price)
        data = (X, y if self._target or self._labels else None, persons)
        release = pay_from(account, measurement, data, key)
        self.receipt_ = release.receipt
        return self._take(sums.read_moments(release.value, noise_deviation(measurement)), ranges, features, names)

    def _fit_table(self, table: Table, y: object, key: str | None, columns: Sequence[str] | None) -> Self:
        if (self._target or self._labels) != isinstance(y, str):
            raise InvalidParameter("models.target_column", parameter="y", spent="nothing")
        names = choose_columns(table, columns, y)
        ranges = self._find_ranges(len(names), names, table, y)
        sums = self.sums(ranges)
        asked = (*names, str(y)) if self._target else names
        exact = table_moments(table, sums, asked, str(y) if self._labels else None)
        measurement = add_noise_to(exact, table.unit, self.price)
        release = pay_for_table(table.account, measurement, exact.look, remote=is_remote(exact.relation), key=key)
        self.receipt_ = release.receipt
        return self._take(sums.read_moments(release.value, noise_deviation(measurement)), ranges, len(names), names)

    def _take(self, moments: Moments, ranges: Ranges, features: int, names: Sequence[str] | None) -> Self:
        self.ranges_ = ranges
        self._keep_names(features, names)
        self._learn(moments)
        return self
