"""Persons and groups are told apart by code point, whatever collation a database gives their columns.

A column that takes 'A' for 'a' would weigh the rows of two persons together, and one who leaves would change what the
other counts for: more than the noise was made for.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import mosha
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.source import answer
from mosha.tables import Budget, count, distinct, median, persons, protect
from mosha.tables import sum as total

UNIT = mosha.Person("who", at_most=1)
ROWS = [
    ("A", "w", 1.0),
    ("A", "w", 1.0),
    ("a", "W", 1.0),
    ("a", "v", 2.0),
    ("b ", "w", 2.0),
    ("b", "w", 1.0),
    ("ß", "v", 3.0),
]
WARDS = ["w", "W", "v"]


def plain(rows: Any) -> Any:
    return protect(
        pa.table(dict(zip(("who", "ward", "x"), map(list, zip(*rows, strict=True)), strict=True))), unit=UNIT
    )


def in_duckdb(rows: Any, folder: Any, name: Any, compiled_from: Any) -> Any:
    with duckdb.connect(folder / f"{name}.duckdb") as connection:
        connection.execute(
            "CREATE TABLE t (who VARCHAR COLLATE NOCASE, ward VARCHAR COLLATE NOCASE.NOACCENT, x DOUBLE)"
        )
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    return protect(folder / f"{name}.duckdb", table="t", unit=UNIT, engine=DuckDB(compiled_from=compiled_from))


def in_postgresql(rows: Any, url: Any) -> Any:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_collation WHERE collprovider = 'i'").fetchone():
            pytest.skip("this PostgreSQL was built without ICU: it has no collation that takes A for a")
        connection.execute("DROP TABLE IF EXISTS folded")
        connection.execute("DROP COLLATION IF EXISTS caseless")
        connection.execute(
            "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
        connection.execute("CREATE TABLE folded (who text COLLATE caseless, ward text COLLATE caseless, x float8)")
        for row in rows:
            connection.execute("INSERT INTO folded VALUES (%s, %s, %s)", row)
    return protect(url, table="folded", unit=UNIT)


def in_mariadb(rows: Any, server: Any) -> Any:
    """Columns of the server's usual kind, which takes 'A' for 'a' and 'b' for 'b '."""
    url = server.make_database("folded")
    with server.connect("folded") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE folded (who varchar(9), ward text, x double) COLLATE utf8mb4_general_ci")
        cursor.executemany("INSERT INTO folded VALUES (%s, %s, %s)", rows)
        cursor.execute("SELECT COUNT(DISTINCT who), COUNT(DISTINCT ward) FROM folded")
        assert cursor.fetchone() == (3, 2)
    return protect(url, table="folded", unit=UNIT)


def questions(table: Any) -> Iterator[Any]:
    grouped = table.group_by("ward", keys=WARDS)
    yield grouped.aggregate(n=count(), s=total("x", between=(0, 4)))
    yield grouped.aggregate(p=persons(), d=distinct("who"), m=median("x", between=(0, 4)))
    yield table.where(mosha.col("ward") == "W").count()
    yield table.group_by(up=mosha.col("ward").upper(), keys=["W", "V"]).count()


def answers(table: Any) -> list[Any]:
    return [
        q.measurement(Budget(epsilon=1)).step(None, None, None, mosha.noise.SeededRandom(3))[0]
        for q in questions(table)
    ]


@pytest.mark.parametrize("compiled_from", [0, None], ids=["compiled", "SQL"])
def test_a_duckdb_column_without_case_gives_the_plain_answer(tmp_path: Path, compiled_from: Any) -> None:
    assert answers(in_duckdb(ROWS, tmp_path, "t", compiled_from)) == answers(plain(ROWS))


def test_a_postgresql_column_without_case_gives_the_plain_answer(postgres_server: Any) -> None:
    assert answers(in_postgresql(ROWS, postgres_server.url("postgres"))) == answers(plain(ROWS))


def test_a_mariadb_column_without_case_and_blanks_gives_the_plain_answer(mariadb_server: Any) -> None:
    assert answers(in_mariadb(ROWS, mariadb_server)) == answers(plain(ROWS))


@pytest.mark.parametrize("who", sorted({row[0] for row in ROWS}))
def test_who_leaves_moves_nobody_else(tmp_path: Path, who: Any) -> None:
    pair = [
        in_duckdb(rows, tmp_path, name, None)
        for name, rows in (("all", ROWS), ("less", [r for r in ROWS if r[0] != who]))
    ]
    exact = []
    for table in pair:
        question = table.group_by("ward", keys=WARDS).count()
        (part,) = question.parts(Budget(epsilon=1))
        asked, bits = part.question(question.frame, part.limits.norm, bytes(32))
        exact.append([int(n) for n in answer(asked)["rows"]])
    assert sum(abs(a - b) for a, b in zip(*exact, strict=True)) <= 1 << bits
