"""Principal components of a private covariance matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.models.model import MomentModel
from mosha.models.ranges import Ranges
from mosha.models.sums.moments import Moments, MomentSums
from mosha.models.sums.row_sums import Floats

__all__ = ["PCA"]


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class PCA(MomentModel):
    """The directions in which examples differ most, by one noisy matrix of second moments.

    Features are scaled by their declared ranges first (from -1 to 1), so that no unit of measurement decides.

    Args:
        n_components: how many directions; all of them where it is left out.
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        norm: the length (features from -1 to 1) that examples are shortened to: less noise where few are longer.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        `MomentSums` with products, released once (Dwork et al. 2014, "Analyze Gauss", with the mean and the count
        released too). Eigenvectors are post-processing.

    >>> from mosha import Example, Ledger
    >>> line = np.random.default_rng().uniform(-1, 1, size=(20000, 1))
    >>> account = Ledger.memory().account("demo", unit=Example(), mu=1, delta=1e-6)
    >>> model = PCA(n_components=1, between=(-1, 1), mu=0.9).fit(line * [[0.8, 0.6]], account=account)
    >>> np.abs(model.components_).round(1)
    array([[0.8, 0.6]])
    """

    _kind: ClassVar[str] = "transformer"
    _fitted: ClassVar[str] = "components_"
    n_components: int | None = None
    norm: float | None = None

    def sums(self, ranges: Ranges) -> MomentSums:
        """What `fit` releases, for examples in these `ranges`."""
        return MomentSums(ranges, norm=self.norm)

    def _learn(self, moments: Moments) -> None:
        count = (
            self.n_features_in_ if self.n_components is None else positive_integer("n_components", self.n_components)
        )
        if count > self.n_features_in_:
            raise InvalidParameter("models.too_many_components", parameter="n_components", most=self.n_features_in_)
        self._center = moments.means[0]
        values, vectors = np.linalg.eigh(moments.covariances()[0])
        order = np.argsort(-values)[:count]
        self.n_components_ = count
        self.mean_ = self.ranges_.middles + self.ranges_.halves * self._center
        self.components_ = vectors[:, order].T
        signs = np.sign(self.components_[np.arange(count), np.abs(self.components_).argmax(axis=1)])
        self.components_ = self.components_ * signs[:, None]
        self.explained_variance_ = np.maximum(values[order], 0.0)
        whole = float(np.maximum(values, 0.0).sum())
        self.explained_variance_ratio_ = self.explained_variance_ / (whole or 1.0)
        self.noise_deviation_ = moments.deviation / float(moments.usable_counts[0])

    def transform(self, X: object) -> Floats:  # noqa: N803
        """Coordinates along the components, of features scaled by their ranges."""
        return np.asarray((self.ranges_.to_unit(self._read(X)) - self._center) @ self.components_.T)

    def inverse_transform(self, X: object) -> Floats:  # noqa: N803
        """Features that have these coordinates."""
        self._check_fitted()
        scaled = np.asarray(X, np.float64) @ self.components_ + self._center
        return np.asarray(scaled * self.ranges_.halves + self.ranges_.middles)
