"""How DuckDB runs statements: planned at the look, in slices of persons where its memory is too small, and silently.

What was analysed before payment is what runs after it. What an engine says where a statement fails may hold data, so
one public sentence takes its place.

Guarantee:
    A slice holds all rows of the persons whose names have a certain hash, so it bounds them as the whole table would;
    the answer is a sum over persons in exact integers, so the slices add up to the same integers (`bounding.md`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np

from mosha.connect.engines.source import stopping, too_late
from mosha.connect.kernels.columns import values_of
from mosha.connect.plan.aggregation import Aggregation, Norms, Question
from mosha.connect.plan.bounding import NormBound, Truncate
from mosha.connect.plan.source import Array, Totals, integers
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.number import positive_integer
from mosha.core.private_log import note_privately

__all__ = [
    "OutOfMemory",
    "Plans",
    "hide_errors",
    "in_slices",
    "make_config",
    "read_memory_limit",
    "read_silently",
    "slices_for",
]

MOST_SLICES = 1024
SPILLED = 8  # so many times its memory an engine is trusted to spill
KEPT = 16  # between the look and the answer; a question that is not paid for leaves its plans behind

T = TypeVar("T")


class OutOfMemory(DataError):
    """An engine had too little memory; nobody outside of the engine sees this."""


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

    def read_batches(self, statement: str, rows: int) -> Iterator[Mapping[str, Any]]:
        """The columns of an answer, so many rows at a time (few hand-overs), not beyond the deadline."""
        late = False
        with stopping(self._connection.interrupt) as struck:
            try:
                reader = read_silently(lambda: self._begin(statement, rows), statement)
                follow = lambda: next(reader, None)
                while (batch := read_silently(follow, statement)) is not None and not struck():
                    yield dict(zip(batch.schema.names, batch.columns, strict=True))
                late = batch is not None
            except DataError:
                if not struck():
                    raise
                late = True
        if late:
            raise too_late()

    def _begin(self, statement: str, rows: int) -> Any:
        """The answer as Arrow batches; a prepared one would be copied whole, so it is planned anew."""
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


def slices_for(question: Question, rows: int | None, memory: int) -> int:
    """With how many slices to begin: a power of two, by the sizes of table and memory alone."""
    if not _sums_over_persons(question) or rows is None:
        return 1
    size = rows * 8 * (4 + 3 * len(values_of(question)))
    count = 1
    while count < MOST_SLICES and size > SPILLED * memory * count:
        count *= 2
    return count


def in_slices(question: Question, count: int, answer: Callable[[Question], Totals]) -> Totals:
    """The answer from `count` slices; from twice as many whenever the memory is too small for one of them."""
    while True:
        try:
            return (
                answer(question)
                if count == 1
                else _add_parts(answer(question.take_slice(i, count)) for i in range(count))
            )
        except OutOfMemory:
            if count >= MOST_SLICES or not _sums_over_persons(question):
                raise
        count *= 2


def _sums_over_persons(question: Question) -> bool:
    """Whether the answer is a sum over persons. A count of distinct values is none: persons share values."""
    bounded = isinstance(question, Aggregation) and isinstance(question.bound, (NormBound, Truncate))
    return bounded or isinstance(question, Norms)


def _add_parts(parts: Iterator[Totals]) -> Totals:
    """The sums of all parts, group by group, in the order in which groups first appear."""
    first = next(parts)
    place: dict[tuple[Any, ...], int] = {}
    keys: list[list[Array]] = [[] for _ in first.keys]
    sums: dict[str, list[int]] = {name: [] for name in first.values}
    part: Totals | None = first
    while part is not None:
        rows = list(part.rows())
        fresh = [row for row, (key, _) in enumerate(rows) if key not in place]
        for row in fresh:
            place[rows[row][0]] = len(place)
        for column, found in zip(keys, part.keys, strict=True):
            column.append(found[fresh])
        for at, column_sums in enumerate(sums.values()):
            column_sums.extend([0] * len(fresh))
            for key, values in rows:
                column_sums[place[key]] += values[at]
        part = next(parts, None)
    columns = tuple(np.concatenate(column) for column in keys)
    return Totals(first.schema, columns, {name: integers(column) for name, column in sums.items()})


def read_memory_limit(connection: duckdb.DuckDBPyConnection) -> int:
    """How many bytes a connection may use."""
    [(text_size,)] = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    amount, unit = str(text_size).split()
    return int(float(amount) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB").index(unit))


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
