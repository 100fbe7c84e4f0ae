"""Edge lists, read by a worker inside of a step that was paid for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosha.core.errors import SourceUnavailable

__all__ = ["check_files", "read_edges"]


def check_files(source: Sequence[Any]) -> None:
    """Whether the files are there, which is known before anybody pays."""
    place, options = source
    for each in (place, options.get("vertices")):
        if each is not None and not Path(each).is_file():
            raise SourceUnavailable("server.source_gone", spent="nothing")


def read_edges(source: Sequence[Any], declaration: Mapping[str, Any]) -> Any:
    """The graph: its edges, and at node level its vertices, one label a line."""
    from mosha import graphs  # noqa: PLC0415  (a worker is there before it has work)

    place, options = source
    ends = declaration.get("ends")
    vertices: Any = declaration.get("vertices")
    if vertices is None:
        lines = Path(options["vertices"]).read_text(encoding="utf-8", errors="replace").splitlines()
        vertices = [line.strip() for line in lines if line.strip()]
    return graphs.read(place, vertices=vertices, columns=None if ends is None else tuple(ends))
