"""What a database says about itself: its tables and their keys, and no row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from mosha.connect.engines.mariadb import MariaDB
from mosha.connect.engines.opening import MARIADB, POSTGRESQL
from mosha.connect.engines.postgresql import PostgreSQL
from mosha.core.errors import DataError, InvalidParameter

__all__ = ["TableKeys", "read_catalogue"]

Keys = tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...]

DUCKDB_TABLES = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ? ORDER BY ALL"
DUCKDB_KEYS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
FROM duckdb_constraints() WHERE database_name = ? AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')
ORDER BY table_name, constraint_index
"""
POSTGRES_TABLES = """
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema')
AND n.nspname NOT LIKE 'pg\\_%%' AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1, 2
"""
POSTGRES_KEYS = """
SELECT n.nspname, c.relname, CASE k.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'FOREIGN KEY' END,
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.conkey) WITH ORDINALITY AS u(n, i)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY u.i),
  CASE WHEN m.nspname = 'public' THEN f.relname ELSE m.nspname || '.' || f.relname END,
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY AS u(n, i)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY u.i)
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_class f ON f.oid = k.confrelid LEFT JOIN pg_catalog.pg_namespace m ON m.oid = f.relnamespace
WHERE k.contype IN ('p', 'f') ORDER BY c.relname, k.conname
"""
MARIADB_TABLES = """
SELECT '', TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' ORDER BY 2
"""
MARIADB_KEYS = """
SELECT '', TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME,
  CASE WHEN REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA THEN REFERENCED_TABLE_NAME
       ELSE CONCAT(REFERENCED_TABLE_SCHEMA, '.', REFERENCED_TABLE_NAME) END, REFERENCED_COLUMN_NAME
FROM information_schema.KEY_COLUMN_USAGE
WHERE TABLE_SCHEMA = DATABASE() AND (CONSTRAINT_NAME = 'PRIMARY' OR REFERENCED_TABLE_NAME IS NOT NULL)
ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION
"""


@dataclass(frozen=True)
class TableKeys:
    """The primary key of a table, and its foreign keys: (columns, table, its columns)."""

    primary: tuple[str, ...] = ()
    foreign: Keys = ()


def read_catalogue(place: str) -> Mapping[str, TableKeys]:
    """The tables of a DuckDB file, a PostgreSQL or a MariaDB database with their keys, as its catalogue has them."""
    if place.startswith(MARIADB):
        listed, columns = MariaDB.at(place).read_catalogue(MARIADB_TABLES, MARIADB_KEYS)
        return _gather(listed, _gather_columns(columns), "")
    if place.startswith(POSTGRESQL):
        listed, keys = PostgreSQL.at(place).read_catalogue(POSTGRES_TABLES, POSTGRES_KEYS)
        return _gather(listed, keys, "public")
    if "://" in place:
        raise InvalidParameter("connect.unknown_url", parameter="source")
    return _gather(*_read_duckdb(place), "main")


def _read_duckdb(place: str) -> tuple[list[Any], list[Any]]:
    if not Path(place).is_file():
        raise DataError("connect.no_catalogue", path=str(place), spent="nothing")
    try:
        connection: Any = duckdb.connect(":memory:")
        with connection:
            quoted = str(Path(place).resolve()).replace("'", "''")
            connection.execute(f"ATTACH '{quoted}' AS catalogue (READ_ONLY)")
            listed = connection.execute(DUCKDB_TABLES, ["catalogue"]).fetchall()
            return listed, connection.execute(DUCKDB_KEYS, ["catalogue"]).fetchall()
    except duckdb.Error:
        pass
    raise DataError("connect.no_catalogue", path=str(place), spent="nothing")


def _gather(listed: list[Any], keys: list[Any], usual: str) -> dict[str, TableKeys]:
    """Tables by name; the usual schema is not written before it."""
    found = {_write_name(schema, table, usual): TableKeys() for schema, table in listed}
    for schema, table, kind, columns, target, target_columns in keys:
        name = _write_name(schema, table, usual)
        if name not in found:
            continue
        known = found[name]
        if kind == "PRIMARY KEY":
            found[name] = TableKeys(tuple(columns), known.foreign)
        else:
            foreign = (tuple(columns), str(target), tuple(target_columns))
            found[name] = TableKeys(known.primary, (*known.foreign, foreign))
    return found


def _gather_columns(columns: Sequence[Sequence[str]]) -> list[Any]:
    """Keys, each with all of its columns, from a list that has a line for each column."""
    found: dict[tuple[str, str, str], tuple[str, list[str], list[str]]] = {}
    for schema, table, name, column, target, target_column in columns:
        _, own, theirs = found.setdefault((schema, table, name), (target, [], []))
        own.append(column)
        theirs.append(target_column)
    kinds = {True: "PRIMARY KEY", False: "FOREIGN KEY"}
    return [
        (schema, table, kinds[name == "PRIMARY"], own, target, theirs)
        for (schema, table, name), (target, own, theirs) in found.items()
    ]


def _write_name(schema: str, table: str, usual: str) -> str:
    return table if schema == usual else f"{schema}.{table}"
