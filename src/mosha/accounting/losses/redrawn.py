"""Normal noise on a sample with replacement: a unit that is drawn c times moves the sum c times as far.

The curve is the best that follows from dividing what both worlds share among the draws: `dominating.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mosha.accounting.losses.loss import UNIT, Array, Cells
from mosha.accounting.losses.pair import normal_cells, normal_error

__all__ = ["Redrawn", "redraw"]

RARE = 2.0**-100
HALVINGS = 80
FAR = 1e5  # no loss that is priced is larger


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A symmetric pair for N(c mu, 1) against N(0, 1), where the unit was drawn c times, with probability chances[c].

    `lost` is the probability of more draws than listed; their loss is taken as infinite.
    """

    mu: float
    chances: Array
    lost: float
    landmarks: tuple[float, ...] = (0.0,)
    spread: float = 1.0

    @property
    def _moves(self) -> Array:
        return np.arange(1, len(self.chances), dtype=np.float64) * self.mu

    def _threshold(self, losses: Array) -> Array:
        """Where the noise of the undrawn world is cut for each loss e >= 0: `dominating.md` calls it x."""
        with np.errstate(divide="ignore"):
            wanted = math.log(self.chances[0]) + losses + np.log(-np.expm1(-losses))
        low, high = np.full(len(losses), self.mu / 2), np.full(len(losses), self.mu / 2)
        high += (losses - math.log(self.chances[1])) / self.mu + self.mu + 1
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            enough = self._excess(middle, losses) >= wanted
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high

    def _excess(self, points: Array, losses: Array) -> Array:
        """The logarithm of the sum over c of chances[c] (E_c(x) - e^e)_+, E_c(x) = exp(c mu x - (c mu)^2 / 2)."""
        moves = self._moves[:, None]
        ratios = moves * points - moves**2 / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = np.where(ratios > losses, -np.expm1(np.minimum(losses - ratios, 0.0)), 0.0)
            logs = np.log(self.chances[1:])[:, None] + ratios + np.log(gaps)
        top = logs.max(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            found = top + np.log(np.exp(logs - top).sum(axis=0))
        return np.asarray(np.where(np.isneginf(top), -np.inf, found))

    def _upper(self, losses: Array) -> Cells:
        """Cells between losses that are not negative."""
        x = self._threshold(losses)
        moves = self._moves[:, None]
        own = losses / moves + moves / 2
        points = np.vstack([x, np.maximum(x, own)])
        totals = [np.zeros(len(losses) - 1) for _ in range(4)]  # of P and Q, and their errors
        above, tail = [self.lost, 0.0], 0.0
        for c, (chance, at) in enumerate(zip(self.chances, points, strict=True)):
            for side, moved in enumerate((c * self.mu, 0.0)):
                mass, error, _, beyond = normal_cells(at - moved)
                totals[side] += chance * mass
                totals[side + 2] += chance * error
                above[side] += chance * beyond
                tail = max(tail, normal_error(float(at[-1] - moved)))
        p, q, p_error, q_error = totals
        doubt = UNIT * (16 + 8 * len(self.chances) - math.log(self.chances[0]))
        shift = 16 * UNIT * float(losses[-1] + self._moves[-1] * (np.abs(points).max() + self._moves[-1]))
        p_error, q_error = p_error + doubt * p, q_error + doubt * q
        return Cells(p, q, p_error, q_error, 0.0, 0.0, above[0], above[1], self.lost, tail + doubt, shift)

    def cells(self, knots: Array) -> Cells:
        edges = np.unique(np.append(np.clip(knots, -FAR, FAR), 0.0))
        zero = int(np.searchsorted(edges, 0.0))
        up, down = self._upper(edges[zero:]), self._upper(-edges[zero::-1])
        middle = max(0.0, 1 - float(up.p.sum() + up.p_above + down.q.sum() + down.q_above))  # at zero exactly
        error = up.tail_error + down.tail_error
        # everything below, between and above the edges, in one row: what is zero lies in the cell that ends there
        masses = [
            np.concatenate([[down.q_above], down.q[::-1], up.p, [up.p_above]]),
            np.concatenate([[down.p_above], down.p[::-1], up.q, [up.q_above]]),
            np.concatenate([[0.0], down.q_error[::-1], up.p_error, [0.0]]),
            np.concatenate([[0.0], down.p_error[::-1], up.q_error, [0.0]]),
        ]
        for row, share in zip(masses, (middle, middle, error, error), strict=True):
            row[zero] += share
        if 0.0 not in knots:
            masses = [np.concatenate([m[:zero], [m[zero] + m[zero + 1]], m[zero + 2 :]]) for m in masses]
        p, q, p_error, q_error = masses
        inner = slice(1, -1)
        return Cells(
            p[inner],
            q[inner],
            p_error[inner],
            q_error[inner],
            float(p[0]),
            float(q[0]),
            float(p[-1]),
            float(q[-1]),
            self.lost,
            error,
            max(up.shift, down.shift),
        )

    def reach(self, mass: float) -> tuple[float, float]:
        low, high = 0.0, 1.0
        while self._tail(high) > mass and high < FAR:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._tail(middle) > mass else (low, middle)
        return -high, high

    def _tail(self, loss: float) -> float:
        """The P mass above a loss, infinite ones not counted."""
        return self._upper(np.array([0.0, loss])).p_above - self.lost

    def knots(self, count: int, mass: float) -> Array:
        low, high = self.reach(mass)
        return np.unique(np.append(np.linspace(low, high, count), 0.0))


def redraw(mu: float, size: int, population: int) -> Redrawn | None:
    """The pair for `size` draws with replacement out of `population`; None where floats do not reach.

    Each chance follows from the one before, so that it is good to a few units in the last place for each.

    >>> pair = redraw(1.0, 50, 1000)
    >>> [round(float(chance), 4) for chance in pair.chances[:3]], pair.lost < 2.0**-99
    ([0.9512, 0.0476, 0.0012], True)
    """
    if population == 1 or (log_never := size * math.log1p(-1 / population)) < -100:
        return None
    chances = [math.exp(log_never)]
    for c in range(size):
        factor = (size - c) / (c + 1) / (population - 1)
        if chances[-1] * factor < RARE / 4 and factor < 0.5:  # from here on they fall at least by half
            return Redrawn(mu, np.array(chances), 2 * chances[-1] * factor)
        chances.append(chances[-1] * factor)
    return Redrawn(mu, np.array(chances), 0.0)
