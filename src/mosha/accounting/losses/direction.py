"""The tight accountant: lower and upper bounds on the curve of a whole composition.

For each direction (a unit removed, a unit added) the losses of all parts are put on one lattice, from above and from
below, and summed; the normal parts are never put on a lattice at all. The dearer direction is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from mosha.accounting.losses.convolution import Kernel, Sum, convolve
from mosha.accounting.losses.dominating import Reading
from mosha.accounting.losses.lattice import LARGEST, Survey
from mosha.accounting.losses.loss import UNIT, Law, upper_law
from mosha.accounting.losses.merging import lower_law
from mosha.accounting.losses.pair import Pair
from mosha.accounting.numerics.crossing import crossing

__all__ = ["Direction", "directions"]

LOST = 1e-9  # of delta may be lost at either end of a law
FORGOTTEN = 1e-11  # of the mass of a lower law, at its lower end
DOUBT = 0.3  # of the tolerance may be rounding and folding before long doubles are taken


class Direction:
    """All pairs of a composition in one direction; `above` says on which side of the truth its answers lie."""

    def __init__(self, parts: Sequence[tuple[Pair, int]], variance: float, slack: float, *, above: bool) -> None:
        self.parts, self.above, self.slack = list(parts), above, slack
        self.kernel = Kernel(math.sqrt(variance) * (1 + (4 if above else -4) * UNIT))

    def delta(self, epsilon: float, tolerance: float) -> float:
        """A bound on delta at this epsilon."""
        if not self._is_sum:
            return self._direct_delta(epsilon)
        log_delta = Survey(self.parts, self.kernel.mu, 1e-60).at_epsilon(epsilon)
        survey = Survey(self.parts, self.kernel.mu, LOST * math.exp(max(log_delta, -600.0)))
        total = self._sum(survey, max(epsilon, 1e-9), tolerance)
        if total.doubt(epsilon, self.kernel) > DOUBT * tolerance * (1 + epsilon * total.theta):
            total = self._sum(survey, max(epsilon, 1e-9), tolerance, long=True)
        return self._delta_at(total, epsilon)

    def epsilon(self, delta: float, tolerance: float) -> float:
        """A bound on the least epsilon that has this delta; infinite if none has."""
        if not self._is_sum:
            never = bool(self.parts) and self.parts[0][0].cells(np.zeros(1)).infinite >= delta
            return math.inf if never else crossing(self._direct_delta, delta, self._guess(delta), above=self.above)
        survey = Survey(self.parts, self.kernel.mu, LOST * delta)
        rough, long = survey.at_delta(delta), False
        for _ in range(3):
            total = self._sum(survey, rough, tolerance, long=long)
            if total.infinite >= delta:
                return math.inf
            found = crossing(partial(self._delta_at, total), delta, rough, above=self.above)
            doubt = total.doubt(found, self.kernel)
            doubtful = not long and doubt > DOUBT * tolerance * (1 + found * total.theta)
            if not doubtful and found > 0.8 * rough:
                break
            rough, long = found if found > 0 else rough, long or doubtful  # a poor guess also means a poor tilt
        return found

    @property
    def _is_sum(self) -> bool:
        single = len(self.parts) == 1 and self.parts[0][1] == 1 and self.kernel.mu == 0
        return bool(self.parts) and not single

    def _guess(self, delta: float) -> float:
        if self.parts:
            return max(self.parts[0][0].reach(delta)[1], 1e-6)
        return self.kernel.mu**2 / 2 + self.kernel.mu * math.sqrt(-2 * math.log(delta)) + 1e-12

    def _direct_delta(self, epsilon: float) -> float:
        """The curve of a single pair or of the normal part alone."""
        sign = 1.0 if self.above else -1.0
        at = epsilon - sign * (self.slack + self.kernel.shift(epsilon))
        if self.parts:
            pair = self.parts[0][0]
            at -= sign * pair.cells(np.array([at])).shift  # the knot that is met lies beyond epsilon, on the safe side
            cells = pair.cells(np.array([at]))
            p, q = cells.p_above, cells.q_above * math.exp(min(at - sign * cells.shift, 690.0))
            slack = (p + q) * (cells.tail_error + UNIT * (8 + abs(at)))
            return min(max(p - q + sign * slack, 0.0), 1.0)
        if self.kernel.mu == 0:
            return 0.0
        log_delta, error = self.kernel.log_delta(np.array([at]))
        return math.exp(min(float(log_delta[0]) + sign * (float(error[0]) + self.slack), 0.0))

    def _delta_at(self, total: Sum, epsilon: float) -> float:
        sign = 1.0 if self.above else -1.0
        value = total.delta(epsilon - sign * self.slack, self.kernel, above=self.above)
        return min(1.0, math.exp(sign * self.slack) * value)

    def _sum(self, survey: Survey, epsilon: float, tolerance: float, *, long: bool = False) -> Sum:
        """The law of the sum of all losses, on a lattice for this epsilon."""
        lattice = survey.lattice(epsilon, tolerance, careful=long)
        laws = [(self._law(pair, survey.lost / count, lattice.step), count) for pair, count in self.parts]
        if not self.above:
            laws = [(_drop_faint(law, lattice.theta), count) for law, count in laws]
        return convolve(laws, lattice, long=long)

    def _law(self, pair: Pair, lost: float, step: float) -> Law:
        low, high = pair.reach(max(lost, 1e-290))
        first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
        first = max(first, last - 2 * LARGEST)  # what lies lower moves up, or is forgotten
        if self.above:
            return upper_law(pair.cells(step * np.arange(first, last + 1, dtype=np.float64)), first, step)
        return lower_law(pair, first, last, step)


def _drop_faint(law: Law, theta: float) -> Law:
    """A lower law without the faint masses at its lower end, or nothing told at all, if that is more at this tilt.

    Mass may always be forgotten, and a loss that is always zero tells no more than any other.
    """
    start = int(np.searchsorted(np.cumsum(law.mass), FORGOTTEN))
    law = Law(law.first + start, law.step, law.mass[start:], law.infinite, law.shift)
    told = float((law.mass * np.exp(np.minimum(theta * law.losses, 700.0))).sum()) if len(law.mass) else 0.0
    return law if told + law.infinite > 1 else Law(0, law.step, np.ones(1), 0.0, 0.0)


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
