"""Which kind of noise the sums of a release have: the pure one or the Gaussian, by their predicted errors."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mosha.core.budget import Budget
from mosha.tables.mechanisms.joint_noise import BoxNoise, GaussianNoise
from mosha.tables.mechanisms.shares import noise_multiplier, pure_epsilon
from mosha.tables.parts.additive import Additive
from mosha.tables.parts.part import Frame
from mosha.tables.parts.sums import find_limits, is_shared, values_of

__all__ = ["compares_noises", "prefers_gaussian"]

TOO_FEW = 8
"""In so many groups Gaussian noise cannot be better than the pure kind."""

TYPICAL = 50
"""Rows of a person with much, where nothing is known before the bound is bought."""

FILLED = 0.5
"""The share of groups that such a person is in: evenly in all of them would flatter Gaussian noise."""


def compares_noises(frame: Frame, aggregates: Mapping[str, Additive], budget: Budget) -> bool:
    """Whether pure and Gaussian noise are compared when the bound is known, and not before.

    Norms of order 1 are at most sqrt(groups) times those of order 2: in few groups the pure kind always wins.
    """
    limits = find_limits(frame, values_of(aggregates))
    possible = budget.epsilon is not None and budget.delta > 0 and not limits.twice
    return possible and limits.automatic and frame.most_groups > TOO_FEW


def prefers_gaussian(frame: Frame, aggregates: Mapping[str, Additive], budget: Budget, share: float) -> bool:
    """Whether Gaussian noise has the smaller predicted error, this share of the budget being spent on either."""
    if not budget.allows_gaussian:
        return False
    if budget.epsilon is None:
        return True
    values = values_of(aggregates)
    limits = find_limits(frame, values)
    shape = (len(values), frame.most_groups, is_shared(frame, aggregates, values, limits))
    box = BoxNoise(pure_epsilon(budget, share), *shape)
    gaussian = GaussianNoise(noise_multiplier(budget, share, gaussian=share), *shape)
    if limits.automatic:
        together = math.sqrt(TYPICAL + TYPICAL**2 / max(1.0, frame.most_groups * FILLED))
        return gaussian.deviation(together) < box.deviation(TYPICAL)
    reach = [limits.reach(list(values.values()), order, limits.norm, split=frame.split)[0] for order in (1, 2)]
    return gaussian.deviation(reach[1]) < box.deviation(reach[0])
