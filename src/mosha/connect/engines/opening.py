"""Open whatever the user gives as a source."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.plain_columns import read_plain_columns
from mosha.connect.engines.source import Engine, Source
from mosha.core.errors import DataError, InvalidParameter

__all__ = ["local", "source"]

DATABASES = {".duckdb", ".ddb", ".db"}


@cache
def local() -> DuckDB:
    """The embedded engine that files and frames share by default."""
    return DuckDB()


def _open_duckdb(engine: Engine | None) -> DuckDB:
    if engine is None:
        return local()
    if not isinstance(engine, DuckDB):
        raise InvalidParameter("connect.engine_not_duckdb", parameter="engine")
    return engine


def source(
    data: Any,
    *,
    table: str | None = None,
    separator: str | None = None,
    multiline: bool = False,
    engine: Engine | None = None,
) -> Source:
    """A table: a CSV or Parquet file, folder or glob, a data frame, a DuckDB file or a PostgreSQL URL with `table`.

    Args:
        data: a path, a postgresql:// URL, a pandas, Polars or Arrow table, a Spark DataFrame, or a Source.
        table: the table's name, for databases.
        separator: what stands between the cells of a CSV file, a comma unless said otherwise (a tab in .tsv).
        multiline: cells of a CSV file may hold line breaks. Then an open quote may swallow the lines of other people:
            say it only of files whose quotes are known to be closed.
        engine: a `DuckDB` with settings of its own; tables that are joined must share one.
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        return _place(os.fspath(data), table, {"separator": separator, "multiline": multiline}, engine)
    if separator is not None or multiline:
        raise InvalidParameter("connect.option_for_csv", parameter="separator")
    if table is not None:
        raise InvalidParameter("connect.table_of_frame", parameter="table")
    if isinstance(data, Mapping):
        return _open_duckdb(engine).frame(read_plain_columns(data))
    if type(data).__module__.startswith("pyspark."):
        from mosha.connect.engines.spark import Spark  # noqa: PLC0415  (Spark is heavy)

        return Spark.of(data).frame(data)
    if type(data).__module__.split(".")[0] in {"pandas", "polars", "pyarrow"}:
        return _open_duckdb(engine).frame(data)
    raise DataError("connect.not_readable", kind=type(data).__name__)


def _place(place: str, table: str | None, text: dict[str, Any], engine: Engine | None) -> Source:
    database = place.startswith(("postgresql://", "postgres://")) or Path(place).suffix.lower() in DATABASES
    if database and (text["separator"] is not None or text["multiline"]):
        raise InvalidParameter("connect.option_for_csv", parameter="separator")
    if place.startswith(("postgresql://", "postgres://")):
        if table is None:
            raise InvalidParameter("connect.postgresql_needs_table", parameter="table")
        from mosha.connect.engines.postgresql import PostgreSQL  # noqa: PLC0415  (psycopg is an extra)

        return PostgreSQL.at(place).table(table)
    if "://" in place:
        raise InvalidParameter("connect.unknown_url", parameter="source")
    if Path(place).suffix.lower() in DATABASES:
        if table is None:
            raise InvalidParameter("connect.duckdb_needs_table", parameter="table")
        return _open_duckdb(engine).database(place, table)
    if table is not None:
        raise InvalidParameter("connect.table_of_file", parameter="table")
    return _open_duckdb(engine).file(place, **text)
