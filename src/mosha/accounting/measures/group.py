"""What an event is for a group of units: the same noise against a larger sensitivity."""

from __future__ import annotations

from functools import singledispatch

from mosha.accounting.numerics.price import divide_up, times_up
from mosha.core.event import Event, compose
from mosha.core.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Group,
    Laplace,
    Matrix,
    Pure,
    RandomizedResponse,
    Shuffled,
    SparseVector,
    Tree,
    ZeroConcentrated,
)

__all__ = ["cover_group"]


@singledispatch
def cover_group(event: Event, size: int) -> Event | None:
    """An event without `Group` that covers `Group(event, size)`; None where there is no closed form.

    Guarantee:
        Changing one unit after the other, `size` of them move an additive statistic by at most `size` times its
        sensitivity (l1, l2 or the range of a score), so the same noise has a multiplier smaller by that factor.
        What is pure or zero-concentrated grows by k or k^2 (Bun and Steinke 2016, proposition 1.9).

    >>> cover_group(Gaussian(10), 2), cover_group(Laplace(10) + Pure(0.5), 5)
    (Gaussian(noise_multiplier=5.0), Pure(epsilon=2.5) + Laplace(noise_multiplier=2.0))
    """
    if len(event.parts()) == 1 and event.parts()[0] == (event, 1):
        return None
    parts = [(cover_group(part, size), count) for part, count in event.parts()]
    known = [(part, count) for part, count in parts if part is not None]
    return compose(known) if len(known) == len(parts) else None


def _shrink(multiplier: float, size: int) -> float:
    return -divide_up(-multiplier, size)


@cover_group.register
def _(event: Laplace, size: int) -> Event:
    return Laplace(_shrink(event.noise_multiplier, size))


@cover_group.register
def _(event: Gaussian, size: int) -> Event:
    return Gaussian(_shrink(event.noise_multiplier, size))


@cover_group.register
def _(event: DiscreteLaplace, size: int) -> Event:
    steps = 1 if event.sensitivity == 1 else event.sensitivity * size  # 1 also stands for vectors: keep its meaning
    return DiscreteLaplace(_shrink(event.noise_multiplier, size), steps)


@cover_group.register
def _(event: DiscreteGaussian, size: int) -> Event:
    multiplier = _shrink(event.noise_multiplier, size)
    return DiscreteGaussian(multiplier, event.sensitivity * size, event.coordinates)


@cover_group.register
def _(event: Matrix, size: int) -> Event:
    return Matrix(_shrink(event.noise_multiplier, size), event.sensitivity)


@cover_group.register
def _(event: Tree, size: int) -> Event:
    return Tree(_shrink(event.noise_multiplier, size), event.levels, event.noise)


@cover_group.register(RandomizedResponse)
@cover_group.register(Shuffled)
@cover_group.register(Pure)
def _(event: RandomizedResponse | Shuffled | Pure, size: int) -> Event:
    return Pure(times_up(event.epsilon, size))


@cover_group.register
def _(event: Exponential, size: int) -> Event:
    return Exponential(times_up(event.epsilon, size))


@cover_group.register
def _(event: SparseVector, size: int) -> Event:
    return SparseVector(times_up(event.threshold_epsilon, size), times_up(event.answer_epsilon, size), event.alarms)


@cover_group.register
def _(event: ZeroConcentrated, size: int) -> Event:
    return ZeroConcentrated(times_up(event.rho, size * size))


@cover_group.register
def _(event: Group, size: int) -> Event | None:
    return cover_group(event.event, event.size * size)
