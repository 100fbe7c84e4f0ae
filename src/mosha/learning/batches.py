"""The batches of a training: the units of each step, in physical batches of which one unit changes at most two."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, RunClosed
from mosha.core.measurement import Rng
from mosha.learning.terms import TrainingTerms
from mosha.mechanisms.plans.sampling import CyclicPoisson, FreshSampling, Shuffled, shuffle

__all__ = ["Sampler"]

Indices = NDArray[np.int64]


class Sampler:
    """The batches of a plan, over units numbered 0, ..., population - 1.

    Guarantee:
        Units are drawn by `plan.drawing`, whose own guarantee says how; with shuffled batches and with groups that take
        turns the places of an epoch are drawn once, and an epoch whose places were lost is not continued. The order
        within a batch is uniformly random, which `rounding.md` uses.
    """

    def __init__(self, plan: TrainingTerms, population: int) -> None:
        if plan.sampling == "fixed_size" and population != plan.population:
            raise InvalidParameter("learning.other_population", parameter="population", spent="nothing")
        self._plan, self._rule, self._population = plan, plan.drawing, population
        self._places: Indices | None = None
        self._epoch = -1  # the one that the places are of

    def draw(self, step: int, rng: Rng) -> Indices:
        """The units of step number `step`, the first of which is 0, in random order."""
        if isinstance(self._rule, CyclicPoisson):
            group = self._in_turn(self._rule.turns, step, rng)
            return shuffle(self._rule.draw_from(group, rng), rng)
        if isinstance(self._rule, Shuffled):
            return shuffle(self._in_turn(self._rule, step, rng), rng)
        assert isinstance(self._rule, FreshSampling)
        present = range(self._population)
        return shuffle(self._rule.places(present, self._plan.population or self._population, step + 1, rng), rng)

    def _in_turn(self, rule: Shuffled, step: int, rng: Rng) -> Indices:
        epoch = 0 if rule.repeated else step // rule.batches
        if epoch != self._epoch:
            if step != epoch * rule.batches:
                raise RunClosed("learning.shuffle_lost")
            self._places, self._epoch = rule.assign(self._population, rng), epoch
        return np.flatnonzero(self._places == step % rule.batches)

    def state(self) -> tuple[int, Indices] | None:
        """What a checkpoint has to keep (private: it says who is in which batch)."""
        return None if self._places is None else (self._epoch, self._places.copy())

    def restore(self, state: tuple[int, Indices] | None) -> None:
        """Go on in the epoch of a checkpoint."""
        if state is not None:
            self._epoch, self._places = state

    def physical(self, units: Indices) -> Iterator[Indices]:
        """The units in pieces of at most `at_once`, in order."""
        most = self._plan.at_once
        for start in range(0, len(units), most):
            yield units[start : start + most]
