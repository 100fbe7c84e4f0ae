"""The privacy loss on a lattice: a law that is never too small and a twin that is never too large.

An event is compared through one pair of distributions (P, Q): see `pair.py`. Its *loss* is L = ln(dP/dQ) under P, and
everything an accountant wants to know is the curve delta(e) = E max(0, 1 - e^(e - L)), for every real e. A measure on
losses whose curve lies above that of another may replace it in any composition. `upper_law` moves mass so that the
curve rises, `lower_law` so that it falls; both move it by less than a few lattice steps and keep the mean of e^-L, so
the error is of second order in the step. Proofs and the bounds on rounding are in `loss.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["UNIT", "Array", "Cells", "Law", "connect_dots", "upper_law"]

Array = npt.NDArray[np.float64]

UNIT = 2.0**-53  # the relative error of one correctly rounded operation
FAR = 690.0  # e^FAR is still a float; losses beyond it are rounded up, or down, by a whole step


@dataclass(frozen=True)
class Cells:
    """How much of P and Q has a loss in each of the cells (knots[i], knots[i + 1]], and outside all of them.

    `p_error` and `q_error` bound the errors of `p` and `q`; those of the outer masses are relative, `tail_error`.
    `p_above` includes `infinite`, the mass of P at an infinite loss.
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
    infinite: float
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


def upper_law(cells: Cells, first: int, step: float) -> Law:
    """A law on the lattice whose curve lies nowhere below that of the pair.

    Guarantee:
        See `connect_dots`: mass only ever moves so that more is told.
    """
    knots = step * np.arange(first, first + len(cells.p) + 1, dtype=np.float64)
    mass, infinite = connect_dots(cells, knots)
    return Law(first, step, mass, infinite, cells.shift)


def connect_dots(cells: Cells, knots: Array) -> tuple[Array, float]:
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
    rounding += 4 * cells.shift * mass
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
