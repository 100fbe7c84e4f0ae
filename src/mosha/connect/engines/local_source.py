"""A table on this machine, as DuckDB reads it: its FROM clause, its size and its state."""

from __future__ import annotations

import glob
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp

from mosha.connect.plan.relation import Compute, Limit, PublicJoin, Relation, Scan, Where
from mosha.connect.plan.source import FRAME, Source
from mosha.connect.sql.dialect import DUCKDB, Node

__all__ = ["LocalSource", "files_version", "size_of"]


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(Source):
    """A table that DuckDB reads: `origin` builds its FROM clause.

    `rows` is its size where that is cheap to know; `version` tells its present state, None where that cannot be told.
    """

    origin: Callable[[], Node] = exp.Null
    rows: int | None = None
    version: Callable[[], str | None] = lambda: None
    place: str = ""
    form: Callable[[], str | None] | None = None

    def read_form(self) -> str | None:
        """What analysing a statement about the table depends on; None where that cannot be told.

        Tables whose contents may change unseen can still tell their columns, or when their file was written: `form`.
        """
        return self.version() if self.form is None else self.form()

    def table(self, name: str) -> Node:
        return exp.alias_(self.origin(), name, table=True, quoted=True, copy=False)

    @property
    def origin_name(self) -> str:
        """The file, or the table of a database; frames are numbered as they come, so all have one name."""
        if self.place:
            return self.place
        node = self.origin()
        registered = isinstance(node, exp.Table) and not node.args.get("db")
        return FRAME if registered else DUCKDB.sql(node)


def files_version(place: str) -> str:
    """The state of all files of a path or glob: a changed file has another size or time."""
    states = [(path, Path(path).stat()) for path in sorted(glob.glob(place, recursive=True))]  # noqa: PTH207
    return repr([(path, state.st_mtime_ns, state.st_size, state.st_ino) for path, state in states])


def size_of(relation: Relation) -> int | None:
    """At most how many rows a relation has, where that is cheap to know."""
    if isinstance(relation, Scan):
        return relation.source.rows if isinstance(relation.source, LocalSource) else None
    if isinstance(relation, (Where, Compute, Limit)):
        return size_of(relation.parent)
    if isinstance(relation, PublicJoin):
        left = size_of(relation.left)
        return None if left is None or relation.at_most is None else left * relation.at_most
    return None
