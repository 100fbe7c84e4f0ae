"""Clusters by private k-means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.fingerprint import write_as_stored
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.exact.grid import clamp_steps
from mosha.exact.statistic import Steps
from mosha.models.model import RowModel
from mosha.models.ranges import RADIUS, Between, Ranges
from mosha.models.several_steps import StepNoise, share_price
from mosha.models.sums.row_sums import BLOCK, Floats, RowSums, Wholes, read_matrix

__all__ = ["ClusterSums", "KMeans"]


@dataclass(frozen=True, eq=False)
class ClusterSums(RowSums):
    """The number and the sum of the examples that are nearest to each of some public `centers`.

    Guarantee:
        An example is a whole x with |x_i| <= R. It adds (w, x) to its nearest center alone, w = R p^(1/4) rounded: l1
        norm at most w + p R, squared l2 norm at most w^2 + p R^2. Distances are whole numbers below 2**53, exact in
        doubles, so which center is nearest depends on the example alone.

    >>> from mosha.models.ranges import Ranges
    >>> ClusterSums(Ranges((0.0,), (10.0,)), centers=np.array([[0], [100]])).coordinates
    4
    """

    ranges: Ranges
    centers: Wholes

    @property
    def features(self) -> int:
        return len(self.ranges.lows)

    @property
    def weight(self) -> int:
        return math.isqrt(math.isqrt(self.features * RADIUS**4))

    @property
    def coordinates(self) -> int:
        return len(self.centers) * (1 + self.features)

    @property
    def longest(self) -> int:
        return self.weight + self.features * RADIUS

    @property
    def longest_square(self) -> int:
        return self.weight**2 + self.features * RADIUS**2

    def turn_rows(self, features: object, targets: object) -> Wholes:
        del targets
        steps, known = self.ranges.to_steps(read_matrix(features, self.features))
        return np.column_stack([steps, known])

    def add_up(self, rows: Wholes) -> Steps:
        found = np.zeros((len(self.centers), 1 + self.features), np.int64)
        for start in range(0, rows.shape[0], BLOCK):
            block = rows[start : start + BLOCK]
            block = block[block[:, -1] == 1, :-1]
            nearest = find_nearest(block, self.centers)
            np.add.at(found, nearest, np.column_stack([np.full(len(block), self.weight), block]))
        return clamp_steps(found.reshape(-1))

    def read_clusters(self, noisy: Floats) -> tuple[Floats, Floats]:
        """Numbers and sums (features from -1 to 1) of the clusters."""
        table = noisy.reshape(len(self.centers), 1 + self.features)
        return table[:, 0] / self.weight, table[:, 1:] / RADIUS


def find_nearest(rows: Wholes, centers: Wholes) -> NDArray[np.intp]:
    """The nearest center of each whole row; of equals the first."""
    points, middles = rows.astype(np.float64), centers.astype(np.float64)
    return np.asarray(np.argmin((middles**2).sum(axis=1) - 2 * (points @ middles.T), axis=1), np.intp)


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class KMeans(RowModel):
    """Centers of `n_clusters` clusters: a public net of points is weighed first, then Lloyd's steps move the centers.

    Args:
        n_clusters: how many clusters.
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        steps: Lloyd's steps after the first look.
        net: how many public points the first look has; eight for each cluster where it is left out.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, by Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        1 + `steps` releases of `ClusterSums` (Su et al. 2016), priced together before the first; centers are chosen
        from earlier answers. Which cluster a private example belongs to is not told.

    >>> from mosha import Example, Ledger
    >>> X = np.repeat([[0.0, 0.0], [8.0, 8.0]], 4000, axis=0) + np.random.default_rng().normal(size=(8000, 2))
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=2)
    >>> model = KMeans(n_clusters=2, between=(-4, 12), epsilon=2).fit(X, account=account)
    >>> sorted(model.cluster_centers_[:, 0].round(-1).astype(int).tolist())
    [0, 10]
    """

    _kind: ClassVar[str] = "clusterer"
    _targets: ClassVar[int] = 0
    _fitted: ClassVar[str] = "cluster_centers_"
    n_clusters: int = 8
    between: Between = None
    steps: int = 4
    net: int | None = None

    def measurement(self, features: int, names: Sequence[str] | None = None) -> Measurement:
        """What `fit` opens: data are (X, None, persons), the answer is the centers, features from -1 to 1."""
        ranges = self._read_ranges(self.between, features, names)
        clusters, steps = positive_integer("n_clusters", self.n_clusters), positive_integer("steps", self.steps)
        points = 8 * clusters if self.net is None else positive_integer("net", self.net)
        start = ClusterSums(ranges, _spread_points(max(points, clusters), features))
        later = ClusterSums(ranges, np.zeros((clusters, features), np.int64))
        prices = share_price(self.price, [0.3, 0.7 / steps])
        look = StepNoise.plan(start, self.protected, prices[0], 1)
        move = StepNoise.plan(later, self.protected, prices[1], steps)

        def step(state: object, data: object, ask: object, rng: Rng) -> tuple[Floats, object]:
            del ask
            counts, totals = start.read_clusters(look.ask(start, data, rng))
            centers = _gather(counts, totals, clusters, look.deviation / start.weight)
            for _ in range(steps):
                sums = ClusterSums(ranges, np.rint(centers * RADIUS).astype(np.int64))
                counts, totals = sums.read_clusters(move.ask(sums, data, rng))
                centers = _move(centers, counts, totals, move.deviation / sums.weight)
            return centers, state

        question = f"KMeans {ranges!r} {clusters} {steps} {points} {write_as_stored(self.protected)}"
        return Measurement(
            unit=self.protected,
            event=look.event + move.event,
            step=step,
            name="KMeans",
            question=question,
            delta=self.delta or None,
        )

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
        """Pay, then look for clusters; nothing is read where the account refuses.

        Args:
            X: examples (an array or a data frame), or a protected table, whose own account pays.
            y: not looked at: pipelines hand it in.
            account: who pays for examples.
            persons: whose each example is, where the unit is a Person.
            key: makes a retry free: the same key finds the payment and the answer again.
            columns: the features of a table; all columns of numbers where it is left out.
        """
        del y
        return super().fit(X, None, account=account, persons=persons, key=key, columns=columns)

    def _learn(self, value: Any, measurement: Measurement, names: Sequence[str] | None) -> None:
        del measurement
        self.ranges_ = self._read_ranges(self.between, self.n_features_in_, names)
        self._centers = np.asarray(value, np.float64)
        self.cluster_centers_ = self.ranges_.middles + self.ranges_.halves * self._centers

    def transform(self, X: object) -> Floats:  # noqa: N803
        """The distance of each public example from each center, features scaled by their ranges."""
        rows = self.ranges_.to_unit(self._read(X))
        return np.asarray(np.linalg.norm(rows[:, None, :] - self._centers, axis=2))

    def predict(self, X: object) -> NDArray[np.intp]:  # noqa: N803
        """The nearest center of each public example."""
        return np.asarray(np.argmin(self.transform(X), axis=1), np.intp)

    def score(self, X: object, y: object = None) -> float:  # noqa: N803
        """Minus the sum of squared distances from the nearest center, of *public* examples."""
        del y
        return -float((self.transform(X).min(axis=1) ** 2).sum())


def _spread_points(count: int, features: int) -> Wholes:
    """Public points of the box that keep away from each other: of many random ones the farthest, one by one."""
    drawn = np.random.default_rng()
    points = [drawn.uniform(-0.5, 0.5, features)]
    while len(points) < count:
        some = drawn.uniform(-1, 1, (32, features))
        away = ((some[:, None, :] - np.array(points)) ** 2).sum(axis=2).min(axis=1)
        points.append(some[int(away.argmax())])
    return np.rint(np.array(points) * RADIUS).astype(np.int64)


def _gather(counts: Floats, totals: Floats, clusters: int, deviation: float) -> Floats:
    """Weighted k-means on the noisy points of the net: post-processing."""
    solid = counts > 2 * deviation
    if solid.sum() < clusters:
        solid = counts >= np.sort(counts)[-clusters]
    weights = np.maximum(counts[solid], 1.0)
    points = np.clip(totals[solid] / weights[:, None], -1.0, 1.0)
    best, least, drawn = points[:clusters], math.inf, np.random.default_rng()
    for _ in range(8):
        centers = points[[int(drawn.choice(len(points), p=weights / weights.sum()))]]
        while len(centers) < clusters:
            away = ((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1) * weights + 1e-12
            centers = np.vstack([centers, points[int(drawn.choice(len(points), p=away / away.sum()))]])
        for _ in range(12):
            nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
            for place in np.unique(nearest):
                own = nearest == place
                centers[place] = np.average(points[own], axis=0, weights=weights[own])
        loss = float((((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1) * weights).sum())
        best, least = (centers, loss) if loss < least else (best, least)
    return np.asarray(best)


def _move(centers: Floats, counts: Floats, totals: Floats, deviation: float) -> Floats:
    """Centers move to the noisy means of their clusters, those of nearly nobody stay."""
    trust = np.clip(counts / (2 * deviation + 1e-9) - 1, 0.0, 1.0)[:, None]
    means = np.clip(totals / np.maximum(counts, 1.0)[:, None], -1.0, 1.0)
    return np.asarray(trust * means + (1 - trust) * centers)
