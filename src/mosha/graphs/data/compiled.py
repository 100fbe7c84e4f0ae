"""The kernels over compressed rows, compiled: every loop that touches an edge.

A graph is (starts, ends): the neighbors of vertex v are ends[starts[v]] to ends[starts[v + 1]], sorted, each edge in
both rows. `sparse` has the same functions without a compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

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

Array = np.ndarray[Any, Any]
FIRST_LOOK = 24  # vertices of highest degree, compared with each other for a first bound


@njit(cache=True)
def compress_rows(first: Array, second: Array, vertices: int) -> Any:
    """Compressed rows of the simple graph behind a list of pairs: loops dropped, repetitions merged, rows sorted.

    Rows are written once unsorted; read in the order of vertices and written to the other end they come out sorted.
    """
    starts = np.zeros(vertices + 1, np.int64)
    for i in range(len(first)):
        if first[i] != second[i]:
            starts[first[i] + 1] += 1
            starts[second[i] + 1] += 1
    for v in range(vertices):
        starts[v + 1] += starts[v]
    place = starts[:-1].copy()
    loose = np.empty(starts[-1], np.int32)
    for i in range(len(first)):
        u, v = first[i], second[i]
        if u != v:
            loose[place[u]] = v
            place[u] += 1
            loose[place[v]] = u
            place[v] += 1
    place[:] = starts[:-1]
    ends = np.empty(starts[-1], np.int32)
    for u in range(vertices):
        for i in range(starts[u], starts[u + 1]):
            v = loose[i]
            ends[place[v]] = u
            place[v] += 1
    return _merge_repetitions(starts, ends, vertices)


@njit(cache=True)
def _merge_repetitions(starts: Array, ends: Array, vertices: int) -> Any:
    """Sorted rows without repetitions."""
    kept = 0
    clean = np.zeros(vertices + 1, np.int64)
    for u in range(vertices):
        last = -1
        for i in range(starts[u], starts[u + 1]):
            if ends[i] != last:
                last = ends[i]
                ends[kept] = last
                kept += 1
        clean[u + 1] = kept
    return clean, ends[:kept]


@njit(cache=True)
def _orient_upward(starts: Array, ends: Array) -> Any:
    """Rows that keep only the neighbors of higher degree (ties by number)."""
    n = len(starts) - 1
    out = np.zeros(n + 1, np.int64)
    heads = np.empty(len(ends) // 2, np.int32)
    kept = 0
    for u in range(n):
        degree = starts[u + 1] - starts[u]
        for i in range(starts[u], starts[u + 1]):
            v = ends[i]
            other = starts[v + 1] - starts[v]
            if other > degree or (other == degree and v > u):
                heads[kept] = v
                kept += 1
        out[u + 1] = kept
    return out, heads


@njit(cache=True)
def triangle_count(starts: Array, ends: Array) -> Any:
    """How many triangles there are: for each vertex, paths of two edges upwards that end where one edge ends too."""
    out, heads = _orient_upward(starts, ends)
    n = len(starts) - 1
    mark = np.full(n, -1, np.int32)
    found = 0
    for u in range(n):
        if out[u + 1] - out[u] < 2:
            continue
        for i in range(out[u], out[u + 1]):
            mark[heads[i]] = u
        for i in range(out[u], out[u + 1]):
            v = heads[i]
            for j in range(out[v], out[v + 1]):
                found += mark[heads[j]] == u
    return found


@njit(cache=True)
def triangles_at(starts: Array, ends: Array) -> Any:
    """How many triangles each vertex is in."""
    out, heads = _orient_upward(starts, ends)
    n = len(starts) - 1
    mark = np.full(n, -1, np.int32)
    found = np.zeros(n, np.int64)
    for u in range(n):
        for i in range(out[u], out[u + 1]):
            mark[heads[i]] = u
        for i in range(out[u], out[u + 1]):
            v = heads[i]
            for j in range(out[v], out[v + 1]):
                if mark[heads[j]] == u:
                    found[u] += 1
                    found[v] += 1
                    found[heads[j]] += 1
    return found


@njit(cache=True)
def list_triangles(starts: Array, ends: Array) -> Any:
    """All triangles, one row of three vertices each."""
    out, heads = _orient_upward(starts, ends)
    n = len(starts) - 1
    mark = np.full(n, -1, np.int32)
    listed = np.empty((triangle_count(starts, ends), 3), np.int32)
    found = 0
    for u in range(n):
        for i in range(out[u], out[u + 1]):
            mark[heads[i]] = u
        for i in range(out[u], out[u + 1]):
            v = heads[i]
            for j in range(out[v], out[v + 1]):
                if mark[heads[j]] == u:
                    listed[found, 0] = u
                    listed[found, 1] = v
                    listed[found, 2] = heads[j]
                    found += 1
    return listed


@njit(cache=True)
def _count_shared(starts: Array, ends: Array, u: int, v: int) -> Any:
    """How many neighbors two vertices share: two sorted rows, merged."""
    i, j, found = starts[u], starts[v], 0
    while i < starts[u + 1] and j < starts[v + 1]:
        a, b = ends[i], ends[j]
        found += a == b
        i += a <= b
        j += b <= a
    return found


@njit(cache=True)
def _estimate_from_hubs(starts: Array, ends: Array, order: Array) -> Any:
    """The most common neighbors of two among the vertices of highest degree."""
    best = 0
    for i in range(min(len(order), FIRST_LOOK)):
        u = order[i]
        for j in range(i):
            if starts[u + 1] - starts[u] > best:
                best = max(best, _count_shared(starts, ends, u, order[j]))
    return best


@njit(cache=True)
def _row_starts(starts: Array, ends: Array, chosen: Array) -> Any:
    """Where the rows start that keep only the chosen neighbors of each vertex."""
    n = len(starts) - 1
    above = np.zeros(n + 1, np.int64)
    for u in chosen:
        for k in range(starts[u], starts[u + 1]):
            above[ends[k] + 1] += 1
    for x in range(n):
        above[x + 1] += above[x]
    return above


@njit(cache=True)
def most_common_neighbors(starts: Array, ends: Array) -> Any:
    """The largest number of common neighbors of two vertices, over all pairs, joined by an edge or not.

    A pair with more than `best` of them has two ends of degree above `best`. A few pairs of high degree give a first
    bound; then the rows are restricted to the vertices above it, of which there are few.
    """
    n = len(starts) - 1
    degrees = starts[1:] - starts[:-1]
    order = np.argsort(-degrees)
    best = _estimate_from_hubs(starts, ends, order)
    high = 0
    while high < n and degrees[order[high]] > best:
        high += 1
    above = _row_starts(starts, ends, order[:high])
    place = above[:-1].copy()
    members = np.empty(above[-1], np.int32)
    counts = np.zeros(high, np.int32)
    for i in range(high):  # from the highest degree down: a pair is counted when its second end is reached
        counts[:i] = 0
        u = order[i]
        if degrees[u] <= best:
            break
        for k in range(starts[u], starts[u + 1]):
            x = ends[k]
            for j in range(above[x], place[x]):
                counts[members[j]] += 1
            members[place[x]] = i
            place[x] += 1
        for j in range(i):
            best = max(best, counts[j])
    return best


@njit(cache=True)
def project_degrees(starts: Array, ends: Array, bound: int) -> Any:
    """Degrees after edges were added, from the last vertex down, where both ends were below the bound; and a mask."""
    n = len(starts) - 1
    degrees = np.zeros(n, np.int64)
    kept = np.zeros(len(ends), np.bool_)
    for u in range(n - 1, -1, -1):
        for i in range(starts[u + 1] - 1, starts[u] - 1, -1):
            v = ends[i]
            if v < u and degrees[u] < bound and degrees[v] < bound:
                degrees[u] += 1
                degrees[v] += 1
                kept[i] = True
    return degrees, kept


@njit(cache=True)
def component_count(starts: Array, ends: Array) -> Any:
    """How many connected components there are (union by halving paths)."""
    n = len(starts) - 1
    parent = np.arange(n)
    found = n
    for u in range(n):
        for i in range(starts[u], starts[u + 1]):
            v = ends[i]
            if v > u:
                continue
            a, b = u, v
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            if a != b:
                parent[a] = b
                found -= 1
    return found


@njit(cache=True)
def distance_counts(starts: Array, ends: Array) -> Any:
    """How many ordered pairs of different vertices lie at each distance (index: the distance)."""
    n = len(starts) - 1
    counts = np.zeros(n + 1, np.int64)
    level = np.full(n, -1, np.int32)
    queue = np.empty(n, np.int32)
    for source in range(n):
        level[:] = -1
        level[source] = 0
        queue[0] = source
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            for i in range(starts[u], starts[u + 1]):
                v = ends[i]
                if level[v] < 0:
                    level[v] = level[u] + 1
                    counts[level[v]] += 1
                    queue[tail] = v
                    tail += 1
    return counts


@njit(cache=True)
def fit_isotonic(values: Array) -> Any:
    """The non-decreasing sequence that is nearest in the sum of squares: adjacent violators are pooled."""
    n = len(values)
    sums, counts = np.empty(n, np.float64), np.empty(n, np.int64)
    blocks = 0
    for i in range(n):
        total, count = float(values[i]), 1
        while blocks and sums[blocks - 1] * count >= total * counts[blocks - 1]:
            blocks -= 1
            total += sums[blocks]
            count += counts[blocks]
        sums[blocks], counts[blocks] = total, count
        blocks += 1
    fitted = np.empty(n, np.float64)
    place = 0
    for b in range(blocks):
        for _ in range(counts[b]):
            fitted[place] = sums[b] / counts[b]
            place += 1
    return fitted
