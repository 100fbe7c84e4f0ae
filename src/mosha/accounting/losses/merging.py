"""The lower twin: a law on the lattice that tells no more than the pair does.

Merging outcomes tells less, so does moving mass to smaller losses. Two ways of merging are used, both of which keep the
mean of e^-L and so lose only at second order in the step: a rolling tangent where most of the mass is, and triples of
cells elsewhere. Both are proved in `loss.md`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mosha.accounting.losses.loss import FAR, UNIT, Array, Cells, Law
from mosha.accounting.losses.pair import Pair

__all__ = ["lower_law"]

ROLLED = 1200  # full cells that the rolling tangent takes; it goes through them one by one
WIDEST = 300.0  # nats that it may span


def lower_law(pair: Pair, first: int, last: int, step: float) -> Law:
    """A law on the lattice points first..last whose curve lies nowhere above that of the pair.

    The law is worked out for the lattice displaced by a hair, so that atoms which rounding left just below a lattice
    point still count as being on it; the displacement is declared as `shift`.

    Guarantee:
        The line of losses is cut into pieces, and the masses of each piece (errors taken from P and added to Q) are
        merged onto knots inside it. What lies above the last knot moves down to it, what lies below the first is
        forgotten.
    """
    knots = step * np.arange(first, last + 1, dtype=np.float64)
    hair = step * 2.0**-32 + 8 * UNIT * float(np.abs(knots).max())
    knots -= hair
    cells = pair.cells(knots)
    start, stop = _find_heaviest_run(cells.p, knots)
    atoms = np.zeros(len(knots))
    atoms[: start + 1] += _triples(*_bound_masses(cells, knots[:start], slice(0, start)), step)
    atoms[stop:] += _triples(*_bound_masses(cells, knots[stop:-1], slice(stop, None)), step)
    full = start + np.flatnonzero(cells.p[start:stop])
    turning = np.unique(np.concatenate((full, full + 1)))  # between them nothing lies
    rolled, shift = _roll_lines(pair, knots[turning], hair) if len(full) else (np.zeros(0), 0.0)
    atoms[turning] += rolled
    infinite = cells.infinite * (1 - cells.tail_error)
    atoms[-1] += max(cells.p_above * (1 - cells.tail_error) - infinite, 0.0)
    return Law(first, step, atoms * (1 - 8 * UNIT), infinite, max(shift, cells.shift) + hair)


def _bound_masses(cells: Cells, base: Array | float, part: slice) -> tuple[Array, Array]:
    """Masses that are not too large, and E e^-(L - base) on each cell that is not too small."""
    p = np.maximum(cells.p[part] * (1 - 8 * UNIT) - cells.p_error[part], 0.0)
    q = cells.q[part] * (1 + 8 * UNIT) + cells.q_error[part] + 1e-300
    lift = np.exp(np.minimum(base, FAR) + (8 + np.abs(base)) * UNIT + 2 * cells.shift)
    return p, np.asarray(np.where(p > 0, q * np.where(np.asarray(base) < FAR, lift, np.inf), 0.0))


def _find_heaviest_run(p: Array, knots: Array) -> tuple[int, int]:
    """The run of at most ROLLED cells that are not empty, over at most WIDEST nats, that holds the most mass."""
    full = np.flatnonzero(p)
    full = full[knots[full] < FAR]
    if not len(full):
        return 0, 0
    last = np.minimum(np.arange(len(full)) + ROLLED, np.searchsorted(knots[full], knots[full] + WIDEST))
    total = np.concatenate(([0.0], np.cumsum(p[full])))
    best = int(np.argmax(total[last] - total[:-1]))
    return int(full[best]), int(full[last[best] - 1]) + 1


def _roll_lines(pair: Pair, losses: Array, hair: float) -> tuple[Array, float]:
    """Masses on the knots `losses` for what lies between the first and the last, and the shift of the finer cells.

    In t = e^-(e - first loss) the curve is f(t) = sum max(0, p_i t - q_i) over finer cells, convex with its corners at
    q_i / p_i. A line rolls along f from below: at each knot it turns as far as f allows. What it traces is convex and
    below f and has corners at knots only: the curve of masses on knots, each being by how much the line turns. One
    line comes from each end; where they cross, the one from the right is lowered to meet the other at a knot.
    """
    middles = (losses[:-1] + losses[1:]) / 2
    finer = np.append(np.stack((losses[:-1], losses[:-1] + 2 * hair, middles), axis=1).ravel(), losses[-1])
    cells = pair.cells(finer)
    p, q = _bound_masses(cells, float(losses[0]), slice(None))
    knots = np.exp(losses[0] - losses)
    q[::3] = p[::3] * knots[:-1]  # what is within a hair of a knot counts as being on it
    seen = np.flatnonzero(p > 0)
    if not len(seen):
        return np.zeros(len(knots)), cells.shift
    corners = np.where(seen % 3 == 0, knots[seen // 3], q[seen] / p[seen])
    order = np.argsort(corners)
    mass, weight, corners, knots = p[seen][order], q[seen][order], corners[order], knots[::-1]
    steepest = float(mass.sum())
    left, from_left = _roll(knots, corners, _heights(mass, weight, corners), steepest)
    high = _heights(mass[::-1], weight[::-1], corners[::-1])
    right, from_right = (x[::-1] for x in _roll(-knots[::-1], -corners[::-1], high, steepest))
    return _splice(left, right, from_left, from_right + steepest * knots - float(weight.sum()), steepest)[
        ::-1
    ], cells.shift


def _splice(left: Array, right: Array, behind: Array, ahead: Array, steepest: float) -> Array:
    """The turns of the line from the left up to a knot where the one from the right is ahead, then those of that.

    At knot i the line from the right is ahead, at i - 1 it is not; the smaller its lead, the less is lost.
    """
    rounding = (64 + 8 * len(left)) * UNIT
    lead = ahead - behind
    rest = steepest * (1 - rounding) - (np.cumsum(left) - left) - (right.sum() - np.cumsum(right))
    sure = lead >= rounding * (np.abs(ahead).max() + steepest)
    knots = np.flatnonzero(sure[1:] & ~sure[:-1] & (rest[1:] >= 0)) + 1
    if not len(knots):
        return left * (1 - rounding)
    i = int(knots[np.argmin(lead[knots])])
    return np.concatenate((left[:i], rest[i : i + 1], right[i + 1 :]))


def _heights(mass: Array, q: Array, corners: Array) -> Array:
    """|sum of p_i t - q_i| over all corners up to each corner, a little too small."""
    total, weight = np.cumsum(mass), np.cumsum(q)
    return np.abs(total * corners - weight) - (64 + 8 * len(mass)) * UNIT * (total * corners + weight)


def _roll(knots: Array, corners: Array, heights: Array, steepest: float) -> tuple[Array, Array]:
    """By how much a line that rolls from left to right below the corners turns at each rising knot, and its heights."""
    turns, values = [], []
    at, points, tops = knots.tolist(), corners.tolist(), heights.tolist()
    slope, height, before, k = 0.0, 0.0, at[0], 0
    last = len(points) - 1
    for knot in at:
        height += slope * (knot - before)
        before = knot
        while k < last and points[k] <= knot:
            k += 1
        best = steepest
        if points[k] > knot:
            best = (tops[k] - height) / (points[k] - knot)
            while k < last:  # the slope to the corners falls to the tangent and rises after it
                further = (tops[k + 1] - height) / (points[k + 1] - knot)
                if further > best:
                    break
                best, k = further, k + 1
            best = min(best, steepest)
        turns.append(max(best - slope, 0.0))
        values.append(height)
        slope = max(best, slope)
    return np.array(turns), np.array(values)


def _triples(p: Array, weights: Array, step: float) -> Array:
    """Masses on the knots: three cells onto the two knots inside them where that is proved, else each one down."""
    count = -(-len(p) // 3) * 3
    mass, q = np.zeros((count // 3, 3)), np.zeros((count // 3, 3))
    mass.flat[: len(p)], q.flat[: len(p)] = p, np.where(p > 0, weights, 0.0)
    second, valid = _merge_triple(mass, q * np.exp(-step * np.arange(3.0)), step)
    total = mass.sum(axis=1)
    atoms = np.zeros(count + 1)
    for offset, moved in ((0, 0.0), (1, total - second), (2, second)):
        atoms[offset:count:3] = np.where(valid, moved, mass[:, offset])
    return atoms[: len(p) + 1]


def _merge_triple(p: Array, q: Array, step: float) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The mass for the second of the two inner knots, and whether merging is proved to lower the curve.

    The merged law has the curve g(t) = second * (t - far) between far = e^(-2 step) and near = e^-step and continues
    as total t - sum(q); the three cells tell at least f(t) = sum max(0, p_i t - q_i), which is convex and has its
    corners at q_i / p_i. So f >= g between far and near if f >= g at those corners.
    """
    near, far = np.exp(-step), np.exp(-2 * step)
    total, weight = p.sum(axis=1), q.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        corners = np.clip(np.where(p > 0, q / p, far), far, near)
        second = (total * near - weight) / (near - far)
        second = np.minimum(second - 64 * UNIT * (total + weight) / (near - far), total)
        told = np.maximum(p[:, None, :] * corners[:, :, None] - q[:, None, :], 0.0).sum(axis=2)
        enough = told * (1 - 1e-12) >= second[:, None] * (corners - far)
    return np.where(second > 0, second, 0.0), (second > 0) & enough.all(axis=1)
