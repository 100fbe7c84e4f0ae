"""Degrees stay, triangles change: edges of a public graph are exchanged until it has as many as it should."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.graphs.data.graph import Graph, split_rows

try:
    from numba import njit
except ImportError:  # the same loops, slower

    def njit(**_: object) -> Any:  # type: ignore[no-redef]
        return lambda function: function


__all__ = ["rewire"]

Array = NDArray[Any]
PATIENCE = 40
"""Proposals for each edge before the goal is given up."""

PROPOSALS_AT_ONCE = 2**20


@njit(cache=True)
def _count_common(starts: Array, ends: Array, mark: Array, stamp: int, u: int, v: int) -> Any:
    """How many neighbors u and v share; rows are not sorted."""
    if starts[u + 1] - starts[u] > starts[v + 1] - starts[v]:
        u, v = v, u
    for i in range(starts[u], starts[u + 1]):
        mark[ends[i]] = stamp
    found = 0
    for i in range(starts[v], starts[v + 1]):
        found += mark[ends[i]] == stamp
    return found


@njit(cache=True)
def _are_joined(starts: Array, ends: Array, u: int, v: int) -> Any:
    if starts[u + 1] - starts[u] > starts[v + 1] - starts[v]:
        u, v = v, u
    found = False
    for i in range(starts[u], starts[u + 1]):
        found = found or ends[i] == v
    return found


@njit(cache=True)
def _replace(starts: Array, ends: Array, u: int, old: int, new: int) -> None:
    for i in range(starts[u], starts[u + 1]):
        if ends[i] == old:
            ends[i] = new
            return


@njit(cache=True)
def _exchange(starts: Array, ends: Array, u: int, x: int, w: int, y: int) -> None:
    """Edges ux and wy become uw and xy."""
    _replace(starts, ends, u, x, w)
    _replace(starts, ends, x, u, y)
    _replace(starts, ends, w, y, u)
    _replace(starts, ends, y, w, x)


@njit(cache=True)
def _proposal(starts: Array, ends: Array, picks: Array, closing: object) -> Any:
    """Two edges ux and wy to become uw and xy; where triangles are wanted, u and w share a neighbor."""
    first = picks[0] % len(ends)
    v = ends[first]
    row, size = starts[v], starts[v + 1] - starts[v]
    u = ends[row + picks[1] % size]
    w = ends[row + picks[2] % size] if closing else ends[picks[2] % len(ends)]
    x = ends[starts[u] + picks[3] % (starts[u + 1] - starts[u])]
    y = ends[starts[w] + picks[4] % (starts[w + 1] - starts[w])]
    return u, x, w, y


@njit(cache=True)
def _exchange_edges(starts: Array, ends: Array, now: int, goal: int, drawn: Array) -> Any:
    """Exchanges that bring the number of triangles nearer to the goal, from a list of random numbers."""
    mark = np.full(len(starts) - 1, -1, np.int64)
    stamp = 0
    for k in range(len(drawn)):
        if now == goal:
            break
        u, x, w, y = _proposal(starts, ends, drawn[k], now < goal)
        if u in (w, y) or x in (w, y) or _are_joined(starts, ends, u, w) or _are_joined(starts, ends, x, y):
            continue
        lost = _count_common(starts, ends, mark, stamp, u, x)
        _replace(starts, ends, u, x, u)  # a loop stands where no edge is: it is nobody's common neighbor
        _replace(starts, ends, x, u, x)
        lost += _count_common(starts, ends, mark, stamp + 1, w, y)
        _replace(starts, ends, w, y, w)
        _replace(starts, ends, y, w, y)
        gained = _count_shared_without_loops(starts, ends, mark, stamp + 2, u, w)
        _replace(starts, ends, u, u, w)
        _replace(starts, ends, w, w, u)
        gained += _count_shared_without_loops(starts, ends, mark, stamp + 3, x, y)
        _replace(starts, ends, x, x, y)
        _replace(starts, ends, y, y, x)
        stamp += 4
        if abs(now + gained - lost - goal) < abs(now - goal):
            now += gained - lost
        else:
            _exchange(starts, ends, u, w, x, y)
    return now


@njit(cache=True)
def _count_shared_without_loops(starts: Array, ends: Array, mark: Array, stamp: int, u: int, v: int) -> Any:
    """Common neighbors of two vertices whose rows may hold themselves."""
    for i in range(starts[u], starts[u + 1]):
        if ends[i] != u:
            mark[ends[i]] = stamp
    found = 0
    for i in range(starts[v], starts[v + 1]):
        found += ends[i] != v and mark[ends[i]] == stamp
    return found


def rewire(graph: Graph, triangles: int, generator: np.random.Generator) -> Graph:
    """A graph of the same degrees whose triangles are as near to the goal as exchanges of edges bring them.

    >>> ring = Graph.of([(i, (i + 1) % 30) for i in range(30)] + [(i, (i + 3) % 30) for i in range(30)], vertices=30)
    >>> changed = rewire(ring, 12, np.random.default_rng(1))
    >>> changed.triangles, bool((changed.degrees == ring.degrees).all())
    (12, True)
    """
    starts, ends, now = graph.starts, graph.ends.copy(), graph.triangles
    if not len(ends):
        return graph
    batch = max(1000, graph.edge_count)
    for _ in range(PATIENCE):
        before = now
        for first in range(0, batch, PROPOSALS_AT_ONCE):
            drawn = generator.integers(0, 1 << 62, (min(batch - first, PROPOSALS_AT_ONCE), 5))
            now = int(_exchange_edges(starts, ends, now, int(triangles), drawn))
        if now == triangles or abs(now - before) < 1e-5 * max(triangles, 1):
            break
    _sort_rows(starts, ends)
    return Graph(starts, ends)


def _sort_rows(starts: Array, ends: Array) -> None:
    """Rows in increasing order, some at a time and where they are: exchanges leave every row its length."""
    for first, last in split_rows(starts):
        some = ends[starts[first] : starts[last]]
        codes = np.repeat(np.arange(last - first) << 32, np.diff(starts[first : last + 1]))
        codes |= some
        codes.sort()
        some[:] = codes & 0xFFFFFFFF
