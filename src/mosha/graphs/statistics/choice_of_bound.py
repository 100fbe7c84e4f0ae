"""How far to cut: a bound is chosen privately so that what is lost and the noise that is needed balance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.noise import permute_and_flip_choice

__all__ = ["BALANCE", "BALANCE_SHARE", "CHOICE_SHARE", "PENALTY", "balanced_bound", "choose_bound", "powers_of_two"]

CHOICE_SHARE = 0.4
"""The part of epsilon that pays for the choice."""

PENALTY = 10
"""A larger bound must gain so many scales of its noise; found by trial on public graphs, no matter for privacy."""

BALANCE_SHARE = 0.2
"""The part of epsilon that pays for a choice by `balanced_bound`."""

BALANCE = 3
"""Where `balanced_bound` stops, in square roots of the bound; found by trial on public graphs like `PENALTY`."""

_FINE = 1 << 20
_LOWEST = -(1 << 62)


def powers_of_two(most: int) -> tuple[int, ...]:
    """1, 2, 4, ... up to `most`.

    >>> powers_of_two(10)
    (1, 2, 4, 8)
    """
    return tuple(1 << k for k in range(most.bit_length()))


def choose_bound(values: Sequence[int], steps: Sequence[int], *, epsilon: float, noise: float, rng: Rng) -> int:
    """The index of a bound by the generalised exponential mechanism (Raskhodnikova and Smith 2016).

    `values[i]` is the statistic cut at bound i, `steps[i]` how far one unit moves it, `noise` the epsilon that will
    pay for its noise.

    Guarantee:
        epsilon-differential privacy, if adding a unit raises values[i] by 0 to steps[i]. Losses l_i = c steps_i -
        values_i, c public. l_i - l_j then moves by something in [-steps_i, steps_j]: by at most max(steps_i, steps_j),
        over which it is divided (their sum is not needed). So every quotient, its floor on a grid of 2**-20 (as 1 is on
        that grid), and the largest over j move by at most 1: permute-and-flip with scale 2 / epsilon.

    Units:
        `values` and `steps` are in the unit of the statistic.

    >>> from mosha.noise import SeededRandom
    >>> choose_bound([10, 5000, 5001], [1, 8, 64], epsilon=1, noise=1, rng=SeededRandom(1))
    1
    """
    if len(values) != len(steps) or not values or min(steps) < 1:
        raise InvalidParameter("graphs.bound_steps", parameter="steps")
    weight = PENALTY / Fraction(noise)
    losses = [weight * step - value for value, step in zip(values, steps, strict=True)]
    scores = [
        -max((loss - other) * _FINE // max(step, far) for other, far in zip(losses, steps, strict=True))
        for loss, step in zip(losses, steps, strict=True)
    ]
    return permute_and_flip_choice([max(int(s), _LOWEST) for s in scores], 2 * _FINE / Fraction(epsilon), rng=rng)


def balanced_bound(values: Sequence[int], steps: Sequence[int], *, epsilon: float, noise: float, rng: Rng) -> int:
    """The index of the bound at which what a larger one adds falls to what its noise would cost a distribution.

    The arguments are those of `choose_bound`. Bound i adds up to g_i = max over j > i of (values_j - values_i) /
    steps_j, which falls as bounds grow; noise that is averaged over neighboring degrees grows like their square root:
    the bound is taken where g_i and BALANCE sqrt(steps_i) / noise cross.

    Guarantee:
        epsilon-differential privacy, if adding a unit raises values[i] by 0 to steps[i] and steps do not fall. Then
        values_j - values_i moves by something in [-steps_i, steps_j], its quotient by at most 1, and so do the
        floor of that on a grid of 2**-20 (1 is on it), the largest of them and 0, and its distance from a public
        number on the grid: permute-and-flip with scale 2 / epsilon.

    Units:
        `values` and `steps` are in the unit of the statistic.

    >>> from mosha.noise import SeededRandom
    >>> balanced_bound([1000, 2000, 2000, 2000], [1, 2, 400, 900], epsilon=1, noise=1, rng=SeededRandom(1))
    1
    """
    if len(values) != len(steps) or not values or min(steps) < 1 or list(steps) != sorted(steps):
        raise InvalidParameter("graphs.bound_steps_rising", parameter="steps")
    scores = []
    for i, (value, step) in enumerate(zip(values, steps, strict=True)):
        larger = zip(values[i + 1 :], steps[i + 1 :], strict=True)
        gain = max([0, *((other - value) * _FINE // far for other, far in larger)])
        scores.append(max(-abs(gain - int(BALANCE * math.sqrt(step) / noise * _FINE)), _LOWEST))
    return permute_and_flip_choice(scores, 2 * _FINE / Fraction(epsilon), rng=rng)
