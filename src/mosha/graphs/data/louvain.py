"""Communities of a public graph by the Louvain method: for post-processing and for scores, never on private data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from numba import njit
except ImportError:  # the same loops, slower

    def njit(**_: object) -> Any:  # type: ignore[no-redef]
        return lambda function: function


__all__ = ["find_communities", "modularity"]

Array = NDArray[Any]


@njit(cache=True)
def _move_vertices(  # noqa: C901  (one loop of the method; compiled functions share no state)
    starts: Array, ends: Array, weights: Array, loops: Array, order: Array
) -> Any:
    """Vertices move to the neighboring community of the largest gain until nobody moves."""
    n = len(starts) - 1
    strength = loops.copy()
    for v in range(n):
        for i in range(starts[v], starts[v + 1]):
            strength[v] += weights[i]
    total = strength.sum()
    label, size = np.arange(n), strength.copy()
    links, near = np.zeros(n), np.empty(n, np.int64)
    improved, rounds = True, 0
    while improved and rounds < 50:
        improved = False
        rounds += 1
        for v in order:
            known = 0
            for i in range(starts[v], starts[v + 1]):
                c = label[ends[i]]
                if links[c] == 0.0:
                    near[known] = c
                    known += 1
                links[c] += weights[i]
            own = label[v]
            size[own] -= strength[v]
            best, gain = own, links[own] - size[own] * strength[v] / total
            for k in range(known):
                c = near[k]
                value = links[c] - size[c] * strength[v] / total
                if value > gain + 1e-12:
                    best, gain = c, value
            for k in range(known):
                links[near[k]] = 0.0
            size[best] += strength[v]
            if best != own:
                label[v] = best
                improved = True
    return label


def _gather_communities(starts: Array, ends: Array, weights: Array, loops: Array, label: Array) -> tuple[Array, ...]:
    """The graph whose vertices are the communities."""
    from scipy.sparse import coo_matrix  # noqa: PLC0415  (SciPy is loaded when it is needed)

    sources = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    k = int(label.max()) + 1
    matrix = coo_matrix((weights, (label[sources], label[ends])), shape=(k, k)).tocsr()
    inside = matrix.diagonal() + np.bincount(label, weights=loops, minlength=k)
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, inside


def find_communities(starts: Array, ends: Array, weights: Array | None = None, *, generator: Any = None) -> Array:
    """A community number for each vertex (Blondel et al. 2008); vertices are visited in random order."""
    generator = np.random.default_rng() if generator is None else generator
    n = len(starts) - 1
    found = np.arange(n)
    rows = (starts, ends, np.ones(len(ends)) if weights is None else weights.astype(np.float64), np.zeros(n))
    while len(rows[1]):
        label = _move_vertices(*rows, generator.permutation(len(rows[0]) - 1))
        kept, label = np.unique(label, return_inverse=True)
        if len(kept) == len(rows[0]) - 1:
            break
        found = label[found]
        rows = _gather_communities(*rows, label)  # type: ignore[assignment]
    return np.unique(found, return_inverse=True)[1]


def modularity(starts: Array, ends: Array, label: Array) -> float:
    """How many more edges lie inside communities than degrees alone would put there, as a part of all edges.

    >>> two = np.array([0, 1, 2, 3, 4]), np.array([1, 0, 3, 2])
    >>> modularity(*two, np.array([0, 0, 1, 1]))
    0.5
    """
    degrees = np.diff(starts)
    total = degrees.sum()
    if total == 0:
        return 0.0
    sources = np.repeat(np.arange(len(starts) - 1), degrees)
    inside = float((label[sources] == label[ends]).sum()) / total
    expected = float(((np.bincount(label, weights=degrees) / total) ** 2).sum())
    return float(inside - expected)
