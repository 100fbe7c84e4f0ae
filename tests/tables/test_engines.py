"""One question, the same answer wherever the table lives: with the same randomness, to the last bit."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import mosha
from mosha.connect.engines.postgresql import PostgreSQL
from mosha.connect.engines.spark import Spark
from mosha.tables import Budget, count, distinct, mean, median, persons, protect
from tests.chance import release_too_late

UNIT = mosha.Person("who", at_most=3)
SCHEMA = {"who": "integer", "ward": "text", "days": "real", "day": "date"}
PLACES = ["arrow", "pandas", "polars", "csv", "parquet", "folder", "duckdb", "postgresql", "spark"]


@pytest.fixture(scope="module")
def arrow() -> Any:
    generator = np.random.default_rng()
    size = 400
    days = [None if i % 17 == 0 else float(d) for i, d in enumerate(generator.integers(0, 40, size) / 4)]
    return pa.table(
        {
            "who": generator.integers(0, 60, size),
            "ward": [None if i % 13 == 0 else f"ward {i % 3}" for i in range(size)],
            "days": days,
            "day": [date(2024, 1, 1) + timedelta(days=int(i)) for i in generator.integers(0, 90, size)],
        }
    )


def in_csv(table: Any, folder: Any) -> tuple[Any, ...]:
    pyarrow.csv.write_csv(table, folder / "t.csv")
    return folder / "t.csv", {"schema": SCHEMA}


def in_parquet(table: Any, folder: Any) -> tuple[Any, ...]:
    pq.write_table(table, folder / "t.parquet")
    return str(folder / "t.parquet"), {}


def in_folder(table: Any, folder: Any) -> tuple[Any, ...]:
    for part in (0, 1):
        pq.write_table(table.slice(200 * part, 200), folder / f"part-{part}.parquet")
    return folder, {}


def in_duckdb(table: Any, folder: Any) -> tuple[Any, ...]:
    import duckdb

    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
    return folder / "t.duckdb", {"table": "visits"}


FILES = {"csv": in_csv, "parquet": in_parquet, "folder": in_folder, "duckdb": in_duckdb}


def placed(name: Any, table: Any, folder: Any, request: Any) -> Any:
    """The table at a place: what `protect` takes, with its options."""
    if name in FILES:
        return FILES[name](table, folder)
    if name == "postgresql":
        return in_postgresql(request.getfixturevalue("postgres_server").url("postgres"), table)
    if name == "spark":
        session = request.getfixturevalue("spark_session")
        return session.read.parquet(in_parquet(table, folder)[0]), {}
    if name == "arrow":
        return table, {}
    library = pytest.importorskip(name)
    return (table.to_pandas() if name == "pandas" else library.from_arrow(table)), {}


def in_postgresql(url: Any, table: Any) -> tuple[Any, ...]:
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS stays")
        cursor.execute("CREATE TABLE stays (who bigint, ward text, days double precision, day date)")
        with cursor.copy("COPY stays FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(list(row.values()))
    return url, {"table": "stays"}


def asked(table: Any) -> Iterator[Any]:
    wards = ["ward 0", "ward 1", "ward 2", None]
    numbers = {"n": count(), "stay": mean("days", between=(0, 10)), "middle": median("days", between=(0, 10))}
    yield table.where(mosha.col("days") < 9).group_by("ward", keys=wards).aggregate(people=persons(), **numbers)
    roomy = replace(table, unit=mosha.Person("who", at_most=1000))  # nothing is cut: engines have hashes of their own
    months = range(1, 4)
    yield roomy.group_by(month=mosha.col("day").month(), keys=months).aggregate(days=distinct("day"), **numbers)


@pytest.fixture(scope="module")
def expected(arrow: Any) -> Any:
    return every_answer(protect(arrow, unit=UNIT))


def every_answer(table: Any) -> list[Any]:
    first, second = asked(table)
    return [answers(first, Budget(epsilon=1)), answers(first, Budget(rho=0.1)), answers(second, Budget(epsilon=1))]


def answers(question: Any, budget: Any) -> Any:
    return question.measurement(budget).step(None, None, None, mosha.noise.SeededRandom(5))[0]


@pytest.mark.parametrize("place", PLACES)
def test_every_place_gives_the_same_answer(place: Any, arrow: Any, expected: Any, tmp_path: Path, request: Any) -> None:
    data, options = placed(place, arrow, tmp_path, request)
    table = protect(data, unit=UNIT, **options)
    if place == "spark":  # slow to plan: one release tells
        assert answers(next(asked(table)), Budget(epsilon=1)) == expected[0]
    else:
        assert every_answer(table) == expected


@pytest.fixture
def stays(arrow: Any, postgres_server: Any) -> Any:
    """A question about a table on a server that can be stopped."""
    url, options = in_postgresql(postgres_server.url("postgres"), arrow)
    account = mosha.Ledger.memory().account("stays", unit=UNIT, epsilon=5)
    return protect(url, unit=UNIT, account=account, **options).count()


def test_a_server_that_is_away_is_told_before_payment(stays: Any, postgres_server: Any) -> None:
    postgres_server.stop()
    try:
        with pytest.raises(mosha.errors.SourceUnavailable, match="Nothing was spent"):
            stays.release(epsilon=1)
    finally:
        postgres_server.start()
    assert stays.account.spent == stays.account.failures == 0


def test_a_connection_that_is_lost_after_payment_costs_once_and_the_retry_is_free(
    stays: Any, postgres_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, look = stays.account, PostgreSQL.analyze

    def look_and_lose(self: Any, found: Any, question: Any) -> None:
        look(self, found, question)
        postgres_server.stop()

    try:
        with monkeypatch.context() as patch:
            patch.setattr(PostgreSQL, "analyze", look_and_lose)
            with pytest.raises(mosha.errors.SourceUnavailable, match="The payment waits") as lost:
                stays.release(epsilon=0.5)
        made = re.search(r"key='(release-\w+)'", str(lost.value))[1]
        assert (lost.value.retry_key, lost.value.spent) == (made, "waits")
        assert f"key='{made}'" in lost.value.render("zh")
        with pytest.raises(mosha.errors.SourceUnavailable):
            stays.release(epsilon=0.5, key=made)
    finally:
        postgres_server.start()
    assert stays.release(epsilon=0.5, key=made).value == stays.release(epsilon=0.5, key=made).value
    assert (account.spent, account.failures) == (pytest.approx(0.5), 0)


def test_a_deadline_breaks_a_statement_off_on_a_server(stays: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = PostgreSQL.run

    def slowly(self: Any, found: Any, question: Any) -> Any:
        self._in_snapshot(lambda cursor: cursor.execute("SELECT pg_sleep(600)"), rows=True)
        return run(self, found, question)

    with monkeypatch.context() as patch:
        patch.setattr(PostgreSQL, "run", slowly)
        late = str(release_too_late(stays, epsilon=0.5))
    assert "asks once more" in late
    made = re.search(r"key='(release-\w+)'", late)[1]
    assert stays.account.failures == 1
    assert stays.release(epsilon=0.5, key=made).value
    assert stays.account.spent == pytest.approx(0.5)


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE {} CASCADE",
        "ALTER TABLE {} DROP COLUMN days CASCADE",
        "ALTER TABLE {} ALTER days TYPE date USING NULL",
    ],
)
def test_a_table_that_changed_on_the_server_is_told_before_payment(
    arrow: Any, postgres_server: Any, change: str
) -> None:
    import psycopg

    url, options = in_postgresql(postgres_server.url("postgres"), arrow)
    account = mosha.Ledger.memory().account("stays", unit=UNIT, epsilon=5)
    question = protect(url, unit=UNIT, account=account, **options).mean("days", between=(0, 9))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(change.format(options["table"]))
    with pytest.raises(mosha.errors.DataError, match="Nothing was spent"):
        question.release(epsilon=1)
    assert account.spent == account.failures == 0


def test_a_deadline_and_a_view_that_is_gone_on_spark(spark_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark_session.createDataFrame([(1, 2.0), (2, 3.0)], "who long, days double")
    account = mosha.Ledger.memory().account("stays", unit=mosha.Row(), epsilon=5)
    table = protect(frame, unit=mosha.Row(), account=account)
    endless = "SELECT count(*) FROM range(100000000000) WHERE id % 3 = rand()"

    def slowly(self: Any, found: Any, question: Any) -> Any:
        return self._run_silently(lambda: self._session.sql(endless).collect(), rows=True)

    with monkeypatch.context() as patch:
        patch.setattr(Spark, "run", slowly)
        assert "asks once more" in str(release_too_late(table.count(), epsilon=1))
    assert (account.spent, account.failures) == (1.0, 1)
    spark_session.catalog.dropTempView(table.relation.source.view.name)  # type: ignore[attr-defined]
    with pytest.raises(mosha.errors.DataError, match="Nothing was spent"):
        table.count().release(epsilon=1)
    assert (account.spent, account.failures) == (1.0, 1)


def test_a_file_that_went_away_costs_nothing(arrow: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(arrow, path)
    account = mosha.Ledger.memory().account("stays", unit=UNIT, epsilon=5)
    question = protect(path, unit=UNIT, account=account).count()
    path.unlink()
    with pytest.raises(mosha.errors.MoshaError) as caught:
        question.release(epsilon=1, key="again")
    assert str(tmp_path) not in str(caught.value)
    assert account.spent == 0


def test_a_declared_schema_reads_a_csv_by_its_types_and_not_by_its_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who,ward,days\n1,A,3\n2,B,x\n3,A,4.5\n")
    declared = {"who": "text", "days": "integer", "ward": "text"}
    table = protect(tmp_path / "t.csv", unit=mosha.Person("who", at_most=1), schema=declared)
    assert dict(table.schema) == declared
    exact = table.count("days").measurement(Budget(epsilon=1000)).step(None, None, None, mosha.noise.secure())[0]
    assert round(exact["parts"][0]["channels"][0][0]) in (1, 2)  # "4.5" is no integer, or is rounded; "x" is missing
    with pytest.raises(mosha.errors.DataError, match="'age'"):
        protect(tmp_path / "t.csv", unit=mosha.Row(), schema={"age": "integer"})
    with pytest.raises(mosha.errors.InvalidParameter, match="one of"):
        protect(tmp_path / "t.csv", unit=mosha.Row(), schema={"who": "number"})
    with pytest.raises(mosha.errors.DataError, match="declares 'x' as text"):
        protect(pa.table({"x": [1]}), unit=mosha.Row(), schema={"x": "text"})


def test_a_frame_with_a_declared_schema_stays_there_as_long_as_its_table() -> None:
    tables = [protect(pa.table({"x": [1.0] * 9}), unit=mosha.Row(), schema={"x": "real"}) for _ in range(3)]
    for table in tables:
        for question in (table.count(), table.median("x", between=(0, 2))):
            question.measurement(Budget(epsilon=1)).step(None, None, None, mosha.noise.secure())
