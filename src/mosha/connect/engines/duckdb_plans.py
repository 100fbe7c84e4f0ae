"""Plans of statements that DuckDB has looked at: what was analysed before payment is what runs after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

__all__ = ["Plans"]

KEPT = 16  # between the look and the answer; a question that is not paid for leaves its plans behind


class Plans:
    """Prepared statements of one connection, each made anew at every look and run once. Not for two threads at once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._made = 0
        self._names: dict[str, str] = {}

    def make(self, statement: str, *, keep: bool) -> None:
        """Analyse and plan a statement, without reading a row; it is not kept where it reads arrays that are let go."""
        if not keep:
            self._connection.execute(f"EXPLAIN {statement}").fetchall()
            return
        for old in [statement] if statement in self._names else list(self._names)[: -KEPT + 1]:
            self._forget(old)
        self._made += 1
        self._connection.execute(f"PREPARE mosha_{self._made} AS {statement}")
        self._names[statement] = f"mosha_{self._made}"

    def run(self, statement: str) -> Mapping[str, Any]:
        """The columns of an answer, by the plan of the statement where there is one."""
        name = self._names.get(statement)
        try:
            return dict(self._connection.execute(f"EXECUTE {name}" if name else statement).fetchnumpy())
        finally:
            self._forget(statement)

    def _forget(self, statement: str) -> None:
        if (name := self._names.pop(statement, None)) is not None:
            self._connection.execute(f"DEALLOCATE {name}")
