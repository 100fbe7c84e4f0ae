"""What boosting asks of the data: how many examples are in each bin, and sums of residuals in a few leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mosha.core.errors import DataError
from mosha.core.options import LossName
from mosha.exact.statistic import Steps
from mosha.learning.linear.losses import LOGIT, clip_residuals, loss_of
from mosha.learning.linear.rows import label_codes
from mosha.models.ranges import Ranges
from mosha.models.sums.row_sums import BLOCK, Floats, RowSums, Wholes, read_matrix
from mosha.models.trees import bin_rows

__all__ = ["FINE", "BinCounts", "ResidualSums"]

FINE = 2.0**-20
"""Scores are whole numbers of these: sums of them are exact."""


@dataclass(frozen=True)
class BinCounts(RowSums):
    """How many examples lie in each bin of each feature.

    Guarantee:
        An example adds 1 to one bin of each of p features: l1 norm and squared l2 norm at most p.

    >>> from mosha.models.ranges import Ranges
    >>> BinCounts(Ranges((0.0, 0.0), (10.0, 1.0)), bins=4).coordinates
    8
    """

    ranges: Ranges
    bins: int

    @property
    def coordinates(self) -> int:
        return len(self.ranges.lows) * self.bins

    @property
    def longest(self) -> int:
        return len(self.ranges.lows)

    @property
    def longest_square(self) -> int:
        return len(self.ranges.lows)

    def turn_rows(self, features: object, targets: object) -> Wholes:
        del targets
        return bin_rows(read_matrix(features, len(self.ranges.lows)), self.ranges, self.bins)

    def add_up(self, rows: Wholes) -> Steps:
        found = [np.bincount(column, minlength=self.bins) for column in rows.T]
        return np.concatenate(found).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ResidualSums(RowSums):
    """The sums of residuals in each leaf (a run of bins) of one feature, for public scores of all bins.

    `loss` has so many `outputs`; the score of an example is `start` plus, for each feature, the entry of `scores` for
    its bin. `feature` is the one whose bins fall into `leaves` leaves, as `leaf_of_bin` says.

    Guarantee:
        An example's score is a sum of whole numbers from a public table, its residual a function of score and target
        alone (`losses`), clipped to a norm of `clip` steps, and is added to one leaf: squared l2 norm at most
        clip^2, l1 norm at most clip sqrt(outputs), rounded up.

    >>> from mosha.models.ranges import Ranges
    >>> flat = np.zeros((1, 4, 1), np.int64)
    >>> names, leaves = ("no", "yes"), np.array([0, 0, 1, 1])
    >>> sums = ResidualSums(Ranges((0.0,), (1.0,)), 4, "logistic", 1 << 20, 1, 2, names, flat, flat[0, 0], 0, leaves)
    >>> below, above = sums.add_up(sums.turn_rows([[0.1], [0.9]], ["no", "yes"]))
    >>> bool(below == -above != 0)
    True
    """

    ranges: Ranges
    bins: int
    loss: LossName
    clip: int
    outputs: int
    leaves: int
    classes: tuple[object, ...] | None
    scores: Wholes
    """features by bins by outputs, in units of FINE."""
    start: Wholes
    feature: int
    leaf_of_bin: Wholes

    @property
    def coordinates(self) -> int:
        return self.leaves * self.outputs

    @property
    def longest(self) -> int:
        return math.isqrt(self.outputs * self.clip**2) + 1

    @property
    def longest_square(self) -> int:
        return self.clip**2

    def turn_rows(self, features: object, targets: object) -> Wholes:
        """Bins, then the target: a class, or whole steps of the scaled number; -2**40 where it is none."""
        binned = bin_rows(
            read_matrix(features, len(self.ranges.lows) - (self.classes is None)), self.features, self.bins
        )
        if self.classes is not None:
            codes = np.asarray(label_codes(targets, self.classes), np.int64)
        else:
            numbers = read_matrix(np.asarray(targets, object).reshape(-1, 1), 1)
            steps, known = Ranges(self.ranges.lows[-1:], self.ranges.highs[-1:]).to_steps(numbers)
            codes = np.where(known == 1, steps[:, 0], -(1 << 40))
        if len(codes) != len(binned):
            raise DataError("models.label_of_each", parameter="y")
        return np.column_stack([binned, codes])

    @property
    def features(self) -> Ranges:
        last = len(self.ranges.lows) - (self.classes is None)
        return Ranges(self.ranges.lows[:last], self.ranges.highs[:last])

    def add_up(self, rows: Wholes) -> Steps:
        found = np.zeros((self.leaves, self.outputs), np.int64)
        for start in range(0, rows.shape[0], BLOCK):
            block = rows[start : start + BLOCK]
            missed = self._residuals(block)
            np.add.at(found, self.leaf_of_bin[block[:, self.feature]], missed.astype(np.int64))
        return found.reshape(-1)

    def _residuals(self, rows: Wholes) -> Floats:
        totals = np.tile(self.start, (len(rows), 1))
        for feature in range(rows.shape[1] - 1):
            totals += self.scores[feature, rows[:, feature]]
        logits = totals.astype(np.float64) * (FINE / LOGIT)
        return clip_residuals(loss_of(self.loss).residuals(logits, self._goals(rows[:, -1])), self.clip)

    def _goals(self, codes: Wholes) -> Floats:
        if self.classes is None:
            goals = np.where(codes > -(1 << 40), codes * (2.0**-14 / LOGIT), np.nan)
            return goals.reshape(-1, 1)
        if self.outputs == 1:
            return np.where(codes >= 0, codes, np.nan).astype(np.float64).reshape(-1, 1)
        return np.where(codes[:, None] >= 0, np.arange(self.outputs) == codes[:, None], np.nan).astype(np.float64)
