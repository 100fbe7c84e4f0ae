"""DuckDB: files and frames on this machine, and DuckDB databases, read only."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from mosha.connect.aggregation import Norms, Question
from mosha.connect.dialect import DUCKDB, Kind, Node, binary, call, cast, column, number, text
from mosha.connect.duckdb_fields import csv_field, field_of, key_array
from mosha.connect.rows import subquery
from mosha.connect.schema import Type
from mosha.connect.source import Engine, Field, Source
from mosha.connect.statement import Query, alias, select
from mosha.connect.totals import Array, integers
from mosha.core.errors import DataError, InvalidParameter, SourceUnavailable
from mosha.core.number import positive_integer

__all__ = ["DuckDB", "LocalSource"]

LIMB = 2**62
SNIFFED = ("Delimiter", "Quote", "Escape", "HasHeader", "Columns", "DateFormat", "TimestampFormat")


@dataclass(frozen=True, eq=False)
class LocalSource(Source):
    """A table that DuckDB reads: `origin` builds its FROM clause; `rows` is its size where that is cheap to know."""

    origin: Callable[[], Node] = exp.Null
    rows: int | None = None

    def table(self, name: str) -> Node:
        return exp.alias_(self.origin(), name, table=True, quoted=True, copy=False)


class DuckDB(Engine):
    """An embedded engine. It spills to `spill` beyond `memory_limit`, reads only, and fetches no extensions.

    Units:
        `memory_limit` is a size such as "2GB"; `threads` a number of processor threads.
    """

    dialect = DUCKDB

    def __init__(
        self, *, memory_limit: str | None = None, threads: int | None = None, spill: str | Path | None = None
    ) -> None:
        config: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        if memory_limit is not None:
            if not isinstance(memory_limit, str) or not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", memory_limit):
                raise InvalidParameter("memory_limit is a size such as '2GB' or '512MB'.")
            config["memory_limit"] = memory_limit
        if threads is not None:
            config["threads"] = positive_integer("threads", threads)
        if spill is not None:
            config["temp_directory"] = str(spill)
        self._connection = duckdb.connect(":memory:", config=config)
        self._lock = threading.Lock()
        self._frames = 0
        self._attached: dict[str, str] = {}

    def file(self, path: str | Path) -> LocalSource:
        """A CSV or Parquet file, a folder of Parquet files, or a glob."""
        place = str(path)
        if Path(place).is_dir():
            place = str(Path(place) / "**" / "*.parquet")
        if re.search(r"\.(csv|tsv|txt)(\.gz|\.zst)?$", place, re.IGNORECASE):
            return self._csv(place)
        problem = f"{str(path)!r} is absent or is no readable Parquet file"
        origin = partial(call, "READ_PARQUET", text(place))
        fields, skipped = self._describe(origin(), problem)
        counted = select([exp.Sum(this=column("num_rows"))], call("PARQUET_FILE_METADATA", text(place)))
        [(rows,)] = self._ask(self.dialect.sql(counted), problem)
        return LocalSource(self, fields, skipped, origin, int(rows))

    def _csv(self, place: str) -> LocalSource:
        problem = f"{place!r} is absent or is no readable CSV file"
        sniffer = select([column(name) for name in SNIFFED], call("SNIFF_CSV", text(place)))
        [found] = self._ask(self.dialect.sql(sniffer), problem)
        delimiter, quote, escape, header, columns, date_format, time_format = found
        as_text = [exp.PropertyEQ(this=text(item["name"]), expression=text("VARCHAR")) for item in columns]
        yes, no = exp.Boolean(this=True), exp.Boolean(this=False)
        options: dict[str, Node] = {
            "delim": text(delimiter),
            "header": yes if header else no,
            "columns": exp.Struct(expressions=as_text),
            "auto_detect": no,
            "null_padding": yes,
            "ignore_errors": yes,
            "strict_mode": no,
        }
        options |= {name: text(c) for name, c in (("quote", quote), ("escape", escape)) if len(c) == 1 and c != "\0"}

        def origin() -> Node:
            given = [exp.EQ(this=exp.Var(this=name), expression=value.copy()) for name, value in options.items()]
            return call("READ_CSV", text(place), *given)

        formats = {"DATE": date_format, "TIMESTAMP": time_format}
        fields = tuple(csv_field(item["name"], item["type"], formats) for item in columns)
        self._ask(self.dialect.sql(select([exp.Star()], origin()).limit(0)), problem)
        return LocalSource(self, fields, (), origin)

    def frame(self, frame: Any) -> LocalSource:
        """A pandas, Polars or Arrow table, read in place."""
        problem = f"a {type(frame).__name__} cannot be read as a table"
        with self._lock:
            self._frames += 1
            name = f"frame_{self._frames}"
        with self._told(problem):
            self._connection.register(name, frame)
        origin = partial(exp.Table, this=exp.Identifier(this=name, quoted=True))
        fields, skipped = self._describe(origin(), problem)
        source = LocalSource(self, fields, skipped, origin, len(frame) if hasattr(frame, "__len__") else None)
        weakref.finalize(source, self._forget, name)
        return source

    def _forget(self, name: str) -> None:
        try:
            with self._lock:
                self._connection.unregister(name)
        except duckdb.Error:  # the engine is gone already
            return

    def database(self, path: str | Path, table: str) -> LocalSource:
        """A table of a DuckDB database file, attached read only."""
        place = str(Path(path).resolve())
        if place not in self._attached:
            name = f"database_{len(self._attached) + 1}"
            attach = f"ATTACH {self.dialect.sql(text(place))} AS {name} (READ_ONLY)"
            self._ask(attach, f"{str(path)!r} is absent or is no DuckDB database")
            self._attached[place] = name
        *schema, plain = table.split(".", 1)
        parts = [self._attached[place], *(schema or ["main"]), plain]
        catalog, db, this = (exp.Identifier(this=part, quoted=True) for part in parts)
        origin = exp.Table(this=this, db=db, catalog=catalog).copy
        fields, skipped = self._describe(origin(), f"there is no table {table!r} in {str(path)!r}")
        return LocalSource(self, fields, skipped, origin)

    @contextmanager
    def _told(self, problem: str) -> Iterator[None]:
        """Engine texts may hold data: one public sentence takes their place, without a trace of the original."""
        failed = False
        try:
            with self._lock:
                yield
        except (duckdb.Error, OSError, TypeError, ValueError):
            failed = True
        if failed:
            raise DataError(f"{problem}. Nothing was spent.")

    def _ask(self, statement: str, problem: str) -> list[Any]:
        with self._told(problem):
            return list(self._connection.execute(statement).fetchall())

    def _describe(self, node: Node, problem: str) -> tuple[tuple[Field, ...], tuple[str, ...]]:
        rows = self._ask(f"DESCRIBE {self.dialect.sql(select([exp.Star()], node))}", problem)
        read = [(row[0], field_of(row[0], row[1])) for row in rows]
        fields = tuple(field for _, field in read if field is not None)
        return fields, tuple(name for name, field in read if field is None)

    def run(self, found: list[Query], question: Question) -> list[tuple[list[Array], list[Array]]]:
        kinds = (Type.INTEGER,) if isinstance(question, Norms) else question.key_types
        lost = False
        try:
            with self._lock:
                return [self._fetch(query, kinds) for query in found]
        except duckdb.IOException:
            lost = True
        except duckdb.Error:
            lost = False
        if lost:
            raise SourceUnavailable("the file did not answer while it was read. Try again when it is back.")
        raise DataError("the engine could not finish this question: too little memory, or the table has changed.")

    def _fetch(self, query: Query, kinds: tuple[Type, ...]) -> tuple[list[Array], list[Array]]:
        """Keys and sums as columns; a wide sum travels as two 64-bit limbs."""
        columns: list[Node] = [column(f"k{i}") for i in range(len(kinds))]
        limb = cast(number(LIMB), Kind.INT128)
        for i in range(len(query.names)):
            total = call("COALESCE", cast(column(f"s{i}"), Kind.INT128), cast(number(0), Kind.INT128))
            columns.append(alias(cast(binary(exp.IntDiv, total, limb.copy()), Kind.BIGINT), f"h{i}"))
            columns.append(alias(cast(binary(exp.Mod, total.copy(), limb.copy()), Kind.BIGINT), f"l{i}"))
        outer = select(columns, subquery(query.statement, "answer"))
        found = self._connection.execute(self.dialect.sql(outer)).fetchnumpy()
        sums = [_whole(found[f"h{i}"], found[f"l{i}"]) for i in range(len(query.names))]
        return [key_array(found[f"k{i}"], kind) for i, kind in enumerate(kinds)], sums


def _whole(high: Array, low: Array) -> Array:
    high, low = np.asarray(high, dtype=np.int64), np.asarray(low, dtype=np.int64)
    if not high.any():
        return low
    return integers([upper * LIMB + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)])
