"""A column's cells as a tree: flat for plain marginals, binary for ranges, declared for hierarchies.

Level 0 is the root, which holds all rows; the last level holds the cells. A flat axis has these two levels alone. The
*residual* of a level is what the counts of its nodes add to those of their parents: within each family of siblings it
sums to zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Axis", "Level", "binary_axis", "flat_axis", "tree_of_groups"]

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one depth: `parent[i]` is the place of node i's parent among the nodes above.

    Guarantee:
        `residual` maps a vector of node counts to integers by `common * (x - mean of its siblings)`. One row sits in
        one node, of a family of m: its entry moves by common (1 - 1/m), each of its m - 1 siblings by common / m, so
        the vector moves by exactly common * sqrt(1 - 1/m) in the l2 norm, at most `common * sqrt(share)`.
    """

    parent: Wholes

    @cached_property
    def siblings(self) -> Wholes:
        """How many children the parent of each node has."""
        return np.asarray(np.bincount(self.parent)[self.parent], np.int64)

    @cached_property
    def common(self) -> int:
        """A multiple of the size of every family, so that residuals times it are whole numbers."""
        return math.lcm(*np.unique(self.siblings).tolist())

    @cached_property
    def largest(self) -> int:
        """The size of the largest family."""
        return int(self.siblings.max())

    @property
    def share(self) -> float:
        """The square of what one row moves, in rows: 1 - 1/m for the largest family."""
        return 1 - 1 / self.largest

    def _families(self, table: NDArray[np.generic], axis: int) -> NDArray[Any]:
        """For each node the sum over its family."""
        if self.largest == len(self.parent):
            return np.asarray(table.sum(axis=axis, keepdims=True))
        moved = np.moveaxis(table, axis, 0)
        sums = np.zeros((int(self.parent.max()) + 1, *moved.shape[1:]), moved.dtype)
        np.add.at(sums, self.parent, moved)
        return np.moveaxis(sums[self.parent], 0, axis)

    def residual(self, counts: NDArray[np.generic], axis: int) -> NDArray[Any]:
        """The whole numbers `common * count - (common / m) * sum of the family`, along one axis."""
        shape = [1] * counts.ndim
        shape[axis] = -1
        factor = (self.common // self.siblings).astype(counts.dtype).reshape(shape)
        residual: NDArray[Any] = counts * self.common - factor * self._families(counts, axis)
        return residual

    def centre(self, table: Reals, axis: int) -> Reals:
        """Each number minus the mean of its family."""
        shape = [1] * table.ndim
        shape[axis] = -1
        centred: Reals = table - self._families(table, axis) / self.siblings.reshape(shape)
        return centred


@dataclass(frozen=True, eq=False)
class Axis:
    """The levels of a column, the root left out: `levels[0]` are the root's children, `levels[-1]` the cells."""

    levels: tuple[Level, ...]

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.levels[-1].parent)

    @property
    def depth(self) -> int:
        return len(self.levels)

    @cached_property
    def _nodes(self) -> tuple[Wholes, ...]:
        """For each level, from the root down, the node that each cell lies in."""
        found = [np.arange(self.size)]
        for level in reversed(self.levels):
            found.append(level.parent[found[-1]])
        return tuple(reversed(found))

    @cached_property
    def _dilution(self) -> tuple[Reals, ...]:
        """For each level, the share of its node's count that each cell has where nothing finer is known."""
        found = [np.ones(self.size)]
        for place in range(self.depth - 1, -1, -1):
            level = self.levels[place]
            found.append(found[-1] / level.siblings[self._nodes[place + 1]])
        return tuple(reversed(found))

    def nodes(self, level: int) -> int:
        """How many nodes a level has (0: the root)."""
        return 1 if level == 0 else len(self.levels[level - 1].parent)

    def gather(self, table: NDArray[np.generic], level: int, axis: int) -> NDArray[Any]:
        """The counts of a level's nodes, from those of the cells."""
        if level == self.depth:
            return table
        moved = np.moveaxis(table, axis, 0)
        sums = np.zeros((self.nodes(level), *moved.shape[1:]), moved.dtype)
        np.add.at(sums, self._nodes[level], moved)
        return np.moveaxis(sums, 0, axis)

    def spread(self, table: Reals, level: int, axis: int) -> Reals:
        """Numbers of a level's nodes, divided evenly among the children down to the cells."""
        shape = [1] * table.ndim
        shape[axis] = -1
        return np.take(table, self._nodes[level], axis) * self._dilution[level].reshape(shape)

    def energy(self, queries: Reals, level: int) -> Reals:
        """The variance of linear queries (a row each, over the cells) under residual noise of one row at this level.

        At the root, where nothing is centred, the square of the coefficient of the total.
        """
        weights = queries * self._dilution[level]
        gathered = np.zeros((len(queries), self.nodes(level)))
        np.add.at(gathered.T, self._nodes[level], weights.T)
        if level > 0:
            gathered = self.levels[level - 1].centre(gathered, 1)
        return np.asarray((gathered**2).sum(axis=1), np.float64)

    def cell_energy(self, level: int) -> Reals:
        """`energy` of every single cell."""
        share = 1.0 if level == 0 else 1 - 1 / self.levels[level - 1].siblings[self._nodes[level]]
        return np.asarray(self._dilution[level] ** 2 * share, np.float64)


def flat_axis(size: int) -> Axis:
    """Cells without an order.

    >>> flat_axis(3).levels[0].share
    0.6666666666666667
    """
    return Axis((Level(np.zeros(size, np.int64)),))


def binary_axis(size: int) -> Axis:
    """Cells in their order, halved and halved again: for ranges and prefix sums.

    >>> binary_axis(5).depth
    3
    """
    depth = max(1, math.ceil(math.log2(size)))
    levels, above = [], 1
    for place in range(depth):
        width = 1 << (depth - 1 - place)
        here = -(-size // width)
        levels.append(Level(np.arange(here, dtype=np.int64) // 2 if above > 1 or here > 1 else np.zeros(1, np.int64)))
        above = here
    return Axis(tuple(levels))


def tree_of_groups(groups: Sequence[int]) -> Axis:
    """Cells in groups: `groups[i]` is the number of the group of cell i.

    >>> tree_of_groups([0, 0, 1]).depth
    2
    """
    numbers = np.unique(np.asarray(groups, np.int64), return_inverse=True)[1].reshape(-1)
    top = int(numbers.max()) + 1
    if top == 1 or top == len(numbers):
        return flat_axis(len(numbers))
    return Axis((Level(np.zeros(top, np.int64)), Level(numbers.astype(np.int64))))
