"""What an event costs: certified bounds on epsilon for a delta and on delta for an epsilon.

Several engines bound the same truth, and the best answer is the answer: closed curves for one pair or for normal noise
alone, the tight accountant for compositions (`tight.py`), Rényi divergences and basic composition where an event has
no pair. Every upper bound is valid by itself, so the least of them is.

Only a composition whose parameters were all fixed in advance may be sold at these prices; what an account admits step
by step is decided by `mosha.accounting.rules`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from mosha.accounting.losses.direction import Direction, directions
from mosha.accounting.losses.dominating import Reading, open_wrappers, read
from mosha.accounting.measures import pure, renyi
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event, compose
from mosha.core.events import Shuffled
from mosha.core.number import non_negative, probability

if TYPE_CHECKING:
    from mosha.accounting.losses.history import History

__all__ = ["bounds", "delta", "epsilon", "rough_delta"]

TOLERANCE = 3e-5  # relative, of one bound on epsilon
GAP = 1e-4  # relative, between the two bounds that `bounds` aims at
LEAST = 1e-290  # the smallest delta that tails and sums of floats can bound
TINY = 1e-305  # the smallest that logarithms are asked about
MANY = 24  # kinds of events; with more, an odometer answers instead of a lattice
SPLITS = (0.5, 0.1, 0.9, 0.01, 0.99)  # of delta, between the parts that have a pair and the others


def epsilon(event: Event, delta: float) -> float:
    """The least epsilon for which `event` is proved (epsilon, delta)-differentially private; infinite if there is none.

    Guarantee:
        Never below the truth for parameters fixed in advance, whatever the order of the parts; within 1e-4 of it
        (relative) for compositions of events that have an exact pair (`dominating.md`).

    Units:
        Nats. `delta` is a probability in [0, 1); at zero the answer is that of pure differential privacy.

    Args:
        event: the event to price, from `mosha.events`.
        delta: a probability in [0, 1).

    >>> from mosha.core.events import Gaussian, Laplace
    >>> round(epsilon(Laplace(100) * 1000, 1e-6), 3)
    1.363
    >>> round(epsilon(Gaussian(1.1).sample(0.004) * 14_100, 1e-5), 3)
    2.219
    """
    return _epsilon(_check_event(event), probability("delta", delta))


def delta(event: Event, epsilon: float) -> float:
    """The least delta for which `event` is proved (epsilon, delta)-differentially private.

    Guarantee:
        Never below the truth: see `epsilon`.

    Units:
        A probability; `epsilon` is in nats, zero or above.

    Args:
        event: the event to price, from `mosha.events`.
        epsilon: zero or above, in nats.

    >>> from mosha.core.events import Gaussian
    >>> round(delta(Gaussian(1), 1.0), 9)
    0.126936738
    """
    found = _delta(_check_event(event), min(non_negative("epsilon", epsilon), HUGE))
    return found if found > 0 or pure.epsilon(event) <= epsilon else math.nextafter(0.0, 1.0)


def bounds(event: Event, *, delta: float | None = None, epsilon: float | None = None) -> tuple[float, float]:
    """What `event` costs, from below and from above: epsilon for a given delta, or delta for a given epsilon.

    Guarantee:
        Some mechanism that `event` describes costs at least the first number, none costs more than the second. The
        first is poor, possibly zero, for events without an exact pair.

    Args:
        event: the event to price, from `mosha.events`.
        delta: the delta at which epsilon is bounded; or
        epsilon: the epsilon at which delta is bounded: give one of the two.

    >>> from mosha.core.events import RandomizedResponse
    >>> low, high = bounds(RandomizedResponse(0.1) * 1000, delta=1e-6)
    >>> round(low, 4), round(high, 4)
    (19.3447, 19.3447)
    """
    if (delta is None) == (epsilon is None):
        raise InvalidParameter("accounting.one_of_epsilon_and_delta")
    if delta is not None:
        return _bracket(_check_event(event), probability("delta", delta), _epsilon, _lower_epsilon, _upper_epsilon)
    if non_negative("epsilon", epsilon) > HUGE:
        return 0.0, _delta(_check_event(event), HUGE)
    return _bracket(_check_event(event), non_negative("epsilon", epsilon), _delta, _lower_delta, _upper_delta)


HUGE = 1e15  # delta falls with epsilon: beyond this, what it is here bounds it from above
MARGIN = 1e-12  # more than the rounding of a probability and of what is done with it

Price = Callable[[Reading, float, float], float]


def _bracket(
    event: Event, given: float, price: Callable[[Event, float], float], lower: Price, upper: Price
) -> tuple[float, float]:
    reading = read(event)
    least, most, tolerance, gap = 0.0, price(event, given), TOLERANCE, math.inf
    if min(given, most) <= LEAST:
        return 0.0, most
    while True:
        least = max(least, lower(reading, given, tolerance / 2))
        last, gap = gap, most - least
        if math.isinf(most) or gap <= GAP * most or gap > last / 2 or not reading.is_tight or len(reading.parts) > MANY:
            return min(least, most), most
        tolerance /= 8
        most = min(most, upper(reading, given, tolerance))


def _check_event(event: Event) -> Event:
    if not isinstance(event, Event):
        raise InvalidParameter("core.not_an_event", parameter="event", kind=type(event).__name__)
    return event


@lru_cache(maxsize=1024)
def _epsilon(event: Event, delta: float) -> float:
    if delta == 0:
        return pure.epsilon(event)
    if delta < LEAST:
        return _by_divergence(event, delta)
    if isinstance(alone := open_wrappers(event), Shuffled):
        from mosha.accounting.measures.blanket import shuffled_epsilon  # noqa: PLC0415  (SciPy only where it is needed)

        return min(_by_divergence(event, delta), shuffled_epsilon(alone, delta))
    reading = read(event)
    if not reading.rest:
        if len(reading.parts) > MANY:
            return _history_of(event).epsilon(delta)
        best = min(_upper_epsilon(reading, delta, TOLERANCE), _basic_epsilon(event, delta))
        return min(best, _by_divergence(event, delta)) if reading.is_crude or math.isinf(best) else best
    best = _by_divergence(event, delta)
    rest = compose(reading.rest)
    reading.rest = []
    for share in SPLITS if reading.parts or reading.upper_variance else ():
        mine = _by_divergence(rest, delta * share * (1 - 1e-12))
        if mine < best:
            best = min(best, mine + _upper_epsilon(reading, delta * (1 - share), TOLERANCE))
    return best


def _by_divergence(event: Event, delta: float) -> float:
    """Rényi divergences and basic composition, of the event with all wrappers opened."""
    return max(0.0, min(renyi.epsilon(open_wrappers(event), delta), _basic_epsilon(event, delta)))


def _basic_epsilon(event: Event, delta: float) -> float:
    basic, lost = pure.approx(open_wrappers(event))
    return basic if lost <= delta else math.inf


def rough_delta(event: Event, epsilon: float, tolerance: float) -> float:
    """`delta`, certified all the same, with a relative error of epsilon of about `tolerance` where that saves time."""
    reading = read(_check_event(event))
    found = 1.0 if reading.is_crude else _upper_delta(reading, epsilon, tolerance)
    return found if found < 1 else _delta(event, epsilon)


def _history_of(event: Event) -> History:
    """A history that holds all of `event`: for many kinds of events it is quicker than a lattice, and as sharp."""
    from mosha.accounting.losses.history import History  # noqa: PLC0415  (only where there are many kinds)

    history = History()
    history.add(open_wrappers(event))
    return history


@lru_cache(maxsize=1024)
def _delta(event: Event, epsilon: float) -> float:
    delta = _compute_delta(event, epsilon)
    if delta > LEAST or pure.epsilon(event) <= epsilon:
        return delta
    return TINY if _by_divergence(event, TINY) <= epsilon else LEAST


def _compute_delta(event: Event, epsilon: float) -> float:
    reading = read(event)
    if len(reading.parts) > MANY and not reading.rest:
        return _history_of(event).delta(epsilon)
    best = _upper_delta(reading, epsilon, TOLERANCE) if not reading.rest else 1.0
    if best >= 1 and not reading.rest:  # a lattice shows nothing where delta is far below what floats can add up
        return _least_delta(lambda d: _by_divergence(event, d) if d else pure.epsilon(event), epsilon, 1.0)
    if not reading.is_crude or (0 < best < 1 and _by_divergence(event, best) >= epsilon):
        return best
    return _least_delta(lambda d: _epsilon(event, d), epsilon, best)


def _least_delta(price: Callable[[float], float], epsilon: float, most: float) -> float:
    """The least delta, by a factor of 1.001, below `most` at which the price is at most epsilon."""
    if price(0.0) <= epsilon:
        return 0.0
    low, high = math.log(1e-300), math.log(most) if most < 1 else 0.0
    if price(math.exp(high) * (1 - 1e-12)) > epsilon:
        return most
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if price(math.exp(middle)) <= epsilon else (middle, high)
    return min(most, math.exp(high) * (1 + 1e-12))


def _upper_epsilon(reading: Reading, delta: float, tolerance: float) -> float:
    failing = _failure_probability(reading) * (1 + MARGIN)
    if failing >= delta:
        return math.inf
    left = _rest_of_delta(delta, failing) * (1 - MARGIN)
    return _most_expensive(directions(reading, above=True), lambda d, t: d.epsilon(left, t), tolerance)


def _upper_delta(reading: Reading, epsilon: float, tolerance: float) -> float:
    failing = min(_failure_probability(reading) * (1 + MARGIN), 1.0)
    other = _most_expensive(directions(reading, above=True), lambda d, t: d.delta(epsilon, t), tolerance)
    return min(1.0, (failing + (1 - failing) * other) * (1 + MARGIN)) if failing else other


def _lower_epsilon(reading: Reading, delta: float, tolerance: float) -> float:
    if delta == 0:
        return 0.0
    failing = _failure_probability(reading) * (1 - MARGIN)
    if failing >= delta:
        return math.inf
    left = min(_rest_of_delta(delta, failing) * (1 + MARGIN), 1 - MARGIN)
    return max(d.epsilon(left, tolerance) for d in directions(reading, above=False))


def _lower_delta(reading: Reading, epsilon: float, tolerance: float) -> float:
    failing = _failure_probability(reading) * (1 - MARGIN)
    other = max(d.delta(epsilon, tolerance) for d in directions(reading, above=False))
    return (failing + (1 - failing) * other) * (1 - MARGIN) if failing else other


def _failure_probability(reading: Reading) -> float:
    """The probability that something fails: what delta is, whatever epsilon (to one part in 2^50)."""
    return -math.expm1(reading.log_spared)


def _rest_of_delta(delta: float, failing: float) -> float:
    """What a delta leaves for the rest: delta = p + (1 - p) rest."""
    return (delta - failing) / (1 - failing) if failing else delta


def _most_expensive(sides: Sequence[Direction], price: Callable[[Direction, float], float], tolerance: float) -> float:
    """The dearer direction; the other is worked out coarsely if that already shows that it is cheaper."""
    if len(sides) == 1:
        return price(sides[0], tolerance)
    rough = sorted(((price(side, 16 * tolerance), i) for i, side in enumerate(sides)), reverse=True)
    best = price(sides[rough[0][1]], tolerance)
    for coarse, i in rough[1:]:
        if coarse > best:
            best = max(best, price(sides[i], tolerance))
    return best
