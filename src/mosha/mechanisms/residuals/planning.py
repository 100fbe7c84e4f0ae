"""How the price is best divided among residuals: the least weighted sum of variances, or the least largest one.

With s_t the deviation of term t before centring, the price is the sum of p_t / s_t**2 (p_t: the square of what a row
moves it), and a workload's loss is the sum of v_t s_t**2 with v_t >= 0. By Cauchy and Schwarz the least loss for a
given price has p_t / s_t**2 proportional to sqrt(p_t v_t) (ResidualPlanner, Xiao and others 2023).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mosha.core.names.calls import explain_wrong_calls
from mosha.mechanisms.residuals.axis import Axis, Reals
from mosha.mechanisms.residuals.residuals import Term

__all__ = ["Workload", "best_shares", "cube", "rollup", "terms_of"]

ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Workload:
    """Marginals with weights; `queries` holds, for a column by number, rows of coefficients in place of its cells."""

    axes: tuple[Axis, ...]
    sets: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    queries: Mapping[int, Reals] = field(default_factory=dict)

    def energies(self, column: int) -> tuple[Reals, int]:
        """The sum of the queries' variances at each level, the root first, and how many queries there are."""
        axis = self.axes[column]
        if column in self.queries:
            queries = self.queries[column]
            return np.array([axis.energy(queries, v).sum() for v in range(axis.depth + 1)]), len(queries)
        return np.array([axis.cell_energy(v).sum() for v in range(axis.depth + 1)]), axis.size


@explain_wrong_calls
def rollup(*columns: str) -> list[tuple[str, ...]]:
    """The grouping sets of SQL's ROLLUP, for `Table.marginals(sets=...)`: all `columns`, then one less each time.

    >>> rollup("region", "town")
    [('region', 'town'), ('region',), ()]
    """
    return [columns[:count] for count in range(len(columns), -1, -1)]


@explain_wrong_calls
def cube(*columns: str) -> list[tuple[str, ...]]:
    """The grouping sets of SQL's CUBE, for `Table.marginals(sets=...)`: every choice of the `columns`.

    >>> cube("sex", "job")
    [('sex', 'job'), ('sex',), ('job',), ()]
    """
    return [chosen for count in range(len(columns), -1, -1) for chosen in itertools.combinations(columns, count)]


def terms_of(axes: Sequence[Axis], sets: Sequence[tuple[int, ...]]) -> tuple[Term, ...]:
    """All terms that the marginals of some sets of columns are made of; the total is the empty one."""
    found: dict[Term, None] = {(): None}
    for columns in sets:
        for ways in range(1, len(columns) + 1):
            for chosen in itertools.combinations(columns, ways):
                for levels in itertools.product(*(_real_levels(axes[column]) for column in chosen)):
                    found[tuple(zip(chosen, levels, strict=True))] = None
    return tuple(found)


def _real_levels(axis: Axis) -> list[int]:
    """The levels in which some family has more than one member."""
    return [place + 1 for place, level in enumerate(axis.levels) if level.largest > 1]


def _row_shares(axes: Sequence[Axis], terms: Sequence[Term]) -> Reals:
    return np.array([math.prod(axes[c].levels[v - 1].share for c, v in term) for term in terms])


def _losses(workload: Workload, terms: Sequence[Term]) -> tuple[list[tuple[np.ndarray, np.ndarray]], Reals]:
    """For each marginal the places of its terms and their coefficients in the mean variance of its answers."""
    place = {term: i for i, term in enumerate(terms)}
    energy = {c: workload.energies(c) for columns in workload.sets for c in columns}
    found, sizes = [], []
    for columns in workload.sets:
        size = math.prod(energy[c][1] for c in columns)
        indices, values = [], []
        for levels in itertools.product(*([0, *_real_levels(workload.axes[c])] for c in columns)):
            term = tuple((c, v) for c, v in zip(columns, levels, strict=True) if v)
            indices.append(place[term])
            values.append(math.prod(float(energy[c][0][v]) for c, v in zip(columns, levels, strict=True)) / size)
        found.append((np.array(indices), np.array(values)))
        sizes.append(size)
    return found, np.array(sizes, np.float64)


def best_shares(workload: Workload, *, largest: bool = False) -> dict[Term, float]:
    """The part of the price that each term should have.

    With `largest`, the greatest mean variance of a marginal (over its weight) is made as small as it can be, by raising
    the weights of the worst marginals again and again; otherwise the weighted sum over all answers.
    """
    terms = terms_of(workload.axes, workload.sets)
    shares = _row_shares(workload.axes, terms)
    losses, sizes = _losses(workload, terms)
    weights = np.array(workload.weights, np.float64)
    pressure = weights * sizes if not largest else np.ones(len(weights)) / len(weights)
    each = 1 / weights if largest else np.ones(len(weights))
    parts = _parts(terms, losses, pressure * each, shares)
    for turn in range(ROUNDS if largest else 0):
        variances = np.where(parts > 0, shares / np.where(parts > 0, parts, 1.0), 0.0)
        worst = np.array([float(v @ variances[i]) for i, v in losses]) * each
        if worst.max() < worst @ pressure * (1 + 1e-4):
            break
        pressure = pressure * (worst / worst.max()) ** (1.0 if turn < ROUNDS // 2 else 0.5)
        pressure /= pressure.sum()
        parts = _parts(terms, losses, pressure * each, shares)
    return {term: float(part) for term, part in zip(terms, parts, strict=True)}


def _parts(
    terms: Sequence[Term], losses: Sequence[tuple[np.ndarray, np.ndarray]], weights: Reals, shares: Reals
) -> Reals:
    value = np.zeros(len(terms))
    for (indices, coefficients), weight in zip(losses, weights, strict=True):
        np.add.at(value, indices, coefficients * weight)
    parts = np.sqrt(shares * value)
    return np.asarray(parts / parts.sum(), np.float64)
