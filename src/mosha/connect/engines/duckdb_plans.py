"""Plans of statements that DuckDB has looked at, its settings, and what is said where a statement fails.

What was analysed before payment is what runs after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from mosha.connect.kernels.slices import OutOfMemory
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.number import positive_integer
from mosha.core.private_log import note_privately

__all__ = ["Plans", "hide_errors", "make_config", "read_silently"]

KEPT = 16  # between the look and the answer; a question that is not paid for leaves its plans behind

T = TypeVar("T")


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

    def read(self, statement: str, rows: int) -> Any:
        """The answer as Arrow batches of so many rows; a prepared one would be copied whole, so it is planned anew."""
        self._forget(statement)
        return self._connection.sql(statement).to_arrow_reader(rows)

    def _forget(self, statement: str) -> None:
        if (name := self._names.pop(statement, None)) is not None:
            self._connection.execute(f"DEALLOCATE {name}")


def hide_errors(work: Callable[[], T], problem: DataError, statement: str | None = None) -> T:
    """What an engine says may hold data: one public sentence takes its place, with no trace of the original."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  (raised below, outside of the handler: no context goes on)
        note_privately("DuckDB", error, statement=statement)
    raise problem


def read_silently(work: Callable[[], T], statement: str) -> T:
    """The same while rows are read: a failure may depend on them, so it counts as an answer and stays paid.

    Too little memory has an error of its own: there may be another way.
    """
    kind: type[DataError] = DataError
    try:
        return work()
    except duckdb.OutOfMemoryException as error:
        kind = OutOfMemory
        note_privately("DuckDB", error, statement=statement)
    except Exception as error:  # noqa: BLE001  (raised below, outside of the handler: no context goes on)
        note_privately("DuckDB", error, statement=statement)
    raise kind("connect.duckdb_unfinished")


def make_config(memory_limit: str | None, threads: int | None, spill: str | Path | None) -> dict[str, Any]:
    """The settings of a connection that reads alone."""
    config: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,  # a name in SQL never means a Python variable
        "pandas_analyze_sample": 2**40,  # every object decides about the type of its column
    }
    if memory_limit is not None:
        if not isinstance(memory_limit, str) or not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", memory_limit):
            raise InvalidParameter("connect.memory_limit", parameter="memory_limit")
        config["memory_limit"] = memory_limit
    if threads is not None:
        config["threads"] = positive_integer("threads", threads)
    if spill is not None:
        config["temp_directory"] = str(spill)
    return config
