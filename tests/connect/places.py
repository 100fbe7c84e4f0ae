"""Where tables live in the tests: one way to load the same rows into every engine."""

import itertools
from datetime import UTC

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
_numbers = itertools.count()


def arrow_table(schema, rows):
    """Columns as Arrow; a NaN stays a NaN."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, type=ARROW[kind]) for column, kind in zip(columns, schema.values(), strict=True)]
    return pa.table(dict(zip(schema, arrays, strict=True)))


class DuckDBPlace:
    name = "duckdb"

    def load(self, schema, rows):
        return source(arrow_table(schema, rows))


class PostgreSQLPlace:
    name = "postgresql"

    def __init__(self, url):
        self.url = url

    def load(self, schema, rows):
        import psycopg

        name = f"t{next(_numbers)}"
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


class SparkPlace:
    name = "spark"

    def __init__(self, session, folder):
        self.session, self.folder = session, folder

    def load(self, schema, rows):
        path = str(self.folder / f"t{next(_numbers)}.parquet")
        pq.write_table(arrow_table(schema, rows), path)
        return source(self.session.read.parquet(path))
