"""The privacy loss on a lattice: a law that is never too small and a twin that is never too large.

An event is compared through one pair of distributions (P, Q): see `pair.py`. Its *loss* is L = ln(dP/dQ) under P, and
everything an accountant wants to know is the curve delta(e) = E max(0, 1 - e^(e - L)), for every real e. A measure on
losses whose curve lies above that of another may replace it in any composition. `upper` moves mass so that the curve
rises, `lower` so that it falls; both move it by less than a few lattice steps and keep the mean of e^-L, so the error
is of second order in the step. Proofs and the bounds on rounding are in `loss.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["UNIT", "Array", "Cells", "Law", "connected", "lower", "upper"]

Array = npt.NDArray[np.float64]

UNIT = 2.0**-53  # the relative error of one correctly rounded operation
FAR = 690.0  # e^FAR is still a float; losses beyond it are rounded up, or down, by a whole step


@dataclass(frozen=True)
class Cells:
    """How much of P and Q has a loss in each of the cells (knots[i], knots[i + 1]], and outside all of them.

    `p_error` and `q_error` bound the errors of `p` and `q`; those of the four outer masses are relative, `tail_error`.
    What was computed may belong to knots that lie up to `shift` away from the ones that were asked for.
    """

    p: Array
    q: Array
    p_error: Array
    q_error: Array
    p_below: float
    q_below: float
    p_above: float
    q_above: float
    tail_error: float
    shift: float


@dataclass(frozen=True)
class Law:
    """Mass on the losses (first + i) * step, and at infinity; the losses may be off by `shift`, never more.

    Units:
        `step` and `shift` in nats; the masses are probabilities under P.
    """

    first: int
    step: float
    mass: Array
    infinite: float
    shift: float

    @property
    def losses(self) -> Array:
        return self.step * np.arange(self.first, self.first + len(self.mass), dtype=np.float64)


def upper(cells: Cells, first: int, step: float) -> Law:
    """A law on the lattice whose curve lies nowhere below that of the pair.

    Guarantee:
        See `connected`: mass only ever moves so that more is told.
    """
    knots = step * np.arange(first, first + len(cells.p) + 1, dtype=np.float64)
    mass, infinite = connected(cells, knots)
    return Law(first, step, mass, infinite, cells.shift)


def connected(cells: Cells, knots: Array) -> tuple[Array, float]:
    """Masses on the knots and at infinity whose curve lies nowhere below that of the pair.

    Guarantee:
        The mass of a cell goes to its two ends so that P and Q keep their masses ("connect the dots", Doroshenko et
        al. 2022): any outcome is split into a pair of outcomes that tell more. What lies below the first knot moves
        up to it; what lies above the last is split between it and infinity. Errors move mass up, never down.
    """
    lift = np.exp(np.minimum(knots, FAR))  # a smaller one moves mass up
    q_scaled = cells.q * lift[:-1]  # the P mass if all of the cell sat at its lower end
    mass = cells.p + cells.p_error
    rounding = (8 + np.abs(knots[:-1])) * UNIT * (cells.p + q_scaled) + cells.p_error + cells.q_error * lift[:-1]
    rounding += 2 * cells.shift * mass
    at_top = np.clip((cells.p - q_scaled + rounding) / -np.expm1(-np.diff(knots)), 0.0, mass)
    atoms = np.zeros(len(knots))
    atoms[:-1] += mass - at_top
    atoms[1:] += at_top
    atoms[0] += cells.p_below * (1 + cells.tail_error)
    beyond, inside = cells.p_above * (1 + cells.tail_error), cells.q_above * float(lift[-1])
    slack = (beyond + inside) * (cells.tail_error + (8 + abs(float(knots[-1]))) * UNIT + 2 * cells.shift)
    infinite = min(max(cells.p_above - inside + slack, 0.0), beyond)
    atoms[-1] += beyond - infinite
    return atoms * (1 + 8 * UNIT), infinite


def lower(cells: Cells, first: int, step: float) -> Law:
    """A law on the lattice whose curve lies nowhere above that of the pair.

    Guarantee:
        Three neighbouring cells are merged onto the two knots inside them, which keeps the masses of P and Q and tells
        less, where the check below says so; else the mass of each cell moves down to its lower end. What lies above
        the last knot moves down to it, what lies below the first is forgotten. Errors move mass down, never up.
    """
    count = -(-len(cells.p) // 3) * 3
    p = np.zeros(count)
    p[: len(cells.p)] = np.maximum(cells.p * (1 - 8 * UNIT) - cells.p_error, 0.0)
    base = step * np.arange(first, first + count, 3, dtype=np.float64)
    q = np.full(count, 1e-300)
    q[: len(cells.q)] += cells.q * (1 + 8 * UNIT) + cells.q_error
    thirds, weights = p.reshape(-1, 3), q.reshape(-1, 3)
    lift = np.exp(np.minimum(base, FAR) + (8 + np.abs(base)) * UNIT + 2 * cells.shift)
    weights = weights * np.where(base < FAR, lift, np.inf)[:, None]  # the mass times e^-L, with the base as origin
    at_second, valid = _merged(thirds, weights, step)
    total = thirds.sum(axis=1)
    atoms = np.zeros(count + 1)
    for offset, moved in ((0, 0.0), (1, total - at_second), (2, at_second)):
        atoms[offset:count:3] = np.where(valid, moved, thirds[:, offset])
    beyond = max(cells.p_above * (1 - cells.tail_error), 0.0)
    atoms[len(cells.p)] += beyond
    return Law(first, step, atoms * (1 - 8 * UNIT), 0.0, cells.shift)


def _merged(p: Array, q: Array, step: float) -> tuple[Array, npt.NDArray[np.bool_]]:
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
    return second, (second > 0) & enough.all(axis=1)
