"""Triangles at node level: a linear programme that no vertex can move far, whatever its degree."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.graphs.data.exact_programme import maximize
from mosha.graphs.data.graph import Graph, kernels

__all__ = ["capped_triangles", "capped_triangles_at", "triangles_capped_at_edges"]

TOLERANCE = 0.25


def capped_triangles(graph: Graph, cap: int) -> int:
    """The largest weight of triangles, at most 1 each, of which no vertex holds more than `cap`; a whole number.

    Guarantee:
        Let f(G) be the optimum of: maximise sum x_t, 0 <= x_t <= 1, sum over t at v of x_t <= cap for every v. If G'
        has one vertex more, x = 0 on its triangles shows f(G') >= f(G), and leaving them out f(G') <= f(G) + cap.
        Where no vertex has more than cap triangles, f(G) is their number. The solver is not trusted: dual y >= 0 give
        f <= cap sum y + sum max(0, 1 - y at t), any x that is scaled into the constraints f >= sum x. The upper bound
        u is rounded if both are within 1/4, else u = f is found in exact fractions (`maximize`): there is always an
        answer. As f <= u <= f + 1/4, u moves by -1/4 to cap + 1/4
        when a vertex is added, and its rounded value by -1 to cap + 1.

    Units:
        Triangles.

    >>> clique = Graph.of([(i, j) for i in range(6) for j in range(i)], vertices=6)
    >>> capped_triangles(clique, 10), capped_triangles(clique, 4)
    (20, 8)
    """
    return capped_triangles_at(graph, (cap,))[0]


def capped_triangles_at(graph: Graph, caps: tuple[int, ...]) -> list[int]:
    """The same for several caps; triangles are listed once."""
    listed: NDArray[np.int32] = kernels().list_triangles(graph.starts, graph.ends)
    counts = np.bincount(listed.ravel(), minlength=graph.vertices)
    return [_optimum(listed, counts, cap) for cap in caps]


def triangles_capped_at_edges(graph: Graph, cap: int) -> int:
    """The largest weight of triangles, at most 1 each, of which no edge holds more than `cap`; a whole number.

    Guarantee:
        The proof of `capped_triangles` with edges in the place of vertices: adding an edge moves the optimum by 0 to
        cap, and its rounded value by -1 to cap + 1.

    Units:
        Triangles.

    >>> book = Graph.of([(0, 1), *((end, page) for end in (0, 1) for page in range(2, 7))], vertices=7)
    >>> triangles_capped_at_edges(book, 3), triangles_capped_at_edges(book, 5)
    (3, 5)
    """
    listed: NDArray[np.int64] = np.sort(kernels().list_triangles(graph.starts, graph.ends), axis=1).astype(np.int64)
    sides = np.stack([listed[:, i] * graph.vertices + listed[:, j] for i, j in ((0, 1), (0, 2), (1, 2))], axis=1)
    known, places = np.unique(sides, return_inverse=True)
    numbered = places.reshape(-1, 3)
    return _optimum(numbered, np.bincount(numbered.ravel(), minlength=known.size), cap)


def _optimum(listed: NDArray[np.generic], counts: NDArray[Any], cap: int) -> int:
    """Only triangles that touch a crowded vertex are in the programme, grouped by which crowded vertices they touch."""
    crowded = counts > cap
    if not crowded.any():
        return len(listed)
    marked = np.where(crowded[listed], listed, -1)
    touching = (marked >= 0).any(axis=1)
    groups, sizes = np.unique(np.sort(marked[touching], axis=1), axis=0, return_counts=True)
    places = np.cumsum(crowded) - 1
    member, side = np.nonzero(groups >= 0)
    rows = places[groups[member, side]]
    lower, upper = _certify_bounds(rows, member, sizes.astype(np.float64), int(crowded.sum()), float(cap))
    if not upper - lower <= TOLERANCE:
        return int(len(listed) - touching.sum()) + math.floor(_exact_optimum(rows, member, sizes, cap) + Fraction(1, 2))
    return int(len(listed) - touching.sum()) + int(np.floor(upper + 0.5))


def _exact_optimum(
    rows: NDArray[np.generic], columns: NDArray[np.generic], sizes: NDArray[np.generic], cap: int
) -> Fraction:
    """The optimum itself: a limit for each crowded vertex, and one for each group."""
    height = int(rows.max()) + 1
    taken: list[dict[int, int]] = [{height + group: 1} for group in range(len(sizes))]
    for row, group in zip(rows.tolist(), columns.tolist(), strict=True):
        taken[group][row] = 1
    return maximize(taken, [1] * len(sizes), [cap] * height + [int(size) for size in sizes])[0]


def _certify_bounds(
    rows: NDArray[Any], columns: NDArray[Any], sizes: NDArray[np.float64], height: int, cap: float
) -> tuple[float, float]:
    """Bounds on the optimum from below and above: sums of non-negative floats, off by less than 2**-30, relative."""
    from scipy.optimize import linprog  # noqa: PLC0415  (SciPy is loaded when it is needed)
    from scipy.sparse import csr_matrix  # noqa: PLC0415

    matrix = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(height, len(sizes)))
    bounds = np.stack([np.zeros_like(sizes), sizes], axis=1)
    solve: Any = linprog  # its stub knows no sparse matrices
    solved = solve(-np.ones(len(sizes)), A_ub=matrix, b_ub=np.full(height, cap), bounds=bounds, method="highs")
    if solved.x is None:
        return 0.0, np.inf
    weights = np.clip(solved.x, 0, sizes)
    load = matrix @ weights
    scale = np.minimum(1.0, cap / np.maximum(load, cap))
    feasible = weights * np.minimum.reduceat(scale[rows], np.flatnonzero(np.diff(columns, prepend=-1)))
    prices = np.maximum(-solved.ineqlin.marginals, 0.0)
    upper = cap * prices.sum() + (sizes * np.maximum(1 - matrix.T @ prices, 0.0)).sum()
    return float(feasible.sum()), float(upper)
