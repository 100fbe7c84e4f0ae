"""What a growing history costs so far, in constant time whatever its length: the engine of the odometer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mosha.accounting.losses.contour import (
    BOXES,
    CENTRES,
    HEIGHTS,
    KERNEL,
    LANES,
    SPACING,
    TAIL,
    Complex,
    Moments,
    moments,
)
from mosha.accounting.losses.dominating import Cover, cover, flatten
from mosha.accounting.losses.loss import UNIT, Array
from mosha.accounting.measures import pure, renyi
from mosha.accounting.numerics.crossing import crossing
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.number import non_negative, positive_integer, strict_probability

__all__ = ["History"]

SHARP = 1e-4


class History:
    """Everything that was added so far, and valid prices of it."""

    def __init__(self) -> None:
        self._sides = [_Side()]
        self._variance, self._slack = 0.0, 0.0
        self._epsilons, self._deltas, self._added = 0.0, 0.0, 0
        self._rest, self._rest_delta, self._has_rest = np.zeros(LANES), 0.0, False

    def add(self, event: Event, count: int = 1) -> None:
        """`event` was done, `count` times.

        Args:
            event: what was done, from `mosha.events`.
            count: how often it was done.

        >>> from mosha.core.events import Laplace
        >>> odometer = History()
        >>> odometer.add(Laplace(10), 3)
        >>> round(odometer.epsilon(1e-9), 6)
        0.3
        """
        if not isinstance(event, Event):
            raise InvalidParameter("core.not_an_event", parameter="event", kind=type(event).__name__)
        for part, times in flatten(event, positive_integer("count", count)):
            self._add(part, times)

    def _add(self, part: Event, count: int) -> None:
        covered, basic = _cover_and_price(part)
        self._epsilons += basic[0] * count
        self._deltas += basic[1] * count
        self._added += 1 if count == 1 else 2
        if covered is None or not covered.is_moderate(count):
            divergences, lost = _divergences(part)
            with np.errstate(over="ignore"):
                self._rest = (self._rest + divergences * count) * (1 + 4 * UNIT)
            self._rest_delta = min((self._rest_delta + lost * count) * (1 + 4 * UNIT), 1.0)
            self._has_rest = True
        elif not covered.upper:
            self._variance = (self._variance + covered.variance[1] * count) * (1 + 4 * UNIT)
            self._slack = (self._slack + covered.slack * count) * (1 + 4 * UNIT)
        else:
            losses = _moments(part)
            if len(losses) > len(self._sides):
                self._sides.append(self._sides[0].copy())
            for i, side in enumerate(self._sides):
                side.add(losses[min(i, len(losses) - 1)].times(count))

    def epsilon(self, delta: float) -> float:
        """The least epsilon that the history is known to keep at this delta.

        Args:
            delta: a probability strictly between 0 and 1.

        >>> from mosha.core.events import Laplace
        >>> odometer = History()
        >>> odometer.add(Laplace(2))
        >>> odometer.epsilon(1e-9) <= 0.5
        True
        """
        wanted = strict_probability("delta", delta)
        epsilons, deltas = self._basic_sums
        basic = epsilons if deltas <= wanted else math.inf
        return max(0.0, min(basic, self._answer("epsilon", wanted, lambda side: self._side_epsilon(side, wanted))))

    def delta(self, epsilon: float) -> float:
        """The least delta that the history is known to keep at this epsilon.

        Args:
            epsilon: zero or above, in nats.

        >>> from mosha.core.events import Laplace
        >>> odometer = History()
        >>> odometer.add(Laplace(2))
        >>> odometer.delta(0.5)
        0.0
        """
        wanted = non_negative("epsilon", epsilon)
        epsilons, deltas = self._basic_sums
        basic = deltas if epsilons <= wanted else 1.0
        return min(basic, self._answer("delta", wanted, lambda side: self._side_delta(side, wanted)))

    @property
    def _basic_sums(self) -> tuple[float, float]:
        """Basic composition: sums, with what their rounding may have lost."""
        more = 1 + 2 * UNIT * (self._added - 1) if self._added > 1 else 1.0
        return self._epsilons * more, min(self._deltas * more, 1.0)

    def _answer(self, name: str, given: float, ask: Callable[[_Side], tuple[float, bool]]) -> float:
        """The dearer direction; it is sharp where a lane converges in each, and valid everywhere."""
        answers = [ask(side) for side in self._sides]
        value = max(answer for answer, _ in answers)
        return value if all(sure for _, sure in answers) else self._price_again(name, given, value)

    def _price_again(self, name: str, given: float, value: float) -> float:
        """What is answered where no lane converges."""
        del name, given
        return value

    def _side_epsilon(self, side: _Side, delta: float) -> tuple[float, bool]:
        allowed = delta * (1 - 4 * UNIT) - self._lost_mass(side) * (1 + 1e-12)
        if allowed <= 0:
            return math.inf, True
        allowed *= math.exp(-self._slack)
        logs = self._log_moments(side)
        rough = (logs - math.log(allowed) - _PEAK + 1e-13 * (np.abs(logs) - math.log(allowed))) / CENTRES
        best = int(np.argmin(rough))
        guess = float(rough[best])
        if self._has_rest or guess <= 0:
            return max(guess, 0.0) + self._slack, True
        found, sure = guess, False
        for i in (best, best + 1, best - 1):
            if 0 <= i < LANES and not sure:
                lane = side.lane(i, self._variance, guess)
                answer = lane.epsilon(math.log(allowed), guess)
                found, sure = min(found, answer), lane.is_sharp_at(answer)
                sure = sure and _log_folding(logs, i, answer) < math.log(SHARP * allowed)
        return found + self._slack, sure

    def _side_delta(self, side: _Side, epsilon: float) -> tuple[float, bool]:
        at = epsilon - self._slack
        now = self._log_moments(side)
        logs = now - CENTRES * at - _PEAK + 1e-14 * (np.abs(now) + CENTRES * abs(at))
        best = int(np.argmin(logs))
        value, sure = math.exp(min(float(logs[best]), 0.0)), self._has_rest
        for i in (best, best + 1, best - 1):
            if 0 <= i < LANES and not sure:
                lane = side.lane(i, self._variance, at)
                value, sure = min(value, lane.delta(at)), lane.is_sharp_at(at)
                sure = sure and _log_folding(now, i, at) < math.log(SHARP) + math.log(max(value, 1e-300))
        return min(value * math.exp(self._slack) + self._lost_mass(side), 1.0), sure

    def _lost_mass(self, side: _Side) -> float:
        """The mass at infinity and the deltas that events without a pair carry."""
        return min(-math.expm1(-side.infinite) + self._rest_delta, 1.0)

    def _log_moments(self, side: _Side) -> Array:
        normal = self._variance * CENTRES * (CENTRES + 1) / 2
        return np.asarray(side.log_scale + side.error + normal * (1 + 1e-12) + self._rest)


def _log_folding(log_moments: Array, i: int, epsilon: float) -> float:
    """The logarithm of a bound on what the trapezoidal rule adds to delta on lane i, from the moments at twice its c.

    With P = 50 / c, the term e^(c P m) delta(epsilon + P m) is at most e^(-50 |m|) for m < 0, and for m > 0 at most
    e^(K(2c) - 2c epsilon - peak) e^(-50 m).
    """
    if i + 1 == LANES:
        return 0.0
    above = float(log_moments[i + 1] - CENTRES[i + 1] * epsilon - _PEAK[i + 1])
    return max(above, 0.0) + math.log(2.1) - 50


_PEAK: Array = np.log1p(CENTRES) + CENTRES * np.log1p(1 / CENTRES)


class _Side:
    """The moments of everything added so far, in one direction."""

    def __init__(self) -> None:
        self.log_scale = np.zeros(LANES)
        self.phase = np.ones_like(KERNEL)
        self.decay = np.zeros_like(BOXES)
        self.error = np.zeros(LANES)
        self.infinite = 0.0

    def copy(self) -> _Side:
        other = _Side()
        for name, value in vars(self).items():
            setattr(other, name, value if isinstance(value, float) else value.copy())
        return other

    def add(self, loss: Moments) -> None:
        with np.errstate(under="ignore"):
            self.phase *= loss.phase
        self.log_scale += loss.log_scale
        self.decay += loss.decay
        self.error += loss.error * (1 + self.error) + 4 * UNIT * (1 + np.abs(self.log_scale))
        self.infinite = self.infinite * (1 + 2 * UNIT) + loss.infinite

    def lane(self, i: int, variance: float, epsilon: float) -> _Lane:
        """One lane, with a normal part of this mu^2 put in, and a little more where that makes the tail small.

        A further normal part only adds to the price, so any amount is allowed; the best near `epsilon` is taken.
        """
        c = float(CENTRES[i])
        with np.errstate(under="ignore"):
            decay = self.decay[i] * (1 - float(self.error[i]))  # whose rounding grows with every addition, too
            tail = float(np.exp(-decay - variance / 2 * _SQUARES[i]) @ TAIL[i])
            bare = self._lane(i, variance, tail)
            total = bare.sum(epsilon)[0]
            if tail < 1e-8 * total:
                return bare
            extra = _SMOOTHING / float(_SQUARES[i, 0])
            tails = np.exp(-decay - (variance + extra[:, None]) / 2 * _SQUARES[i]) @ TAIL[i]
            least = 1e-3 * float(KERNEL[i, 0].real)
            best = int(np.argmin(np.log(max(total, least) + tails) + c * (c + 1) / 2 * extra))
            twice = self._lane(i, variance + 2 * float(extra[best]), float(tails[best]))
            return self._lane(i, variance + float(extra[best]), float(tails[best]), twice)

    def _lane(self, i: int, variance: float, tail: float, twice: _Lane | None = None) -> _Lane:
        c, t = float(CENTRES[i]), HEIGHTS[i]
        turn = variance * (2 * c + 1) / 2
        terms = self.phase[i] * KERNEL[i] * np.exp(-variance / 2 * t * t + 1j * turn * t)
        error = float(self.error[i]) + 16 * UNIT * (8 + turn * float(t[-1]))
        rounding = error * 2 * _SIZES[i]
        log_scale = float(self.log_scale[i]) + variance * c * (c + 1) / 2 * (1 + 8 * UNIT) + error
        log_scale += math.log(float(SPACING[i]) / (2 * math.pi))
        return _Lane(c, t, terms, tail + rounding, log_scale, float(np.abs(terms).sum()), float(t[-1]), twice)


_SQUARES: Array = BOXES**2
_SIZES = [float(np.abs(row).sum()) for row in KERNEL]
_SMOOTHING: Array = np.concatenate(([0.0], 30.0 * 1.3 ** -np.arange(0.0, 31.0)))  # mu^2 t^2 at the first box


@dataclass(frozen=True, eq=False)
class _Lane:
    """delta(e) <= e^(log_scale - c e) (sum over all nodes, the negative ones too, + slack)."""

    c: float
    t: Array
    terms: Complex
    slack: float
    log_scale: float
    size: float
    highest: float
    twice: _Lane | None  # the same with twice the smoothing

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta at this epsilon."""
        return math.exp(min(self.log_delta(epsilon), 0.0))

    def log_delta(self, epsilon: float) -> float:
        return self._bound(epsilon, self.sum(epsilon)[0])

    def epsilon(self, log_delta: float, guess: float) -> float:
        """An epsilon, a relative 1e-8 too large at most, at which the bound was seen to be at most e^log_delta."""
        x = guess
        for _ in range(12):  # Newton's method: the logarithm of the curve is nearly straight
            total, slope = self.sum(x)
            above = self._bound(x, total) - log_delta
            step = above / max(self.c - slope / total, 1e-3 * self.c) if total > 0 else 0.1 * guess
            if -2e-9 * guess <= step <= 0:
                return x  # the bound was seen to hold here
            x = max(x + step, 0.0) + 1e-9 * guess
            if x == 0:
                break
        return crossing(self.delta, math.exp(log_delta), guess, above=True, close=1e-8)

    def sum(self, epsilon: float) -> tuple[float, float]:
        """The sum over the nodes, without what bounds its errors, and its derivative."""
        turned = self.terms * np.exp(-1j * epsilon * self.t)
        return 2 * float(turned.real.sum()) - float(turned[0].real), 2 * float((turned.imag * self.t).sum())

    def _bound(self, epsilon: float, total: float) -> float:
        total += self.slack + 32 * UNIT * (8 + abs(epsilon) * self.highest) * self.size
        return self.log_scale - self.c * epsilon + math.log(total) + 1e-14 if total > 0 else 0.0

    def is_sharp_at(self, epsilon: float) -> bool:
        """Whether tail, rounding and smoothing together move epsilon by less than a relative 1e-4, roughly."""
        total = self.sum(epsilon)[0]
        if total <= 0:
            return False
        error = self._bound(epsilon, total) - (self.log_scale - self.c * epsilon + math.log(total))
        if self.twice is not None:
            error += abs(self.twice.log_delta(epsilon) - self._bound(epsilon, total))
        return error < SHARP * (1 + self.c * epsilon)


@lru_cache(maxsize=512)
def _cover_and_price(event: Event) -> tuple[Cover | None, tuple[float, float]]:
    return cover(event), pure.approx(event)


@lru_cache(maxsize=128)
def _moments(event: Event) -> tuple[Moments, ...]:
    covered = cover(event)
    assert covered is not None
    return tuple(moments(pair) for pair in covered.upper)


@lru_cache(maxsize=128)
def _divergences(event: Event) -> tuple[Array, float]:
    """The Rényi divergence of order c + 1, times c, on every lane, and the largest delta that goes with them."""
    costs = [renyi.cost_of(event, 1 + float(c)) for c in CENTRES]
    amounts = np.array([cost.amount for cost in costs]) * CENTRES * (1 + 4 * UNIT)
    return amounts, max((cost.delta for cost in costs if cost.is_finite), default=1.0)
