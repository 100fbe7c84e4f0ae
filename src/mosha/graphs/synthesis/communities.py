"""Communities: the best of public partitions, or one that is found under a price of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import DiscreteLaplace, Pure
from mosha.core.measurement import Measurement, Rng
from mosha.core.number import positive
from mosha.core.unit import Edge, Unit
from mosha.exact.canonical import canonical_form
from mosha.exact.statistic import Sensitivity, Steps
from mosha.graphs.data.graph import Graph
from mosha.graphs.data.louvain import find_communities
from mosha.mechanisms import permute_and_flip
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import permute_and_flip_choices
from mosha.noise.unbounded import unbounded_laplace

__all__ = ["PartitionScores", "best_partition", "communities", "group_counts"]

GROUPS = 200
MOST_COMMUNITIES = 64
VERTICES_AT_ONCE = 2**14
PAIRS_AT_ONCE = 2**20


@dataclass(frozen=True)
class PartitionScores:
    """For each public partition the edges inside its communities, minus so many for each pair of vertices inside.

    Guarantee:
        One edge is inside or not: a new one raises each score by 0 or 1, a span of 1. The subtrahend is public.
    """

    partitions: tuple[tuple[int, ...], ...] = field(repr=False)
    density: float
    grid: ClassVar[float] = 1.0

    @property
    def labels(self) -> tuple[int, ...]:
        return tuple(range(len(self.partitions)))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        if not isinstance(unit, Edge):
            raise InvalidParameter("graphs.partition_names_vertices", parameter="unit")
        k = len(self.partitions)
        return Sensitivity(l0=k, l1=k, l2=float(k), linf=1, span=1, monotone=True)

    def evaluate(self, data: Any, unit: Unit) -> Steps:
        del unit
        pairs = data.pairs()
        scores = []
        for partition in self.partitions:
            label = np.array(partition)
            if label.size != data.vertices:
                raise DataError("graphs.partition_of_declared")
            sizes = np.unique(label, return_counts=True)[1].astype(np.float64)
            inside = int((label[pairs[:, 0]] == label[pairs[:, 1]]).sum())
            scores.append(inside - round(self.density * float((sizes * (sizes - 1) / 2).sum())))
        return np.array(scores, np.int64)


def _number_groups(partition: Sequence[object]) -> tuple[int, ...]:
    """Communities by number, in the order in which they are met."""
    numbers: dict[str, int] = {}
    return tuple(numbers.setdefault(repr(community), len(numbers)) for community in partition)


def best_partition(
    unit: Unit, epsilon: float, *, partitions: Sequence[Sequence[object]], density: float, count: int
) -> Measurement:
    """Which of some public partitions of the vertices holds the most edges inside, beyond a public density.

    Guarantee:
        `permute_and_flip` on `PartitionScores`: epsilon-differential privacy at edge level.

    Units:
        The answer is the number of a partition; the error bar is in edges. `density` is in edges for each pair.
    """
    try:
        named = [[canonical_form(community) for community in partition] for partition in partitions]
    except TypeError:
        raise InvalidParameter("graphs.not_partitions", parameter="partitions") from None
    if len(named) < 2:
        raise InvalidParameter("graphs.one_partition", parameter="partitions")
    kept = tuple(_number_groups(partition) for partition in named)
    if any(len(partition) != count for partition in kept):
        raise InvalidParameter("graphs.partition_length", parameter="partitions")
    if positive("density", density) > 1:
        raise InvalidParameter("graphs.density_above_one", parameter="density")
    return permute_and_flip(PartitionScores(kept, density), unit=unit, epsilon=epsilon)


def group_counts(pairs: NDArray[np.generic], label: NDArray[np.generic], groups: int) -> NDArray[np.int64]:
    """How many edges join each two groups: an upper triangle, each edge in one cell."""
    found = np.zeros(groups * groups, np.int64)
    for first in range(0, len(pairs), PAIRS_AT_ONCE):
        ends = label[pairs[first : first + PAIRS_AT_ONCE]]
        found += np.bincount(ends.min(axis=1) * groups + ends.max(axis=1), minlength=groups * groups)
    return found.reshape(groups, groups)


def _find_communities(
    noisy: NDArray[Any], groups: int, scale: float, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Communities of the groups, from noisy counts between them: cells within the noise count as empty."""
    weights = np.where(noisy > 2 * scale, noisy, 0).astype(np.float64)
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    rows, columns = np.nonzero(weights)
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=groups)))
    return find_communities(starts, columns.astype(np.int32), weights[rows, columns], generator=generator)


def communities(unit: Unit, epsilon: float, *, count: int) -> Measurement:
    """A community for each vertex: groups of vertices that follow each other are merged, then every vertex chooses.

    Guarantee:
        epsilon-differential privacy at edge level. Half pays for Laplace noise on the edges between groups of
        consecutive vertices, a public partition: one edge moves one cell by 1. With the communities found there, every
        vertex chooses by permute-and-flip on its edges into each: a new edge uv raises one score of u and one of v by
        1, a span of 1 in two choices; each has a quarter of epsilon, all other choices do not see that edge.

    Units:
        The answer is one number for each vertex, in the order of labels.
    """
    if not isinstance(unit, Edge):
        raise InvalidParameter("graphs.partition_names_vertices", parameter="unit")
    if count < 1:
        raise InvalidParameter("graphs.no_vertices", parameter="vertices")
    half, quarter = positive("epsilon", epsilon) / 2, epsilon / 4
    multiplier = laplace_multiplier(half)
    groups = max(1, min(GROUPS, count // 4))
    first = np.arange(count) * groups // count

    def step(state: object, data: Graph, ask: object, rng: Rng) -> tuple[Any, Any]:
        del ask
        if data.vertices != count:
            raise DataError("graphs.wrong_vertices")
        exact = group_counts(data.pairs(), first, groups)
        noisy = exact + unbounded_laplace(Fraction(multiplier), groups * groups, rng=rng).reshape(groups, groups)
        generator = np.random.default_rng(int.from_bytes(rng.bytes(32), "little"))
        label = _find_communities(noisy, groups, multiplier, generator)[first]
        kept = np.minimum(label, MOST_COMMUNITIES - 1)
        return _choose_communities(data, kept, quarter, rng), state

    return Measurement(
        unit=unit,
        event=DiscreteLaplace(multiplier) + Pure(quarter) * 2,
        step=step,
        name="communities",
        question=f"communities:{count}",
    )


def _choose_communities(graph: Any, label: NDArray[np.int64], epsilon: float, rng: Rng) -> NDArray[np.int64]:
    """Every vertex by itself: the community with (nearly) the most of its edges."""
    known = int(label.max()) + 1
    if known == 1:
        return label
    scale, chosen = 1 / Fraction(epsilon), np.empty(graph.vertices, np.int64)
    for first in range(0, graph.vertices, VERTICES_AT_ONCE):
        starts = graph.starts[first : first + VERTICES_AT_ONCE + 1]
        some = len(starts) - 1
        places = np.repeat(np.arange(some) * known, np.diff(starts)) + label[graph.ends[starts[0] : starts[-1]]]
        scores = np.bincount(places, minlength=some * known).reshape(some, known)
        chosen[first : first + some] = permute_and_flip_choices(scores, scale, rng=rng)
    return chosen
