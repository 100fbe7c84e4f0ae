"""The kernels of `compiled` with SciPy and NumPy alone: the same integers, several times slower."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "component_count",
    "compress_rows",
    "distance_counts",
    "fit_isotonic",
    "list_triangles",
    "most_common_neighbors",
    "project_degrees",
    "triangle_count",
    "triangles_at",
]

Array = NDArray[Any]
BLOCK = 1 << 22  # entries of a product that are held at once


def _matrix(starts: Array, ends: Array) -> Any:
    from scipy.sparse import csr_matrix  # noqa: PLC0415  (SciPy is loaded when it is needed)

    n = len(starts) - 1
    return csr_matrix((np.ones(len(ends), np.int64), ends, starts), shape=(n, n))


def compress_rows(first: Array, second: Array, vertices: int) -> tuple[Array, Array]:
    """Compressed rows of the simple graph behind a list of pairs: loops dropped, repetitions merged, rows sorted."""
    apart = first != second
    one, two = first[apart].astype(np.int64), second[apart].astype(np.int64)
    codes = np.unique(np.concatenate([one * vertices + two, two * vertices + one]))
    starts = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(codes // max(vertices, 1), minlength=vertices), out=starts[1:])
    return starts, (codes % max(vertices, 1)).astype(np.int32)


def _orient_upward(starts: Array, ends: Array) -> Any:
    """Edges from the end of lower degree to the one of higher degree."""
    n = len(starts) - 1
    degrees = np.diff(starts)
    sources = np.repeat(np.arange(n), degrees)
    up = (degrees[ends] > degrees[sources]) | ((degrees[ends] == degrees[sources]) & (ends > sources))
    counts = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(sources[up], minlength=n), out=counts[1:])
    return _matrix(counts, ends[up])


def triangle_count(starts: Array, ends: Array) -> int:
    """How many triangles there are."""
    upward = _orient_upward(starts, ends)
    return int((upward @ upward).multiply(upward).sum())


def triangles_at(starts: Array, ends: Array) -> Array:
    """How many triangles each vertex is in."""
    return np.bincount(list_triangles(starts, ends).ravel(), minlength=len(starts) - 1).astype(np.int64)


def list_triangles(starts: Array, ends: Array) -> Array:
    """All triangles, one row of three vertices each."""
    upward = _orient_upward(starts, ends)
    rows = [upward.indices[upward.indptr[v] : upward.indptr[v + 1]] for v in range(len(starts) - 1)]
    found = [
        np.stack(np.broadcast_arrays(u, v, third), axis=1)
        for u, row in enumerate(rows)
        for v in row
        if (third := np.intersect1d(row, rows[v], assume_unique=True)).size
    ]
    return np.concatenate(found).astype(np.int32) if found else np.zeros((0, 3), np.int32)


def most_common_neighbors(starts: Array, ends: Array) -> int:
    """The largest number of common neighbors of two vertices, over all pairs, joined by an edge or not."""
    matrix = _matrix(starts, ends)
    degrees = np.diff(starts)
    order = np.argsort(-degrees, kind="stable")
    best, done = 0, 0
    while done < len(order) and degrees[order[done]] > best:
        high = order[: int(np.searchsorted(-degrees[order], -best))]
        block = high[done : done + max(1, BLOCK // len(high))]
        shared = (matrix[block] @ matrix[high].T).toarray()
        shared[np.arange(len(block)), done + np.arange(len(block))] = 0
        best = max(best, int(shared.max(initial=0)))
        done += len(block)
    return best


def project_degrees(starts: Array, ends: Array, bound: int) -> tuple[Array, Array]:
    """Degrees after edges were added, from the last vertex down, where both ends were below the bound; and a mask."""
    n = len(starts) - 1
    degrees = [0] * n
    kept = np.zeros(len(ends), np.bool_)
    sources = np.repeat(np.arange(n), np.diff(starts))
    for i in np.flatnonzero(ends < sources)[::-1]:
        u, v = int(sources[i]), int(ends[i])
        if degrees[u] < bound and degrees[v] < bound:
            degrees[u] += 1
            degrees[v] += 1
            kept[i] = True
    return np.array(degrees, np.int64), kept


def component_count(starts: Array, ends: Array) -> int:
    """How many connected components there are."""
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  (SciPy is loaded when it is needed)

    return int(connected_components(_matrix(starts, ends), directed=False)[0]) if len(starts) > 1 else 0


def distance_counts(starts: Array, ends: Array) -> Array:
    """How many ordered pairs of different vertices lie at each distance (index: the distance)."""
    from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415  (SciPy is loaded when it is needed)

    n = len(starts) - 1
    counts = np.zeros(n + 1, np.int64)
    matrix, width = _matrix(starts, ends), max(1, BLOCK // max(n, 1))
    for start in range(0, n, width):
        lengths = shortest_path(matrix, unweighted=True, indices=np.arange(start, min(n, start + width)))
        reached = lengths[np.isfinite(lengths)].astype(np.int64)
        counts += np.bincount(reached, minlength=n + 1)
    counts[0] = 0
    return counts


def fit_isotonic(values: Array) -> NDArray[np.float64]:
    """The non-decreasing sequence that is nearest in the sum of squares: adjacent violators are pooled."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        total, count = float(value), 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            before, many = blocks.pop()
            total, count = total + before, count + many
        blocks.append((total, count))
    means, counts = [t / c for t, c in blocks], [c for _, c in blocks]
    return np.repeat(np.array(means, np.float64), np.array(counts, np.int64))
