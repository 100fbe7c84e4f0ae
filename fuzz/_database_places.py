"""Where the databases of a search live: in memory, or on a server that is made for it."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from mosha.connect.engines.postgresql import PostgreSQL
from mosha.connect.language.schema import Schema, Type

Load = Callable[[Mapping[str, pa.Table]], Any]
_numbers = itertools.count()
_SQL = {pa.int64(): "BIGINT", pa.string(): "TEXT"}


@contextmanager
def open_place(engine: str) -> Iterator[Load]:
    """A function that brings tables to an engine: what it returns, `protect_database` takes."""
    if engine == "duckdb":
        yield dict
    elif engine == "spark":
        with _open_spark() as load:
            yield load
    elif engine == "mariadb":
        from tests.connect.places import MariaDBPlace
        from tests.mariadb import run_server

        with run_server() as server:
            place = MariaDBPlace(server, "fuzz")
            yield lambda tables: {name: load_mariadb(place, table) for name, table in tables.items()}
    else:
        with _open_postgresql() as load:
            yield load


@contextmanager
def _open_postgresql() -> Iterator[Load]:
    import psycopg

    from tests.postgres import Server, binaries

    folder = Path(tempfile.mkdtemp(prefix="mosha-postgres-"))
    commands = binaries()
    assert commands is not None
    server = Server(folder, commands)
    url = server.url("postgres")
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            yield lambda tables: {name: load_postgresql(connection, url, table) for name, table in tables.items()}
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def load_postgresql(connection: Any, url: str, table: pa.Table) -> Any:
    """A table of the server with these rows."""
    name = f"fuzz_{next(_numbers)}"
    columns = ", ".join(f'"{field.name}" {_SQL[field.type]}' for field in table.schema)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} ({columns})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(list(row.values()))
    return PostgreSQL.at(url).table(name)


def load_mariadb(place: Any, table: pa.Table) -> Any:
    """A table of the server with these rows."""
    kinds = {pa.int64(): Type.INTEGER, pa.string(): Type.TEXT}
    schema = Schema({field.name: kinds[field.type] for field in table.schema})
    return place.load(schema, [tuple(row.values()) for row in table.to_pylist()])


@contextmanager
def _open_spark() -> Iterator[Load]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    try:
        yield lambda tables: {name: _load_spark(session, table) for name, table in tables.items()}
    finally:
        session.stop()


def _load_spark(session: Any, table: pa.Table) -> Any:
    kinds = {pa.int64(): "bigint", pa.string(): "string"}
    shape = ", ".join(f"{field.name} {kinds[field.type]}" for field in table.schema)
    return session.createDataFrame([tuple(row.values()) for row in table.to_pylist()], shape)
