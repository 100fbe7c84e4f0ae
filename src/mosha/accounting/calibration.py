"""The least noise that keeps a promise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from mosha.accounting import prices
from mosha.core.errors import Unpriced
from mosha.core.event import Event
from mosha.core.number import positive, probability

__all__ = ["calibrate"]

SMALLEST, LARGEST = 1e-9, 1e12
Point = tuple[float, float]  # the logarithm of x, and how far its price is above the target


def calibrate(
    make_event: Callable[[float], Event], *, epsilon: float, delta: float, guess: float = 1.0, tolerance: float = 1e-6
) -> float:
    """The least x for which `make_event(x)` costs at most (epsilon, delta), rounded up.

    Guarantee:
        The certified price of `make_event(answer)` was worked out, as epsilon at delta and as delta at epsilon, and
        both are within the promise. If more x means less cost, a relative `tolerance` less x would not have been
        shown to be enough.

    Units:
        x is whatever `make_event` makes of it, above zero: mostly a noise multiplier. `guess` only saves time.

    Raises:
        Unpriced: no x up to 1e12 is enough.

    Args:
        make_event: makes the event for an amount x of noise.
        epsilon: the epsilon that the event may cost.
        delta: the delta that the event may cost; 0 for a pure promise.
        guess: where the search begins.
        tolerance: how much too large the answer may be, relative to it.

    >>> from mosha.core.events import Gaussian
    >>> round(calibrate(Gaussian, epsilon=1, delta=1e-5), 4)
    3.7306
    >>> round(calibrate(lambda x: Gaussian(x).sample(0.004) * 14_100, epsilon=2, delta=1e-5), 3)
    1.171
    """
    target, allowed = positive("epsilon", epsilon), probability("delta", delta)
    start, close = positive("guess", guess), positive("tolerance", tolerance)

    def excess(log_x: float, error: float) -> float:
        """Above zero where x is too little: in logarithms of delta, or of epsilon where the promise is pure."""
        event = make_event(math.exp(log_x))
        if allowed == 0:
            return _log(prices.epsilon(event, 0.0)) - math.log(target)
        return _log(prices.rough_delta(event, target, error)) - math.log(allowed)

    coarse = partial(excess, error=16 * prices.TOLERANCE)
    fine = partial(excess, error=prices.TOLERANCE)
    _, high = _narrow(coarse, *_bracket(coarse, math.log(start), 1.0), 1e-3)
    _, high = _narrow(fine, *_bracket(fine, high[0], 1e-3), close)
    x = math.exp(high[0])
    while _is_excessive(make_event(x), target, allowed):
        x *= 1 + close
    return x


def _is_excessive(event: Event, epsilon: float, delta: float) -> bool:
    """Either reading of the price, delta at epsilon or epsilon at delta, is above what was promised."""
    return prices.epsilon(event, delta) > epsilon or (delta > 0 and prices.delta(event, epsilon) > delta)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -700.0


def _bracket(excess: Callable[[float], float], start: float, width: float) -> tuple[Point, Point]:
    """Two points around the root of a falling function, found by steps that double."""
    here = (start, excess(start))
    way = 1.0 if here[1] > 0 else -1.0
    while True:
        there = (here[0] + way * width, excess(here[0] + way * width))
        if (there[1] > 0) != (here[1] > 0):
            return (here, there) if way > 0 else (there, here)
        if there[0] > math.log(LARGEST):
            raise Unpriced("accounting.target_out_of_reach")
        if there[0] < math.log(SMALLEST):
            return there, there
        here, width = there, 2 * width


def _narrow(excess: Callable[[float], float], low: Point, high: Point, close: float) -> tuple[Point, Point]:
    """A bracket no wider than `close`, by secants that aim past the root, and by halves where they fail."""
    halve = False
    while high[0] - low[0] > close:
        width = high[0] - low[0]
        share = 0.5 if halve or low[1] > 600 or high[1] < -600 else low[1] / (low[1] - high[1])
        aim = share * width + (0.3 if share < 0.5 else -0.3) * min(close, width / 4)
        z = low[0] + min(max(aim, 0.01 * width), 0.99 * width)
        point = (z, excess(z))
        low, high = (point, high) if point[1] > 0 else (low, point)
        halve = high[0] - low[0] > width / 2
    return low, high
