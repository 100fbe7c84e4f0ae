"""A simple undirected graph in compressed rows, and the exact statistics of it."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.names.deprecation import renamed_method

__all__ = ["AnyGraph", "Graph", "kernels", "split_rows"]

Integers = NDArray[np.int64]
MOST_VERTICES = 2**31 - 2
ENDS_AT_ONCE = 2**20


@cache
def kernels() -> Any:
    """The compiled loops where numba is installed (the extra `graphs`), those of SciPy elsewhere."""
    compiled = importlib.util.find_spec("numba") is not None
    return importlib.import_module("mosha.graphs.data.compiled" if compiled else "mosha.graphs.data.sparse")


def split_rows(starts: Integers, size: int = ENDS_AT_ONCE) -> Iterator[tuple[int, int]]:
    """Ranges of vertices whose rows together have about so many ends: what is made of them at once stays small.

    `starts` are those of a graph; a range is longer than `size` by less than one row.

    >>> list(split_rows(np.array([0, 2, 3, 3, 6]), 3))
    [(0, 2), (2, 4)]
    """
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + size))
        last = min(max(last, first + 1), len(starts) - 1)
        yield first, last
        first = last


class AnyGraph(Protocol):
    """What statistics need of a graph, wherever its edges are: in memory (`Graph`) or on Spark (`SparkGraph`)."""

    @property
    def vertices(self) -> int: ...

    @property
    def labels(self) -> Sequence[object] | NDArray[np.generic] | None: ...

    @property
    def edge_count(self) -> int: ...

    @property
    def triangles(self) -> int: ...

    @property
    def most_common_neighbors(self) -> int: ...

    @property
    def components(self) -> int: ...

    def degree_counts(self, length: int) -> Integers: ...

    def highest_degrees(self) -> tuple[int, int]: ...

    def stars(self, k: int) -> int: ...

    def projected_degrees(self, bound: int) -> Integers: ...


@explain_wrong_calls
@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Vertices 0, ..., n - 1, in the order of their labels; the neighbors of each as a sorted row.

    `labels` are what the vertices are called, in order; None where they are called by their numbers.

    Units:
        `starts` has n + 1 entries; the neighbors of v are `ends[starts[v]:starts[v + 1]]`; every edge is in two rows.

    >>> triangle = Graph.of([(0, 1), (1, 2), (2, 0), (0, 0), (1, 0)], vertices=4)
    >>> triangle.vertices, triangle.edge_count, triangle.triangles, triangle.components
    (4, 3, 1, 2)
    """

    starts: Integers
    ends: NDArray[np.int32]
    labels: tuple[object, ...] | NDArray[np.generic] | None = field(default=None)

    @classmethod
    def of(
        cls, pairs: ArrayLike, *, vertices: int, labels: tuple[object, ...] | NDArray[np.generic] | None = None
    ) -> Graph:
        """The simple graph of `pairs` of numbers below `vertices`: loops are dropped, repetitions merged.

        `labels` are those of the graph.
        """
        if not 0 <= vertices <= MOST_VERTICES:
            raise InvalidParameter("graphs.vertex_count", parameter="vertices")
        array = np.asarray(pairs)
        array = array.reshape(-1, 2) if array.size else np.zeros((0, 2), np.int32)
        if array.dtype.kind not in "iu":
            raise InvalidParameter("graphs.ends_not_integers", parameter="pairs")
        if array.size and not (int(array.min()) >= 0 and int(array.max()) < vertices):
            raise InvalidParameter("graphs.end_outside", parameter="pairs")
        first, second = (array[:, side].astype(np.int32, copy=False) for side in (0, 1))
        starts, ends = kernels().compress_rows(first, second, vertices)
        return cls(starts, ends, labels)

    @property
    def vertices(self) -> int:
        return len(self.starts) - 1

    @property
    def edge_count(self) -> int:
        return len(self.ends) // 2

    @cached_property
    def degrees(self) -> Integers:
        """The degree of each vertex."""
        return np.diff(self.starts)

    def degree_counts(self, length: int) -> Integers:
        """How many vertices have degree 0, 1, ..., `length` - 1; higher degrees count as the last one."""
        return np.bincount(np.minimum(self.degrees, length - 1), minlength=length).astype(np.int64)

    def highest_degrees(self) -> tuple[int, int]:
        """The two highest degrees; zero where there are no such vertices."""
        top = np.sort(np.partition(self.degrees, -2)[-2:]) if self.vertices > 1 else np.append(0, self.degrees)
        return (int(top[-1]), int(top[-2])) if top.size > 1 else (0, 0)

    def neighbors(self, vertex: int) -> NDArray[np.int32]:
        """The vertices beside `vertex`, sorted."""
        return self.ends[self.starts[vertex] : self.starts[vertex + 1]]

    neighbours = renamed_method("neighbours", "neighbors")

    def pairs(self) -> NDArray[np.int32]:
        """Every edge once, smaller end first, in lexicographic order."""
        found, done = np.empty((self.edge_count, 2), np.int32), 0
        for first, last in split_rows(self.starts):
            ends = self.ends[self.starts[first] : self.starts[last]]
            sources = np.repeat(np.arange(first, last, dtype=np.int32), self.degrees[first:last])
            up = ends > sources
            some = found[done : done + int(up.sum())]
            some[:, 0], some[:, 1] = sources[up], ends[up]
            done += len(some)
        return found

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((int(u), int(v)) for u, v in self.pairs())

    @cached_property
    def triangles(self) -> int:
        return int(kernels().triangle_count(self.starts, self.ends))

    @cached_property
    def most_common_neighbors(self) -> int:
        """The largest number of common neighbors over all pairs of vertices."""
        return int(kernels().most_common_neighbors(self.starts, self.ends))

    @cached_property
    def components(self) -> int:
        return int(kernels().component_count(self.starts, self.ends))

    def stars(self, k: int) -> int:
        """How many stars with `k` leaves there are: the sum over vertices of C(degree, k), in exact integers."""
        degrees, counts = np.unique(self.degrees, return_counts=True)
        return sum(math.comb(int(d), k) * int(c) for d, c in zip(degrees, counts, strict=True))

    def projected_degrees(self, bound: int) -> Integers:
        """The degrees that edge addition from the last vertex down leaves when none may exceed `bound`."""
        degrees: Integers = kernels().project_degrees(self.starts, self.ends, bound)[0]
        return degrees

    def __repr__(self) -> str:
        return "Graph(...)"  # how many edges it has may be private
