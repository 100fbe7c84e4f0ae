"""A rehearsal on public rows: how close the tables of each method come, before a private table is touched."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.core.unit import Row
from mosha.noise import secure
from mosha.synth.measuring.counting import Counted
from mosha.synth.modelling.design import Choice, Method
from mosha.synth.synthesis import SynthesisQuestion, ask_synthesis
from mosha.synth.synthetic import Synthetic
from mosha.tables import Budget, protect

__all__ = ["Comparison", "compare", "pair_distances"]


@dataclass(frozen=True)
class Comparison:
    """How one method did: distances of pair tables are total variation, from 0 (the same) to 1.

    Fields:
        method: what was asked for.
        chosen: what the rule chose in the last run.
        mean: the mean distance of all pairs of columns, over all runs.
        largest: the largest distance of a pair, averaged over runs.
        seconds: CPU seconds of one run.

    >>> Comparison(method="automatic", chosen="tree", mean=0.1, largest=0.2, seconds=1.0).mean
    0.1
    """

    method: Choice
    chosen: Method
    mean: float
    largest: float
    seconds: float


@explain_wrong_calls
def compare(
    rows: object,
    *,
    epsilon: float,
    delta: float = 1e-9,
    methods: Sequence[Choice] = get_args(Choice),
    runs: int = 3,
    **words: Any,
) -> tuple[Comparison, ...]:
    """Try methods on rows that are public or made up; the best is first.

    Nothing is paid, and the distances are exact: what comes back is as private as `rows` are. Never choose a method for
    a private table by comparing on that table; take last year's published one, or one with the same columns.

    Args:
        rows: a table that `mosha.protect` takes. Every row is a unit.
        epsilon: the budget of one run, with
        delta: as for `release`.
        methods: which ones.
        runs: how often each is tried.
        words: as for `Table.synthesize`: keys, between, bins and so on.

    >>> import pyarrow as pa
    >>> rows = pa.table({"a": [0, 1] * 500, "b": [0, 1] * 500})
    >>> found = compare(rows, epsilon=5, runs=1, keys={"a": [0, 1], "b": [0, 1]})
    >>> len(found)
    5
    """
    table, runs = protect(rows, unit=Row()), positive_integer("runs", runs)
    budget, found = Budget(epsilon=epsilon, delta=delta), []
    for method in methods:
        question = ask_synthesis(table, method=method, **words)
        counted = question.count(question.relation)
        start, distances = time.process_time(), []
        for _ in range(runs):
            made = _rehearse(question, budget)
            distances.append(pair_distances(made, counted))
        seconds = (time.process_time() - start) / runs
        mean, largest = (float(np.mean([f(d) for d in distances])) for f in (np.mean, np.max))
        found.append(Comparison(method, made.design.method, mean, largest, seconds))
    return tuple(sorted(found, key=lambda one: one.mean))


def _rehearse(question: SynthesisQuestion, budget: Budget) -> Synthetic:
    value, _ = question.measurement_for(epsilon=budget.epsilon, delta=budget.delta).step(None, None, None, secure())
    return question.read(value, question.noises(budget))


def pair_distances(made: Synthetic, counted: Counted) -> np.ndarray:
    """The total variation distance of each pair table of the model from the exact one."""
    total = max(1, int(counted.weights.sum()))
    places = range(len(made.columns))
    pairs = tuple(itertools.combinations(places, min(2, len(made.columns))))
    return np.array([0.5 * np.abs(made.model.marginal(p) - counted.marginal(p) / total).sum() for p in pairs])
