"""A density as a histogram on a public grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from mosha.connect.language.expression import col, lit
from mosha.connect.language.value import Rows
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.exact.statistic import Steps
from mosha.models.model import Model
from mosha.models.paying import add_noise_to, noise_deviation, pay_for_table, pay_from
from mosha.models.ranges import Ranges, read_ranges
from mosha.models.sums.row_sums import Floats, RowSums, Wholes, read_matrix
from mosha.models.sums.table_sums import TableSums, is_remote
from mosha.tables import Table

__all__ = ["MOST_BINS", "HistogramDensity"]

MOST_BINS = 1 << 16


@dataclass(frozen=True)
class CellCounts(RowSums):
    """How many numbers lie in each of so many equal cells of a range; a number outside lies in the first or the last.

    Guarantee:
        An example adds 1 to one cell, or nothing if it is missing.

    >>> from mosha import Row
    >>> CellCounts(Ranges((0.0,), (10.0,)), 2).evaluate(([[1.0], [9.0], [99.0]], None, None), Row()).tolist()
    [1, 2]
    """

    ranges: Ranges
    bins: int

    @property
    def coordinates(self) -> int:
        return self.bins

    @property
    def longest(self) -> int:
        return 1

    @property
    def longest_square(self) -> int:
        return 1

    @np.errstate(all="ignore")
    def turn_rows(self, features: object, targets: object) -> Wholes:
        del targets
        values, low = read_matrix(features, 1)[:, 0], self.ranges.lows[0]
        places = np.floor((values - low) / ((self.ranges.highs[0] - low) / self.bins))
        held = np.clip(np.nan_to_num(places, nan=0.0), 0, self.bins - 1).astype(np.int64)
        return np.where(np.isnan(values), -1, held).reshape(-1, 1)

    def add_up(self, rows: Wholes) -> Steps:
        codes = rows[:, 0]
        return np.bincount(codes[codes >= 0], minlength=self.bins).astype(np.int64)


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class HistogramDensity(Model):
    """The density of one number, the same within each of `bins` equal cells of its declared range.

    Args:
        bins: how many cells.
        between: the declared range (low, high); a protected table's declaration may say it.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        `CellCounts`, released once; counts are held above zero and made to sum to 1 afterwards.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(0, 5, size=(20000, 1))
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> model = HistogramDensity(bins=2, between=(0, 10), epsilon=1).fit(X, account=account)
    >>> model.density_.round(2)
    array([0.2, 0. ])
    """

    _kind: ClassVar[str] = "density_estimator"
    _fitted: ClassVar[str] = "density_"
    bins: int = 32
    between: tuple[float, float] | None = None

    def _counts(self, declared: tuple[float, float] | None = None) -> CellCounts:
        bins, said = positive_integer("bins", self.bins), self.between or declared
        if bins > MOST_BINS:
            raise InvalidParameter("models.too_many_bins", parameter="bins", most=MOST_BINS)
        return CellCounts(read_ranges(said, 1), bins)

    def measurement(self) -> Measurement:
        """What `fit` opens: data are (X, None, persons)."""
        return add_noise_to(self._counts(), self.protected, self.price)

    def fit(
        self,
        X: object,  # noqa: N803
        y: object = None,
        *,
        account: Account | None = None,
        persons: object = None,
        key: str | None = None,
        column: str | None = None,
    ) -> Self:
        """Pay, then count; of a protected table, `column` says which number."""
        del y
        if isinstance(X, Table):
            if column is None:
                raise InvalidParameter("models.column_needed", parameter="column", spent="nothing")
            counts = self._counts(X.declared.ranges.get(column))
            exact = _cells_of_table(X, counts, column)
            measurement = add_noise_to(exact, X.unit, self.price)
            release = pay_for_table(X.account, measurement, exact.look, remote=is_remote(exact.relation), key=key)
        else:
            counts = self._counts()
            measurement = add_noise_to(counts, self.protected, self.price)
            release = pay_from(account, measurement, (X, None, persons), key)
        self.receipt_ = release.receipt
        self._keep_names(1, None if column is None else [column])
        self._learn(counts, np.asarray(release.value, np.float64), noise_deviation(measurement))
        return self

    def _learn(self, counts: CellCounts, noisy: Floats, deviation: float) -> None:
        low, high = counts.ranges.lows[0], counts.ranges.highs[0]
        held = np.maximum(noisy, 0.0)
        total = max(float(held.sum()), 1.0)
        self.counts_, self.noise_deviation_ = noisy, deviation
        self.edges_ = np.linspace(low, high, counts.bins + 1)
        self.density_ = held / total / ((high - low) / counts.bins)

    def score_samples(self, X: object) -> Floats:  # noqa: N803
        """The logarithm of the density at public points: minus infinity outside of the range."""
        points = self._read(X)[:, 0]
        places = np.clip(np.searchsorted(self.edges_, points, side="right") - 1, 0, len(self.density_) - 1)
        inside = (points >= self.edges_[0]) & (points <= self.edges_[-1])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(inside, self.density_[places], 0.0)))

    def sample(self, count: int, *, generator: np.random.Generator | None = None) -> Floats:
        """So many (`count`) made-up numbers from any `generator`: post-processing, as many as one likes."""
        self._check_fitted()
        chance = self.density_ / max(float(self.density_.sum()), 1e-300)
        drawn = generator or np.random.default_rng()
        places = drawn.choice(len(chance), size=positive_integer("count", count), p=chance)
        width = self.edges_[1] - self.edges_[0]
        return np.asarray(self.edges_[places] + width * drawn.random(len(places)))[:, None]


def _cells_of_table(table: Table, counts: CellCounts, column: str) -> TableSums:
    low, width = counts.ranges.lows[0], (counts.ranges.highs[0] - counts.ranges.lows[0]) / counts.bins
    place = ((col(column).cast("real") - lit(low)) / lit(width)).floor().clamp(0, counts.bins - 1).cast("integer")
    relation = table.relation.where(~col(column).is_null())
    return TableSums(counts, relation, table.unit, (("rows", Rows()),), place, tuple(range(counts.bins)))
