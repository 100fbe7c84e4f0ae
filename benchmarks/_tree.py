"""A tree of pairs (MST: McKenna, Miklau and Sheldon 2021) as a baseline, with float noise: for comparison alone."""

from __future__ import annotations

import itertools
import math

import numpy as np

__all__ = ["tree_tables", "walk_tree"]


def _clean(counts: np.ndarray) -> np.ndarray:
    counts = np.maximum(counts, 0.0)
    return counts / counts.sum() if counts.sum() > 0 else np.full(counts.shape, 1 / counts.size)


def _count(columns: list[np.ndarray], sizes: list[int], pair: tuple[int, ...]) -> np.ndarray:
    place = np.zeros(len(columns[0]), np.int64)
    for i in pair:
        place = place * sizes[i] + columns[i]
    shape = [sizes[i] for i in pair]
    return np.bincount(place, minlength=math.prod(shape)).reshape(shape).astype(float)


def tree_tables(columns: list[np.ndarray], sizes: list[int], rho: float) -> dict[tuple[int, int], np.ndarray]:
    """The pair tables, as shares, of a tree that is chosen and measured for `rho`: a third for each step."""
    generator, width = np.random.default_rng(), len(sizes)
    deviation = math.sqrt(width / (2 * rho / 3))
    one = [_clean(_count(columns, sizes, (i,)) + generator.normal(0, deviation, sizes[i])) for i in range(width)]
    score = {}
    for a, b in itertools.combinations(range(width), 2):
        independent = np.outer(one[a], one[b]) * len(columns[0])
        score[a, b] = np.abs(_count(columns, sizes, (a, b)) - independent).sum()
    step = math.sqrt(8 * rho / 3 / max(width - 1, 1))
    owner, edges = list(range(width)), []  # type: ignore[var-annotated]
    while len(edges) < width - 1:
        open_pairs = [pair for pair in score if owner[pair[0]] != owner[pair[1]]]
        weights = np.array([score[pair] for pair in open_pairs]) * step / 2 + generator.gumbel(size=len(open_pairs))
        a, b = open_pairs[int(np.argmax(weights))]
        edges.append((a, b))
        old, new = owner[b], owner[a]
        owner = [new if group == old else group for group in owner]
    deviation = math.sqrt((width - 1) / (2 * rho / 3))
    tables = {
        pair: _clean(_count(columns, sizes, pair) + generator.normal(0, deviation, (sizes[pair[0]], sizes[pair[1]])))
        for pair in edges
    }
    return walk_tree(tables, one, width)


def walk_tree(
    tables: dict[tuple[int, int], np.ndarray], one: list[np.ndarray], width: int
) -> dict[tuple[int, int], np.ndarray]:
    """The table of every pair: conditionals multiplied along the path between them."""
    step: dict[tuple[int, int], np.ndarray] = {}
    for (a, b), table in tables.items():
        for x, y, t in ((a, b, table), (b, a, table.T)):
            sums = t.sum(axis=1, keepdims=True)
            step[x, y] = np.where(sums > 0, t / np.maximum(sums, 1e-300), 1 / t.shape[1])
    found = {}
    for start in range(width):
        reached = {start: np.diag(one[start])}
        queue = [start]
        while queue:
            here = queue.pop()
            for (x, y), chances in step.items():
                if x == here and y not in reached:
                    reached[y] = reached[here] @ chances
                    queue.append(y)
        found.update({(start, other): table for other, table in reached.items() if other > start})
    return found
