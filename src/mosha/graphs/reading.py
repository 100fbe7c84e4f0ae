"""Graphs as people keep them, read into compressed rows: one rule of cleaning for all of them.

Self loops are dropped and edges that appear twice, in either direction, count once: the unit is the pair of vertices,
however often it was written down. Nothing is refused because of what a single edge is.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.graphs.graph import MOST_VERTICES, Graph

__all__ = ["read"]

TABLES = {"pandas", "polars", "pyarrow", "duckdb", "_duckdb"}
Ends = tuple[NDArray[Any], NDArray[Any]]


def read(
    source: Any, *, vertices: Any = None, directed: str = "refuse", columns: tuple[str, str] | None = None
) -> Graph:
    """The simple undirected graph in `source`.

    Args:
        source: a networkx, igraph or SciPy sparse graph; an array of pairs; a path to an edge list (txt, csv or
            Parquet, the first two also as gz); a pandas, Polars or Arrow table or a DuckDB relation of edges; a Graph.
        vertices: the vertex set where it is not in the source: a number n for 0, ..., n - 1, a list of labels, or
            "endpoints" for those that have an edge. Edges that end elsewhere are dropped.
        directed: "refuse", or "symmetrise" to read arcs as edges.
        columns: the two columns of a table that hold the ends; its first two otherwise.

    >>> read(np.array([[0, 1], [1, 0], [2, 2]]), vertices=4).edge_count
    1
    """
    if directed not in {"refuse", "symmetrise"}:
        raise InvalidParameter("directed must be 'refuse' or 'symmetrise'.")
    if isinstance(source, Graph):
        return source
    known = _object(source, directed)
    ends, found = known if known is not None else (_table(source, columns), None)
    if found is not None and vertices is not None:
        raise InvalidParameter("this source brings its vertices: leave vertices=... out.")
    return _numbered(ends, found if found is not None else vertices)


def _object(source: Any, directed: str) -> tuple[Ends, Any] | None:
    """Graph objects bring their vertices."""
    kind = type(source).__module__.split(".")[0]
    if kind == "networkx":
        _direction(source.is_directed(), directed)
        place = {label: number for number, label in enumerate(_ordered(source.nodes()))}
        pairs = [(place[u], place[v]) for u, row in source.adj.items() for v in row]
        return _columns(np.array(pairs, np.int64).reshape(-1, 2)), _Numbered(list(place))
    if kind == "igraph":
        _direction(source.is_directed(), directed)
        return _columns(np.array(source.get_edgelist(), np.int64).reshape(-1, 2)), source.vcount()
    if kind == "scipy":
        matrix = source.tocoo()
        if matrix.shape[0] != matrix.shape[1]:
            raise DataError("an adjacency matrix is square.")
        if directed == "refuse" and (abs(source - source.T)).nnz:
            raise DataError("this matrix is not symmetric: say directed='symmetrise' to read arcs as edges.")
        real = matrix.data != 0
        return (matrix.row[real], matrix.col[real]), int(matrix.shape[0])
    return None


class _Numbered:
    """Labels of vertices whose edges are numbers already."""

    def __init__(self, labels: list[Any]) -> None:
        self.labels = labels


def _direction(is_directed: Any, directed: str) -> None:
    if is_directed and directed == "refuse":
        raise DataError("this graph is directed: say directed='symmetrise' to read arcs as edges.")


def _ordered(labels: Iterable[Any]) -> list[Any]:
    """Labels in an order that does not depend on which others there are."""
    kept = list(labels)
    try:
        return sorted(kept)
    except TypeError:
        return sorted(kept, key=lambda label: (type(label).__name__, repr(label)))


def _columns(pairs: NDArray[Any]) -> Ends:
    return pairs[:, 0], pairs[:, 1]


def _table(source: Any, columns: tuple[str, str] | None) -> Ends:
    if isinstance(source, str | os.PathLike):
        return _file(Path(source), columns)
    if type(source).__module__.split(".")[0] in TABLES:
        return _frame(source, columns)
    try:
        pairs = np.asarray(source)
    except (ValueError, TypeError):
        pairs = np.empty(0, object)
    if pairs.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise DataError(f"a {type(source).__name__} is no graph that Mosha can read: give pairs of vertices.")
    return _columns(pairs)


def _frame(source: Any, columns: tuple[str, str] | None) -> Ends:
    """Two columns of a table, by name or the first two; rows without both ends are dropped."""
    kind = type(source).__module__.split(".")[0]
    names = [str(name) for name in (source.column_names if kind == "pyarrow" else source.columns)]
    chosen = columns or tuple(names[:2])
    if len(chosen) != 2 or any(name not in names for name in chosen):
        raise DataError("an edge table has two columns of ends: name them with columns=(first, second).")
    if "duckdb" in kind:
        return _fetched(source, chosen[0], chosen[1])
    import duckdb  # noqa: PLC0415  (frames are read by the engine that reads files)

    with duckdb.connect() as connection:
        return _fetched(
            connection.from_arrow(source) if kind == "pyarrow" else _registered(connection, source), *chosen
        )


def _registered(connection: Any, frame: Any) -> Any:
    connection.register("edges", frame.to_arrow() if type(frame).__module__.startswith("polars") else frame)
    return connection.table("edges")


def _fetched(relation: Any, first: str, second: str) -> Ends:
    names = [name.replace('"', '""') for name in (first, second)]
    found = (
        relation.project(f'"{names[0]}" AS a, "{names[1]}" AS b').filter("a IS NOT NULL AND b IS NOT NULL").fetchnumpy()
    )
    one, two = (np.ma.getdata(found[name]) for name in ("a", "b"))
    return _comparable(np.asarray(one)), _comparable(np.asarray(two))


def _comparable(labels: NDArray[Any]) -> NDArray[Any]:
    if labels.dtype.kind == "O":
        return np.array([str(label) for label in labels.tolist()])
    return labels


def _file(path: Path, columns: tuple[str, str] | None) -> Ends:
    kind = "".join(path.suffixes[-2:]).lower()
    if kind.endswith((".parquet", ".csv", ".csv.gz")):
        return _queried(path, columns, parquet=kind.endswith(".parquet"))
    try:
        text = gzip.decompress(path.read_bytes()) if kind.endswith(".gz") else path.read_bytes()
    except FileNotFoundError:
        raise DataError("there is no such file.") from None
    except (OSError, EOFError, zlib.error):
        raise DataError(
            "this file could not be read to its end: it is damaged, cut short, or not compressed."
        ) from None
    return _text(text)


def _queried(path: Path, columns: tuple[str, str] | None, *, parquet: bool) -> Ends:
    import duckdb  # noqa: PLC0415  (files are read by the engine that all tables use)

    if not path.exists():
        raise DataError("there is no such file.")
    try:
        with duckdb.connect() as connection:
            relation = connection.read_parquet(str(path)) if parquet else connection.read_csv(str(path))
            return _frame(relation, columns)
    except duckdb.Error:
        raise DataError("this file could not be read as a table of edges.") from None


def _text(text: bytes) -> Ends:
    """Two words a line, apart by blanks, tabs or commas; lines that start with # or % are comments."""
    if b"#" in text or b"%" in text:
        text = b"\n".join(line for line in text.split(b"\n") if not line.lstrip().startswith((b"#", b"%")))
    text = text.replace(b",", b" ")
    lines = len(re.findall(rb"[^\s]+[^\n]*", text))
    plain = not text.translate(None, b"0123456789 \t\r\n") and re.search(rb"\d{19}", text) is None
    pairs = np.fromstring(text.decode(), dtype=np.int64, sep=" ") if plain and text.strip() else _words(text)
    start = text[:100_000].split(b"\n")[:-1]
    if len(pairs) != 2 * lines or any(len(line.split()) not in (0, 2) for line in start):
        raise DataError("an edge list has two ends on every line.")
    return _columns(pairs.reshape(-1, 2))


def _words(text: bytes) -> NDArray[Any]:
    """Whole numbers where all words are, text elsewhere."""
    words = text.split()
    try:
        return np.array([int(word) for word in words], np.int64)
    except (ValueError, OverflowError):
        return np.array([word.decode("utf-8", "backslashreplace") for word in words])


def _numbered(ends: Ends, vertices: Any) -> Graph:
    """Edges between numbers, where the numbers follow the order of the labels."""
    first, second = ends
    if isinstance(vertices, _Numbered):
        return Graph.of(np.stack(ends, axis=1), vertices=len(vertices.labels), labels=tuple(vertices.labels))
    if isinstance(vertices, int | np.integer) and not isinstance(vertices, bool):
        return _within(first, second, int(vertices))
    if isinstance(vertices, str) and vertices == "endpoints":
        labels = np.unique(np.concatenate([np.asarray(first), np.asarray(second)]))
        return _labelled(first, second, labels)
    if vertices is None:
        raise InvalidParameter(
            "an edge list does not say which vertices there are: vertices=n for 0, ..., n - 1, a list of labels, or "
            "'endpoints' for those that have an edge."
        )
    if isinstance(vertices, str) or not isinstance(vertices, Iterable):
        raise InvalidParameter("vertices is a number, a list of labels, or 'endpoints'.")
    return _labelled(first, second, np.unique(np.asarray(list(vertices))))


def _within(first: NDArray[Any], second: NDArray[Any], vertices: int) -> Graph:
    if not 0 <= vertices <= MOST_VERTICES:
        raise InvalidParameter("vertices must lie between 0 and 2**31 - 2.")
    if first.dtype.kind not in "iu" or second.dtype.kind not in "iu":
        raise DataError("these ends are not whole numbers: give the vertices as a list of labels.")
    inside = (first >= 0) & (first < vertices) & (second >= 0) & (second < vertices)
    if not inside.all():
        first, second = first[inside], second[inside]
    return Graph.of(np.stack([first, second], axis=1), vertices=vertices)


def _labelled(first: NDArray[Any], second: NDArray[Any], labels: NDArray[Any]) -> Graph:
    if labels.dtype.kind not in "iu" and first.dtype.kind in "iu":
        labels, first, second = labels.astype(str), first.astype(str), second.astype(str)
    elif labels.dtype.kind in "iu" and first.dtype.kind not in "iu":
        labels = np.sort(labels.astype(str))
    if labels.dtype.kind not in "iuU":
        labels, first, second = labels.astype(str), np.asarray(first).astype(str), np.asarray(second).astype(str)
    labels = np.unique(labels)
    if not labels.size:
        return Graph.of([], vertices=0, labels=labels)
    places = [np.minimum(np.searchsorted(labels, side), labels.size - 1) for side in (first, second)]
    known = (labels[places[0]] == first) & (labels[places[1]] == second)
    return Graph.of(np.stack([p[known] for p in places], axis=1), vertices=labels.size, labels=labels)
