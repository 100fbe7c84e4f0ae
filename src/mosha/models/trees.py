"""A decision tree whose splits are chosen privately among public thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from mosha.accounting.numerics.price import round_down
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import Pure
from mosha.core.fingerprint import write_as_stored
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, positive_integer
from mosha.core.unit import Neighbors, Person, Unit
from mosha.exact.bounding import keep_at_most, rows_per_unit
from mosha.exact.grid import add_noise
from mosha.learning.linear.rows import label_codes
from mosha.models.bayes import Likelihoods
from mosha.models.model import RowModel
from mosha.models.ranges import Between, Ranges
from mosha.models.sums.moments import check_labels
from mosha.models.sums.row_sums import Floats, Wholes, check_examples, read_matrix
from mosha.noise import discrete_laplace, permute_and_flip_choice
from mosha.noise.parameters import enlarge_scale

__all__ = ["DecisionTreeClassifier", "bin_rows"]

SPAN = 34
"""How far one row moves the scores of splits apart, in their units of 1/16 row."""


@np.errstate(all="ignore")
def bin_rows(values: Floats, ranges: Ranges, bins: int) -> Wholes:
    """The place of each number among `bins` equal parts of its range; a missing number is in the middle.

    >>> bin_rows(np.array([[0.0], [9.9], [float("nan")]]), Ranges((0.0,), (10.0,)), 4)[:, 0].tolist()
    [0, 3, 2]
    """
    share = (values - ranges.middles) / ranges.halves
    places = np.floor((np.clip(np.nan_to_num(share, nan=0.0), -1.0, 1.0) + 1.0) * (bins / 2))
    return np.asarray(np.minimum(places, bins - 1), np.int64)


@dataclass(frozen=True)
class GrownTree:
    """A complete tree of some depth: at each inner node a feature and how many bins go left; noisy counts at leaves."""

    depth: int
    splits: tuple[tuple[int, int], ...]
    leaves: Floats

    def find_leaves(self, binned: Wholes) -> NDArray[np.intp]:
        """The leaf that each row falls into."""
        places = np.zeros(len(binned), np.intp)
        features, cuts = (np.array(side) for side in zip(*self.splits, strict=True))
        for _ in range(self.depth):
            right = binned[np.arange(len(binned)), features[places]] >= cuts[places]
            places = 2 * places + 1 + right
        return np.asarray(places - (2**self.depth - 1), np.intp)


@explain_wrong_calls
@dataclass(kw_only=True, eq=False, repr=False)
class DecisionTreeClassifier(RowModel, Likelihoods):
    """A tree that asks at each node about one feature; splits are chosen by how well they tell the classes apart.

    Args:
        classes: the labels, declared in advance.
        between: the declared range of the features: one (low, high) for all, (lows, highs), or by name.
        depth: how many questions are asked of an example.
        bins: into so many equal parts each range may be split.
        epsilon: the price.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        Half of epsilon goes to the leaves, the rest in equal parts to the levels. A score is the sum over both sides of
        floor(16 q / n), q the sum of squared class counts of n rows (Gini). One row more of class c changes q / n by
        (2 n_c + 1 - q / n) / (n + 1), between -1 and 1 as n_c <= n and q <= n^2, so every score of its node by at most
        17: span 34. At scale 34 m / e (m rows of a unit, twice that where it is replaced) `permute_and_flip_choice`
        costs e k / m at a node with k of the rows, so e at all nodes of a level. A row counts 1 at one leaf.

    >>> from mosha import Example, Ledger
    >>> X = np.random.default_rng().uniform(0, 1, size=(8000, 2))
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> model = DecisionTreeClassifier(classes=(0, 1), between=(0, 1), depth=1, epsilon=1)
    >>> model.fit(X, (X[:, 1] > 0.5).astype(int), account=account).predict([[0.9, 0.1], [0.1, 0.9]]).tolist()
    [0, 1]
    """

    _kind: ClassVar[str] = "classifier"
    _fitted: ClassVar[str] = "tree_"
    classes: Sequence[object]
    between: Between = None
    depth: int = 3
    bins: int = 16

    def measurement(self, features: int, names: Sequence[str] | None = None) -> Measurement:
        """What `fit` opens: data are (X, y, persons), the answer is splits and noisy counts."""
        ranges, labels = self._read_ranges(self.between, features, names), check_labels(self.classes)
        depth, bins = positive_integer("depth", self.depth), positive_integer("bins", self.bins)
        if depth > 12 or not 2 <= bins <= 1 << 10:
            raise InvalidParameter("models.size_of_tree", parameter="depth")
        epsilon, unit = positive("epsilon", self.epsilon), self.protected
        if not 2.0**-20 <= epsilon <= 2.0**20:
            raise InvalidParameter("models.epsilon_of_tree", parameter="epsilon")
        rows = rows_per_unit(unit) * (2 if unit.neighbors is Neighbors.REPLACE_ONE else 1)
        level, leaf = round_down(Fraction(epsilon) / (2 * depth)), round_down(Fraction(epsilon) / 2)
        choice, noise = SPAN * rows / Fraction(level), enlarge_scale(rows / Fraction(leaf))

        def step(state: object, data: object, ask: object, rng: Rng) -> tuple[dict[str, object], object]:
            del ask
            binned, codes = _read_rows(data, ranges, bins, labels, unit)
            splits = _grow(binned, codes, (depth, bins, len(labels)), choice, rng)
            tree = GrownTree(depth, tuple(splits), np.zeros((2**depth, len(labels))))
            cells = tree.find_leaves(binned) * len(labels) + codes
            exact = np.bincount(cells, minlength=2**depth * len(labels)).astype(np.int64)
            noisy = add_noise(exact, discrete_laplace(noise, exact.size, rng=rng))
            return {"splits": [list(split) for split in splits], "leaves": noisy.tolist()}, state

        question = f"tree {ranges!r} {labels!r} {depth} {bins} {write_as_stored(unit)}"
        event = Pure(level) * depth + Pure(leaf)
        return Measurement(unit=unit, event=event, step=step, name="decision tree", question=question)

    def _learn(self, value: Any, measurement: Measurement, names: Sequence[str] | None) -> None:
        del measurement
        self.ranges_ = self._read_ranges(self.between, self.n_features_in_, names)
        splits = tuple((int(feature), int(cut)) for feature, cut in value["splits"])
        leaves = np.array(value["leaves"], np.float64).reshape(2**self.depth, -1)
        self.tree_ = GrownTree(self.depth, splits, leaves)

    def log_likelihood(self, X: object) -> Floats:  # noqa: N803
        places = self.tree_.find_leaves(bin_rows(self._read(X), self.ranges_, self.bins))
        counts = np.maximum(self.tree_.leaves, 0.0) + 2 / positive("epsilon", self.epsilon)
        return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True))[places])

    def describe_splits(self) -> list[str]:
        """Each inner node in words, from the root down."""
        self._check_fitted()
        names = getattr(self, "feature_names_in_", [f"feature {k}" for k in range(self.n_features_in_)])
        lows, halves = self.ranges_.lows, self.ranges_.halves
        return [f"{names[f]} < {lows[f] + 2 * halves[f] * cut / self.bins:.6g}" for f, cut in self.tree_.splits]


def _read_rows(data: object, ranges: Ranges, bins: int, labels: Sequence[object], unit: Unit) -> tuple[Wholes, Wholes]:
    features, targets, persons = check_examples(data)
    binned = bin_rows(read_matrix(features, len(ranges.lows)), ranges, bins)
    codes = np.asarray(label_codes(targets, labels), np.int64)
    if len(codes) != len(binned):
        raise DataError("models.label_of_each", parameter="y")
    rows = np.column_stack([binned, codes])
    if isinstance(unit, Person):
        if persons is None:
            raise DataError("models.whose_examples", parameter="persons")
        rows = rows[keep_at_most(rows_per_unit(unit), persons, rows)]
    rows = rows[rows[:, -1] >= 0]
    return rows[:, :-1], rows[:, -1]


def _purity(counts: Wholes) -> Wholes:
    """floor(16 q / n) of each row of class counts."""
    return np.asarray(16 * (counts**2).sum(axis=2) // np.maximum(counts.sum(axis=2), 1), np.int64)


def _grow(
    binned: Wholes, codes: Wholes, shape: tuple[int, int, int], scale: Fraction, rng: Rng
) -> list[tuple[int, int]]:
    """The splits of all inner nodes, level by level."""
    depth, bins, classes = shape
    features = binned.shape[1]
    places, splits = np.zeros(len(binned), np.int64), cast("list[tuple[int, int]]", [])
    for level in range(depth):
        first = 2**level - 1
        for node in range(first, 2 * first + 1):
            own = places == node
            table = np.zeros((features, bins, classes), np.int64)
            for feature in range(features):
                cells = binned[own, feature] * classes + codes[own]
                table[feature] = np.bincount(cells, minlength=bins * classes).reshape(bins, classes)
            left = table.cumsum(axis=1)[:, :-1]
            scores = _purity(left) + _purity(table.sum(axis=1, keepdims=True) - left)
            feature, cut = divmod(int(permute_and_flip_choice(scores.reshape(-1), scale, rng=rng)), bins - 1)
            splits.append((feature, cut + 1))
            right = binned[own, feature] >= cut + 1
            places[own] = 2 * node + 1 + right
    return splits
