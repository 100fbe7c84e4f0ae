"""What only MariaDB does: dates that no calendar has, blanks that compare equal, tables without transactions."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha.connect import Aggregation, NormBound, Rows, Truncate, Type, Unbounded, answer, col, private, source
from mosha.connect.engines.source import look_only, stop_at
from mosha.connect.engines.tried import NEWEST
from mosha.core.errors import DataError, DeadlineExceeded, InvalidParameter, SourceUnavailable
from tests.connect.places import MariaDBPlace
from tests.server.house import opened

ODD = """
CREATE TABLE odd (
  small smallint, large bigint unsigned, exact decimal(20, 0), price decimal(10, 2), single float, flag boolean,
  mood enum('happy', 'sad'), tag char(4) CHARACTER SET latin1, id uuid, day date, clock datetime(6),
  moment timestamp(6) NULL, data blob, chinese varchar(9) CHARACTER SET gbk, at time, born year)
"""
TYPES = [
    *["integer", "integer", "integer", "real", "real", "boolean", "text", "text", "text"],
    *["date", "timestamp", "instant", "integer"],
]


@pytest.fixture(scope="module")
def place(mariadb_server: Any) -> Any:
    return MariaDBPlace(mariadb_server, "own")


def run(place: Any, *statements: Any) -> None:
    with place.server.connect(place.database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def rows(opened: Any, *names: Any) -> list[Any]:
    keys = {name: col(name) for name in names or opened.schema}
    found = answer(Aggregation(private(opened), keys, {"n": Rows()}, bound=Unbounded()))
    return [key for key, (count,) in found.rows() for _ in range(count)]


def test_columns_of_mariadb_have_the_same_seven_types(place: Any) -> None:
    uuid = "6ecd8c99-4036-403d-bf84-cf8400f67836"
    run(
        place,
        "SET time_zone = '+08:00', sql_mode = ''",
        ODD,
        "INSERT INTO odd VALUES (1, 18446744073709551615, 99999999999999999999, 1.25, 0.5, 1, 'sad', 'é ', "
        f"'{uuid}', '2024-02-29', '2024-01-01 10:00:00.5', '2024-01-01 10:00:00', x'00', '中', '10:00', 1999)",
        "INSERT INTO odd VALUES (-1, 7, -7, -9.5, NULL, 5, 'happy', 'b'" + ", NULL" * 8 + ")",
    )
    opened = source(place.url, table="odd")
    assert opened.skipped == ("data", "chinese", "at")
    assert list(opened.schema.values()) == TYPES
    noon = dt.datetime(2024, 1, 1, 10, 0, 0, 500000)
    first = (
        1,
        None,
        None,
        1.25,
        0.5,
        True,
        "sad",
        "é",
        uuid,
        dt.date(2024, 2, 29),
        noon,
        dt.datetime(2024, 1, 1, 2),
        1999,
    )
    second = (-1, 7, -7, -9.5, None, True, "happy", "b", None, None, None, None, None)
    assert set(rows(opened)) == {first, second}


def test_dates_that_no_calendar_has_are_missing(place: Any) -> None:
    """Modes of the server let them in; a function of one is missing or a wrong date, by the mode of who asks."""
    values = ["0000-00-00", "2024-00-10", "2024-02-00", "2024-02-31", "2023-02-29", "0000-05-05", "2024-02-29"]
    run(
        place,
        "SET sql_mode = 'ALLOW_INVALID_DATES'",
        "CREATE TABLE wild (d date, w datetime)",
        *[f"INSERT INTO wild VALUES ('{day}', '{day} 01:02:03')" for day in values],
    )
    opened = source(place.url, table="wild")
    good = (dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3))
    assert sorted(rows(opened), key=str) == sorted([good, *[(None, None)] * 6], key=str)
    first = answer(Aggregation(private(opened), {"k": col("d").truncate("week")}, {"n": Rows()}, bound=Unbounded()))
    assert first.to_dict() == {(None,): (6,), (dt.date(2024, 2, 26),): (1,)}


@pytest.mark.parametrize("kind", ["varchar(4000)", "longtext", "varchar(3000) COLLATE utf8mb4_unicode_ci"])
def test_persons_who_differ_far_behind_their_first_letter_stay_apart(place: Any, kind: str) -> None:
    """By its own settings the server sorts by the first 1,024 bytes: interleaved, each would be bounded many times."""
    people = ["p" * 2500 + end for end in ("a", "A", "b", "a ", "á")]
    name = "far_" + "".join(c for c in kind if c.isalnum())
    run(place, f"CREATE TABLE {name} (who {kind}, k int) CHARACTER SET utf8mb4")
    with place.server.connect(place.database) as connection, connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s)", [(p, k) for k in range(7) for p in people])
    relation = private(source(place.url, table=name), person="who")
    for bound in (Truncate(bytes(32), rows=2), Truncate(bytes(32), groups=2), NormBound(1, {"n": 2})):
        found = answer(Aggregation(relation, {"k": col("k")}, {"n": Rows()}, bound=bound))
        total = sum(count for _, (count,) in found.rows())
        assert total == 2 * len(people) or isinstance(bound, NormBound)
        assert total <= 2 * len(people) << getattr(bound, "fraction", 0)
    found = answer(Aggregation(relation, {"who": col("who")}, {"n": Rows()}, bound=Unbounded()))
    assert found.to_dict() == {(who,): (7,) for who in people}


def test_a_table_without_transactions_is_refused(place: Any) -> None:
    run(place, "CREATE TABLE plain (k int) ENGINE = MyISAM", "CREATE VIEW seen AS SELECT 1 AS k")
    with pytest.raises(DataError, match="without transactions"):
        source(place.url, table="plain")
    assert rows(source(place.url, table="seen")) == [(1,)]


def test_a_server_or_table_that_is_not_there_is_refused(place: Any) -> None:
    with pytest.raises(DataError, match="no table 'nowhere'"):
        source(place.url, table="nowhere")
    with pytest.raises(DataError, match="no table"):
        source(place.url, table="odd` -- ")
    with pytest.raises(InvalidParameter, match="needs table="):
        source(place.url)
    with pytest.raises(InvalidParameter, match="names a database"):
        source("mariadb://nobody@127.0.0.1:1", table="t")
    with pytest.raises(InvalidParameter, match="no options but"):
        source("mariadb://nobody@127.0.0.1:1/none?local_infile=1", table="t")
    with pytest.raises(SourceUnavailable, match="did not answer"):
        source("mariadb://nobody@127.0.0.1:1/none", table="t")


def test_the_look_prepares_the_statement_and_reads_no_row(place: Any) -> None:
    """Not by EXPLAIN, which reads a table of one row."""
    run(place, "CREATE TABLE one (k int, x double)", "INSERT INTO one VALUES (1, 2.5)")
    with place.server.connect() as connection, connection.cursor() as cursor:

        def count_reads() -> Any:
            cursor.execute("SELECT SUM(ROWS_READ) FROM information_schema.TABLE_STATISTICS WHERE TABLE_NAME = 'one'")
            return cursor.fetchone()[0] or 0

        cursor.execute("SET GLOBAL userstat = 1")
        try:
            relation = private(source(place.url, table="one"), person="k")
            question = Aggregation(relation, {"k": col("k")}, {"n": Rows()}, bound=NormBound(1, {"n": 1}))
            before = count_reads()
            with look_only():
                assert answer(question).to_dict() == {}
            assert count_reads() == before
            assert answer(question).to_dict() == {(1,): (1,)}
            assert count_reads() > before
        finally:
            cursor.execute("SET GLOBAL userstat = 0")
    run(place, "ALTER TABLE one DROP COLUMN k")
    with look_only(), pytest.raises(DataError, match="cannot run this question"):
        answer(question)


def test_a_question_that_takes_too_long_is_broken_off(place: Any) -> None:
    run(place, "CREATE TABLE many AS SELECT seq AS k FROM seq_1_to_200000")
    relation = private(source(place.url, table="many"), person="k")
    slow = Aggregation(relation, {"k": col("k").cast("text")}, {"n": Rows()}, bound=Truncate(bytes(32), rows=1))
    with stop_at(0.05), pytest.raises(DeadlineExceeded):
        answer(slow)


def test_a_person_is_protected_from_the_first_line_to_the_answer(place: Any) -> None:
    run(place, "CREATE TABLE visits (patient varchar(9), ward varchar(9), days double)")
    with place.server.connect(place.database) as connection, connection.cursor() as cursor:
        stays = [(f"p{i}", "AB"[i % 2], float(i % 9)) for i in range(4000)]
        cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s)", stays)
    unit = mosha.Person("patient", at_most=1)
    account = mosha.Ledger.memory().account("visits", unit=unit, epsilon=30)
    visits = mosha.protect(place.url, table="visits", unit=unit, account=account)
    sql = "SELECT ward, COUNT(*) AS n, AVG(days) AS mean FROM visits WHERE ward IN ('A', 'B') GROUP BY ward"
    options: dict[str, Any] = {"keys": {"ward": ["A", "B"]}, "ranges": {"days": (0, 9)}}
    found = mosha.query(sql, tables={"visits": visits}, epsilon=20, **options)
    assert [(row["ward"], round(row["n"], -2)) for row in found] == [("A", 2000), ("B", 2000)]  # type: ignore[arg-type, index]
    assert all(abs(row["mean"] - 4) < 0.5 for row in found)  # type: ignore[index, operator]


def test_the_list_names_the_server_that_these_tests_run_on(place: Any) -> None:
    with place.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        version = cursor.fetchone()[0]
    assert NEWEST["MariaDB"] == tuple(int(part) for part in version.split(".")[:2])
    assert Type.BOOLEAN in source(place.url, table="odd").schema.values()


def test_persons_whose_bytes_are_no_text_of_their_character_set_are_missing_and_never_one(place: Any) -> None:
    """The server reads each byte above 127 of an ascii column as a question mark: three people would be one."""
    run(
        place,
        "SET sql_mode = ''",
        "DROP TABLE IF EXISTS bytes",
        "CREATE TABLE bytes (who varchar(9) CHARACTER SET ascii, kind varchar(9) CHARACTER SET ascii)",
        "INSERT INTO bytes VALUES (x'E9', x'E9'), (x'EA', 'b'), (x'EB', 'b'), ('?', 'c'), ('ann', 'c'), ('ann', 'c')",
    )
    opened = source(place.url, table="bytes")
    assert sorted(kind for (kind,) in rows(opened, "kind")) == ["?", "b", "b", "c", "c", "c"]  # what is no name is read
    people = Aggregation(private(opened, person="who"), {}, {"n": Rows()}, bound=Truncate(bytes(32), rows=1))
    assert answer(people).to_dict() == {(): (2,)}  # the one who is called ?, and ann


def test_a_table_of_mariadb_is_registered_signed_granted_and_asked_behind_the_server(
    place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(
        place,
        "DROP TABLE IF EXISTS stays",
        "CREATE TABLE stays (pid bigint, ward varchar(20), nights int)",
        "INSERT INTO stays SELECT seq, IF(seq % 2, 'A', 'B'), seq % 7 FROM seq_1_to_500",
    )
    monkeypatch.setenv("STAYS", place.url)
    monkeypatch.setenv("STAYS_AGAIN", place.url.replace("mosha@127.0.0.1", "other@localhost"))
    source = {"url": "env:STAYS", "table": "stays"}
    columns = {"pid": {"type": "integer"}, "ward": {"type": "text", "keys": ["A", "B"], "origin": "codebook"}}
    columns["nights"] = {"type": "integer", "between": [0, 30], "origin": "codebook"}
    said = {"name": "stays", "source": source, "promise": {"epsilon": 100.0, "delta": 1e-6}}
    said["declaration"] = {"unit": {"person": "pid", "at_most": 1}, "columns": columns}
    with opened(tmp_path) as house:
        found = house.call("wang", "POST", "/sources/columns", {"source": source}).json()
        assert {column["name"] for column in found["columns"]} == {"pid", "ward", "nights"}
        made = house.call("wang", "POST", "/datasets", said)
        assert made.status_code == 201, made.text
        assert "mariadb://" not in made.text
        assert house.call("zhao", "POST", "/datasets/stays/countersign", {}).status_code == 200
        for again in ({"table": f"{place.database}.stays"}, {"url": "env:STAYS_AGAIN"}):
            twice = house.call("wang", "POST", "/datasets", said | {"name": "twice", "source": source | again})
            assert (twice.status_code, twice.json()["code"]) == (409, "server.registered_before"), again
        run(place, "CREATE OR REPLACE VIEW seen AS SELECT * FROM stays", "CREATE OR REPLACE TABLE more LIKE stays")
        for table, code in (("seen", "server.may_be_registered"), ("more", "")):
            reply = house.call("wang", "POST", "/datasets", said | {"name": table, "source": source | {"table": table}})
            assert reply.json().get("code", "") == code, reply.text
        grant = {"principal": "li", "epsilon": 90.0, "delta": 1e-7, "expires": "2099-01-01"}
        assert house.call("wang", "POST", "/datasets/stays/grants", grant).status_code == 201
        sql = "SELECT ward, COUNT(*) AS n, MEDIAN(nights) AS nights FROM stays GROUP BY ward"
        answered = house.answer("li", sql, key="one", epsilon=80.0, dataset="stays")
        assert answered["state"] == "answered", answered
        rows = {row[0]: row[1] for row in answered["answer"]["rows"]}
        assert all(abs(rows[ward] - 250) < 3 for ward in "AB"), rows  # scale below .1: three is thirty times that
        gone = house.call("wang", "POST", "/sources/columns", {"source": source | {"table": "nowhere"}})
        assert gone.json()["code"] == "server.source_unreadable"
