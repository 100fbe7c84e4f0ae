"""Where the tables of a search live: every way in which an engine reads them."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz._random_plans import arrow
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.language.schema import Schema

WAYS = {
    "duckdb": ["SQL", "kernel", "Parquet"],
    "sql": ["SQL"],
    "postgresql": ["PostgreSQL"],
    "mariadb": ["MariaDB"],
    "spark": ["Spark"],
}
_numbers = itertools.count()


class Places:
    """Loads rows in every way of one engine; `close` forgets all of them."""

    def __init__(self, engine: Any, server: Any = None, session: Any = None) -> None:
        self.engine, self.server, self.session = engine, server, session
        self.folder = Path(tempfile.mkdtemp(prefix="mosha-fuzz-"))
        self.duck = {"SQL": DuckDB(threads=1, compiled_from=None), "kernel": DuckDB(threads=1, compiled_from=0)}
        self.tables = []  # type: ignore[var-annotated]

    def load(self, way: Any, columns: Any, rows: Any) -> Any:
        table = arrow(columns, rows)
        if way in self.duck:
            return self.duck[way].frame(table)
        if way == "Parquet":
            return self._parquet(table)
        if way == "MariaDB":
            return self.server.load(Schema(columns), rows)
        return self._postgresql(columns, rows) if way == "PostgreSQL" else self._spark(table)

    def _path(self) -> str:
        return str(self.folder / f"t{next(_numbers)}.parquet")

    def _parquet(self, table: Any) -> Any:
        import pyarrow.parquet as pq

        path = self._path()
        pq.write_table(table, path)
        return self.duck["SQL"].file(path)

    def _postgresql(self, columns: Any, rows: Any) -> Any:
        import psycopg

        from mosha.connect.engines.postgresql import PostgreSQL
        from tests.connect.places import POSTGRES

        name = f"fuzz{os.getpid()}_{next(_numbers)}"
        declared = ", ".join(f'"{column}" {POSTGRES[kind]}' for column, kind in columns.items())
        with psycopg.connect(self.server) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE UNLOGGED TABLE {name} ({declared})")
            with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        self.tables.append(name)
        return PostgreSQL.at(self.server).table(name)

    def _spark(self, table: Any) -> Any:
        import pyarrow.parquet as pq

        from mosha.connect.engines.spark import Spark

        path = self._path()
        pq.write_table(table, path)
        frame = self.session.read.parquet(path)
        return Spark.of(frame).frame(frame)

    def vary(self, seed: Any) -> None:
        """Let Spark plan every second comparison anew as it runs, as it does unless told otherwise.

        It takes two to four times as long for tables as small as these, most of it for planning.
        """
        if self.session is not None:
            self.session.conf.set("spark.sql.adaptive.enabled", "true" if seed % 2 else "false")

    def forget(self) -> None:
        """Let go of the tables of one comparison."""
        for path in self.folder.iterdir():
            path.unlink()
        if self.tables:
            import psycopg

            with psycopg.connect(self.server) as connection, connection.cursor() as cursor:
                for name in self.tables:
                    cursor.execute(f"DROP TABLE {name}")
            self.tables.clear()


@contextlib.contextmanager
def opened(engine: Any) -> Iterator[Any]:
    """The places of one engine, with a server or a session of their own where the engine needs one."""
    with contextlib.ExitStack() as stack:
        server = session = None
        if engine == "postgresql":
            from tests import postgres

            folder = Path(tempfile.mkdtemp(prefix="mosha-postgres-"))
            running = postgres.Server(folder, postgres.binaries())
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(running.stop)
            server = running.url("postgres")
        if engine == "mariadb":
            from tests.connect.places import MariaDBPlace
            from tests.mariadb import run_server

            server = MariaDBPlace(stack.enter_context(run_server()), "fuzz")  # type: ignore[assignment]
        if engine == "spark":
            from pyspark.sql import SparkSession

            from tests.spark import SETTINGS

            folder = tempfile.mkdtemp(prefix="mosha-spark-")  # type: ignore[assignment]
            builder = SparkSession.builder.master("local[1]").appName("mosha fuzz")
            folders = {
                "spark.sql.warehouse.dir": folder,
                "spark.local.dir": folder,
                "spark.sql.shuffle.partitions": "1",
            }
            for name, value in {**SETTINGS, **folders}.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("OFF")
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(session.stop)
        places = Places(engine, server, session)
        stack.callback(shutil.rmtree, places.folder, ignore_errors=True)
        yield places
