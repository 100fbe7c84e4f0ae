"""Rényi divergences in closed form, without cancellation, rounded up.

Each is log(1 + excess) / (order - 1), where the excess of the moment E[L^order] over 1 is written as a sum of
non-negative terms; derivations are in `renyi.md`.
"""

from __future__ import annotations

import math

from mosha.accounting.numerics.price import bound_above

__all__ = ["bounded_range", "discrete_laplace", "exponential_beyond_linear", "laplace", "randomized_response"]

LARGE = 600.0  # e^600 is still a float, with room


def exponential_beyond_linear(x: float) -> float:
    """e^x - 1 - x, without cancellation.

    >>> exponential_beyond_linear(1e-9)
    5.00000000...e-19
    """
    if abs(x) > 0.5:
        return math.expm1(x) - x
    total, term = 0.0, x
    for k in range(2, 20):
        term *= x / k
        total += term
    return total


def sinh_beyond_linear(x: float) -> float:
    """sinh(x) - x, without cancellation.

    >>> round(sinh_beyond_linear(1e-3) * 6e9, 6)
    1.0
    """
    if abs(x) > 1:
        return math.sinh(x) - x
    total, term = 0.0, x
    for k in range(3, 25, 2):
        term *= x * x / (k * (k - 1))
        total += term
    return total


def randomized_response(epsilon: float, order: float, categories: int = 2) -> float:
    """The divergence of randomized response; with two categories, of the worst mechanism that is epsilon-private.

    >>> round(randomized_response(1.0, 2.0), 9)
    0.735...
    """
    if math.isinf(epsilon):
        return math.inf
    e, a, others = epsilon, order, categories - 1
    if a * e < 40:
        slope = 4 * math.exp(-e / 2) / (1 + others * math.exp(-e))
        excess = slope * math.sinh(a * e / 2) * math.sinh((a - 1) * e / 2)
        return min(e, bound_above(math.log1p(excess) / (a - 1)))
    rest = math.log1p(math.exp((1 - 2 * a) * e) + (others - 1) * math.exp(-a * e))
    lost = math.log1p(others * math.exp(-e))
    return min(e, bound_above(e + (rest - lost) / (a - 1), scale=e + (rest + lost) / (a - 1)))


def laplace(epsilon: float, order: float) -> float:
    """The divergence of Laplace noise (Mironov 2017, proposition 6).

    >>> round(laplace(0.5, 8.0), 9)
    0.410267882
    """
    return _two_sided(epsilon, order, order / (2 * order - 1), (order - 1) / (2 * order - 1), 0.0)


def discrete_laplace(epsilon: float, steps: int, order: float) -> float:
    """The divergence of discrete Laplace noise of scale steps / epsilon against a shift by `steps`.

    With one step it is that of randomized response, with many it tends to that of Laplace noise.

    >>> discrete_laplace(1.0, 1, 2.0) == randomized_response(1.0, 2.0), round(discrete_laplace(0.5, 10**6, 8.0), 9)
    (True, 0.410267882)
    """
    worst = randomized_response(epsilon, order)
    if steps == 1:
        return worst
    up, down, linear = _lattice(epsilon / steps, order)
    return min(worst, _two_sided(epsilon, order, up, down, epsilon * linear))


def _lattice(h: float, a: float) -> tuple[float, float, float]:
    """sinh(a h), sinh((a-1) h) and (a-1) sinh(a h) - a sinh((a-1) h), each over 2 cosh(h/2) sinh((a-1/2) h)."""
    if a * h <= 2:
        base = 2 * math.cosh(h / 2) * math.sinh((a - 0.5) * h)
        linear = (a - 1) * sinh_beyond_linear(a * h) - a * sinh_beyond_linear((a - 1) * h)
        return math.sinh(a * h) / base, math.sinh((a - 1) * h) / base, linear / base
    base = (1 + math.exp(-h)) * -math.expm1((1 - 2 * a) * h)  # all multiplied by 2 e^(-a h)
    rising, falling = -math.expm1(-2 * a * h), -math.exp(-h) * math.expm1(-2 * (a - 1) * h)
    if a <= 2:
        linear = (a - 1) * rising - a * falling
    else:
        left = math.exp(-2 * a * h) * (a * math.expm1(h) + 1) if h < LARGE else 0.0
        linear = -a * math.expm1(-h) - 1 + left
    return rising / base, falling / base, linear / base


def _two_sided(epsilon: float, order: float, up: float, down: float, linear: float) -> float:
    """log(up e^((a-1) eps) + down e^(-a eps)) / (a - 1), up + down = 1, linear = eps ((a-1) up - a down)."""
    e, a = epsilon, order
    if (a - 1) * e < LARGE:
        excess = up * exponential_beyond_linear((a - 1) * e) + down * exponential_beyond_linear(-a * e) + linear
        return min(bound_above(e), bound_above(math.log1p(excess) / (a - 1)))
    value = e + math.log(up + down * math.exp((1 - 2 * a) * e)) / (a - 1)
    return min(bound_above(e), bound_above(value, scale=e))


def bounded_range(epsilon: float, order: float) -> float:
    """The divergence of the worst mechanism whose log-ratios span at most epsilon, as the exponential mechanism's do.

    Guarantee:
        If the ratio x lies in [c y, y], c = e^-epsilon, with mean 1, the convex x^a has its largest mean on the two
        ends: A y^(a-1) - B y^a with A = (1 - c^a) / (1 - c) and B = (c - c^a) / (1 - c); its maximum over y is
        A^a B^(1-a) (a-1)^(a-1) / a^a. With t(x) = log(sinh(x/2) / (x/2)) its logarithm is
        a t(a epsilon) - (a-1) t((a-1) epsilon) - t(epsilon), at most a (a-1) epsilon^2 / 8 (Cesar and Rogers 2021).

    >>> round(bounded_range(1.0, 2.0), 6), round(2 * 1.0**2 / 8, 6)
    (0.24..., 0.25)
    """
    e, a = epsilon, order
    terms = (a * _log_sinhc(a * e), -(a - 1) * _log_sinhc((a - 1) * e), -_log_sinhc(e))
    worst = bound_above(math.fsum(terms), scale=sum(map(abs, terms))) / (a - 1)
    return min(e, bound_above(a * e * e / 8), bound_above(worst))


def _log_sinhc(x: float) -> float:
    """log(sinh(x/2) / (x/2)) for x > 0."""
    if x > 2:
        return x / 2 + math.log1p(-math.exp(-x)) - math.log(x)
    return math.log1p(sinh_beyond_linear(x / 2) / (x / 2))
