"""A table of a real PostgreSQL, registered on the console by the name of a variable, signed, granted and asked."""

from collections.abc import Iterator
from typing import Any

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
