"""Graphs in the catalogue: an edge list, whose presence is hidden, and what is public about the vertices.

    {"unit": {"edge": true}, "vertices": 5000}                 one edge is hidden; the vertices 0, ..., 4999 are public
    {"unit": {"node": true, "max_degree": 50}}                 one vertex with all its edges is hidden

At node level the vertices are private too: the source names a second file with one label a line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mosha.core.unit import Edge, Node, Unit
from mosha.server.errors import BadRequest

__all__ = ["ASKED", "MOST_VERTICES", "check_graph", "describe_graph", "graph_unit", "is_graph", "public_graph_of"]

MOST_VERTICES = 1_000_000_000
ENDINGS = (".txt", ".csv", ".tsv", ".edges", ".txt.gz", ".csv.gz", ".parquet")
"""Names of files that hold an edge a line, or a table of edges."""
ASKED = (
    "edges", "vertices", "density", "average_degree", "maximum_degree", "components", "triangles", "stars",
    "clustering", "degree_histogram", "degree_sequence", "cumulative_degrees", "degree_distribution", "communities",
    "seeds", "synthetic",
)  # fmt: skip
"""What a server answers; a whole adjacency matrix, or partitions of somebody's own, are for the library."""


def is_graph(kept: Mapping[str, object]) -> bool:
    """Whether a declaration is that of a graph."""
    return kept.get("kind") == "graph"


def check_graph(said: Mapping[str, Any], source: Mapping[str, object]) -> dict[str, Any]:
    """The declaration of a graph as it is kept. No line of the file is read.

    Args:
        said: unit, vertices (at edge level), ends (the two columns of a table).
        source: where the edges are; at node level also where the vertices are.
    """
    if "url" in source or not str(source["path"]).lower().endswith(ENDINGS):
        raise BadRequest("server.field_wrong", parameter="source.path", expected=", ".join(ENDINGS))
    if said.get("columns"):
        raise BadRequest("server.field_unknown", parameter="declaration.columns")
    kept: dict[str, Any] = {"kind": "graph", "unit": dict(said["unit"])}
    unit, vertices, ends = graph_unit(kept), said.get("vertices"), said.get("ends")
    if isinstance(unit, Edge):
        if not isinstance(vertices, int) or isinstance(vertices, bool) or not 0 < vertices <= MOST_VERTICES:
            expected = f"1, ..., {MOST_VERTICES}"
            raise BadRequest("server.field_wrong", parameter="declaration.vertices", expected=expected)
        kept["vertices"] = vertices
    elif vertices is not None:  # they are private: a public number of them would be a lie or a leak
        raise BadRequest("server.field_unknown", parameter="declaration.vertices")
    elif "vertices" not in source:
        raise BadRequest("server.field_missing", parameter="source.vertices")
    if ends is not None:
        if len(ends) != 2:
            raise BadRequest("server.field_wrong", parameter="declaration.ends", expected="[column, column]")
        kept["ends"] = list(ends)
    return kept


def graph_unit(kept: Mapping[str, Any]) -> Unit:
    """Whose presence is hidden."""
    said = dict(kept["unit"])
    of, kind = said.pop("of", None), [name for name in ("edge", "node") if said.pop(name, False) is True]
    most = said.pop("max_degree", None)
    if len(kind) != 1 or said or (kind == ["edge"] and most is not None):
        expected = '{"edge": true} | {"node": true, "max_degree": 50}'
        raise BadRequest("server.field_wrong", parameter="declaration.unit", expected=expected)
    return Edge(of=of) if kind == ["edge"] else Node(max_degree=most, of=of)


@lru_cache(maxsize=64)
def _public_graph(text: str) -> Any:
    from mosha import graphs  # noqa: PLC0415  (numerics are loaded with the first graph)

    kept = json.loads(text)
    return graphs.protect([], unit=graph_unit(kept), vertices=kept.get("vertices", 0))


def public_graph_of(kept: Mapping[str, object]) -> Any:
    """The graph without its edges: questions about it are checked, priced and forecast."""
    return _public_graph(json.dumps(kept, sort_keys=True))


def describe_graph(kept: Mapping[str, object]) -> dict[str, Any]:
    """The declaration for readers: who is hidden, how many vertices are public, what can be asked."""
    described: dict[str, Any] = {"unit": kept["unit"], "hidden": graph_unit(kept).describe(), "columns": []}
    return described | {"vertices": kept.get("vertices"), "questions": list(ASKED)}
