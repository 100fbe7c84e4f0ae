"""Advanced composition: many (epsilon, delta)-private steps cost about the square root of their number.

Closed forms of Dwork, Rothblum and Vadhan (2010) and of Kairouz, Oh and Viswanath (2015), and the exact optimum for
equal steps, which is a binomial sum. All of them are for compositions fixed in advance and need nothing but each
step's (epsilon, delta); where the noise is known, `mosha.accounting.epsilon` is tighter. Proofs are in `advanced.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mosha.accounting.measures import pure
from mosha.accounting.numerics.binomial import binomial
from mosha.accounting.numerics.price import bound_above, round_up, times_up
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.names.deprecation import old_names
from mosha.core.number import non_negative, positive_integer, probability, strict_probability

__all__ = ["dwork_rothblum_vadhan", "epsilon", "kairouz_oh_viswanath", "optimal_delta", "optimal_epsilon"]

__getattr__ = old_names(__name__, optimal="optimal_epsilon")

Steps = Iterable[tuple[float, int]]
Array = NDArray[np.float64]


def _check(steps: Steps, delta: float) -> tuple[list[tuple[float, int]], float]:
    pairs = [(non_negative("epsilon", e), positive_integer("count", n)) for e, n in steps]
    return pairs, strict_probability("delta", delta)


def _sum(values: Iterable[float]) -> float:
    try:
        return bound_above(math.fsum(values))
    except OverflowError:
        return math.inf


def _growth(epsilon: float) -> float:
    return math.expm1(epsilon) if epsilon < pure.LARGE else math.inf


def dwork_rothblum_vadhan(steps: Steps, delta: float) -> float:
    """Epsilon of `count` steps of each `epsilon`, at an additional `delta`: the classic bound, for comparison.

    The sum of epsilon (e^epsilon - 1), and sqrt(2 ln(1/delta) sum of epsilon^2).

    >>> round(dwork_rothblum_vadhan([(0.1, 50)], 1e-6), 6)
    4.242777
    """
    pairs, delta = _check(steps, delta)
    drift = _sum(n * e * _growth(e) for e, n in pairs)
    square = _sum(n * e * e for e, n in pairs)
    return bound_above(drift + math.sqrt(2 * square * -math.log(delta)))


def kairouz_oh_viswanath(steps: Steps, delta: float) -> float:
    """Epsilon of `count` steps of each `epsilon`, at an additional `delta`, in closed form (their theorem 3.5).

    The sum of epsilon tanh(epsilon/2), and sqrt(2 square min(ln(1/delta), ln(e + sqrt(square) / delta))) where square
    is the sum of epsilon^2; never more than the plain sum.

    >>> round(kairouz_oh_viswanath([(0.1, 1000)], 1e-6), 6)
    21.618419
    """
    pairs, delta = _check(steps, delta)
    drift = _sum(n * e * math.tanh(e / 2) for e, n in pairs)
    square = _sum(n * e * e for e, n in pairs)
    logarithm = min(-math.log(delta), math.log(math.e + math.sqrt(square) / delta))
    return min(bound_above(drift + math.sqrt(2 * square * logarithm)), _sum(n * e for e, n in pairs))


def optimal_epsilon(epsilon: float, count: int, delta: float, *, delta_each: float = 0.0) -> float:
    """The least epsilon at `delta` of `count` steps of which nothing but (epsilon, delta_each) is known.

    Guarantee:
        The worst steps reveal with probability delta_each and else are randomized response, so their loss is
        (2 j - count) epsilon, j binomial. With A_j and B_j the chance of at least j truths in both worlds, delta is
        the largest A_j - e^x B_j, hence x is the largest log((A_j - delta) / B_j). Sums are rounded up and down.

    >>> round(optimal_epsilon(0.1, 1000, 1e-6), 6), round(optimal_epsilon(1.0, 10, 1e-5), 6)
    (19.344671, 9.999771)
    """
    step, count = non_negative("epsilon", epsilon), positive_integer("count", count)
    left = _rest_of_delta(strict_probability("delta", delta), probability("delta_each", delta_each), count)
    basic = times_up(step, count)
    if left <= 0:
        if delta_each == 0 or left == 0:
            return basic
        raise InvalidParameter("accounting.delta_below_steps", parameter="delta")
    if step == 0:
        return 0.0
    upper, log_lower = _tails(step, count)
    room = upper - left
    worth = room > 0
    if not np.any(worth):
        return 0.0
    found = float(np.max(np.log(room[worth]) - log_lower[worth]))
    return min(basic, max(0.0, bound_above(found, scale=max(1.0, step * count))))


def optimal_delta(epsilon: float, count: int, total: float, *, delta_each: float = 0.0) -> float:
    """The least delta at the epsilon `total` of `count` steps of which nothing but (epsilon, delta_each) is known.

    >>> round(optimal_delta(1.0, 1, 0.5), 10)
    0.2876491366
    """
    step, count = non_negative("epsilon", epsilon), positive_integer("count", count)
    total, each = non_negative("total", total), probability("delta_each", delta_each)
    kept = count * math.log1p(-each)
    if total >= times_up(step, count):
        return min(1.0, bound_above(-math.expm1(kept)))
    truths, weights, error = binomial(count, step)
    beyond, slack = step * (2 * truths - count) - total, 2.0**-49 * (1 + total)
    excess = np.where(beyond > -slack, -np.expm1(-np.maximum(0.0, beyond)) + slack, 0.0)
    pure_delta = math.fsum(weights * excess) * (1 + error)
    if pure_delta >= 1:
        return 1.0
    return min(1.0, bound_above(-math.expm1(kept + math.log1p(-(pure_delta + 1e-300)))))


def _rest_of_delta(delta: float, each: float, count: int) -> float:
    """What is left of delta for the randomized responses: 1 - (1 - delta) / (1 - each)^count, rounded down."""
    if each == 0:
        return delta
    spent = -count * math.log1p(-each)
    return -math.expm1(math.log1p(-delta) + spent) - 2.0**-48 * (delta + spent)


def _tails(step: float, count: int) -> tuple[Array, Array]:
    """The chance of at least j truths, rounded up, and the logarithm of that of at least j lies, rounded down."""
    truths, weights, error = binomial(count, step)
    upper = np.minimum(1.0, np.cumsum(weights[::-1])[::-1] * (1 + 2 * error) + 1e-300)
    lower = np.maximum(_discount(weights, math.exp(-2 * step)), 5e-324)
    return upper, np.log(lower) - step * (2 * truths - count) - error - 2.0**-50 * step * count


def _discount(weights: Array, factor: float) -> Array:
    """s_j = weights_j + factor s_(j+1)."""
    sums, total = np.empty_like(weights), 0.0
    for k in range(len(weights) - 1, -1, -1):
        total = weights[k] + factor * total
        sums[k] = total
    return sums


def epsilon(event: Event, delta: float) -> float:
    """The least epsilon at `delta` that advanced composition finds from the (epsilon, delta) of each part.

    >>> from mosha.events import Laplace, RandomizedResponse
    >>> round(epsilon(RandomizedResponse(0.1) * 1000, 1e-6), 6)
    19.344671
    """
    delta = strict_probability("delta", delta)
    parts = [(*pure.approx(part), count) for part, count in event.parts()]
    if any(math.isinf(e) for e, _, _ in parts):
        return math.inf
    own = sum((Fraction(d) * n for _, d, n in parts), Fraction(0))
    left = Fraction(delta) - own
    if left < 0:
        return math.inf
    basic = _sum(e * n for e, _, n in parts)
    rest = round_up(left) if own == 0 else math.nextafter(float(left), 0.0)
    if rest <= 0:
        return basic
    if len({e for e, _, _ in parts}) == 1:
        return min(basic, optimal_epsilon(parts[0][0], sum(n for _, _, n in parts), rest))
    steps = [(e, n) for e, _, n in parts]
    return min(basic, kairouz_oh_viswanath(steps, rest), dwork_rothblum_vadhan(steps, rest)) if steps else 0.0
