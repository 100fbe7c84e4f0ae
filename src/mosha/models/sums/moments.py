"""Numbers, sums and products of features in each class: the sufficient statistics of half of the classic models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.exact.clip import clip_vectors
from mosha.exact.grid import clamp_steps
from mosha.exact.statistic import Steps, root_up
from mosha.learning.linear.rows import label_codes
from mosha.models.ranges import RADIUS, Ranges
from mosha.models.sums.row_sums import BLOCK, Floats, RowSums, Wholes, read_matrix

__all__ = ["MomentSums", "Moments", "Seconds"]

Seconds = Literal["none", "squares", "products"]
"""Which second moments are summed: none, those of each feature by itself, or those of all pairs too."""


@dataclass(frozen=True)
class MomentSums(RowSums):
    """For each class: how many examples, the sums of their features, and of the squares and products of them.

    With `classes` the target says which class an example adds to; else `target` of the features may be the target
    itself (the last one), and all examples are of one class. `norm` shortens each example (features from -1 to 1).

    `seconds` says which second moments are summed: all "products", the "squares" alone, or "none".

    Guarantee:
        An example is a whole x, |x_i| <= R and |x|^2 <= K R^2 (K = p without `norm`). It adds to one class R^2, R x,
        x_i x_j (i < j) and x_i^2 - R^2 / 2. With u = (x/R)^2, S = sum u <= K, Q = sum u^2 <= S, the squared norm over
        R^4 is 1 + S + (S^2 - Q) / 2 + Q - S + p/4 <= 1 + p/4 + K (K + 1) / 2; with squares alone
        1 + S + Q - S + p/4 <= 1 + p/4 + K; without 1 + S. In l1, with A = sum |x|/R <= min(p, sqrt(p K)): 1 + A, for
        squares p/2 more, for products sum over i < j of |x_i x_j| / R^2 <= min(p (p - 1) / 2, A^2 / 2) more.

    >>> from mosha import Row
    >>> table = MomentSums(Ranges((0.0, 0.0), (1.0, 1.0)))
    >>> table.coordinates, round(table.sensitivity(Row()).l2 / RADIUS**2, 6)
    (6, 2.12132)
    """

    ranges: Ranges
    classes: tuple[object, ...] | None = None
    seconds: Seconds = "products"
    norm: float | None = None

    def __post_init__(self) -> None:
        if len(self.ranges.lows) > 1 << 11:
            raise InvalidParameter("models.too_many_features", parameter="X", most=1 << 11)
        if self.norm is not None and not 2.0**-7 <= self.norm <= 2.0**6:
            raise InvalidParameter("models.norm_of_examples", parameter="norm")

    @property
    def features(self) -> int:
        return len(self.ranges.lows)

    @property
    def groups(self) -> int:
        return 1 if self.classes is None else len(self.classes)

    @property
    def upper(self) -> tuple[Wholes, Wholes]:
        """The places of the second moments: pairs i <= j."""
        if self.seconds == "products":
            first, second = np.triu_indices(self.features)
        else:
            first = second = np.arange(self.features if self.seconds == "squares" else 0)
        return np.asarray(first, np.int64), np.asarray(second, np.int64)

    @property
    def width(self) -> int:
        """How many sums each class has."""
        return 1 + self.features + len(self.upper[0])

    @property
    def coordinates(self) -> int:
        return self.width * self.groups

    @property
    def _largest(self) -> int:
        """N, the largest norm of an example in steps; its square is at most p R^2."""
        whole = math.isqrt(self.features * RADIUS**2)
        return whole + 1 if self.norm is None else min(whole + 1, int(self.norm * RADIUS))

    @property
    def longest_square(self) -> int:
        square, p = min(self._largest**2, self.features * RADIUS**2), self.features
        if self.seconds == "products":
            return RADIUS**4 + p * RADIUS**4 // 4 + square * (square + RADIUS**2) // 2 + 1
        return RADIUS**4 + RADIUS**2 * square + (p * RADIUS**4 // 4 if self.seconds == "squares" else 0)

    @property
    def longest(self) -> int:
        p = self.features
        total = min(p * RADIUS, int(root_up(p * self._largest**2)) + 1)
        least = RADIUS**2 + RADIUS * total
        if self.seconds == "none":
            return least
        pairs = min(p * (p - 1) // 2 * RADIUS**2, total**2 // 2 + 1) if self.seconds == "products" else 0
        return least + pairs + p * RADIUS**2 // 2

    def turn_rows(self, features: object, targets: object) -> Wholes:
        """Steps of each feature, and the class (-1 for an example that counts nowhere)."""
        matrix = read_matrix(features, self._columns(targets))
        if targets is not None and self.classes is None:
            matrix = np.column_stack([matrix, read_matrix(np.asarray(targets, object).reshape(-1, 1), 1)])
        steps, known = self.ranges.to_steps(matrix)
        if self.norm is not None:
            steps = clip_vectors(steps.astype(np.float64), self._largest, 2, 1.0)
        codes = label_codes(targets, self.classes) if self.classes is not None else np.zeros(len(steps), np.int64)
        return np.column_stack([steps, np.where(known == 1, codes, -1)])

    def _columns(self, targets: object) -> int:
        return self.features - int(targets is not None and self.classes is None)

    def add_up(self, rows: Wholes) -> Steps:
        found = [self._weigh(*self._sums(rows[rows[:, -1] == code, :-1])) for code in range(self.groups)]
        return clamp_steps(np.concatenate(found))

    def _sums(self, rows: Wholes) -> tuple[int, Wholes, Wholes]:
        """Exact sums of one class: blocks of 2**11 products below 2**28 are exact in doubles."""
        products = np.zeros((self.features, self.features), np.int64)
        for start in range(0, rows.shape[0], BLOCK):
            block = rows[start : start + BLOCK].astype(np.float64)
            if self.seconds == "products":
                products += (block.T @ block).astype(np.int64)
            elif self.seconds == "squares":
                products[np.diag_indices(self.features)] += (block * block).sum(axis=0).astype(np.int64)
        return rows.shape[0], rows.sum(axis=0, dtype=np.int64), products[self.upper]

    def _weigh(self, count: int, first: Wholes, second: Wholes) -> Wholes:
        """The vector of one class: squares are seen from the middle of their range."""
        middle = np.where(self.upper[0] == self.upper[1], count * (RADIUS**2 // 2), 0)
        return np.concatenate([[count * RADIUS**2], first * RADIUS, second - middle]).astype(np.int64)

    def read_moments(self, noisy: object, deviation: float) -> Moments:
        """What noisy sums say, in features from -1 to 1: post-processing."""
        table = np.asarray(noisy, np.float64).reshape(self.groups, self.width) / RADIUS**2
        p, (i, j) = self.features, self.upper
        seconds = np.zeros((self.groups, p, p))
        seconds[:, i, j] = table[:, 1 + p :] + np.where(i == j, table[:, :1] / 2, 0.0)
        seconds[:, j, i] = seconds[:, i, j]
        return Moments(table[:, 0], table[:, 1 : 1 + p], seconds, deviation / RADIUS**2)


@dataclass(frozen=True, eq=False)
class Moments:
    """Noisy `counts`, sums and second moments of each class; `deviation` is that of the noise on every sum.

    A square is its sum from the middle plus half of the count, so its noise has 5/4 of the variance.

    `firsts` are the sums of the features, `seconds` those of their products.

    >>> Moments(np.array([4.0]), np.zeros((1, 2)), np.zeros((1, 2, 2)), deviation=1.0).counts.tolist()
    [4.0]
    """

    counts: Floats
    firsts: Floats
    seconds: Floats
    deviation: float

    def add_classes(self) -> Moments:
        """All classes together."""
        return Moments(
            self.counts.sum(keepdims=True),
            self.firsts.sum(axis=0, keepdims=True),
            self.seconds.sum(axis=0, keepdims=True),
            self.deviation * math.sqrt(len(self.counts)),
        )

    @property
    def usable_counts(self) -> Floats:
        """Counts that can be divided by."""
        return np.maximum(self.counts, 1.0)

    @property
    def means(self) -> Floats:
        return np.clip(self.firsts / self.usable_counts[:, None], -1.0, 1.0)

    def variances(self) -> Floats:
        """Of each feature in each class: at least what noise alone might hide, at most that of the whole range."""
        squares = np.diagonal(self.seconds, axis1=1, axis2=2) / self.usable_counts[:, None]
        floor = np.minimum(0.25, self.deviation / self.usable_counts)[:, None] ** 1
        return np.clip(squares - self.means**2, np.minimum(floor, 0.05) + 1e-9, 1.0)

    def covariances(self) -> Floats:
        """The covariance matrix of each class, as noise left it."""
        return self.seconds / self.usable_counts[:, None, None] - self.means[:, :, None] * self.means[:, None, :]


def check_labels(classes: Sequence[object] | None) -> tuple[object, ...]:
    """At least two different labels, declared in advance."""
    labels = tuple(classes) if classes is not None else ()
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise InvalidParameter("models.two_classes", parameter="classes")
    return labels
