"""A forest of trees whose splits are drawn at random: all leaves of all trees are one release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.exact.statistic import Steps
from mosha.learning.linear.rows import label_codes
from mosha.models.bayes import Likelihoods
from mosha.models.model import RowModel
from mosha.models.paying import add_noise_to, noise_deviation
from mosha.models.ranges import Between, Ranges
from mosha.models.sums.moments import check_labels
from mosha.models.sums.row_sums import BLOCK, Floats, RowSums, Wholes, read_matrix
from mosha.models.trees import GrownTree, bin_rows

__all__ = ["LeafCounts", "RandomForestClassifier"]

Splits = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True)
class LeafCounts(RowSums):
    """How many examples of each class fall into each leaf of each of some public trees.

    A tree has `depth` levels; its `splits` are (feature, bin) for each inner node.

    Guarantee:
        An example adds 1 to one cell of each of T trees: l1 norm and squared l2 norm at most T.

    >>> from mosha.models.ranges import Ranges
    >>> counts = LeafCounts(Ranges((0.0,), (1.0,)), ("no", "yes"), depth=1, bins=4, splits=(((0, 2),),))
    >>> counts.add_up(counts.turn_rows([[0.1], [0.9], [0.8]], ["no", "yes", "yes"])).tolist()
    [1, 0, 0, 2]
    """

    ranges: Ranges
    classes: tuple[object, ...]
    depth: int
    bins: int
    splits: Splits

    @property
    def trees(self) -> list[GrownTree]:
        empty = np.zeros((2**self.depth, len(self.classes)))
        return [GrownTree(self.depth, splits, empty) for splits in self.splits]

    @property
    def coordinates(self) -> int:
        return len(self.splits) * len(self.classes) << self.depth

    @property
    def longest(self) -> int:
        return len(self.splits)

    @property
    def longest_square(self) -> int:
        return len(self.splits)

    def turn_rows(self, features: object, targets: object) -> Wholes:
        binned = bin_rows(read_matrix(features, len(self.ranges.lows)), self.ranges, self.bins)
        codes = np.asarray(label_codes(targets, self.classes), np.int64)
        if len(codes) != len(binned):
            raise DataError("models.label_of_each", parameter="y")
        return np.column_stack([binned, codes])

    def add_up(self, rows: Wholes) -> Steps:
        found, cells = np.zeros((len(self.splits), 2**self.depth * len(self.classes)), np.int64), len(self.classes)
        for start in range(0, rows.shape[0], BLOCK):
            block = rows[start : start + BLOCK]
            block = block[block[:, -1] >= 0]
            for place, tree in enumerate(self.trees):
                where = tree.find_leaves(block[:, :-1]) * cells + block[:, -1]
                found[place] += np.bincount(where, minlength=found.shape[1])
        return found.reshape(-1)


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class RandomForestClassifier(RowModel, Likelihoods):
    """Many trees with random splits on public grids, whose leaves are counted with noise in one release.

    Args:
        classes: the labels, declared in advance.
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        n_estimators: how many trees.
        depth: how many questions each tree asks of an example.
        bins: into so many equal parts each range may be split.
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.
        random_state: which trees are drawn: a public number.

    Guarantee:
        `LeafCounts`, released once. The trees are drawn before anything is read.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(0, 1, size=(8000, 2))
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> model = RandomForestClassifier(classes=(0, 1), between=(0, 1), n_estimators=20, epsilon=1)
    >>> model.fit(X, (X[:, 1] > 0.5).astype(int), account=account).predict([[0.5, 0.1], [0.5, 0.9]]).tolist()
    [0, 1]
    """

    _kind: ClassVar[str] = "classifier"
    _fitted: ClassVar[str] = "estimators_"
    classes: Sequence[object]
    between: Between = None
    n_estimators: int = 32
    depth: int = 4
    bins: int = 16
    random_state: int | None = None

    def counts(self, features: int, names: Sequence[str] | None = None) -> LeafCounts:
        """The trees, and what is counted at their leaves."""
        trees, depth = positive_integer("n_estimators", self.n_estimators), positive_integer("depth", self.depth)
        bins = positive_integer("bins", self.bins)
        if depth > 12 or trees > 4096 or not 2 <= bins <= 1 << 10:
            raise InvalidParameter("models.size_of_tree", parameter="depth")
        drawn = np.random.default_rng(self.random_state)
        splits = tuple(_draw_tree(drawn, features, depth, bins) for _ in range(trees))
        ranges = self._read_ranges(self.between, features, names)
        return LeafCounts(ranges, check_labels(self.classes), depth, bins, splits)

    def measurement(self, features: int, names: Sequence[str] | None = None) -> Measurement:
        """What `fit` opens: data are (X, y, persons). The trees are drawn here."""
        self._counts = self.counts(features, names)
        return add_noise_to(self._counts, self.protected, self.price)

    def _learn(self, value: Any, measurement: Measurement, names: Sequence[str] | None) -> None:
        del names
        counts = self._counts
        self.ranges_ = counts.ranges
        tables = np.asarray(value, np.float64).reshape(len(counts.splits), 2**self.depth, -1)
        self._deviation = noise_deviation(measurement)
        self.estimators_ = [
            GrownTree(self.depth, splits, table) for splits, table in zip(counts.splits, tables, strict=True)
        ]

    def log_likelihood(self, X: object) -> Floats:  # noqa: N803
        """The mean over trees of what their leaves say, each pulled to the frequencies of all by its noise."""
        binned = bin_rows(self._read(X), self.ranges_, self.bins)
        whole = np.maximum(np.mean([tree.leaves.sum(axis=0) for tree in self.estimators_], axis=0), 1.0)
        shares, total = whole / whole.sum(), np.zeros((len(binned), len(whole)))
        for tree in self.estimators_:
            held = np.maximum(tree.leaves, 0.0) + self._deviation * shares
            total += np.log(held / held.sum(axis=1, keepdims=True) / shares)[tree.find_leaves(binned)]
        used = min(self.depth * len(self.estimators_), 2 * self.n_features_in_) / self.depth
        return np.asarray(np.log(shares) + total / len(self.estimators_) * max(1.0, used))


def _draw_tree(drawn: np.random.Generator, features: int, depth: int, bins: int) -> tuple[tuple[int, int], ...]:
    """A feature for each node, and a cut within what the nodes above left of it."""
    splits: list[tuple[int, int]] = []
    bounds = [(np.zeros(features, int), np.full(features, bins))]
    for node in range(2**depth - 1):
        low, high = bounds[node]
        wide = np.flatnonzero(high - low >= 2)
        feature = int(drawn.choice(wide)) if len(wide) else int(drawn.integers(features))
        cut = int(drawn.integers(low[feature] + 1, max(high[feature], low[feature] + 2)))
        splits.append((feature, cut))
        left, right = high.copy(), low.copy()
        left[feature] = right[feature] = cut
        bounds += [(low, left), (right, high)]
    return tuple(splits)
