"""How fine, how wide and where tilted: the choice of a lattice for a sum of losses.

Nothing here needs to be right for a bound to hold: a poor choice makes a bound loose, never false. What decides is the
logarithm of the moment function, K(theta) = sum of n ln E e^(theta L), on coarse laws shaped like each pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mosha.accounting.losses.loss import Array, connect_dots
from mosha.accounting.losses.pair import Pair

__all__ = ["Lattice", "Survey", "common_unit"]

LARGEST = 2**19  # points
OUTSIDE = math.log(1e-8)  # of delta may come from outside the window
STEEP = 1000.0  # tilt times epsilon: so that weights can be compared over a wide range of epsilons
COARSE = 400  # knots
MANY_MARKS = 12
_UP: Array = np.geomspace(1e-3, 1e5, 171)
THETAS: Array = np.concatenate((-_UP[::8][::-1], [0.0], _UP))


@dataclass(frozen=True)
class Lattice:
    """A window of `size` points from `first` on, `step` nats apart, and the tilts that go with it."""

    step: float
    first: int
    size: int
    theta: float
    chernoff: tuple[float, float]


class Survey:
    """K(theta) of a composition on a grid of thetas, and the choices that follow from it.

    Up to the mass `lost`, in all of the composition, is cut off at the ends of the laws.
    """

    def __init__(self, parts: Sequence[tuple[Pair, int]], mu: float, lost: float) -> None:
        self.parts, self.mu, self.lost = list(parts), mu, lost
        self.thetas = THETAS
        self.moments = np.zeros(len(self.thetas))
        self.ends, self.widest = (0.0, 0.0), 0.0
        for pair, count in self.parts:
            knots = pair.knots(COARSE, self.lost / count)
            mass, _ = connect_dots(pair.cells(knots), knots)
            self.moments += count * _log_moments(knots, mass, self.thetas)
            self.ends = (self.ends[0] + count * float(knots[0]), self.ends[1] + count * float(knots[-1]))
            self.widest = max(self.widest, float(knots[-1] - knots[0]))
        self.total = self.moments + self.thetas * (self.thetas + 1) * mu * mu / 2
        self.unit = common_unit([x for pair, _ in self.parts for x in pair.landmarks if x != 0])
        self.deviation = math.sqrt(max(float(np.interp(1.0, self.thetas, self.total)), 0.0))

    def at_delta(self, delta: float) -> float:
        """A rough epsilon for this delta, by the Rényi conversion at the best theta."""
        return max(float(((self.total[-len(_UP) :] - math.log(delta) - _PEAK) / _UP).min()), 1e-12)

    def at_epsilon(self, epsilon: float) -> float:
        """The logarithm of a rough delta for this epsilon, by the Rényi conversion at the best theta."""
        return min(float(self._log_deltas(epsilon).min()), -1e-3)

    def lattice(self, epsilon: float, tolerance: float, *, careful: bool = False) -> Lattice:
        """A lattice on which a bound is expected to be within `tolerance` (relative) of this epsilon.

        A careful one spares neither width nor tilt: for where the Rényi conversion is far off.
        """
        budget = 12 * tolerance * max(epsilon, 0.1 * self.deviation) / (self._best_theta(epsilon) + 1)
        theta, low, high, bottom, top = self._window(epsilon, budget, careful=careful)
        largest = min(LARGEST, 2**22 // max(1, len(self.parts)))  # points; all laws together must stay affordable
        least = max((top - bottom) / (largest - 8), self.widest / LARGEST)
        step = self._align_step(budget, least)
        power = max(6, math.ceil(math.log2((top - bottom) / step + 8)))
        coarser = (top - bottom) / (2 ** (power - 1) - 8)
        if power > 6 and coarser < 1.2 * step and not any(pair.landmarks for pair, _ in self.parts):
            step, power = coarser, power - 1  # half the work for a step that is hardly larger
        size = 2**power
        first = math.floor((bottom + top) / (2 * step)) - size // 2
        return Lattice(step, first, size, theta, (low, high))

    def _log_deltas(self, epsilon: float) -> Array:
        return np.asarray(self.total[-len(_UP) :] - _UP * epsilon - _PEAK)

    def _best_theta(self, epsilon: float) -> float:
        return float(_UP[np.argmin(self._log_deltas(epsilon))])

    def _window(self, epsilon: float, budget: float, *, careful: bool) -> tuple[float, float, float, float, float]:
        """A tilt, one below and one above it, and the window that goes with them: the narrowest that will do.

        The best theta makes delta largest against all else; a smaller one may allow a much narrower window.
        """
        logs = self._log_deltas(epsilon)
        share = float(logs.min()) - logs  # of the tilted mass, that delta will be
        start = len(self.thetas) - len(logs)
        bright = start + np.flatnonzero(share > math.log(0.5 if careful else 1e-2))
        gentle = bright[self.thetas[bright] * epsilon <= STEEP]  # near the largest loss all large tilts are alike
        if not len(gentle):
            gentle = np.array([max(start, int(np.searchsorted(self.thetas, STEEP / epsilon)) - 1)])
        outside = OUTSIDE * (2 if careful else 1)
        exact = all(pair.spread == 0 for pair, _ in self.parts) and self.unit > 0
        steepest = math.inf if exact else math.sqrt(12 / budget)  # beyond it, moments on the lattice are others
        windows = [self._window_around(int(i), outside + float(share[i - start]), steepest) for i in gentle]
        theta, low, high, bottom, top = min(windows, key=lambda w: w[-1] - w[-2])
        count = sum(n for _, n in self.parts)
        further = 0.0 if exact else 2 * math.sqrt(budget * count)  # the ends move by up to a step a part
        bottom = max(bottom, self.ends[0] - further)
        return theta, low, high, bottom, max(min(top, self.ends[1] + further), bottom + 1e-9)

    def _window_around(self, place: int, outside: float, steepest: float) -> tuple[float, float, float, float, float]:
        theta, moment = float(self.thetas[place]), self.moments[place]
        tilts = np.flatnonzero(np.abs(self.thetas) <= max(steepest, 2 * theta))
        below, above = tilts[tilts < place], tilts[tilts > place]
        bottoms = (outside + moment - self.moments[below]) / (theta - self.thetas[below])
        low, bottom = float(self.thetas[below[np.argmax(bottoms)]]), float(bottoms.max())
        if not len(above):
            return theta, low, 2 * theta, bottom, self.ends[1]
        tops = (self.moments[above] - moment - outside) / (self.thetas[above] - theta)
        return theta, low, float(self.thetas[above[np.argmin(tops)]]), bottom, float(tops.min())

    def _align_step(self, budget: float, least: float) -> float:
        """A step, not below `least`, that meets all landmarks, or nearly, and adds at most `budget` to the variance."""
        marks = [(abs(x), count * abs(x)) for pair, count in self.parts for x in pair.landmarks if x != 0]
        weight = sum(count * pair.spread for pair, count in self.parts)
        step = math.sqrt(budget / weight) if weight > 0 else math.inf
        if self.unit >= least:
            pieces = max(1, math.ceil(self.unit / step)) if math.isfinite(step) else 1
            return self.unit / min(pieces, max(1, math.floor(self.unit / least)))
        step = max(math.sqrt(budget / sum(count for _, count in self.parts)), least)
        if not marks or len(marks) > MANY_MARKS:
            return step
        heaviest = max(marks, key=lambda mark: mark[1] * mark[0])[0]
        pieces = math.ceil(heaviest / step)
        steps = heaviest / np.arange(max(1, pieces // 2), 2 * pieces + 2, max(1, pieces // 2048))
        steps = steps[steps >= least]
        if not len(steps):
            return step
        # a landmark just above a lattice point loses little when it is moved down to it
        lost = sum(weight * steps * ((x / steps + 1e-9) % 1.0) for x, weight in marks)
        return float(steps[np.argmin(lost)])


def common_unit(marks: Sequence[float]) -> float:
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


_PEAK: Array = np.log1p(_UP) + _UP * np.log1p(1 / _UP)  # -ln sup over x > 0 of e^(-theta x) (1 - e^-x)
