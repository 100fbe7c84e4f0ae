"""Graphs as people keep them, read into compressed rows: one rule of cleaning for all of them.

Self loops are dropped and edges that appear twice, in either direction, count once: the unit is the pair of vertices,
however often it was written down. Labels are whole numbers or text, each by itself (see `labels`), and an edge that
cannot be read is left out: nothing is refused, ordered or renamed because of what another edge or vertex is. What is
refused is refused by its type, its name or its header, which are public.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.options import ArcReading, choose
from mosha.graphs.data.edge_lists import Ends, ends_in_file, ends_in_rows, ends_in_table
from mosha.graphs.data.graph import MOST_VERTICES, Graph
from mosha.graphs.data.labels import read_label, sort_rank, whole_numbers

__all__ = ["read"]

TABLES = {"pandas", "polars", "pyarrow", "duckdb", "_duckdb"}

NO_EDGE_LISTS = (".json", ".jsonl", ".ndjson", ".xml", ".graphml", ".gexf", ".gml", ".yaml", ".xlsx", ".zip")
"""Names of files whose lines are no pairs."""


@explain_wrong_calls
def read(
    source: object, *, vertices: object = None, directed: ArcReading = "refuse", columns: tuple[str, str] | None = None
) -> Graph:
    """The simple undirected graph in `source`.

    Args:
        source: a networkx, igraph or SciPy sparse graph; an array of pairs; a path to an edge list (txt, csv or
            Parquet, the first two also as gz); a pandas, Polars or Arrow table or a DuckDB relation of edges; a Graph.
        vertices: the vertex set where it is not in the source: a number n for 0, ..., n - 1, a list of labels, or
            "endpoints" for those that have an edge (in a public graph). Edges that end elsewhere are dropped.
        directed: "refuse", or "symmetrize" to read arcs as edges; it is about graph objects that say what they are. A
            matrix or a list of pairs does not, and to tell from what is in it would be to tell of its edges: there a
            pair that is written in either direction is an edge.
        columns: the two columns of a table or csv that hold the ends, where it has more than two.

    >>> read(np.array([[0, 1], [1, 0], [2, 2]]), vertices=4).edge_count
    1
    """
    directed = choose("directed", directed, ArcReading, renamed={"symmetrise": "symmetrize"})
    if isinstance(source, Graph):
        return source
    known = _read_object(source, directed)
    ends, found = known if known is not None else (_read_table(source, columns), None)
    if found is not None and vertices is not None:
        raise InvalidParameter("graphs.source_has_vertices", parameter="vertices")
    return _number_vertices(ends, found if found is not None else vertices)


def _read_object(source: Any, directed: ArcReading) -> tuple[Ends, Any] | None:
    """Graph objects bring their vertices."""
    kind = type(source).__module__.split(".")[0]
    if kind == "networkx":
        _check_direction(source.is_directed(), directed)
        place = {label: number for number, label in enumerate(sorted(source.nodes(), key=sort_rank))}
        pairs = [(place[u], place[v]) for u, row in source.adj.items() for v in row]
        return _split_columns(np.array(pairs, np.int64).reshape(-1, 2)), _Numbered(list(place))
    if kind == "igraph":
        _check_direction(source.is_directed(), directed)
        return _split_columns(np.array(source.get_edgelist(), np.int64).reshape(-1, 2)), source.vcount()
    if kind == "scipy":
        matrix = source.tocoo()
        if matrix.shape[0] != matrix.shape[1]:
            raise DataError("graphs.matrix_not_square")
        real = matrix.data != 0  # on either side of the diagonal: whether both are there is private
        return (matrix.row[real], matrix.col[real]), int(matrix.shape[0])
    return None


class _Numbered:
    """Labels of vertices whose edges are numbers already."""

    def __init__(self, labels: list[object]) -> None:
        self.labels = labels


def _check_direction(is_directed: object, directed: ArcReading) -> None:
    if is_directed and directed == "refuse":
        raise DataError("graphs.directed_graph", parameter="directed")


def _split_columns(pairs: NDArray[np.generic]) -> Ends:
    return pairs[:, 0], pairs[:, 1]


def _read_table(source: object, columns: tuple[str, str] | None) -> Ends:
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(source), columns)
    if type(source).__module__.split(".")[0] in TABLES:
        return ends_in_table(source, columns)
    if isinstance(source, np.ndarray):
        if source.size and (source.ndim != 2 or source.shape[1] != 2):
            raise DataError("graphs.array_without_ends")
        return ends_in_rows(source.reshape(-1, 2))
    if not isinstance(source, Iterable) or isinstance(source, Mapping | bytes | bytearray | memoryview):
        raise DataError("graphs.not_a_graph", kind=type(source).__name__)
    return ends_in_rows(source)


def _read_file(path: Path, columns: tuple[str, str] | None) -> Ends:
    kind = "".join(path.suffixes[-2:]).lower()
    if kind.removesuffix(".gz").endswith(NO_EDGE_LISTS):
        raise DataError("graphs.unknown_file_type")
    if kind.endswith(".parquet"):
        return _read_parquet(path, columns)
    try:
        text = gzip.decompress(path.read_bytes()) if kind.endswith(".gz") else path.read_bytes()
    except FileNotFoundError:
        raise DataError("graphs.no_such_file") from None
    except (OSError, EOFError, zlib.error):
        raise DataError("graphs.file_damaged") from None
    return ends_in_file(text, columns, header=kind.endswith((".csv", ".csv.gz")))


def _read_parquet(path: Path, columns: tuple[str, str] | None) -> Ends:
    import duckdb  # noqa: PLC0415  (Parquet is read by the engine that all tables use)

    if not path.exists():
        raise DataError("graphs.no_such_file")
    try:
        with duckdb.connect() as connection:
            return ends_in_table(connection.read_parquet(str(path)), columns)
    except duckdb.Error:
        raise DataError("graphs.file_not_a_table") from None


def _number_vertices(ends: Ends, vertices: object) -> Graph:
    """Edges between numbers, where the numbers follow the order of the labels."""
    if isinstance(vertices, _Numbered):
        return Graph.of(np.stack(ends, axis=1), vertices=len(vertices.labels), labels=tuple(vertices.labels))
    if isinstance(vertices, int | np.integer) and not isinstance(vertices, bool):
        return _keep_within(ends, int(vertices))
    if isinstance(vertices, str) and vertices == "endpoints":
        return _number_labels(ends, {label for side in ends for label in _list_distinct(side)})
    if vertices is None:
        raise InvalidParameter("graphs.vertices_not_given", parameter="vertices")
    if isinstance(vertices, str) or not isinstance(vertices, Iterable):
        raise InvalidParameter("graphs.vertices_option", parameter="vertices")
    return _number_labels(ends, {read_label(label) for label in vertices})


def _keep_within(ends: Ends, vertices: int) -> Graph:
    if not 0 <= vertices <= MOST_VERTICES:
        raise InvalidParameter("graphs.vertices_out_of_range", parameter="vertices")
    first, second = (whole_numbers(side) for side in ends)
    inside = (first >= 0) & (first < vertices) & (second >= 0) & (second < vertices)
    if not inside.all():
        first, second = first[inside], second[inside]
    return Graph.of(np.stack([first, second], axis=1), vertices=vertices)


def _list_distinct(side: NDArray[np.generic]) -> list[int | str]:
    found: list[int | str] = (np.unique(side) if side.dtype == np.int64 else side).tolist()
    return found


def _number_labels(ends: Ends, vertices: set[int | str]) -> Graph:
    """Labels in the order of `sort_rank`; two spellings of one label are one vertex."""
    numbers = np.array(sorted(label for label in vertices if isinstance(label, int)), np.int64)
    texts = sorted((label for label in vertices if isinstance(label, str)), key=sort_rank)
    labels = (*numbers.tolist(), *texts) if texts else numbers
    if all(side.dtype == np.int64 for side in ends):
        found = [_find_places(numbers, side) for side in ends]
    else:
        place = {label: number for number, label in enumerate(numbers.tolist() + texts)}
        found = [np.array([place.get(label, -1) for label in side.tolist()], np.int64) for side in ends]
    known = (found[0] >= 0) & (found[1] >= 0)
    return Graph.of(np.stack([f[known] for f in found], axis=1), vertices=len(labels), labels=labels)


def _find_places(numbers: NDArray[np.int64], side: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each end among sorted numbers, -1 where it is none of them."""
    if not numbers.size:
        return np.full(side.shape, -1, np.int64)
    places = np.minimum(np.searchsorted(numbers, side), numbers.size - 1)
    return np.where(numbers[places] == side, places, -1).astype(np.int64)
