"""How fine, how wide and where tilted: the choice of a lattice for a sum of losses.

Nothing here needs to be right for a bound to hold: a poor choice makes a bound loose, never false. What decides is the
logarithm of the moment function, K(theta) = sum of n ln E e^(theta L), on coarse laws shaped like each pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mosha.accounting.loss import Array, connected
from mosha.accounting.pair import Pair

__all__ = ["Lattice", "Survey"]

LARGEST = 2**19  # points
OUTSIDE = math.log(1e-11)  # of the tilted mass may lie outside the window
COARSE = 400  # knots


@dataclass(frozen=True)
class Lattice:
    """A window of `size` points from `first` on, `step` nats apart, and the tilts that go with it."""

    step: float
    first: int
    size: int
    theta: float
    chernoff: tuple[float, float]


class Survey:
    """K(theta) of a composition on a grid of thetas, and the choices that follow from it."""

    def __init__(self, parts: Sequence[tuple[Pair, int]], mu: float) -> None:
        self.parts, self.mu = list(parts), mu
        up = np.geomspace(1e-3, 1e5, 171)
        self.thetas = np.concatenate((-up[::8][::-1], [0.0], up))
        self.moments = np.zeros(len(self.thetas))
        self.ends = (0.0, 0.0)
        for pair, count in self.parts:
            knots = pair.knots(COARSE)
            mass, _ = connected(pair.cells(knots), knots)
            self.moments += count * _log_moments(knots, mass, self.thetas)
            self.ends = (self.ends[0] + count * float(knots[0]), self.ends[1] + count * float(knots[-1]))
        self.total = self.moments + self.thetas * (self.thetas + 1) * mu * mu / 2

    def at_delta(self, delta: float) -> tuple[int, float]:
        """The place in `thetas` of a good tilt for this delta, and a rough epsilon (by the Rényi conversion)."""
        up = self.thetas > 0
        theta = self.thetas[up]
        epsilons = (self.total[up] - math.log(delta) - _peak(theta)) / theta
        best = float(epsilons.min())
        place = int(np.argmax(epsilons <= best + 1e-3 * abs(best)))
        return place + int(np.argmax(up)), max(best, 1e-12)

    def at_epsilon(self, epsilon: float) -> tuple[int, float]:
        """The place in `thetas` of a good tilt for this epsilon, and the epsilon."""
        up = self.thetas > 0
        theta = self.thetas[up]
        logs = self.total[up] - theta * epsilon - _peak(theta)
        place = int(np.argmax(logs <= float(logs.min()) + 1e-2))
        return place + int(np.argmax(up)), max(epsilon, 1e-12)

    def lattice(self, place: int, epsilon: float, tolerance: float, *, both: bool) -> Lattice:
        """A lattice on which the bounds are expected to be within `tolerance` (relative) of the epsilon."""
        theta = float(self.thetas[place])
        low, high, bottom, top = self._window(place)
        weight = sum(count * pair.spread for pair, count in self.parts)
        budget = 2 * tolerance * epsilon / ((theta + 1) * (2 / 3 if both else 1 / 6))
        step = math.sqrt(budget / weight) if weight > 0 else math.inf
        step = self._aligned(step, max((top - bottom) / (LARGEST - 8), 1e-300))
        size = 2 ** max(6, math.ceil(math.log2((top - bottom) / step + 8)))
        first = math.floor((bottom + top) / (2 * step)) - size // 2
        return Lattice(step, first, size, theta, (low, high))

    def _window(self, place: int) -> tuple[float, float, float, float]:
        theta, moment = self.thetas[place], self.moments[place]
        below, above = self.thetas[:place], self.thetas[place + 1 :]
        bottoms = (OUTSIDE + moment - self.moments[:place]) / (theta - below)
        tops = (self.moments[place + 1 :] - moment - OUTSIDE) / (above - theta)
        low, high = int(np.argmax(bottoms)), int(np.argmin(tops))
        bottom, top = max(float(bottoms[low]), self.ends[0]), min(float(tops[high]), self.ends[1])
        return float(below[low]), float(above[high]), bottom, max(top, bottom + 1e-9)

    def _aligned(self, step: float, least: float) -> float:
        """A step, not much above `step` and not below `least`, that meets all landmarks if that can be."""
        marks = [x for pair, _ in self.parts for x in pair.landmarks if x != 0]
        unit = _common(marks)
        if not math.isfinite(step) and unit < least:
            step = least
        if unit >= least:
            pieces = max(1, math.ceil(unit / step)) if math.isfinite(step) else 1
            return unit / min(pieces, max(1, math.floor(unit / least)))
        return max(step, least)


def _common(marks: Sequence[float]) -> float:
    """The largest real number of which all `marks` are whole multiples, to nine digits; zero if there is none."""
    unit = 0.0
    scale = max((abs(x) for x in marks), default=0.0)
    for mark in marks:
        rest = abs(mark)
        while rest > 1e-9 * scale:
            unit, rest = rest, math.fmod(unit, rest) if unit else 0.0
            if unit - rest < 1e-9 * scale:
                rest = 0.0
    return unit


def _log_moments(losses: Array, mass: Array, thetas: Array) -> Array:
    seen = mass > 0
    exponents = np.outer(thetas, losses[seen]) + np.log(mass[seen])
    top = exponents.max(axis=1)
    return np.asarray(top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))


def _peak(theta: Array) -> Array:
    """-ln sup e^(-theta x) (1 - e^-x)."""
    return np.asarray(np.log1p(theta) + theta * np.log1p(1 / theta))
