"""Which stored tables the rows of a source come from, so that one table is known under all of its names.

A database is asked for its catalogue, and no row is read. What cannot be followed (a view that calls a function, a
foreign table, a file inside of a view) is said to be unknown, and never guessed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from mosha.connect.engines.mariadb import MariaDBTable
from mosha.connect.engines.opening import DATABASES
from mosha.connect.engines.other_formats import find_format
from mosha.connect.engines.source import ServerTable
from mosha.connect.engines.spark import Spark, SparkTable
from mosha.connect.plan.source import Source

__all__ = ["Origin", "find_origin"]

POSTGRES_READS = """
WITH RECURSIVE reads (oid) AS (
  SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = {schema} AND c.relname = {table}
  UNION
  SELECT below.oid FROM reads r CROSS JOIN LATERAL (
    SELECT i.inhrelid AS oid FROM pg_catalog.pg_inherits i WHERE i.inhparent = r.oid
    UNION ALL
    SELECT d.refobjid FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_depend d
      ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = w.oid
    WHERE w.ev_class = r.oid AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
  ) below
), within (oid) AS (
  SELECT oid FROM reads UNION
  SELECT i.inhparent FROM within w JOIN pg_catalog.pg_inherits i ON i.inhrelid = w.oid
)
SELECT n.nspname, c.relname, w.oid IN (SELECT oid FROM reads),
  c.relkind = 'f' OR EXISTS (
    SELECT FROM pg_catalog.pg_rewrite v JOIN pg_catalog.pg_depend d
      ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = v.oid
    WHERE v.ev_class = c.oid AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass)
FROM within w JOIN pg_catalog.pg_class c ON c.oid = w.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f')
"""
MARIADB_KIND = """
SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}
"""
MARIADB_STORED = {"BASE TABLE", "SYSTEM VERSIONED"}
DUCKDB_TABLES = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'of'"
DUCKDB_VIEWS = "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = 'of'"
DUCKDB_MACROS = "SELECT COUNT(*) FROM duckdb_functions() WHERE database_name = 'of'"
SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND UPPER(sql) NOT LIKE 'CREATE VIRTUAL%'"

Name = tuple[str, str]  # a schema and a table in it
STEP = "*"  # in place of a schema: what a view calls one of its own steps


@dataclass(frozen=True)
class Origin:
    """Which stored tables a source reads (`reads`; None: nobody can tell), and of which it is a part (`within`).

    `server` is where names mean the same: the server of a database, or nothing for a file.
    """

    server: str
    reads: tuple[str, ...] | None
    within: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        reads = None if self.reads is None else list(self.reads)
        return {"server": self.server, "reads": reads, "within": list(self.within)}


def find_origin(found: Source, place: str, table: str | None) -> Origin | None:
    """The origin of a source that was opened at a place, in a database; None where a file is one table.

    >>> find_origin(None, "visits.csv", None) is None
    True
    """
    if isinstance(found, MariaDBTable):
        return _find_in_mariadb(found)
    if isinstance(found, ServerTable):
        return _find_in_postgresql(found)
    if isinstance(found, SparkTable) and isinstance(found.engine, Spark):
        return _find_in_spark(found.engine, found.named)
    return None if table is None or "://" in place else _find_in_file(place, table)


def _find_in_file(place: str, table: str) -> Origin | None:
    kind = find_format(place)
    if kind == "sqlite":
        return Origin("", _find_in_sqlite(place, table))
    is_duckdb = not kind and Path(place).suffix.lower() in DATABASES
    return Origin("", _find_in_duckdb(place, table)) if is_duckdb else None


def _find_in_postgresql(found: ServerTable) -> Origin:
    """A partition is within its table, and a table reads its partitions; two partitions share nothing."""
    schema, table = (exp.Literal.string(part).sql("postgres") for part in found.place)
    (rows,) = found.engine.read_catalogue(POSTGRES_READS.format(schema=schema, table=table))
    if not rows or any(unknown for _, _, reads, unknown in rows if reads):
        return Origin(found.database, None)
    names = [(_write(schema, table), reads) for schema, table, reads, _ in rows]
    reads, within = (tuple(sorted(name for name, of in names if of is part)) for part in (True, False))
    return Origin(found.database, reads, within)


def _find_in_mariadb(found: MariaDBTable) -> Origin:
    """A view may read tables of every database of its server, and does not say which."""
    schema, table = (exp.Literal.string(part).sql("mysql") for part in found.place)
    (rows,) = found.engine.read_catalogue(MARIADB_KIND.format(schema=schema, table=table))
    is_stored = bool(rows) and all(kind in MARIADB_STORED for (kind,) in rows)  # names that differ in capitals too
    return Origin(found.database.rpartition("/")[0], (_write(*found.place),) if is_stored else None)


def _find_in_spark(engine: Spark, table: str) -> Origin:
    """A table is where its files are, whatever it is called there: a view has no such place."""
    place = engine.find_location(table)
    if place is None:
        return Origin("spark", None)
    parts = place.rstrip("/").split("/")
    return Origin("spark", ("/".join(parts),), tuple("/".join(parts[:many]) for many in range(1, len(parts))))


def _find_in_sqlite(place: str, table: str) -> tuple[str, ...] | None:
    try:
        with closing(sqlite3.connect(f"{Path(place).resolve().as_uri()}?mode=ro", uri=True)) as connection:
            names = {str(name).lower() for (name,) in connection.execute(SQLITE_TABLES)}
    except sqlite3.Error:
        return None
    return (_write("main", table.lower()),) if table.lower() in names else None


def _find_in_duckdb(place: str, table: str) -> tuple[str, ...] | None:
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(
                f"ATTACH {exp.Literal.string(str(Path(place).resolve())).sql('duckdb')} AS of (READ_ONLY)"
            )
            ask: Callable[[str], list[Any]] = lambda statement: connection.execute(statement).fetchall()
            tables = {(schema.lower(), name.lower()) for schema, name in ask(DUCKDB_TABLES)}
            views = {(schema.lower(), name.lower()): text for schema, name, text in ask(DUCKDB_VIEWS)}
            ((macros,),) = ask(DUCKDB_MACROS)
    except duckdb.Error:
        return None
    *schema, plain = table.lower().split(".", 1)
    start = (schema[0] if schema else "main", plain)
    if start in tables:
        return (_write(*start),)
    if macros:  # a macro may read whatever it likes
        return None
    found = _follow_views(start, tables, {name: _list_tables(text) for name, text in views.items()})
    return None if found is None else tuple(sorted(_write(*name) for name in found))


def _follow_views(start: Name, tables: set[Name], views: Mapping[Name, set[Name] | None]) -> set[Name] | None:
    """The stored tables that a view reads, through other views too; None where one of them is not known.

    A name that is a step of the view (`WITH`) and a table may mean either, and is taken for the table; one that tables
    of several schemas have is taken for all of them.
    """
    found, waiting, seen = set(), [start], set[Name]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in tables:
            found.add(name)
            continue
        read = views.get(name)
        if not read:
            return None
        for schema, table in read:
            if schema == STEP and (table not in {one[1] for one in (*tables, *views)}):
                continue
            meant = {one for one in (*tables, *views) if one[1] == table and schema in ("", STEP, one[0])}
            if not meant:
                return None
            waiting += meant
    return found


def _list_tables(definition: str) -> set[Name] | None:
    """The tables that the text of a view names; None where it reads anything else.

    >>> sorted(_list_tables("CREATE VIEW v AS SELECT * FROM s.stays JOIN Visits USING (pid)"))
    [('', 'visits'), ('s', 'stays')]
    >>> _list_tables("CREATE VIEW v AS SELECT * FROM read_csv('visits.csv')") is None
    True
    """
    try:
        parsed = sqlglot.parse_one(definition, read="duckdb")
    except sqlglot.errors.SqlglotError:
        return None
    if not isinstance(parsed, exp.Create) or parsed.expression is None:
        return None
    named = list(_read_names(parsed.expression))
    if None in named or parsed.expression.find(exp.Command) is not None:
        return None
    steps = {step.alias.lower() for step in parsed.find_all(exp.CTE)}
    names = {name for name in named if name is not None}
    return {(STEP, table) if not schema and table in steps else (schema, table) for schema, table in names}


def _read_names(query: exp.Expression) -> Iterator[Name | None]:
    for table in query.find_all(exp.Table):
        is_plain = isinstance(table.this, exp.Identifier) and not table.catalog
        yield (table.db.lower(), table.name.lower()) if is_plain else None


def _write(schema: str, table: str) -> str:
    return ".".join(exp.Identifier(this=part, quoted=True).sql("duckdb") for part in (schema, table))
