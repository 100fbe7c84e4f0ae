"""Open whatever the user gives as a source."""

from __future__ import annotations

import codecs
import glob
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosha.connect.engines.local_source import separator_of
from mosha.connect.engines.other_formats import find_format, open_encoded, open_other
from mosha.connect.engines.plain_columns import read_plain_columns
from mosha.connect.engines.source import Engine
from mosha.connect.plan.source import Source
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.names.calls import explain_wrong_calls

if TYPE_CHECKING:
    from mosha.connect.engines.duckdb import DuckDB

__all__ = ["SERVERS", "local", "source"]

DATABASES = {".duckdb", ".ddb", ".db"}
POSTGRESQL = ("postgresql://", "postgres://")
MARIADB = ("mariadb://", "mysql://")
SPARK = ("sc://",)  # Spark Connect
SERVERS = POSTGRESQL + MARIADB + SPARK


@cache
def local() -> DuckDB:
    """The embedded engine that files and frames share by default."""
    from mosha.connect.engines.duckdb import DuckDB  # noqa: PLC0415  (a server checks questions without any engine)

    return DuckDB()


def _open_duckdb(engine: Engine | None) -> DuckDB:
    if engine is None:
        return local()
    from mosha.connect.engines.duckdb import DuckDB  # noqa: PLC0415  (the same)

    if not isinstance(engine, DuckDB):
        raise InvalidParameter("connect.engine_not_duckdb", parameter="engine")
    return engine


@explain_wrong_calls
def source(
    data: Any,
    *,
    table: str | None = None,
    separator: str | None = None,
    multiline: bool = False,
    encoding: str | None = None,
    columns: Sequence[str] = (),
    engine: Engine | None = None,
) -> Source:
    """A table: a file or folder, a data frame, a dict of columns, or a database file or URL with `table`.

    Args:
        data: a path (CSV, Parquet, JSON lines, Excel, SQLite, DuckDB, a Delta or Iceberg folder), a postgresql:// or
            mariadb:// URL or that of a Spark server (sc://), a pandas, Polars or Arrow table, a dict of columns, a
            DataFrame of Spark, or a Source.
        table: the table's name, for databases; the sheet's, for Excel.
        encoding: of a CSV file, where it is not UTF-8: "gbk", "big5", "latin-1". Such a file is read into memory.
        columns: of JSON lines, which have no header; `protect` takes them from the declaration.
        separator: what stands between the cells of a CSV file, a comma unless said otherwise (a tab in .tsv).
        multiline: cells of a CSV file may hold line breaks. Then an open quote may swallow the lines of other people:
            say it only of files whose quotes are known to be closed.
        engine: a `DuckDB` with settings of its own; tables that are joined must share one.

    >>> source({"x": [1, 2]})
    LocalSource(a frame, 1 columns)
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        place, text = os.fspath(data), {"separator": separator, "multiline": multiline}
        if encoding is not None and _find_codec(encoding) != "utf-8":
            return _open_encoded(place, table, separator, encoding, engine)
        return _open_place(place, table, text, columns, engine)
    if separator is not None or multiline or encoding is not None:
        raise InvalidParameter("connect.option_for_csv", parameter="separator")
    if table is not None:
        raise InvalidParameter("connect.table_of_frame", parameter="table")
    return _open_frame(data, engine)


def _open_frame(data: object, engine: Engine | None) -> Source:
    if isinstance(data, Mapping):
        return _open_duckdb(engine).frame(read_plain_columns(data))
    if type(data).__module__.startswith("pyspark."):
        from mosha.connect.engines.spark import Spark  # noqa: PLC0415  (Spark is heavy)

        return Spark.of(data).frame(data)
    if type(data).__module__.split(".")[0] in {"pandas", "polars", "pyarrow"}:
        return _open_duckdb(engine).frame(data)
    raise DataError("connect.not_readable", kind=type(data).__name__)


def _open_place(
    place: str, table: str | None, text: dict[str, Any], columns: Sequence[str], engine: Engine | None
) -> Source:
    if "://" not in place and not glob.has_magic(place) and not os.path.lexists(place):
        raise DataError("connect.no_such_place", place=place, spent="nothing")
    kind = "" if "://" in place else find_format(place)
    if not kind and Path(place).is_dir() and next(Path(place).rglob("*.parquet"), None) is None:
        raise DataError("connect.folder_without_parquet", place=place, spent="nothing")
    if not kind:
        return _place(place, table, text, engine)
    if text["separator"] is not None or text["multiline"]:
        raise InvalidParameter("connect.option_for_csv", parameter="separator")
    return open_other(_open_duckdb(engine), place, kind, table=table, columns=columns)


def _find_codec(encoding: str) -> str:
    """The proper name of an encoding; as it is where there is none."""
    try:
        return codecs.lookup(encoding).name
    except (LookupError, TypeError):
        return encoding


def _open_encoded(place: str, table: str | None, separator: str | None, encoding: str, engine: Engine | None) -> Source:
    if table is not None or not place.lower().endswith((".csv", ".tsv", ".txt")):
        raise InvalidParameter("connect.option_for_csv", parameter="encoding")
    return open_encoded(_open_duckdb(engine), place, separator_of(place, separator), encoding)


def _place(place: str, table: str | None, text: dict[str, Any], engine: Engine | None) -> Source:
    database = place.startswith(SERVERS) or Path(place).suffix.lower() in DATABASES
    if database and (text["separator"] is not None or text["multiline"]):
        raise InvalidParameter("connect.option_for_csv", parameter="separator")
    if place.startswith(SERVERS):
        return _open_server(place, table)
    if "://" in place:
        raise InvalidParameter("connect.unknown_url", parameter="source")
    if Path(place).suffix.lower() in DATABASES:
        if table is None:
            raise InvalidParameter("connect.duckdb_needs_table", parameter="table")
        return _open_duckdb(engine).database(place, table)
    if table is not None:
        raise InvalidParameter("connect.table_of_file", parameter="table")
    return _open_duckdb(engine).file(place, **text)


def _open_server(place: str, table: str | None) -> Source:
    """A table of a server; the drivers are extras."""
    if place.startswith(POSTGRESQL):
        if table is None:
            raise InvalidParameter("connect.postgresql_needs_table", parameter="table")
        from mosha.connect.engines.postgresql import PostgreSQL  # noqa: PLC0415

        return PostgreSQL.at(place).table(table)
    if place.startswith(SPARK):
        if table is None:
            raise InvalidParameter("connect.spark_needs_table", parameter="table")
        from mosha.connect.engines.spark import Spark  # noqa: PLC0415

        return Spark.at(place).catalogue_table(table)
    if table is None:
        raise InvalidParameter("connect.mariadb_needs_table", parameter="table")
    from mosha.connect.engines.mariadb import MariaDB  # noqa: PLC0415

    return MariaDB.at(place).table(table)
