"""Rényi divergences of events on a random sample: Poisson, and fixed-size with or without replacement.

A sample hides a unit twice: by the noise, and by the chance that it was not drawn. Every bound here is proved in
`subsampling.md`; where several hold, the least is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mosha.accounting.measures import gaussian, mixture, pure
from mosha.accounting.measures.group import cover_group
from mosha.accounting.numerics.price import Cost, add_up, bound_above, divide_up, most_expensive, times_up
from mosha.core.event import NOTHING, Event
from mosha.core.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Failure,
    FixedSizeSampled,
    Gaussian,
    Group,
    Laplace,
    Matrix,
    Parallel,
    Pure,
    RandomizedResponse,
    Sampled,
    Tree,
)
from mosha.core.unit import Neighbors

__all__ = ["Cover", "cover", "fixed_size", "poisson"]

CostOf = Callable[[Event, float], Cost]

_SYMMETRIC = (Gaussian, DiscreteGaussian, Matrix, Tree, Laplace, DiscreteLaplace, RandomizedResponse, Pure)
_GAUSSIAN = (Gaussian, Matrix, Tree)
HIGHEST = 2048  # beyond this order sums over all lower ones are no longer worth their time


@dataclass(frozen=True)
class Cover:
    """An event whose worst pair is symmetric, that covers another one but for a probability `delta`."""

    event: Event
    delta: float = 0.0

    @property
    def mu(self) -> float | None:
        """Its mu, if all of it is Gaussian noise."""
        parts = [part for part, _ in self.event.parts()]
        if all(isinstance(p, _GAUSSIAN) and getattr(p, "noise", "gaussian") == "gaussian" for p in parts):
            return gaussian.mu(self.event)[0]
        return None


def cover(event: Event) -> Cover | None:
    """What covers `event` and has a worst pair that a reflection swaps; None where no such pair is known.

    >>> cover(Gaussian(2) + Failure(Laplace(3), 1e-9))
    Cover(event=Gaussian(noise_multiplier=2.0) + Laplace(noise_multiplier=3.0), delta=1e-09)
    """
    covered: Event = NOTHING
    delta = 0.0
    for part, count in event.parts():
        one = _cover_of_part(part)
        if one is None:
            return None
        covered = covered + one.event * count
        delta = add_up(delta, times_up(one.delta, count))
    return Cover(covered, min(1.0, delta))


def _cover_of_part(part: Event) -> Cover | None:
    if isinstance(part, _SYMMETRIC):
        return Cover(part)
    if isinstance(part, Failure):
        inner = cover(part.event)
        return None if inner is None else Cover(inner.event, pure.add_failure(part.probability, inner.delta))
    if isinstance(part, Group) and (whole := cover_group(part.event, part.size)) is not None:
        return cover(whole)
    epsilon, delta = pure.approx(part)
    return Cover(Pure(epsilon), delta) if math.isfinite(epsilon) else None


def poisson(event: Sampled, order: float, cost_of: CostOf) -> Cost:
    """Divergence and delta of `event`, the larger of both directions."""
    inner, rate, replaced = event.event, event.rate, event.neighbors is Neighbors.REPLACE_ONE
    if rate == 1:
        return cost_of(inner, order)
    if isinstance(inner, Parallel):
        return most_expensive([cost_of(Sampled(e, rate, event.neighbors), order) for e in inner.events])
    if isinstance(inner, Sampled) and not replaced and inner.neighbors is Neighbors.ADD_REMOVE:
        return cost_of(Sampled(inner.event, min(1.0, bound_above(inner.rate * rate))), order)
    return _choose_cheapest(_bounds(event, inner, rate, order, cost_of, replaced=replaced))


def fixed_size(event: FixedSizeSampled, order: float, cost_of: CostOf) -> Cost:
    """Divergence and delta of `event`, where one unit is replaced by another."""
    if event.replacement:
        return _price_with_replacement(event, order, cost_of)
    if event.size == event.population:
        return cost_of(event.event, order)
    rate = divide_up(event.size, event.population)
    return _choose_cheapest(_bounds(event, event.event, rate, order, cost_of, replaced=True))


def _choose_cheapest(costs: list[Cost]) -> Cost:
    return min(costs, key=lambda cost: (cost.amount, cost.delta))


def _bounds(event: Event, inner: Event, rate: float, order: float, cost_of: CostOf, *, replaced: bool) -> list[Cost]:
    """All that is known: amplified (epsilon, delta); never more than unsampled; covers; divergences alone."""
    epsilon, delta = pure.approx(event)
    costs = [Cost(cost_of(Pure(epsilon), order).amount if math.isfinite(epsilon) else math.inf, delta)]
    whole = cost_of(inner, order)
    costs.append(Cost(whole.amount, min(1.0, bound_above(whole.delta * rate))))
    known = cover(inner)
    if order > (HIGHEST if known is not None and known.mu is not None else HIGHEST / 4):
        return costs
    if known is not None:
        amount = _cover_divergence(known, rate, order, cost_of, replaced=replaced)
        costs.append(Cost(amount, min(1.0, bound_above(known.delta * rate))))
    if known is None or known.event != inner:
        alone = mixture.replaced_by_divergence if replaced else mixture.added_by_divergence
        divergence = lambda k: _amount_without_delta(cost_of(inner, float(k)))
        costs.append(Cost(mixture.interpolate(order, lambda k: alone(k, rate, divergence))))
    return costs


def _cover_divergence(known: Cover, rate: float, order: float, cost_of: CostOf, *, replaced: bool) -> float:
    if (mu := known.mu) is not None:
        from mosha.accounting.measures.sampled_gaussian import (  # noqa: PLC0415  (NumPy only where it is needed)
            sampled_gaussian,
            sampled_gaussian_replaced,
        )

        return (sampled_gaussian_replaced if replaced else sampled_gaussian)(mu, rate, order)
    divergence = lambda k: cost_of(known.event, float(k)).amount
    bound = mixture.replaced_log_moment if replaced else mixture.added_log_moment
    return mixture.interpolate(order, lambda k: bound(k, rate, divergence))


def _amount_without_delta(cost: Cost) -> float:
    return cost.amount if cost.delta == 0 else math.inf


def _price_with_replacement(event: FixedSizeSampled, order: float, cost_of: CostOf) -> Cost:
    """The unit is drawn c times, c binomial; more than a few times only with a probability that goes into delta."""
    epsilon, delta = pure.approx(event)
    costs = [Cost(cost_of(Pure(epsilon), order).amount if math.isfinite(epsilon) else math.inf, delta)]
    log_never = event.size * math.log1p(-1 / event.population) if event.population > 1 else -math.inf
    rate = min(1.0, bound_above(-math.expm1(log_never)))
    draws, rare = _draws(event.size, event.population) if rate < 1 else ([], 0.0)
    if not draws or order > HIGHEST / 16:
        return _choose_cheapest([*costs, cost_of(Group(event.event, event.size), order)])

    def divergence(k: int) -> float:
        logs = [x + (k - 1) * _amount_without_delta(cost_of(Group(event.event, c), float(k))) for c, x in draws]
        if math.isinf(top := max(logs)):
            return math.inf
        total = top + math.log(math.fsum(math.exp(x - top) for x in logs)) - math.log(rate * (1 - 1e-12))
        return max(0.0, bound_above(total, scale=sum(map(abs, (top, draws[-1][1], 1.0)))) / (k - 1))

    alone = lambda k: mixture.replaced_by_divergence(k, rate, divergence)
    return _choose_cheapest([*costs, Cost(mixture.interpolate(order, alone), rare)])


RARE = 2.0**-100


def _draws(size: int, population: int) -> tuple[list[tuple[int, float]], float]:
    """How often a unit is drawn, with the logarithms of the probabilities; and the probability of more than that.

    Successive probabilities beyond the last entry fall at least by half, so their sum is below twice the first.
    """
    log_rest = math.log1p(-1 / population)
    draws: list[tuple[int, float]] = []
    for c in range(1, size + 1):
        choose = math.lgamma(size + 1) - math.lgamma(c + 1) - math.lgamma(size - c + 1)
        log_probability = choose - c * math.log(population) + (size - c) * log_rest
        if log_probability < math.log(RARE) - 1 and size - c <= (c + 1) * (population - 1) / 2:
            return draws, RARE
        draws.append((c, log_probability))
    return draws, 0.0
