"""A stored table is read twice rather than kept; what may differ between two readings is kept."""

import itertools
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mosha.connect import Aggregation, Clamped, NormBound, Rows, Unbounded, answer, col, private, source
from mosha.connect.engines.duckdb import DuckDB
from mosha.connect.engines.source import engine_of
from mosha.connect.plan.bounding import Truncate
from mosha.connect.sql.norms import sql_of
from mosha.core.errors import DataError

FRAME = pa.table({"who": [1, 1, 2, 2, 2, None], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
BOUND = NormBound(1, {"rows": 2}, fraction=4)


def is_read_again(table: Any, bound: Any = BOUND, keep: Any = None) -> bool:
    rows: Any = private(table, person="who")
    question = Aggregation(rows if keep is None else keep(rows), {}, {"rows": Rows()}, bound=bound)
    return '"rows" AS NOT MATERIALIZED (' in sql_of(question, engine_of(question.relation).dialect)


def make_database(path: Path) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE stored AS SELECT 1 AS who, range AS x FROM range(1000)")
        connection.execute("CREATE VIEW seen AS SELECT *, random() AS luck FROM stored")
        connection.execute("CREATE TABLE worked (who INT, x INT, luck DOUBLE GENERATED ALWAYS AS (random()))")
        connection.execute("INSERT INTO worked SELECT * FROM stored")
    return path


def test_frozen_frames_and_stored_tables_are_read_again(tmp_path: Path) -> None:
    assert is_read_again(source(FRAME))
    assert is_read_again(source(make_database(tmp_path / "rows.duckdb"), table="stored"))
    assert is_read_again(source(FRAME), keep=lambda rows: rows.where(col("x") > 1).compute(y=col("x") + 1))


def test_files_and_frames_that_may_change_and_views_are_kept(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("who,x\n1,2\n")
    pq.write_table(FRAME, tmp_path / "rows.parquet")
    database = make_database(tmp_path / "rows.duckdb")
    for kept in (
        source(tmp_path / "rows.csv"),
        source(tmp_path / "rows.parquet"),
        source(pd.DataFrame({"who": [1, 2], "x": [1.0, 2.0]})),
        source(database, table="seen"),
        source(database, table="worked"),
    ):
        assert not is_read_again(kept)
    join = lambda rows: rows.join_person(private(source(FRAME), person="who").compute(z=col("x")))
    assert not is_read_again(source(pa.table({"who": [1, 2]})), keep=join)


@pytest.mark.parametrize("table", ["seen", "worked"])
def test_nobody_exceeds_the_limit_where_two_readings_would_differ(tmp_path: Path, table: str) -> None:
    """A person has about 500 of 1,000 rows in any reading; with a limit of 500, weights of another would exceed it."""
    rows = private(source(make_database(tmp_path / "rows.duckdb"), table=table), person="who").where(col("luck") < 0.5)
    question = Aggregation(rows, {}, {"rows": Rows()}, bound=NormBound(1, {"rows": 500}, fraction=4))
    for _ in range(30):
        [(count,)] = answer(question).to_dict().values()
        assert count <= 500 << 4


def count_while_replaced(folder: Path, engine: DuckDB, rows: int) -> Any:
    """The most that one person counts for, with a limit of 2, while a file takes the place of another and back.

    Both have the same number and time each, so that no look at the file could tell.
    """
    few, many, place = (folder / f"{name}.parquet" for name in ("few", "many", "rows"))
    pq.write_table(pa.table({"who": pa.array([1] + [None] * (rows - 1), pa.int64())}), few)
    pq.write_table(pa.table({"who": pa.array([1] * rows, pa.int64())}), many)
    os.link(few, place)
    over = threading.Event()

    def replace_again_and_again() -> None:
        for number, exported in enumerate(itertools.cycle((many, few))):
            os.link(exported, folder / f"{number}")
            (folder / f"{number}").replace(place)
            if over.wait(0.002):
                return

    table = private(engine.file(place), person="who")
    question = Aggregation(table, {}, {"rows": Rows()}, bound=BOUND)
    changing = threading.Thread(target=replace_again_and_again)
    changing.start()
    found = [0]
    try:
        for _ in range(100):
            with suppress(DataError):  # it was replaced in the middle of a reading
                found += [count for (count,) in answer(question).to_dict().values()]
    finally:
        over.set()
        changing.join()
    return max(found)


def test_nobody_exceeds_the_limit_where_a_file_is_replaced_between_two_readings(tmp_path: Path) -> None:
    """As a nightly export does it: weights from the old file let all rows of the new one pass, 4,800,000 for 32."""
    assert count_while_replaced(tmp_path, DuckDB(threads=1, compiled_from=None), 100_000) <= 2 << 4


def test_rows_of_busy_groups_are_read_again_too() -> None:
    rows = private(source(FRAME), person="who")
    value = Clamped(col("x"), (0, 10), exponent=0)
    question = Aggregation(rows, {}, {"x": value}, bound=Truncate(key=bytes(32), per_group=1))
    assert '"rows" AS NOT MATERIALIZED (' in sql_of(question, engine_of(rows).dialect)


def test_postgresql_reads_tables_again_and_keeps_views(connect_database: str) -> None:
    with psycopg.connect(connect_database, autocommit=True) as connection:
        for kind, statement in {
            "again_table": "CREATE TABLE again_table (who int, x float8)",
            "again_parts": "CREATE TABLE again_parts (who int, x float8) PARTITION BY LIST (who)",
            "again_copy": "CREATE MATERIALIZED VIEW again_copy AS SELECT * FROM again_table",
            "again_view": "CREATE VIEW again_view AS SELECT *, random() AS luck FROM again_table",
        }.items():
            connection.execute(statement.encode())
            assert is_read_again(source(connect_database, table=kind)) == (kind != "again_view")
        far = "CREATE FOREIGN DATA WRAPPER far; CREATE SERVER away FOREIGN DATA WRAPPER far;"
        far += "CREATE FOREIGN TABLE again_away PARTITION OF again_parts FOR VALUES IN (1) SERVER away;"
        far += "CREATE FOREIGN TABLE again_child () INHERITS (again_table) SERVER away"
        connection.execute(far.encode())
        assert not any(is_read_again(source(connect_database, table=kind)) for kind in ("again_parts", "again_table"))


def test_postgresql_counts_people_in_one_process(connect_database: str) -> None:
    """In a plan with workers each of them counted everybody's rows: three times the CPU of one process."""
    with psycopg.connect(connect_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE worked_on (who int)")
        connection.execute("INSERT INTO worked_on SELECT range FROM generate_series(1, 40) AS range")
        setting = "current_setting('max_parallel_workers_per_gather')::int AS workers"
        connection.execute(f"CREATE VIEW workers_seen AS SELECT who, {setting} FROM worked_on".encode())
        [(usual,)] = connection.execute("SELECT current_setting('max_parallel_workers_per_gather')::int").fetchall()
    seen = source(connect_database, table="workers_seen")
    workers = {"workers": Clamped(col("workers"), (0, 8), exponent=0)}
    by_person = NormBound(1, {"workers": 8}, fraction=0)
    bounded = Aggregation(private(seen, person="who"), {}, workers, bound=by_person)
    rows = Aggregation(private(seen), {}, workers, bound=Unbounded())
    assert [answer(question)["workers"].tolist() for question in (bounded, rows)] == [[0], [40 * usual]]
