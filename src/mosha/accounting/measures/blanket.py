"""Shuffled k-ary randomized response: the blanket of uniform reports that hides one (Balle, Bell, Gascón, Nissim 2019).

Everybody reports a uniform category now and then; these reports form a blanket among which the report of one person is
hidden. What is left is a histogram of uniform reports and one more, whose divergence is summed up here. For many
categories this is several times below what is known of local randomizers in general. Proofs are in `blanket.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.accounting.measures import shuffle
from mosha.accounting.numerics.binomial import binomial
from mosha.accounting.numerics.price import bound_above
from mosha.core.errors import InvalidParameter
from mosha.core.events import Shuffled
from mosha.core.number import non_negative, positive, positive_integer, strict_probability

__all__ = ["delta", "epsilon", "find_least", "shuffled_epsilon"]

Array = NDArray[np.float64]
ROUNDING = 1e-9  # relative; far more than the special functions lose
RARE = 1e-22  # numbers of uniform reports that are together this rare are charged as if there were none
COARSE = 1.2e-3  # relative width of a group of numbers of uniform reports
FINE = 1 / 25  # distance between counts that are looked at, in standard deviations


def delta(local_epsilon: float, people: int, epsilon: float, *, categories: int) -> float:
    """The delta at `epsilon` of the shuffled k-ary randomized responses of `people` people.

    >>> delta(1.0, 10_000, 0.01, categories=100) < 1e-6 < delta(1.0, 10_000, 0.007, categories=100)
    True
    """
    e, n, k = positive("local_epsilon", local_epsilon), positive_integer("people", people), _categories(categories)
    total = non_negative("epsilon", epsilon)
    if total >= e:
        return 0.0
    return _delta(e, n, k, total)


def epsilon(local_epsilon: float, people: int, delta: float, *, categories: int) -> float:
    """The epsilon at `delta` of the shuffled k-ary randomized responses of `people` people.

    >>> round(epsilon(1.0, 10_000, 1e-6, categories=100), 5)  # in general 0.053
    0.00719
    """
    e, n, k = positive("local_epsilon", local_epsilon), positive_integer("people", people), _categories(categories)
    return find_least(lambda total: _delta(e, n, k, total), strict_probability("delta", delta), e)


def shuffled_epsilon(event: Shuffled, delta: float) -> float:
    """The epsilon of one shuffled batch: by clones, and for randomized response by its blanket where that is less.

    >>> round(shuffled_epsilon(Shuffled(1.0, 10_000, categories=100), 1e-6), 5)
    0.00719
    """
    by_clones = shuffle.epsilon(event.epsilon, event.people, delta, spread=event.categories is not None)
    if event.categories is None:
        return by_clones
    return min(by_clones, epsilon(event.epsilon, event.people, delta, categories=event.categories))


def find_least(curve: Callable[[float], float], target: float, most: float) -> float:
    """A number x from 0 to `most` with curve(x) <= target, close above the least one; `most` always qualifies.

    The curve falls, and its logarithm is nearly a parabola: secants of the logarithm, halving where they do not help.
    """
    low, high = 0.0, most
    at_low, at_high = _log(curve(0.0)) - math.log(target), -math.inf
    if at_low <= 0:
        return 0.0
    for step in range(80):
        if high - low <= 1e-6 * high:
            break
        middle = (low + high) / 2
        if math.isfinite(at_high) and step % 3:
            middle = low + (high - low) * min(0.95, max(0.05, at_low / (at_low - at_high)))
        found = _log(curve(middle)) - math.log(target)
        if found <= 0:
            high, at_high = middle, found
        else:
            low, at_low = middle, found
    return high


def _log(value: float) -> float:
    return math.log(max(value, 1e-300))


def _categories(categories: int) -> int:
    if positive_integer("categories", categories) < 2:
        raise InvalidParameter("core.one_category", parameter="categories")
    return categories


def _delta(e: float, n: int, k: int, total: float) -> float:
    share = k / (math.exp(e) + k - 1) if e < 600 else 0.0  # of uniform reports
    if share == 0.0 or n == 1:
        return _delta_alone(e, k, total)
    fewest, weights = _blankets(n - 1, share)
    worst = _delta_alone(e, k, total)
    told = math.expm1(e) / (math.exp(e) + k - 1)  # 1 - share, without cancellation
    found = sum(
        w * min(worst, _delta_given(int(m) + 1, share, told, k, total)) for m, w in zip(fewest, weights, strict=True)
    )
    return min(1.0, bound_above(found + 1e-300))


def _delta_alone(e: float, k: int, total: float) -> float:
    """With no uniform report: one randomized response."""
    return bound_above(-math.expm1(total - e) / (1 + (k - 1) * math.exp(-e)))


@lru_cache(maxsize=64)
def _blankets(people: int, share: float) -> tuple[list[float], list[float]]:
    """Groups of numbers of uniform reports: the fewest of each, and a probability of at least that of the group."""
    numbers, weights, error = binomial(people, math.log(share) - math.log1p(-share) if share < 1 else 50.0)
    kept = np.flatnonzero(weights > RARE / len(weights))
    first, last = int(kept[0]), int(kept[-1]) + 1
    width = max(1, int(COARSE * numbers[first]))
    starts = np.arange(first, last, width)
    grouped = np.add.reduceat(weights[:last], starts)
    tails = [float(weights[:first].sum()) + RARE, float(weights[last:].sum())]
    fewest = [0.0, *numbers[starts].tolist(), float(numbers[last - 1])]
    return fewest, [w * (1 + error) for w in (tails[0], *grouped.tolist(), tails[1])]


def _delta_given(reports: int, share: float, told: float, k: int, total: float) -> float:
    """The delta at `total` given that so many reports, one of them the person's, are under the blanket; rounded up."""
    gain = told * k / reports
    if gain <= 0:
        return 0.0
    nodes, weights, lost = _nodes(reports, k)
    threshold = math.exp(total) * nodes + math.expm1(total) * share / gain
    return gain * float(weights @ _excess(reports - nodes, 1 / (k - 1), threshold)) + k * lost  # P <= k U


@lru_cache(maxsize=1024)
def _nodes(reports: int, k: int) -> tuple[Array, Array, float]:
    """Some counts of one category, and weights with which a convex function of the count is averaged from above."""
    numbers, weights, error = binomial(reports, -math.log(k - 1) if k > 2 else 0.0)
    kept = np.flatnonzero(weights > RARE / len(weights))
    first, last = int(kept[0]), int(kept[-1])
    lost = float(weights[:first].sum() + weights[last + 1 :].sum()) + RARE
    if first == last:
        return numbers[first : last + 1], np.array([1 + error]), lost
    step = max(1, int(FINE * math.sqrt(reports * (k - 1)) / k))
    places = np.unique(np.append(np.arange(first, last, step), last))
    inner, mass = numbers[first:last], weights[first:last]
    starts = places[:-1] - first
    whole, moment = np.add.reduceat(mass, starts), np.add.reduceat(mass * inner, starts)
    left, right = numbers[places[:-1]], numbers[places[1:]]
    upper = (moment - left * whole) / (right - left)
    found = np.zeros(len(places))
    found[:-1] += whole - upper
    found[1:] += upper
    found[-1] += weights[last]
    return numbers[places], np.maximum(0.0, found) * (1 + error + ROUNDING), lost


def _excess(count: Array, chance: float, threshold: Array) -> Array:
    """E[(X - threshold)_+] of a binomial X, rounded up."""
    if chance == 1.0:
        return np.maximum(0.0, count - threshold) * (1 + ROUNDING)
    from scipy.special import betainc  # noqa: PLC0415  (heavy, and needed here alone)

    first = np.floor(threshold) + 1
    reached = np.flatnonzero(first <= count)
    size, at = count[reached], np.maximum(first[reached], 1.0)
    tail = betainc(at, size - at + 1, chance)  # P(X >= at)
    shorter = betainc(np.maximum(at - 1, 1.0), size - at + 1, chance)  # P(Y >= at - 1)
    mean = size * chance * np.where(at > 1, shorter, 1.0)
    found = np.zeros(len(count))
    found[reached] = np.maximum(0.0, mean * (1 + ROUNDING) - threshold[reached] * tail * (1 - ROUNDING))
    return found
