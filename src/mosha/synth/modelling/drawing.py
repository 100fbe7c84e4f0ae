"""Rows from a model: every component gives its share of the rows, every column its share of the cells.

Draws are systematic, not independent: the counts of every cell within a component are within one of what the model
says, so that the rows stray less from the model than a random sample would.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mosha.mechanisms.residuals.axis import Reals
from mosha.synth.measuring.columns import Wholes
from mosha.synth.modelling.model import Model

__all__ = ["draw_cells", "draw_column", "draw_components"]


def draw_cells(
    model: Model, rows: int, generator: np.random.Generator, selections: Mapping[int, Reals] | None = None
) -> list[Wholes]:
    """The cells of `rows` rows in every column; with `selections`, of rows that lie in chosen cells."""
    owner, chosen = draw_components(model, rows, generator, selections), selections or {}
    found = [draw_column(model, place, owner, generator, chosen.get(place)) for place in range(len(model.groups))]
    order = generator.permutation(rows)
    return [cells[order] for cells in found]


def draw_components(
    model: Model, rows: int, generator: np.random.Generator, selections: Mapping[int, Reals] | None = None
) -> Wholes:
    """The component of each of `rows` rows, in ascending order."""
    weights = np.full(len(model.mixture.parts), 1.0) if not selections else model.chance(selections)
    if weights.sum() <= 0:
        weights = np.ones(len(weights))
    return _systematic(weights / weights.sum(), rows, generator)


def draw_column(
    model: Model, place: int, owner: Wholes, generator: np.random.Generator, selection: Reals | None = None
) -> Wholes:
    """A cell of one column for each row, by its component; `owner` ascends. A `selection` names the cells it may be."""
    if selection is not None:
        inside = model.column(place) * selection
        inside = np.where(inside.sum(axis=1, keepdims=True) > 0, inside, selection)
        return _within(inside / inside.sum(axis=1, keepdims=True), owner, generator)
    group = _within(np.asarray(model.mixture.column(place), np.float64), owner, generator)
    return _cells(group, model.groups[place], model.inside[place], generator)


def _systematic(shares: Reals, count: int, generator: np.random.Generator) -> Wholes:
    """`count` places in ascending order, each as often as its share says, give or take one."""
    edges = np.cumsum(shares)
    marks = (np.arange(count) + generator.random()) / max(count, 1) * edges[-1]
    return np.asarray(np.minimum(np.searchsorted(edges, marks, side="right"), len(shares) - 1), np.int64)


def _within(parts: Reals, owner: Wholes, generator: np.random.Generator) -> Wholes:
    """A place for each row, by the distribution of its component; `owner` ascends."""
    counts = np.bincount(owner, minlength=len(parts))
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    shifts = generator.random(len(parts))
    marks = owner + (rank + shifts[owner]) / counts[owner]
    edges = (np.cumsum(parts, axis=1) / parts.sum(axis=1, keepdims=True) + np.arange(len(parts))[:, None]).reshape(-1)
    width = parts.shape[1]
    places = np.searchsorted(edges, np.minimum(marks, owner + 1 - 1e-12), side="right") - owner * width
    places = np.clip(places, 0, width - 1)
    return np.asarray(places[np.lexsort((generator.random(len(owner)), owner))], np.int64)


def _cells(group: Wholes, groups: Wholes, inside: Reals, generator: np.random.Generator) -> Wholes:
    """A cell of its group for each row."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    if sizes.max() == 1:
        return np.asarray(order[group], np.int64)
    firsts = np.cumsum(sizes) - sizes
    padded = np.zeros((len(sizes), int(sizes.max())))
    column = np.arange(len(groups)) - np.repeat(firsts, sizes)
    padded[groups[order], column] = np.maximum(inside[order], 1e-12)
    rows = np.argsort(group, kind="stable")
    chosen = np.empty(len(group), np.int64)
    chosen[rows] = _within(padded, group[rows], generator)
    return np.asarray(order[firsts[group] + chosen], np.int64)
