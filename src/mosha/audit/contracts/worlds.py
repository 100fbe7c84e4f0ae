"""Two explicit worlds for an event: what an attacker sees in each, written down without the accountant.

A world pair is a mechanism that really exists and that the event pays for, on two neighboring data sets. Its
answers can be drawn, and the privacy loss ln(p / q) of each answer is known in closed form, so that what it leaks can
be measured against any price, by arithmetic that shares nothing with `mosha.accounting`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosha.core import events
from mosha.core.event import Event

__all__ = ["Worlds", "worlds_of"]

Floats = NDArray[np.float64]
Generator = np.random.Generator


@dataclass(frozen=True)
class Worlds:
    """`losses(size, first, rng)`: ln(p / q) of so many answers, drawn from p (first) or from q."""

    losses: Callable[[int, bool, Generator], Floats]

    def swap(self) -> Worlds:
        return Worlds(lambda size, first, rng: -self.losses(size, not first, rng))

    def repeat(self, count: int) -> Worlds:
        def losses(size: int, first: bool, rng: Generator) -> Floats:  # noqa: FBT001  (one signature for all)
            total = np.zeros(size)
            for _ in range(count):
                total += self.losses(size, first, rng)
            return total

        return Worlds(losses)

    def beside(self, other: Worlds) -> Worlds:
        return Worlds(lambda size, first, rng: self.losses(size, first, rng) + other.losses(size, first, rng))

    def mix(self, rate: float) -> Worlds:
        """With probability `rate` an answer comes from p, else from q; the other world is q."""

        def losses(size: int, first: bool, rng: Generator) -> Floats:  # noqa: FBT001
            from_p, from_q = self.losses(size, True, rng), self.losses(size, False, rng)
            drawn = np.where(rng.random(size) < rate, from_p, from_q) if first else from_q
            return np.logaddexp(math.log(rate) + drawn, math.log1p(-rate)) if rate < 1 else drawn

        return Worlds(losses)


def worlds_of(event: Event) -> Worlds | None:
    """An explicit pair for the event; None where none is written down here.

    >>> rng = np.random.default_rng(1)
    >>> sorted({round(float(loss), 6) for loss in worlds_of(events.Pure(1.0)).losses(99, True, rng)})
    [-1.0, 1.0]
    """
    parts = event.parts()
    if len(parts) != 1 or parts[0][1] != 1:
        return _compose(parts)
    return _additive(event) or _finite(event) or _unwrap(event)


def _compose(parts: tuple[tuple[Event, int], ...]) -> Worlds | None:
    whole: Worlds | None = Worlds(lambda size, _first, _rng: np.zeros(size))
    for part, count in parts:
        single = worlds_of(part)
        if whole is None or single is None:
            return None
        whole = whole.beside(_many(part, count) or single.repeat(count))
    return whole


def _many(event: Event, count: int) -> Worlds | None:
    """Gaussian noise many times over is Gaussian noise on one long vector: drawn at once."""
    return _normal(math.sqrt(count) / event.noise_multiplier) if isinstance(event, events.Gaussian) else None


def _normal(mu: float) -> Worlds:
    """N(mu, 1) against N(0, 1): the loss of x is mu x - mu^2 / 2."""
    return Worlds(lambda size, first, rng: mu * (rng.standard_normal(size) + (mu if first else 0.0)) - mu * mu / 2)


def _additive(event: Event) -> Worlds | None:  # noqa: PLR0911  (a table of cases)
    match event:
        case events.Gaussian(multiplier):
            return _normal(1 / multiplier)
        case events.Matrix(multiplier, sensitivity):
            return _normal(sensitivity / multiplier)
        case events.Tree(multiplier, levels, "gaussian"):
            return _normal(math.sqrt(levels) / multiplier)
        case events.Laplace(multiplier):
            return Worlds(lambda size, first, rng: _laplace(rng.laplace(float(first), multiplier, size), multiplier))
        case events.Tree(multiplier, levels, _):
            return worlds_of(events.Laplace(multiplier) * levels)
        case events.DiscreteLaplace(multiplier, sensitivity):
            scale = multiplier * sensitivity
            return _lattice(lambda x: -np.abs(x) / scale, scale, sensitivity)
        case events.DiscreteGaussian(multiplier, sensitivity, _):
            scale, shift = multiplier * sensitivity, max(1, math.floor(sensitivity))
            return _lattice(lambda x: -(x**2) / (2 * scale**2), scale, shift)
    return None


def _laplace(x: Floats, scale: float) -> Floats:
    return (np.abs(x) - np.abs(x - 1)) / scale


def _lattice(log_weight: Callable[[Floats], Floats], scale: float, shift: int) -> Worlds:
    """Noise on the integers, on a statistic that moves by `shift` of them."""
    reach = math.ceil(45 * scale) + shift
    places = np.arange(-reach, reach + 1, dtype=np.float64)
    law = np.exp(log_weight(places))
    below = np.cumsum(law / law.sum())

    def losses(size: int, first: bool, rng: Generator) -> Floats:  # noqa: FBT001
        noise = places[np.minimum(np.searchsorted(below, rng.random(size), "right"), len(places) - 1)]
        answer = noise + (shift if first else 0)
        return log_weight(answer - shift) - log_weight(answer)

    return Worlds(losses)


def _table(p: object, q: object) -> Worlds:
    """Two laws on the same few answers. An answer that only one world gives has an infinite loss."""
    one, two = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    ever = (one > 0) | (two > 0)
    one, two = one[ever], two[ever]
    with np.errstate(divide="ignore"):
        loss = np.log(one) - np.log(two)

    def losses(size: int, first: bool, rng: Generator) -> Floats:  # noqa: FBT001
        drawn = rng.choice(len(loss), size, p=one if first else two)
        return np.asarray(loss[drawn], dtype=np.float64)

    return Worlds(losses)


def _coin(epsilon: float) -> tuple[float, float]:
    """(lie, truth) of randomized response."""
    lie = 1 / (1 + math.exp(epsilon))
    return lie, 1 - lie


def _finite(event: Event) -> Worlds | None:  # noqa: PLR0911  (a table of cases)
    match event:
        case events.Pure(epsilon) | events.RandomizedResponse(epsilon, 2):
            lie, truth = _coin(epsilon)
            return _table([truth, lie], [lie, truth])
        case events.RandomizedResponse(epsilon, categories):
            other = 1 / (math.exp(epsilon) + categories - 1)
            truth, rest = math.exp(epsilon) * other, (categories - 2) * other
            return _table([truth, other, rest], [other, truth, rest])
        case events.Exponential(epsilon):  # two labels, scores (0, 0) and (span, 0)
            lie, truth = _coin(epsilon / 2)
            return _table([truth, lie], [lie, truth])
        case events.Approx(epsilon, delta):
            lie, truth = _coin(epsilon)
            p, q = (
                [delta, truth * (1 - delta), lie * (1 - delta), 0],
                [0, lie * (1 - delta), truth * (1 - delta), delta],
            )
            return _table(p, q)
        case events.Shuffled(epsilon, people):
            return _shuffle_worlds(epsilon, people)
        case events.Selected(events.RandomizedResponse(epsilon, 2), mean, distribution, shape):
            lie, truth = _coin(epsilon)
            generating = _number_of_runs(mean, distribution, shape)
            return _table(
                *([generating(0), generating(bad) - generating(0), 1 - generating(bad)] for bad in (truth, lie))
            )
    return None


def _shuffle_worlds(epsilon: float, people: int) -> Worlds:
    """Everybody answers no but one; binary randomized response; the shuffler leaves the number of yeses."""
    from scipy.stats import binom  # noqa: PLC0415  (loaded when it is needed)

    lie, truth = _coin(epsilon)
    others = np.concatenate([binom.pmf(np.arange(people), people - 1, lie), [0.0]])
    shifted = np.concatenate([[0.0], others[:-1]])
    worlds = [others * (1 - yes) + shifted * yes for yes in (truth, lie)]
    return _table(*(law / law.sum() for law in worlds))


def _number_of_runs(mean: float, distribution: str, shape: float) -> Callable[[float], float]:
    """The function z -> E[z^K]: with it, the chance that none of K runs is a success."""
    if distribution == "poisson":
        return lambda z: math.exp(mean * (z - 1))
    gamma = _success(mean, shape)
    if shape == 0:
        return lambda z: math.log1p(-(1 - gamma) * z) / math.log(gamma)
    return lambda z: ((1 - (1 - gamma) * z) ** -shape - 1) / (gamma**-shape - 1)


def _success(mean: float, shape: float) -> float:
    """The gamma with which the truncated negative binomial of this shape has this mean."""
    low, high = 1e-12, 1 - 1e-12
    for _ in range(200):
        gamma = math.sqrt(low * high)
        expected = (
            (1 / gamma - 1) / math.log(1 / gamma) if shape == 0 else shape * (1 - gamma) / (gamma * (1 - gamma**shape))
        )
        low, high = (gamma, high) if expected > mean else (low, gamma)
    return gamma


def _unwrap(event: Event) -> Worlds | None:  # noqa: PLR0911  (a table of cases)
    match event:
        case events.Sampled(inner, rate, _):
            base = worlds_of(inner)
            return base and base.mix(rate)
        case events.FixedSizeSampled(inner, size, population, replaced) if not replaced or size == 1:
            base = worlds_of(inner)
            return base and base.mix(size / population)
        case events.Failure(inner, probability):
            base = worlds_of(inner)
            return base and _failing(base, probability)
        case events.Plan(inner, _):
            return worlds_of(inner)
        case events.Group(events.Gaussian(multiplier), size):
            return _normal(size / multiplier)
        case events.Group(events.Laplace(multiplier), size):
            return worlds_of(events.Laplace(multiplier / size))
        case events.Parallel(inside):  # somebody is in the first part
            return worlds_of(inside[0])
    return None


def _failing(base: Worlds, probability: float) -> Worlds:
    def losses(size: int, first: bool, rng: Generator) -> Floats:  # noqa: FBT001
        told = rng.random(size) < probability
        return np.where(told, math.inf if first else -math.inf, base.losses(size, first, rng))

    return Worlds(losses)
