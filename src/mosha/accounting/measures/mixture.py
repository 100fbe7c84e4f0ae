"""Moments of mixtures (1-q) P0 + q P1 against P0: sums of positive terms, in logarithms.

L is the likelihood ratio P1 / P0 and `divergence(k)` the Rényi divergence of order k, so that under P0 the moment
E[L^k] is e^((k-1) divergence(k)). Each function returns the logarithm of an upper bound on a moment; proofs are in
`subsampling.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

from mosha.accounting.numerics.price import bound_above

__all__ = [
    "added_by_divergence",
    "added_log_moment",
    "interpolate",
    "replaced_by_divergence",
    "replaced_log_moment",
]

Divergence = Callable[[int], float]


@lru_cache(maxsize=64)
def log_binomials(order: int) -> tuple[float, ...]:
    """Logarithms of binomial coefficients, rounded up."""
    whole = math.lgamma(order + 1)
    return tuple(
        bound_above(whole - math.lgamma(k + 1) - math.lgamma(order - k + 1), scale=whole) for k in range(order + 1)
    )


def sum_up(*terms: float) -> float:
    """The sum of a few logarithms, rounded up."""
    return bound_above(math.fsum(terms), scale=sum(map(abs, terms)) / 4) if math.isfinite(terms[-1]) else terms[-1]


def log_expm1(x: float) -> float:
    """log(e^x - 1) for x > 0.

    >>> round(log_expm1(1.0), 6), log_expm1(1e6)
    (0.541325, 1000000.0)
    """
    if x <= 0:
        return -math.inf
    return math.log(math.expm1(x)) if x < 30 else x + math.log1p(-math.exp(-x))


def log_one_plus(logarithms: Iterable[float]) -> float:
    """log(1 + sum of e^x), rounded up.

    >>> round(log_one_plus([0.0, 0.0]), 6)
    1.098612
    """
    terms = [x for x in logarithms if x > -math.inf]
    if not terms:
        return 0.0
    if math.isinf(top := max(terms)):
        return math.inf
    total = top + math.log(math.fsum(math.exp(x - top) for x in terms))
    total += 1e-14 + 2e-15 * abs(top)
    return bound_above(math.log1p(math.exp(total)) if total < 40 else total + math.exp(-total))


def _terms(order: int, rate: float, start: int, excess: Callable[[int], float]) -> Iterable[float]:
    """The logarithms of C(order, k) q^k (1-q)^(order-k) e^(excess(k)) for k = start..order."""
    binomials, log_rate, log_rest = log_binomials(order), math.log(rate), math.log1p(-rate)
    for k in range(start, order + 1):
        yield sum_up(binomials[k], k * log_rate, (order - k) * log_rest, excess(k))


def added_log_moment(order: int, rate: float, divergence: Divergence) -> float:
    """The logarithm of E[(1 - q + q L)^order] under P0.

    >>> round(added_log_moment(2, 0.004, lambda k: k / (2 * 1.1**2)) / 2.056272289e-05, 9)
    1.0
    """
    return log_one_plus(_terms(order, rate, 2, lambda k: log_expm1((k - 1) * divergence(k))))


def replaced_log_moment(order: int, rate: float, divergence: Divergence) -> float:
    """The same for (1-q) O + q P1 against (1-q) O + q P0, whose worst pair is known."""
    extra = sum_up(log_binomials(order)[2], 2 * math.log(rate), log_expm1(divergence(2)))
    terms = _terms(order, rate, 2, lambda k: log_expm1((k - 1) * divergence(k)))
    return log_one_plus([*terms, extra])


def added_by_divergence(order: int, rate: float, divergence: Divergence) -> float:
    """`added_log_moment` for whichever direction is worse, when nothing but the divergences of both is known."""
    backward = _pearson(order, rate, divergence, log_expm1(divergence(2)))
    return max(added_log_moment(order, rate, divergence), backward)


def replaced_by_divergence(order: int, rate: float, divergence: Divergence) -> float:
    """`replaced_log_moment`, when nothing but divergences is known (Wang, Balle, Kasiviswanathan 2019, theorem 9)."""
    square = min(math.log(4) + log_expm1(divergence(2)), math.log(2) + divergence(2))
    return _pearson(order, rate, divergence, square)


def _pearson(order: int, rate: float, divergence: Divergence, square: float) -> float:
    """log(1 + sum over k >= 2 of C(order, k) q^k v_k): log v_2 = square, v_k = 2 e^((k-1) divergence(k)) beyond."""
    binomials, log_rate = log_binomials(order), math.log(rate)

    def log_value(k: int) -> float:
        return square if k == 2 else math.log(2) + (k - 1) * divergence(k)

    return log_one_plus(sum_up(binomials[k], k * log_rate, log_value(k)) for k in range(2, order + 1))


def interpolate(order: float, log_moment: Callable[[int], float]) -> float:
    """The divergence of a real order from log-moments of whole orders.

    Guarantee:
        The log-moment is convex in the order and zero at 1 (Hölder), so between whole orders it is below the chord.

    >>> interpolate(2.5, lambda k: k * (k - 1) / 2.0)
    1.333...
    """
    low, high = math.floor(order), math.ceil(order)
    first = log_moment(low) if low > 1 else 0.0
    if low == high:
        return bound_above(first / (order - 1))
    share = order - low
    return bound_above(((1 - share) * first + share * log_moment(high)) / (order - 1))
