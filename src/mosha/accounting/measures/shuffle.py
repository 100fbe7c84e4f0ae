"""Amplification by shuffling: what is left of a local epsilon when nobody knows whose report is whose.

Every other report is, with some probability, a *clone* that could as well be the report of the person in question
(Feldman, McMillan, Talwar 2021). What an attacker sees is then no more than two binomial counts, which are summed up
here. Their later paper (2023) has a stronger closed form; its erratum restricts it to local randomizers for which

    R(y | x) >= (R(y | x0) + R(y | x1)) / (e^epsilon + 1)    for all inputs and every report y,

among them randomized response with any number of categories. `spread=True` asserts that. Proofs are in `shuffle.md`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mosha.accounting.measures.divergences import randomized_response
from mosha.accounting.numerics.binomial import binomial
from mosha.accounting.numerics.price import bound_above
from mosha.core.errors import InvalidParameter
from mosha.core.number import non_negative, positive, positive_integer, strict_probability

__all__ = ["closed_form", "closed_form_if_spread", "delta", "divergence", "epsilon"]

Array = NDArray[np.float64]
ROUNDING = 1e-9  # relative; far more than the special functions lose
LARGEST = 500.0  # of order times epsilon: beyond it the local divergence is all that is claimed
SUMMED = 4096  # clone counts are merged into so many groups at most


def closed_form(local_epsilon: float, people: int, delta: float) -> float:
    """Epsilon at `delta`, for any local randomizers (Feldman, McMillan, Talwar 2021, theorem 3.1).

    >>> round(closed_form(1.0, 10_000, 1e-6), 4)
    0.214
    """
    e, n, delta = _check(local_epsilon, people, delta)
    if e > math.log(n / (16 * math.log(2 / delta))):
        return e
    grown = 8 * math.sqrt(math.exp(e) * math.log(4 / delta) / n) + 8 * math.exp(e) / n
    return min(e, bound_above(math.log1p(math.tanh(e / 2) * grown)))


def closed_form_if_spread(local_epsilon: float, people: int, delta: float) -> float:
    """Epsilon at `delta`, for local randomizers as in the head of this file (Feldman, McMillan, Talwar 2023).

    >>> round(closed_form_if_spread(1.0, 10_000, 1e-6), 10)
    0.1800063677
    """
    e, n, delta = _check(local_epsilon, people, delta)
    room = n / (8 * math.log(2 / delta)) - 1
    if room <= 0 or e > math.log(room):
        return e
    grown = 4 * math.sqrt(2 * math.log(4 / delta) / ((math.exp(e) + 1) * n)) + 4 / n
    return min(e, bound_above(math.log1p(math.expm1(e) * grown)))


def delta(local_epsilon: float, people: int, epsilon: float, *, spread: bool = False) -> float:
    """The delta at `epsilon` of the shuffled reports of `people` people, each `local_epsilon`-private.

    >>> delta(1.0, 10_000, 0.2) < 1e-10
    True
    """
    e, n = _local(local_epsilon), positive_integer("people", people)
    total = non_negative("epsilon", epsilon)
    if total >= e:
        return 0.0
    fewest, weights = _clones(e, n, spread)
    return min(1.0, bound_above(float(np.sum(weights * _delta_given(fewest, e, total))) + 1e-300))


def epsilon(local_epsilon: float, people: int, delta: float, *, spread: bool = False) -> float:
    """The epsilon at `delta` of the shuffled reports of `people` people, each `local_epsilon`-private.

    >>> round(epsilon(1.0, 10_000, 1e-6), 4), round(epsilon(1.0, 10_000, 1e-6, spread=True), 4)
    (0.053, 0.0432)
    """
    e, n, target = _check(local_epsilon, people, delta)
    low, high = 0.0, e
    for _ in range(34):
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(e, n, middle, spread=spread) <= target else (middle, high)
    return high


_delta = delta


def divergence(local_epsilon: float, people: int, order: float, *, spread: bool = False) -> float:
    """The Rényi divergence of the shuffled reports, by the same two counts.

    >>> divergence(1.0, 10_000, 8.0) < 0.01 * randomized_response(1.0, 8.0)
    True
    """
    e, n = _local(local_epsilon), positive_integer("people", people)
    if order <= 1:
        raise InvalidParameter("accounting.order_too_small", parameter="order")
    return _divergence(e, n, order, spread)


def _check(local_epsilon: float, people: int, delta: float) -> tuple[float, int, float]:
    return _local(local_epsilon), positive_integer("people", people), strict_probability("delta", delta)


def _local(local_epsilon: float) -> float:
    return positive("local_epsilon", local_epsilon)


@lru_cache(maxsize=64)
def _clones(local_epsilon: float, people: int, spread: bool) -> tuple[Array, Array]:  # noqa: FBT001
    """Groups of numbers of clones: the fewest of each, and a probability of at least that of the group.

    More clones hide better (one more is a coin that anybody can toss), so a group is as bad as its fewest.
    """
    e = local_epsilon
    chance = 2 / (math.exp(e) + 1) if spread else math.exp(-e)
    if people == 1 or e > 600:
        return np.zeros(1), np.ones(1)
    log_odds = math.log(chance) - math.log1p(-chance) if chance < 1 else 50.0
    numbers, weights, error = binomial(people - 1, log_odds)
    width = -(-len(numbers) // SUMMED)
    starts = np.arange(0, len(numbers), width)
    grouped = np.add.reduceat(weights, starts) * (1 + error)
    fewest = numbers[starts]
    return np.concatenate(([0.0], fewest)), np.concatenate(([1e-290], grouped))


def _delta_given(clones: Array, local_epsilon: float, total: float) -> Array:
    """The delta at `total` given the number of clones, rounded up.

    The person counts for label 0 with probability E/(E+1) in one world and 1/(E+1) in the other, clones by a fair
    coin. With m = clones + 1 the likelihood ratio at a labels 0 is (E a + m - a) / (a + E (m - a)).
    """
    from scipy.special import betainc  # noqa: PLC0415  (heavy, and needed here alone)

    e, x = local_epsilon, total
    share = (math.exp(x) - math.exp(-e)) / (-math.expm1(-e) * (math.exp(x) + 1))
    first = np.floor(share * (clones + 1)) + 1  # the fewest labels 0 that are worth an alarm
    point = np.where(first - 1 <= clones, np.exp(_log_fair(clones, np.minimum(first - 1, clones))), 0.0)
    within = np.clip(first, 1, np.maximum(clones, 1))
    tail = np.where(first <= clones, betainc(within, np.maximum(clones, 1) - within + 1, 0.5), 0.0)
    gained = -math.expm1(x - e) / (1 + math.exp(-e)) * point * (1 + ROUNDING)
    return np.maximum(0.0, gained - math.expm1(x) * tail * (1 - ROUNDING))


def _log_fair(count: Array, heads: Array) -> Array:
    """The logarithm of the probability of so many heads among `count` tosses; an absolute error below 1e-10."""
    n, a = np.maximum(count, 1), np.clip(heads, 0, count)
    ends = (a == 0) | (a == count)
    inner = np.where(ends, np.minimum(1.0, n - 1), a)
    inner = np.where(n < 2, 0.5, inner)
    x = (2 * inner - n) / n
    deviance = n / 2 * ((1 + x) * np.log1p(x) + (1 - x) * np.log1p(-x))
    found = 0.5 * np.log(n / (2 * math.pi * inner * (n - inner))) - deviance
    found = found + _stirling(n) - _stirling(inner) - _stirling(n - inner)
    return np.where(ends, -count * math.log(2), found)


def _stirling(n: Array) -> Array:
    """log(n!) - log(sqrt(2 pi n) (n/e)^n)."""
    from scipy.special import gammaln  # noqa: PLC0415

    small = np.minimum(n, 16.0)
    exact = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * math.log(2 * math.pi)
    r = 1 / np.maximum(n, 16.0)
    series = r / 12 - r**3 / 360 + r**5 / 1260 - r**7 / 1680 + r**9 / 1188
    return np.where(n < 16, exact, series)


@lru_cache(maxsize=4096)
def _divergence(local_epsilon: float, people: int, order: float, spread: bool) -> float:  # noqa: FBT001
    e = local_epsilon
    worst = randomized_response(e, order)
    if order * e > LARGEST:
        return worst
    bound, excess = math.expm1((order - 1) * worst), 0.0
    for clones, weight in _merge_groups(*_clones(e, people, spread)):
        rare = weight * bound < 1e-7 * excess  # then the worst is assumed
        excess += weight * (bound if rare else min(bound, _excess(int(clones), e, order)))
    return min(worst, bound_above(math.log1p(excess * (1 + ROUNDING)) / (order - 1)))


def _merge_groups(fewest: Array, weights: Array) -> list[tuple[float, float]]:
    """Larger groups, the likeliest first: so wide that what is given away is below a thousandth or so."""
    mean = float(np.sum(fewest * weights))
    spread = max(1.0, math.sqrt(float(np.sum((fewest - mean) ** 2 * weights))))
    place = np.clip(fewest - mean, -8 * spread, 8 * spread) / max(spread / 8, mean / 1000)
    cell = np.where(fewest > 0, np.floor(place), -1e9)
    starts = np.flatnonzero(np.diff(cell, prepend=math.nan) != 0)
    groups = zip(fewest[starts].tolist(), np.add.reduceat(weights, starts).tolist(), strict=True)
    return sorted(groups, key=lambda group: -group[1])


def _excess(clones: int, local_epsilon: float, order: float) -> float:
    """The excess over 1 of the moment of the likelihood ratio, given the number of clones, rounded up."""
    loss, weight = _losses(clones, local_epsilon)
    remainder = np.expm1(order * loss) - order * np.expm1(loss)
    return float(weight @ np.maximum(0.0, remainder)) * (1 + ROUNDING) + 4 * math.exp(-60)


@lru_cache(maxsize=1024)
def _losses(clones: int, local_epsilon: float) -> tuple[Array, Array]:
    """Privacy losses and their probabilities, given the number of clones.

    Labels farther than sqrt(m r / 2) from m / 2 have, by Hoeffding, a probability below 2 e^-r; with r = LARGEST + 60
    they add less than 2 e^-60 to the moment, whatever their loss.
    """
    e, m = local_epsilon, clones + 1
    width = math.sqrt(m * (LARGEST + 60) / 2) + 2
    labels = np.arange(max(0, math.floor(m / 2 - width)), min(m, math.ceil(m / 2 + width)) + 1, dtype=np.float64)
    loss = np.log((math.exp(e) * labels + m - labels) / (labels + math.exp(e) * (m - labels)))
    return loss, np.exp(_log_mixed(clones, labels, e))


def _log_mixed(clones: int, labels: Array, local_epsilon: float) -> Array:
    """The logarithm of the probability of so many labels 0 in the world where the person counts for label 1."""
    count = np.full_like(labels, float(clones))
    without = np.where(labels <= clones, _log_fair(count, np.minimum(labels, clones)), -math.inf)
    with_one = np.where(labels >= 1, _log_fair(count, np.maximum(labels - 1, 0)), -math.inf)
    share = math.exp(-local_epsilon)
    return np.logaddexp(without, with_one - local_epsilon) - math.log1p(share)
