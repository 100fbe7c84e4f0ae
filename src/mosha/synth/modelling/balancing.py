"""Rows moved closer to the model: values of one column are exchanged between rows where that helps all pair tables.

A random sample of n rows strays from the model by about the root of a cell's count; exchanges keep every column as it
is and take most of that away. They read the model and the synthetic rows alone.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from mosha.synth.measuring.columns import Wholes
from mosha.synth.modelling.model import Model

__all__ = ["balance_rows"]

Targets = dict[tuple[int, int], NDArray[np.float32]]
MOST_CELLS, MOST_WORK, SWEEPS = 4_000_000, 270_000_000, 12
FIRST_TAKEN, LAST_TAKEN = 0.1, 0.03
"""The share of helpful exchanges that are made at once, in the first and the last sweep: all would overshoot."""


def balance_rows(cells: list[Wholes], model: Model, generator: np.random.Generator) -> list[Wholes]:
    """The same rows after some sweeps of exchanges; as they are where that would take too long."""
    sizes = [len(groups) for groups in model.groups]
    rows, columns = len(cells[0]) if cells else 0, len(cells)
    pairs = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    if columns < 2 or rows < 2 or pairs > MOST_CELLS or len(model.mixture.parts) < 2:
        return cells
    sweeps = min(SWEEPS, MOST_WORK // (rows * columns * (columns - 1)) + 1)
    if rows * columns * (columns - 1) > MOST_WORK:
        return cells
    targets = _pair_targets(model, columns, rows)
    cells = [np.array(numbers) for numbers in cells]
    for share in np.linspace(FIRST_TAKEN, LAST_TAKEN, sweeps):
        for column in generator.permutation(columns):
            _exchange(int(column), cells, sizes, targets, float(share), generator)
    return cells


def _pair_targets(model: Model, columns: int, rows: int) -> Targets:
    """How many rows each cell of a pair table should have, for every ordered pair of columns."""
    parts, found = [model.column(place).astype(np.float32) for place in range(columns)], {}
    for one, two in itertools.combinations(range(columns), 2):
        table = parts[one].T @ parts[two] * np.float32(rows / len(parts[one]))
        found[one, two], found[two, one] = table, table.T
    return found


def _exchange(
    column: int,
    cells: list[Wholes],
    sizes: list[int],
    targets: Targets,
    share: float,
    generator: np.random.Generator,
) -> None:
    """Exchange the values of one column between random pairs of rows, where the pair tables come closer.

    About this `share` of the exchanges that help is made, the more likely the more they help.
    """
    rows = len(cells[column])
    order = generator.permutation(rows)
    one, two = order[: rows // 2], order[rows // 2 : 2 * (rows // 2)]
    differs = cells[column][one] != cells[column][two]
    one, two = one[differs], two[differs]
    mine, other = cells[column][one], cells[column][two]
    gain = np.zeros(len(one))
    for place in range(len(cells)):
        if place == column:
            continue
        width = sizes[place]
        target = targets[column, place].reshape(-1)
        counts = np.bincount(cells[column] * width + cells[place], minlength=len(target))
        weight = 1 / np.sqrt(target + 0.5)
        excess = (counts - target) * weight
        here, there = cells[place][one], cells[place][two]
        spots = (mine * width + here, other * width + there, other * width + here, mine * width + there)
        change = 2 * (excess[spots[2]] + excess[spots[3]] - excess[spots[0]] - excess[spots[1]])
        change += weight[spots[0]] + weight[spots[1]] + weight[spots[2]] + weight[spots[3]]
        gain -= np.where(here != there, change, 0.0)
    gain = np.maximum(gain, 0.0)
    usual = float(gain.sum()) / max(int(np.count_nonzero(gain)), 1)
    taken = generator.random(len(one)) * usual < share * gain
    first, second = one[taken], two[taken]
    cells[column][first], cells[column][second] = other[taken], mine[taken]
