"""Cells of a number in each of some groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mosha.exact.statistic import Steps
from mosha.learning.linear.rows import label_codes
from mosha.models.density import CellCounts
from mosha.models.ranges import Ranges
from mosha.models.sums.row_sums import RowSums, Wholes

__all__ = ["GroupCells"]


@dataclass(frozen=True)
class GroupCells(RowSums):
    """How many numbers of each group lie in each of `bins` equal cells of a range.

    Guarantee:
        An example adds 1 to one cell of one group, or nothing if its number is missing or its group is not listed.

    >>> from mosha import Row
    >>> cells = GroupCells(Ranges((0.0,), (10.0,)), 2, ("a", "b"))
    >>> cells.evaluate(([[1.0], [9.0], [9.0]], ["a", "a", "b"], None), Row()).tolist()
    [1, 1, 0, 1]
    """

    ranges: Ranges
    bins: int
    classes: tuple[object, ...]

    @property
    def coordinates(self) -> int:
        return self.bins * len(self.classes)

    @property
    def longest(self) -> int:
        return 1

    @property
    def longest_square(self) -> int:
        return 1

    def turn_rows(self, features: object, targets: object) -> Wholes:
        places = CellCounts(self.ranges, self.bins).turn_rows(features, None)
        return np.column_stack([places, label_codes(targets, self.classes)]).astype(np.int64)

    def add_up(self, rows: Wholes) -> Steps:
        known = rows[(rows[:, 0] >= 0) & (rows[:, 1] >= 0)]
        return np.bincount(known[:, 1] * self.bins + known[:, 0], minlength=self.coordinates).astype(np.int64)
