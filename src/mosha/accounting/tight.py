"""The tight accountant: lower and upper bounds on the curve of a whole composition.

For each direction (a unit removed, a unit added) the losses of all parts are put on one lattice, from above and from
below, and summed; the normal parts are never put on a lattice at all. The dearer direction is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mosha.accounting.convolution import Kernel, Sum, convolve
from mosha.accounting.crossing import crossing
from mosha.accounting.dominating import Reading
from mosha.accounting.lattice import Lattice, Survey
from mosha.accounting.loss import UNIT, Law, lower, upper
from mosha.accounting.pair import Pair

__all__ = ["Direction", "directions"]

LOST = 1e-11  # of delta may be lost at either end of a law


class Direction:
    """All pairs of a composition in one direction; `above` says on which side of the truth its answers lie."""

    def __init__(self, parts: Sequence[tuple[Pair, int]], variance: float, slack: float, *, above: bool) -> None:
        self.parts, self.above, self.slack = list(parts), above, slack
        self.kernel = Kernel(math.sqrt(variance) * (1 + (4 if above else -4) * UNIT))
        self._survey: Survey | None = None

    @property
    def survey(self) -> Survey:
        if self._survey is None:
            self._survey = Survey(self.parts, self.kernel.mu)
        return self._survey

    def delta(self, epsilon: float, tolerance: float) -> float:
        """A bound on delta at this epsilon."""
        curve = self._curve(*self.survey.at_epsilon(epsilon), tolerance, 1e-30) if self._summed else self._direct
        return curve(epsilon)

    def epsilon(self, delta: float, tolerance: float) -> float:
        """A bound on the least epsilon that has this delta; infinite if none has."""
        if not self._summed:
            return crossing(self._direct, delta, self._guess(delta), above=self.above)
        place, rough = self.survey.at_delta(delta)
        curve = self._curve(place, rough, tolerance, delta)
        return crossing(curve, delta, rough, above=self.above)

    @property
    def _summed(self) -> bool:
        single = len(self.parts) == 1 and self.parts[0][1] == 1 and self.kernel.mu == 0
        return bool(self.parts) and not single

    def _guess(self, delta: float) -> float:
        if self.parts:
            return max(self.parts[0][0].reach(delta)[1], 1e-6)
        return self.kernel.mu**2 / 2 + self.kernel.mu * math.sqrt(-2 * math.log(delta)) + 1e-12

    def _direct(self, epsilon: float) -> float:
        """The curve of a single pair or of the normal part alone."""
        sign = 1.0 if self.above else -1.0
        at = epsilon - sign * (self.slack + self.kernel.shift(epsilon))
        if self.parts:
            cells = self.parts[0][0].cells(np.array([at]))
            at = at - sign * cells.shift
            p, q = cells.p_above, cells.q_above * math.exp(min(at, 690.0))
            slack = (p + q) * (cells.tail_error + UNIT * (8 + abs(at)) + 2 * cells.shift)
            return min(max(p - q + sign * slack, 0.0), 1.0)
        if self.kernel.mu == 0:
            return 0.0
        log_delta, error = self.kernel.log_delta(np.array([at]))
        return math.exp(min(float(log_delta[0]) + sign * (float(error[0]) + self.slack), 0.0))

    def _curve(self, place: int, rough: float, tolerance: float, delta: float) -> Callable[[float], float]:
        lattice = self.survey.lattice(place, rough, tolerance, both=not self.above)
        total = self.sum(lattice, delta)
        sign = 1.0 if self.above else -1.0
        factor = math.exp(sign * self.slack)
        return lambda e: min(1.0, factor * total.delta(e - sign * self.slack, self.kernel, above=self.above))

    def sum(self, lattice: Lattice, delta: float) -> Sum:
        """The law of the sum of all losses on this lattice."""
        laws = [(self._law(pair, count, lattice, delta), count) for pair, count in self.parts]
        window = (lattice.first, lattice.size)
        return convolve(laws, theta=lattice.theta, window=window, chernoff=lattice.chernoff)

    def _law(self, pair: Pair, count: int, lattice: Lattice, delta: float) -> Law:
        step = lattice.step
        low, high = pair.reach(max(LOST * delta / count, 1e-290))
        width = lattice.size * step
        first = math.floor(max(low, -width) / step) - 1
        last = math.ceil(min(high, width) / step) + 1
        knots = step * np.arange(first, last + 1, dtype=np.float64)
        if self.above:
            return upper(pair.cells(knots), first, step)
        # atoms that rounding left just below a knot must still count as being on it
        moved = step * 2.0**-32 + 8 * UNIT * float(np.abs(knots).max())
        law = lower(pair.cells(knots - moved), first, step)
        return Law(law.first, law.step, law.mass, law.infinite, law.shift + moved)


def directions(reading: Reading, *, above: bool) -> list[Direction]:
    """The directions of a composition: two where some part is not symmetric, else one."""
    chosen = [(c.upper if above else c.lower, n) for c, n in reading.parts]
    chosen = [(pairs, n) for pairs, n in chosen if pairs]
    variance = reading.upper_variance if above else reading.lower_variance
    sides = range(max((len(pairs) for pairs, _ in chosen), default=1))
    return [
        Direction([(pairs[min(i, len(pairs) - 1)], n) for pairs, n in chosen], variance, reading.slack, above=above)
        for i in sides
    ]
