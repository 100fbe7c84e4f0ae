"""A table on this machine, as DuckDB reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from mosha.connect.dialect import DUCKDB, Node
from mosha.connect.source import FRAME, Source

__all__ = ["LocalSource"]


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(Source):
    """A table that DuckDB reads: `origin` builds its FROM clause.

    `rows` is its size where that is cheap to know; `version` tells its present state, None where that cannot be told.
    """

    origin: Callable[[], Node] = exp.Null
    rows: int | None = None
    version: Callable[[], str | None] = lambda: None
    place: str = ""

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
