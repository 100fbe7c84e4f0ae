"""Exact curves in fifty digits: what bounds are measured against."""

from typing import Any

import mpmath as mp

mp.mp.dps = 50


def normal_tail(x: Any) -> Any:
    return mp.erfc(x / mp.sqrt(2)) / 2


def gaussian_delta(mu: Any, epsilon: Any) -> Any:
    """Balle and Wang 2018."""
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    return normal_tail(epsilon / mu - mu / 2) - mp.exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


def laplace_delta(width: Any, epsilon: Any) -> Any:
    width, epsilon = mp.mpf(width), mp.mpf(epsilon)
    if epsilon >= width:
        return mp.mpf(0)
    return 1 - mp.exp((epsilon - width) / 2) if epsilon >= -width else 1 - mp.exp(epsilon)


def coins_delta(epsilon0: Any, count: Any, epsilon: Any) -> Any:
    """`count` randomized responses: a binomial sum (Kairouz, Oh, Viswanath 2017)."""
    epsilon0, epsilon = mp.mpf(epsilon0), mp.mpf(epsilon)
    truth = 1 / (1 + mp.exp(-epsilon0))
    masses = (mp.binomial(count, j) * truth**j * (1 - truth) ** (count - j) for j in range(count + 1))
    return atoms_delta((((2 * j - count) * epsilon0, mass) for j, mass in enumerate(masses)), epsilon)


def sampled_delta(inner: Any, rate: Any, epsilon: Any) -> Any:
    """A unit is removed from a Poisson sample; `inner` is the curve without sampling."""
    t = mp.exp(mp.mpf(epsilon))
    scaled = (t - 1 + rate) / mp.mpf(rate)
    return rate * inner(mp.log(scaled)) if scaled > 0 else 1 - t


def atoms_delta(atoms: Any, epsilon: Any) -> Any:
    """A law given as (loss, mass); the loss may be infinite."""
    epsilon = mp.mpf(epsilon)
    return mp.fsum(
        mass if loss == mp.inf else mass * (1 - mp.exp(epsilon - loss)) for loss, mass in atoms if loss > epsilon
    )


def discrete_gaussian_atoms(sigma: Any, move: Any) -> list[Any]:
    reach = int(40 * sigma) + move
    weights = {x: mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2)) for x in range(-reach, reach + 1)}
    total = mp.fsum(weights.values())
    return [((mp.mpf(move) ** 2 - 2 * x * move) / (2 * mp.mpf(sigma) ** 2), w / total) for x, w in weights.items()]


def discrete_laplace_atoms(scale: Any, move: Any) -> list[Any]:
    alpha = mp.exp(-1 / mp.mpf(scale))
    masses = [1, *((1 - alpha) * alpha**j for j in range(1, move)), alpha**move]
    return [((move - 2 * j) / mp.mpf(scale), mass / (1 + alpha)) for j, mass in enumerate(masses)]


def composed(first: Any, second: Any) -> list[Any]:
    """The law of the sum of two losses."""
    sums: dict[Any, Any] = {}
    for (x, p), (y, q) in ((a, b) for a in first for b in second):
        sums[x + y] = sums.get(x + y, mp.mpf(0)) + p * q
    return list(sums.items())
