"""Noise for counts in several groupings of the same rows at once: residuals of all groups, planned for what is asked.

The groups are all combinations of the values of some keys; a *grouping* adds them up over the keys that it leaves out.
Each residual is measured once, and all groupings are rebuilt from them, so that they agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Event, compose
from mosha.core.measurement import Rng
from mosha.core.number import strict_probability
from mosha.mechanisms.residuals.axis import Axis, flat_axis
from mosha.mechanisms.residuals.planning import Workload, best_shares
from mosha.mechanisms.residuals.residuals import ResidualNoise, Term, cells_of
from mosha.noise import LARGEST_SCALE
from mosha.tables.mechanisms.joint_noise import HELD, NoiseKind

__all__ = ["Grouping", "GroupingNoise"]

Grouping = tuple[int, ...]
"""The keys that a grouping keeps, by their places, in order."""

FINE = 1 << 12
"""Residuals are multiplied by at least so much: rounding that down costs less than one part in so many."""

RESOLUTION = 1 << 40
_SLACK = (1 + 2.0**-11) * (1 + 2.0**-30)


@dataclass(frozen=True)
class GroupingNoise:
    """Gaussian noise on the residuals of groups, from which counts in groups are rebuilt.

    Guarantee:
        For units that move channel j in group g by at most reach_j c_jg, where for each j the sum of c_jg over all
        groups is at most 1, channel j costs DiscreteGaussian(m sqrt(d)); the d channels compose to the price of one
        Gaussian of multiplier m. With `shared`, all c_jg sum to 1 at most: one Gaussian of multiplier m on all numbers.
        `grouping_noise.md`.

    Fields:
        multiplier: m.
        channels: d.
        sizes: how many values each key has.
        sets: the groupings that are asked for.
        shared: as for other noise.
        shown: the grouping whose numbers `width` and `deviation` are about; the one with the widest where None.
    """

    multiplier: float
    channels: int
    sizes: tuple[int, ...]
    sets: tuple[Grouping, ...]
    shared: bool = False
    shown: Grouping | None = None

    def __post_init__(self) -> None:
        if self._sigma > LARGEST_SCALE:
            raise InvalidParameter("tables.budget_too_small")

    @cached_property
    def _axes(self) -> tuple[Axis, ...]:
        return tuple(flat_axis(size) for size in self.sizes)

    @cached_property
    def _shares(self) -> dict[Term, float]:
        """What part of the price each residual has: the least sum of the variances of all numbers that are asked for.

        The residual of keys that have one value is zero everywhere, and is not measured.
        """
        found = best_shares(Workload(self._axes, self.sets, (1.0,) * len(self.sets)))
        return {term: share for term, share in found.items() if share > 0}

    @property
    def _each(self) -> float:
        return self.multiplier * math.sqrt(1 if self.shared else max(1, self.channels)) * (1 + 2.0**-30)

    @cached_property
    def _resolution(self) -> int:
        """As fine as noise can be drawn."""
        return min(RESOLUTION, 1 << max(0, math.floor(math.log2(LARGEST_SCALE / 2 / self._each))))

    @property
    def _sigma(self) -> float:
        return self._each * self._resolution

    @property
    def _numbers(self) -> int:
        return sum(cells_of(self._axes, term) for term in self._shares)

    def _noise(self, reach: int) -> ResidualNoise:
        return ResidualNoise(self._each, reach, self._resolution, self._numbers)

    def can_measure(self, reach: Sequence[int]) -> bool:
        """Whether the grid is fine enough for channels of this reach."""
        try:
            return all(min(self._noise(each).factors(self._axes, self._shares).values()) >= FINE for each in reach)
        except InvalidParameter:
            return False

    @property
    def event(self) -> Event:
        if not self.channels:
            return NOTHING
        together, times = (self._numbers * self.channels, 1) if self.shared else (self._numbers, self.channels)
        noise = self._noise(1)
        return compose([(ResidualNoise(noise.multiplier, 1, noise.resolution, together).event, times)])

    @property
    def kind(self) -> NoiseKind:
        return "gaussian"

    def add(self, exact: NDArray[np.generic], reach: Sequence[int], rng: Rng) -> NDArray[np.float64]:
        """The groups, in the order of the product of all keys, rebuilt from their noisy residuals.

        They are held so that no sum over them leaves 64 bits, which moves no two numbers apart.
        """
        keys, most = tuple(range(len(self.sizes))), HELD // math.prod(self.sizes)
        found = []
        for channel, each in enumerate(reach):
            table = np.clip(exact[:, channel], -most, most).astype(np.int64).reshape(self.sizes)

            def counts(kept: Grouping, table: NDArray[np.int64] = table) -> NDArray[np.int64]:
                return np.asarray(table.sum(axis=tuple(key for key in keys if key not in kept)), np.int64)

            found.append(self._noise(each).measure(self._axes, self._shares, counts, rng).marginal(keys).reshape(-1))
        return np.stack(found, axis=1)

    def variance(self, kept: Grouping) -> float:
        """The variance of a number of this grouping, for a channel of reach 1 and a multiplier of 1.

        Infinite for a grouping that is not asked for and has a residual that is not measured.
        """
        total = 0.0
        sizes = [self.sizes[key] for key in kept]
        for chosen in np.ndindex(*(2 if size > 1 else 1 for size in sizes)):
            term: Term = tuple((key, 1) for key, level in zip(kept, chosen, strict=True) if level)
            if term not in self._shares:
                return math.inf
            movement = math.prod(1 - 1 / size for size, level in zip(sizes, chosen, strict=True) if level)
            spread = math.prod(size for size, level in zip(sizes, chosen, strict=True) if not level)
            total += movement**2 / (self._shares[term] * spread**2)
        return total * math.fsum(self._shares.values())

    def sum_variances(self) -> float:
        """Of all numbers that are asked for, for a channel of reach 1 and a multiplier of 1."""
        return sum(self.variance(kept) * math.prod(self.sizes[key] for key in kept) for kept in self.sets)

    @cached_property
    def _deviation(self) -> float:
        variances = [self.variance(kept) for kept in (self.sets if self.shown is None else (self.shown,))]
        return math.sqrt(max(variances)) * self._each * _SLACK

    def deviation(self, reach: float) -> float:
        return reach * self._deviation

    def exceed(self, reach: int, size: float) -> float:
        """An upper bound on the chance that a number of the shown grouping strays by `size` or more."""
        deviation = self.deviation(reach)
        return math.erfc(size / (deviation * _SLACK * math.sqrt(2))) / 2 * _SLACK if deviation < math.inf else 1.0

    def width(self, terms: Sequence[object], confidence: float) -> Any:
        """Half-widths for numbers of the shown grouping; sums of independent channels, each a sum of many normals."""
        quantile = NormalDist().inv_cdf((1 + strict_probability("confidence", confidence)) / 2)
        tall = np.broadcast_arrays(*(np.asarray(term, np.float64) for term in terms))
        return np.sqrt(np.sum(np.stack(tall, axis=-1) ** 2, axis=-1)) * self._deviation * quantile
