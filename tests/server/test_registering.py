"""A table of a real PostgreSQL, registered on the console by the name of a variable, signed, granted and asked."""

import html
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import duckdb
import psycopg
import pytest

from tests.postgres import postgres_server  # noqa: F401  (a fixture)
from tests.server.house import opened
from tests.server.test_curator_pages import Visitor

FIELDS = {"path": "env:STAYS_URL", "table": "stays", "unit": "pid", "at_most": "1", "name": "stays", "epsilon": "50"}
FIELDS |= {"column_name": ["pid", "nights"], "column_type": ["integer", "integer"], "low": ["", "0"]}  # type: ignore[dict-item]
FIELDS |= {"high": ["", "30"], "values": ["", ""], "origin": ["", "codebook"], "delta": ""}  # type: ignore[dict-item]


@pytest.fixture(scope="module")
def place(postgres_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:  # noqa: F811
    folder = tmp_path_factory.mktemp("registering")
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS hospital")
        connection.execute("CREATE DATABASE hospital")
    url = postgres_server.url("hospital")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE stays AS SELECT n AS pid, n % 7 AS nights FROM generate_series(1, 500) n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAYS_URL", url)
        patch.setenv("STAYS_BY_ANOTHER_NAME", url.replace("127.0.0.1", "localhost") + "?application_name=other")
        patch.setenv("SOME_FILE", str(folder / "privacy.db"))
        with opened(folder) as house:
            house.browsers = []
            yield house
            for browser in house.browsers:
                browser.close()


def test_a_table_of_postgresql_is_registered_signed_granted_and_asked(place: Any) -> None:
    wang = Visitor(place, "wang")
    looked = wang.send("/register", path="env:STAYS_URL", table="stays", do="look")
    assert looked.status_code == 200
    assert "nights" in looked.text
    made = wang.send("/register", **FIELDS, do="propose")
    assert made.url.path == "/datasets/stays", made.text
    assert "postgresql://" not in made.text
    assert place.call("zhao", "POST", "/datasets/stays/countersign", {}).status_code == 200
    grant = {"principal": "li", "epsilon": 45.0, "expires": "2099-01-01"}
    assert place.call("wang", "POST", "/datasets/stays/grants", grant).status_code == 201
    found = place.answer("li", "SELECT COUNT(*) AS n FROM stays", key="one", epsilon=40.0, dataset="stays")
    assert found["state"] == "answered"
    assert abs(found["answer"]["rows"][0][0] - 500) < 1  # noise of scale 1/40: it reaches one once in e^40 runs


@pytest.mark.parametrize("again", [{"table": "public.stays"}, {"url": "env:STAYS_BY_ANOTHER_NAME"}])
def test_a_table_that_is_called_otherwise_gets_no_fresh_budget(place: Any, again: Any) -> None:
    """The database says which table it is, whatever the address and the name."""
    declaration = {"unit": {"person": "pid", "at_most": 1}, "columns": {"pid": {"type": "integer"}}}
    said = {"source": {"url": "env:STAYS_URL", "table": "stays"}, "declaration": declaration}
    said["promise"] = {"epsilon": 1.0}
    first = place.call("wang", "POST", "/datasets", said | {"name": "first"})
    assert first.status_code in (201, 409), first.text  # 409: another test of this file has registered it
    twice = place.call("wang", "POST", "/datasets", said | {"name": "twice", "source": said["source"] | again})
    assert (twice.status_code, twice.json()["code"]) == (409, "server.registered_before"), twice.text


UNIT = {"unit": {"person": "pid", "at_most": 1}, "columns": {"pid": {"type": "integer"}}}


def register(place: Any, name: str, by: str = "wang", again: Any = None, **source: Any) -> tuple[int, str]:
    """How a registration ends, and with which code where it is refused."""
    said = {"name": name, "declaration": UNIT, "promise": {"epsilon": 1.0}, "source": source}
    reply = place.call(by, "POST", "/datasets", said | ({} if again is None else {"again": again}))
    return reply.status_code, reply.json().get("code", "")


TAKEN, UNSURE = (409, "server.registered_before"), (409, "server.may_be_registered")


def test_tables_of_one_file_are_datasets_of_their_own_and_each_is_known_under_all_its_names(house: Any) -> None:
    """Two tables are two; a table by another spelling, through a link or through views is the same one."""
    folder = house.service.settings.folder / "data"
    with duckdb.connect(str(folder / "clinic.duckdb")) as file:
        for made in (
            "TABLE stays AS SELECT range AS pid FROM range(9)",
            "TABLE pay AS SELECT range AS pid FROM range(9)",
            "SCHEMA old",
            "TABLE old.stays AS SELECT range AS pid FROM range(9)",
            "VIEW seen AS SELECT * FROM stays",
            "VIEW shadow AS WITH stays AS (SELECT * FROM main.stays) SELECT * FROM stays",
            "VIEW joined AS SELECT pid FROM seen JOIN pay USING (pid)",
            "VIEW paid AS SELECT * FROM pay",
            f"VIEW csv AS SELECT 1 AS pid FROM '{folder / 'visits.csv'}'",
        ):
            file.execute(f"CREATE {made}")
    (folder / "also.duckdb").symlink_to(folder / "clinic.duckdb")
    os.link(folder / "clinic.duckdb", folder / "linked.duckdb")
    assert register(house, "clinic_stays", path="clinic.duckdb", table="stays") == (201, "")
    for path in ("clinic.duckdb", "also.duckdb", "linked.duckdb", "./clinic.duckdb"):
        for table in ("stays", "Stays", "main.stays", "seen", "shadow", "joined"):
            assert register(house, "clinic_twice", path=path, table=table) == TAKEN, (path, table)
    assert register(house, "clinic_pay", path="linked.duckdb", table="pay") == (201, "")
    assert register(house, "clinic_paid", path="clinic.duckdb", table="paid") == TAKEN
    assert register(house, "clinic_old", path="clinic.duckdb", table="old.stays") == (201, "")
    assert register(house, "clinic_csv", path="clinic.duckdb", table="csv") == UNSURE


def test_tables_of_sqlite_are_told_apart_and_views_of_it_are_not(house: Any) -> None:
    folder = house.service.settings.folder / "data"
    with closing(sqlite3.connect(folder / "shop.sqlite")) as file:
        file.executescript(
            "CREATE TABLE a (pid INTEGER); CREATE TABLE b (pid INTEGER); CREATE VIEW v AS SELECT * FROM a"
        )
    assert register(house, "shop_a", path="shop.sqlite", table="a") == (201, "")
    assert register(house, "shop_b", path="shop.sqlite", table="b") == (201, "")
    assert register(house, "shop_d", path="shop.sqlite", table="v") == UNSURE


def test_views_and_partitions_of_postgresql_get_no_fresh_budget(place: Any) -> None:
    """A view is the tables that it reads, and a partition shares its rows with its table, but with no other one."""
    with psycopg.connect(os.environ["STAYS_URL"], autocommit=True) as connection:
        for made in (
            "TABLE people AS SELECT n AS pid FROM generate_series(1, 9) n",
            "TABLE animals AS SELECT n AS pid FROM generate_series(1, 9) n",
            "VIEW seen AS SELECT * FROM people",
            "VIEW far AS SELECT * FROM seen WHERE pid > 1",
            "MATERIALIZED VIEW kept AS SELECT * FROM seen",
            "VIEW others AS SELECT * FROM animals",
            "TABLE years (pid int, year int) PARTITION BY LIST (year)",
            "TABLE y2026 PARTITION OF years FOR VALUES IN (2026)",
            "TABLE y2027 PARTITION OF years FOR VALUES IN (2027)",
            "FUNCTION hide() RETURNS SETOF people LANGUAGE sql AS 'SELECT * FROM people'",
            "VIEW called AS SELECT * FROM hide()",
        ):
            connection.execute(f"CREATE {made}".encode())
    url = {"url": "env:STAYS_URL"}
    assert register(place, "pg_people", **url, table="people") == (201, "")
    for table in ("people", "public.people", "seen", "far", "kept"):
        assert register(place, "pg_twice", **url, table=table) == TAKEN, table
    assert register(place, "pg_others", **url, table="others") == (201, "")
    assert register(place, "pg_animals", **url, table="animals") == TAKEN
    assert register(place, "pg_called", **url, table="called") == UNSURE
    assert register(place, "pg_2026", **url, table="y2026") == (201, "")
    assert register(place, "pg_2027", **url, table="y2027") == (201, "")
    assert register(place, "pg_years", **url, table="years") == TAKEN


def test_the_same_data_have_a_second_budget_only_by_a_reviewers_word_which_both_statements_print(house: Any) -> None:
    reason = "a course for students, once"
    assert register(house, "course", path="visits.csv") == TAKEN
    assert register(house, "course", again=reason, path="visits.csv") == (201, "")
    signing = house.call("zhao", "GET", "/datasets/course").json()
    assert signing["again"] == {"beside": "visits", "reason": reason}
    assert reason not in house.call("wang", "GET", "/statements?account=visits&format=markdown").text
    assert house.call("wang", "POST", "/datasets/course/countersign", {}).status_code == 404
    assert house.call("zhao", "POST", "/datasets/course/countersign", {}).status_code == 200
    for account, other in (("course", "visits"), ("visits", "course")):
        for form in ("json", "markdown", "html"):
            said = house.call("zhao", "GET", f"/statements?account={account}&format={form}").text
            assert reason in said
            assert f"registered as {other} too" in said
    (note,) = [n for n in house.service.ledger.notes(topic="dataset/declared") if n.about == "course"]
    assert (note.content["again"], note.content["countersigned_by"]) == (reason, "zhao")


def test_a_table_of_a_file_and_the_same_data_once_more_are_registered_on_the_page(place: Any) -> None:
    """The field for a reason is there once it is needed, and whoever signs reads it."""
    with duckdb.connect(str(place.service.settings.folder / "data" / "wards.duckdb")) as file:
        file.execute("CREATE TABLE beds AS SELECT range AS pid, range % 7 AS nights FROM range(9)")
    wang = Visitor(place, "wang")
    looked = wang.send("/register", path="wards.duckdb", table="beds", do="look")
    assert "nights" in looked.text
    assert 'name="again"' not in looked.text
    fields = FIELDS | {"path": "wards.duckdb", "table": "beds", "epsilon": "1", "do": "propose"}
    assert wang.send("/register", **fields | {"name": "beds"}).url.path == "/datasets/beds"
    assert 'name="again"' not in wang.send("/register", **fields | {"name": "beds_again", "path": "no.duckdb"}).text
    refused = wang.send("/register", **fields | {"name": "beds_again"})
    assert "is registered already, as" in html.unescape(refused.text)
    assert 'name="again"' in refused.text
    made = wang.send("/register", **fields | {"name": "beds_again", "again": "<b>for a course"})
    assert made.url.path == "/datasets/beds_again"
    signing = Visitor(place, "zhao").get("/datasets/beds_again").text
    assert "&lt;b&gt;for a course" in signing
    assert "registered as beds too" in signing


def test_where_nobody_signs_a_reviewer_alone_registers_again(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house.service, "settings", replace(house.service.settings, two_signatures=False))
    assert register(house, "alone", again="because", path="visits.csv") == (422, "server.field_unknown")


@pytest.mark.parametrize("name", ["SOME_FILE", "HOME", "NO_SUCH_VARIABLE"])
def test_a_variable_that_holds_no_address_of_a_database_is_refused(place: Any, name: str) -> None:
    """A path would lead outside of the folders that data may come from, and to the server's own ledger."""
    reply = place.call("wang", "POST", "/sources/columns", {"source": {"url": f"env:{name}", "table": "accounts"}})
    assert (reply.status_code, reply.json()["code"]) == (422, "server.field_wrong")
    page = Visitor(place, "wang").send("/register", path=f"env:{name}", table="stays", do="look")
    assert page.status_code == 422
    assert f'value="env:{name}"' in page.text
    assert "where the operator has set the variable" in page.text


def test_the_own_database_of_a_server_is_no_source(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://mosha@127.0.0.1:1/own"
    monkeypatch.setenv("OWN", url)
    monkeypatch.setattr(type(place.service.settings), "store_place", property(lambda _: url))
    reply = place.call("wang", "POST", "/sources/columns", {"source": {"url": "env:OWN", "table": "requests"}})
    assert (reply.status_code, reply.json()["code"]) == (422, "server.field_wrong")
