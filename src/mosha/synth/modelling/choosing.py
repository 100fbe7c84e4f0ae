"""Which pairs are worth being measured, by noisy distances from independence; and what a tree of them says of the rest.

All of it reads what was released alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mosha.mechanisms.residuals.axis import Reals
from mosha.synth.modelling.mixture import PairTarget, centre_table, shrink_towards_independence

__all__ = ["Distances", "Pair", "choose_pairs", "complete_pairs", "explained_distance", "span_tree"]

Pair = tuple[int, int]
PAIRS_PER_COLUMN, DENSE = 2, 4
"""At most so many pairs for each column; where more than `DENSE` are worth it, all pairs in few groups are better."""

ROUNDS = 20


@dataclass(frozen=True, eq=False)
class Distances:
    """How far each pair of columns is from independence, as shares of all rows, and the deviation of that."""

    values: Mapping[Pair, float]
    deviation: float

    @staticmethod
    def find(values: Reals, off: Sequence[float], deviation: float) -> Distances:
        """Noisy distances of all pairs, less what errors of one-ways (of each column, as shares) put into them.

        Errors and dependence point into unrelated directions, so that their squares add up.
        """
        found, squares = np.maximum(values, 0.0) ** 2, np.square(off)
        order = enumerate(itertools.combinations(range(len(off)), 2))
        near = {(a, b): max(0.0, float(found[place] - squares[a] - squares[b])) for place, (a, b) in order}
        return Distances({pair: math.sqrt(square) for pair, square in near.items()}, deviation)

    @property
    def threshold(self) -> float:
        """What noise alone passes in about one of many pairs, however many there are."""
        return self.deviation * math.sqrt(2 * math.log(max(len(self.values), 2)))

    @property
    def expected(self) -> dict[Pair, float]:
        """What the distances are likely to be: the largest ones are large because of their noise, too.

        Empirical Bayes: each is pulled towards their mean, the more the less they differ beyond their noise.
        """
        found = np.array(list(self.values.values()))
        spread = max(0.0, float(np.var(found)) - self.deviation**2)
        kept = spread / (spread + self.deviation**2) if spread > 0 else 0.0
        middle = max(0.0, float(np.mean(found)))
        return {pair: max(0.0, middle + kept * (value - middle)) for pair, value in self.values.items()}


def choose_pairs(distances: Distances, columns: int, *, is_tree: bool, is_asked: bool) -> list[Pair]:
    """A tree of the pairs farthest from independence, and pairs that such a tree does not explain.

    None where noise explains all distances, and all where a tree explains too few of them, unless a caller asked for
    some.

    Args:
        distances: of all pairs.
        columns: how many there are.
        is_tree: whether the pairs shall be a tree.
        is_asked: whether pairs are chosen whatever their distances are.
    """
    least = -math.inf if is_asked else distances.threshold
    order = [pair for pair in _rank(distances.values) if distances.values[pair] > least]
    tree = span_tree(order, columns)
    if is_tree:
        return sorted(tree)
    implied = _imply_distances(tree, distances.values, columns)
    excess = {pair: distances.values[pair] - implied.get(pair, 0.0) for pair in order if pair not in tree}
    more = [pair for pair in _rank(excess) if excess[pair] > least]
    if not is_asked and len(tree) + len(more) > DENSE * columns:
        return sorted(distances.values)
    return sorted(tree + more[: max(0, PAIRS_PER_COLUMN * columns - len(tree))])


def explained_distance(distances: Distances, chosen: Sequence[Pair], columns: int) -> float:
    """The mean distance from independence, over all pairs, that chosen ones explain: their own and what they imply."""
    expected = distances.expected
    implied = _imply_distances(span_tree(chosen, columns), expected, columns)
    own = {pair: expected[pair] for pair in chosen}
    found = sum(own.get(pair, implied.get(pair, 0.0)) for pair in expected)
    return found / max(len(distances.values), 1)


def _rank(values: Mapping[Pair, float]) -> list[Pair]:
    return sorted(values, key=lambda pair: -values[pair])


def _imply_distances(tree: Sequence[Pair], distances: Mapping[Pair, float], columns: int) -> dict[Pair, float]:
    """About how far from independence a tree alone puts the other pairs: the product of the distances on the path."""
    steps = {pair: np.array([[min(1.0, max(0.0, distances[pair]))]]) for pair in tree}
    steps.update({(second, first): step for (first, second), step in list(steps.items())})
    ones = [np.ones(1)] * columns
    walks = ((first, _walk(first, steps, ones)) for first in range(columns))
    return {(first, second): float(table[0, 0]) for first, walk in walks for second, table in walk.items()}


def span_tree(order: Iterable[Pair], columns: int) -> list[Pair]:
    """The pairs, in their order, that close no circle."""
    owner, found = list(range(columns)), []
    for first, second in order:
        if owner[first] != owner[second]:
            old, new = owner[second], owner[first]
            owner = [new if group == old else group for group in owner]
            found.append((first, second))
    return found


def complete_pairs(measured: Sequence[PairTarget], oneways: Sequence[Reals]) -> list[PairTarget]:
    """What the strongest tree of measured pairs implies for all others: independence given what lies between them.

    Columns that no path joins are taken for independent. What is implied counts as much as what was measured, and for
    no free number: a model that cannot have both gives way on either side.
    """
    if not measured:
        return []
    shrunk = {(pair.first, pair.second): shrink_towards_independence(pair, oneways)[1] for pair in measured}
    order = sorted(shrunk, key=lambda pair: -float(np.abs(shrunk[pair]).sum()))
    steps: dict[Pair, Reals] = {}
    for first, second in span_tree(order, len(oneways)):
        table = _balance(np.outer(oneways[first], oneways[second]) + shrunk[first, second], oneways, (first, second))
        steps[first, second] = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)
        steps[second, first] = table.T / np.maximum(table.T.sum(axis=1, keepdims=True), 1e-12)
    deviation = float(np.mean([pair.deviation for pair in measured]))
    found = []
    for first in range(len(oneways)):
        reached = _walk(first, steps, oneways)
        for second in range(first + 1, len(oneways)):
            if (first, second) not in shrunk:
                table = reached.get(second, np.outer(oneways[first], oneways[second]))
                found.append(PairTarget(first, second, centre_table(table), deviation, is_assumed=True))
    return found


def _balance(table: Reals, oneways: Sequence[Reals], pair: Pair) -> Reals:
    """The table without negative cells and with the one-ways of its columns (iterative proportional fitting)."""
    table = np.maximum(table, 1e-9)
    for _ in range(ROUNDS):
        table = table * (oneways[pair[0]] / np.maximum(table.sum(axis=1), 1e-12))[:, None]
        table = table * (oneways[pair[1]] / np.maximum(table.sum(axis=0), 1e-12))
    return np.asarray(table, np.float64)


def _walk(start: int, steps: Mapping[Pair, Reals], oneways: Sequence[Reals]) -> dict[int, Reals]:
    """The table of a column with every one that a path leads to: conditionals multiplied along it."""
    reached, queue = {start: np.asarray(np.diag(oneways[start]), np.float64)}, [start]
    while queue:
        here = queue.pop()
        for (left, right), chances in steps.items():
            if left == here and right not in reached:
                reached[right] = reached[here] @ chances
                queue.append(right)
    return reached
