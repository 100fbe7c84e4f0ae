"""How many runs a private search makes: a random number, drawn exactly, that nobody learns."""

from __future__ import annotations

from fractions import Fraction

from mosha.accounting.measures.selection import stopping_probability
from mosha.core.events import Selected
from mosha.core.measurement import Rng
from mosha.noise import bernoulli

__all__ = ["number_of_runs"]


def number_of_runs(event: Selected, *, rng: Rng | None = None) -> int:
    """A draw from the distribution of the number of runs that `event` prices.

    Guarantee:
        Exact, by rejection: a proposal k is kept with a rational probability that a coin throws exactly.
        Poisson of mean m: proposals (m / (m+1))^k / (m+1), weight (m+1)^k / k! over its largest value. Truncated
        negative binomial with shape s <= 1: proposals like (1 - gamma)^k, weight prod_(0<l<k) (l + s) / (l + 1) <= 1;
        gamma is rounded up, so the mean is at most the one that is priced, and the price grows with the mean.

    >>> from mosha.core.events import Gaussian
    >>> number_of_runs(Selected(Gaussian(1), mean=1))
    1
    """
    if event.distribution == "poisson":
        return _poisson(Fraction(event.mean), rng)
    return _negative_binomial(Fraction(event.mean), Fraction(event.shape), rng)


def _poisson(mean: Fraction, rng: Rng | None) -> int:
    again = mean / (mean + 1)
    peak = int(mean + 1)  # (m + 1)^k / k! grows while k <= m + 1
    while True:
        proposed = 0
        while bernoulli(again, rng=rng):
            proposed += 1
        if bernoulli(_poisson_weight(mean + 1, proposed, peak), rng=rng):
            return proposed


def _poisson_weight(ratio: Fraction, proposed: int, peak: int) -> Fraction:
    """(ratio^k / k!) / (ratio^peak / peak!)."""
    weight = Fraction(1)
    for k in range(min(proposed, peak) + 1, max(proposed, peak) + 1):
        weight *= ratio / k if proposed > peak else k / ratio
    return weight


def _negative_binomial(mean: Fraction, shape: Fraction, rng: Rng | None) -> int:
    if mean == 1:
        return 1
    gamma = 1 / mean if shape == 1 else _above(stopping_probability(float(mean), float(shape)))
    while True:
        runs = 1
        while not bernoulli(gamma, rng=rng):
            runs += 1
        weight = Fraction(1)
        for k in range(1, runs):
            weight *= (k + shape) / (k + 1)
        if shape == 1 or bernoulli(weight, rng=rng):
            return runs


def _above(gamma: float) -> Fraction:
    return min(Fraction(1), Fraction(gamma) * (1 + Fraction(1, 10**12)))
