"""Means and standard deviations of features, and what is made of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mosha.core.names.calls import explain_wrong_calls
from mosha.models.model import MomentModel
from mosha.models.ranges import Ranges
from mosha.models.sums.moments import Moments, MomentSums
from mosha.models.sums.row_sums import Floats

__all__ = ["StandardScaler"]


@explain_wrong_calls
class StandardScaler(MomentModel):
    """Features minus their mean, over their standard deviation, from one private release.

    Args:
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        `MomentSums` with squares, released once. Examples are clamped into `between`.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(20, 60, size=(20000, 2))
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> scaler = StandardScaler(between=(0, 100), epsilon=1).fit(X, account=account)
    >>> scaler.mean_.round(-1), scaler.transform([[40, 40]]).round(0) + 0.0
    (array([40., 40.]), array([[0., 0.]]))
    """

    _kind: ClassVar[str] = "transformer"
    _fitted: ClassVar[str] = "mean_"

    def sums(self, ranges: Ranges) -> MomentSums:
        """What `fit` releases, for examples in these `ranges`."""
        return MomentSums(ranges, seconds="squares")

    def _learn(self, moments: Moments) -> None:
        middles, halves = self.ranges_.middles, self.ranges_.halves
        self.n_samples_seen_ = max(1.0, float(moments.counts[0]))
        self.mean_ = middles + halves * moments.means[0]
        self.var_ = halves**2 * moments.variances()[0]
        self.scale_ = np.sqrt(self.var_)

    def transform(self, X: object) -> Floats:  # noqa: N803
        """Each feature minus its mean over its standard deviation."""
        return np.asarray((self._read(X) - self.mean_) / self.scale_)

    def inverse_transform(self, X: object) -> Floats:  # noqa: N803
        """Back to the units of the features."""
        return np.asarray(self._read(X) * self.scale_ + self.mean_)
