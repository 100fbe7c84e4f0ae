"""Who is in a batch: exact coins, exact shuffles, and physical batches that one unit can change at most two of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, RunClosed
from mosha.core.randomness import Rng
from mosha.exact.bounding import entries, identify, listed
from mosha.learning.plan import DPSGD
from mosha.noise import bernoulli, uniform

__all__ = ["Sampler", "owners_of", "shuffled"]

Indices = NDArray[np.int64]


def shuffled(values: Indices, rng: Rng) -> Indices:
    """The values in a uniformly random order: sorted by 64-bit words, drawn anew where two are equal.

    Distinct words are in each order equally often, so the order is exactly uniform.
    """
    while True:
        words = np.frombuffer(rng.bytes(8 * len(values)), np.uint64)
        if len(np.unique(words)) == len(words):
            return values[np.argsort(words)]


class Sampler:
    """The batches of a plan, over units numbered 0, ..., population - 1.

    Guarantee:
        "poisson": each unit is in the batch of each step by its own exact coin. "shuffled": in every epoch each unit is
        in one of `bins` batches, chosen uniformly on its own (the same one in every epoch where noise is
        correlated); an epoch whose bins were lost is not gone on with. "fixed size": `size` units, all subsets equally
        likely. The order within a batch is uniformly random, which `rounding.md` uses.
    """

    def __init__(self, plan: DPSGD, population: int) -> None:
        if plan.sampling == "fixed size" and population != plan.population:
            raise InvalidParameter(
                "the data set does not hold the declared population of units: batches of fixed size need it. "
                "Nothing was spent."
            )
        self._plan, self._population = plan, population
        self._bins: Indices | None = None
        self._epoch = -1  # the one that the bins are of

    def draw(self, step: int, rng: Rng) -> Indices:
        """The units of step number `step`, the first of which is 0, in random order."""
        plan = self._plan
        if plan.sampling == "poisson":
            return shuffled(np.flatnonzero(bernoulli(plan.rate, self._population, rng=rng)), rng)
        if plan.sampling == "fixed size":
            return shuffled(np.arange(self._population), rng)[: plan.size]
        epoch = step // plan.bins if plan.bands == 1 else 0
        if epoch != self._epoch:
            if step != epoch * plan.bins:
                raise RunClosed(
                    "who was in the earlier batches of this epoch went with the process that drew them, and nobody may "
                    "be in two: write checkpoints after every step (every=1), or begin again under a new key."
                )
            self._bins, self._epoch = uniform(plan.bins, self._population, rng=rng), epoch
        return shuffled(np.flatnonzero(self._bins == step % plan.bins), rng)

    def state(self) -> Any:
        """What a checkpoint has to keep (private: it says who is in which batch)."""
        return None if self._bins is None else (self._epoch, self._bins.copy())

    def restore(self, state: Any) -> None:
        if state is not None:
            self._epoch, self._bins = state

    def physical(self, units: Indices) -> Iterator[Indices]:
        """The units in pieces of at most `at_once`, in order."""
        most = self._plan.at_once
        for start in range(0, len(units), most):
            yield units[start : start + most]


def owners_of(owners: Any, examples: int) -> list[Indices]:
    """The examples of each person, as lists of positions.

    Persons are told apart as everywhere (`mechanisms.bounding.identify`): 1 and "1" are two, 1 and 1.0 are one, and
    examples whose owner is missing are all of one and the same person.

    >>> len(owners_of([1, "1", 1.0, None, float("nan")], 5))
    3
    """
    values = entries(owners)
    if values.shape != (examples,):
        raise InvalidParameter("owners=... must say for each example whose it is: one value an example.")
    if values.dtype.kind not in "iu":
        seen: dict[int | str, int] = {}
        values = np.array([seen.setdefault(identify(owner), len(seen)) for owner in listed(values)], np.int64)
    _, places = np.unique(values, return_inverse=True)
    order = np.argsort(places, kind="stable")
    cuts = np.flatnonzero(np.diff(places[order])) + 1
    return [np.asarray(part, np.int64) for part in np.split(order, cuts) if len(part)]
