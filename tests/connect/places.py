"""Where tables live in the tests: one way to load the same rows into every engine."""

import itertools
from dataclasses import replace
from datetime import UTC
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mosha.connect import Type, source

ARROW = {
    Type.INTEGER: pa.int64(),
    Type.REAL: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.TEXT: pa.string(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
    Type.INSTANT: pa.timestamp("us", tz="UTC"),
}
POSTGRES = {
    Type.INTEGER: "bigint",
    Type.REAL: "double precision",
    Type.BOOLEAN: "boolean",
    Type.TEXT: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
    Type.INSTANT: "timestamptz",
}
ENDLESS = (float("inf"), float("-inf"))
MARIADB = {
    Type.INTEGER: "bigint",
    Type.REAL: "double",
    Type.BOOLEAN: "boolean",
    Type.TEXT: "longtext",
    Type.DATE: "date",
    Type.TIMESTAMP: "datetime(6)",
    Type.INSTANT: "datetime(6)",
}
_numbers = itertools.count()


def name_table() -> str:
    """A name that no other table of this run has."""
    return f"t{next(_numbers)}"


def arrow_table(schema: Any, rows: Any) -> Any:
    """Columns as Arrow; a NaN stays a NaN."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, type=ARROW[kind]) for column, kind in zip(columns, schema.values(), strict=True)]
    return pa.table(dict(zip(schema, arrays, strict=True)))


class DuckDBPlace:
    name = "duckdb"

    def load(self, schema: Any, rows: Any) -> Any:
        return source(arrow_table(schema, rows))


class PostgreSQLPlace:
    name = "postgresql"

    def __init__(self, url: Any) -> None:
        self.url = url

    def load(self, schema: Any, rows: Any) -> Any:
        import psycopg

        name = name_table()
        columns = ", ".join(f'"{c.replace(chr(34), chr(34) * 2)}" {POSTGRES[kind]}' for c, kind in schema.items())
        zoned = [kind is Type.INSTANT for kind in schema.values()]
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({columns})")
            with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for row in rows:
                    cells = [
                        cell.replace(tzinfo=UTC) if z and cell is not None else cell
                        for cell, z in zip(row, zoned, strict=True)
                    ]
                    copy.write_row(cells)
        return source(self.url, table=name)


class MariaDBPlace:
    """A database of its own on the server. It has no NaN and no infinities: they are missing, as everywhere.

    Its moments end in 2038: those of the tests are wall clocks in UTC, which it reads in the same way.
    """

    name = "mariadb"

    def __init__(self, server: Any, database: Any) -> None:
        self.server, self.database = server, database
        self.url = server.make_database(database)

    def load(self, schema: Any, rows: Any) -> Any:
        name = name_table()
        columns = ", ".join(f"`{c.replace('`', '``')}` {MARIADB[kind]}" for c, kind in schema.items())
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({columns}) COLLATE utf8mb4_general_ci")
            holes = ", ".join(["%s"] * len(schema))
            cells = [[None if c != c or c in ENDLESS else c for c in row] for row in rows]
            cursor.executemany(f"INSERT INTO {name} VALUES ({holes})", cells)
        found = source(self.url, table=name)
        return replace(found, fields=tuple(replace(field, type=schema[field.name]) for field in found.fields))


class SparkPlace:
    name = "spark"

    def __init__(self, session: Any, folder: Any) -> None:
        self.session, self.folder = session, folder

    def load(self, schema: Any, rows: Any) -> Any:
        path = str(self.folder / f"{name_table()}.parquet")
        pq.write_table(arrow_table(schema, rows), path)
        return source(self.session.read.parquet(path))
