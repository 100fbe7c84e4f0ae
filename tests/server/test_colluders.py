"""What a curator with an analyst, an agent with its person, and anybody at all tried once something was agreed."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mosha.server import app
from mosha.server.api.mcp import find_wait
from mosha.server.people.credentials import find_by_secret, issue, revoke, use_link
from mosha.server.people.principals import create_principal, find_principal, give_role
from mosha.server.store.database import open_database
from mosha.server.store.migrations import _VERSIONS, migrate
from mosha.server.work.queue import claim
from mosha.server.work.slots import Slots
from tests.server.clocked import add_dataset, make_rows
from tests.server.house import COUNT, opened

BLOCK = {"condition": {"column": "day", "from": "2027-01-01"}, "epsilon": 1.0, "delta": 1e-7}
ROWS = {"patient_id": [1, 2], "ward": ["surgery"] * 2, "day": ["2026-01-01"] * 2, "days": [1, 2], "age": [4, 5]}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Any]:
    with opened(tmp_path) as house:
        yield house


def test_a_curator_becomes_nobody_who_has_been_in_and_is_out_again(place: Any) -> None:
    """A session that ended leaves no row: a link of the curator's then opened the answers of that person."""
    database = place.service.database
    person = place.call("wang", "POST", "/principals", {"name": "newcomer", "kind": "person"}).json()["id"]
    link = place.call("wang", "POST", f"/principals/{person}/links", {}).json()["link"].split("=")[1]
    assert use_link(database, link) == person
    session = issue(database, person, "session", seconds=60)
    revoke(database, session.id)
    assert database.row("SELECT * FROM credentials WHERE principal = ?", person) is None
    assert place.call("wang", "POST", f"/principals/{person}/links", {}).status_code == 404
    assert place.call("ada", "POST", f"/principals/{person}/links", {}).status_code == 201


def test_people_of_an_older_store_who_have_been_in_are_known(tmp_path: Path) -> None:
    database = open_database(tmp_path / "server.db")
    with database.transaction() as transaction:
        transaction.run("CREATE TABLE versions (version INTEGER PRIMARY KEY)")
        for number, statements in enumerate(_VERSIONS[:4], start=1):
            for statement in statements.split(";"):
                transaction.run(statement)
            transaction.run("INSERT INTO versions VALUES (?)", number)
        add = (
            "INSERT INTO principals (id, kind, name, parent, state, created) VALUES (?, 'person', ?, NULL, 'active', 1)"
        )
        for name in ("by oidc", "invited", "never"):
            transaction.run(add, name, name)
        transaction.run("INSERT INTO identities VALUES ('issuer', 'subject', 'by oidc')")
        keep = (
            "INSERT INTO credentials (id, principal, kind, hash, scope, label, created, expires)"
            " VALUES ('c', 'invited', 'link', '', '{}', '', 1, 2)"
        )
        transaction.run(keep)
    migrate(database)
    entered = {name: find_principal(database, name)["entered"] for name in ("by oidc", "invited", "never")}
    assert entered == {"by oidc": 1, "invited": None, "never": None}
    database.close()


def test_a_question_about_all_data_reads_no_block_that_was_opened_after_it_was_asked(place: Any) -> None:
    """It paid the blocks that there were, and would have read the rows of the new one for nothing."""
    asked = place.ask("li", key="before", epsilon=0.6).json()
    late = place.ask("li", key="late", epsilon=0.55).json()
    assert (asked["state"], late["state"]) == ("waiting", "waiting")
    decide = {"verdict": "approve", "reason": "fine"}
    add = dict(BLOCK, name="later")
    slots = place.service.slots
    with slots._wake:  # nothing is claimed meanwhile
        slots._stopping = True
        slots._wake.notify_all()
    for thread in slots._threads:
        thread.join(60)
    assert place.call("zhao", "POST", f"/requests/{asked['id']}/decision", decide).status_code == 200
    assert place.call("wang", "POST", "/datasets/visits/blocks", add).status_code == 201
    refused = place.call("zhao", "POST", f"/requests/{late['id']}/decision", decide)
    assert (refused.status_code, refused.json()["code"]) == (409, "server.approval_stale")
    slots._stopping = False
    row = claim(place.service.database, slots.holder, most_running=1)
    assert row is not None
    slots._run(slots._workers[0], row)
    found = place.call("li", "GET", f"/requests/{asked['id']}").json()
    assert (found["state"], found["problem"]["code"]) == ("refused", "server.approval_stale")
    assert place.service.ledger.account("visits").spent == 0


def test_what_was_frozen_before_it_was_paid_is_not_answered_at_a_second_attempt(place: Any) -> None:
    """A server that was killed before the payment asks once more: it looked only the first time."""
    add_dataset(place, "few", make_rows(10), timing="off", deadline=300.0)
    slots = place.service.slots
    with slots._wake:
        slots._stopping = True
        slots._wake.notify_all()
    for thread in slots._threads:
        thread.join(60)
    slots._stopping = False
    asked = place.ask("li", COUNT.replace("visits", "few"), key="killed", dataset="few").json()["id"]
    place.service.database.run("UPDATE requests SET attempts = 1 WHERE id = ?", asked)
    assert place.call("zhao", "POST", "/datasets/few/freeze", {"reason": "a doubt"}).status_code == 200
    row = claim(place.service.database, slots.holder, most_running=1)
    assert row is not None
    slots._run(slots._workers[0], row)
    found = place.call("li", "GET", f"/requests/{asked}").json()
    assert (found["state"], found["problem"]["code"]) == ("refused", "server.approval_stale")
    assert place.service.ledger.account("few").spent == 0


def test_names_of_surveys_that_anybody_makes_up_fill_no_bucket(place: Any) -> None:
    """So many of them emptied the buckets of everybody: a stranger could undo all rates."""
    body = {"reports": [base64.b64encode(b"x").decode()]}
    before = set(place.service.rates._buckets)
    for number in range(20):
        assert place.call(None, "POST", f"/surveys/made-up-{number}/reports", body).status_code == 404
    assert set(place.service.rates._buckets) == before


def test_a_new_block_pays_for_the_series_that_will_read_it_and_no_step_pays_again(place: Any) -> None:
    """The next step had paid for the whole series once more, at the dataset and at every block, without a word."""
    series = {"name": "stays", "dataset": "visits", "measure": "count", "horizon": 3, "epsilon": 0.1}
    assert place.call("wang", "POST", "/series", series).status_code == 201
    step = lambda number: place.call("wang", "POST", "/series/stays/steps", {"step": number, "rows": ROWS}).status_code
    assert step(1) == 201
    assert place.call("wang", "POST", "/datasets/visits/blocks", dict(BLOCK, name="later")).status_code == 201
    ledger = place.service.ledger
    spent = ledger.account("visits").spent, ledger.account("visits/later").spent
    assert spent[1] == pytest.approx(0.1)
    assert step(2) == step(3) == 201
    assert (ledger.account("visits").spent, ledger.account("visits/later").spent) == spent
    assert place.call("wang", "POST", "/datasets/visits/blocks", dict(BLOCK, name="last")).status_code == 201
    assert ledger.account("visits/last").spent == 0  # the series is over


def test_no_block_is_opened_where_a_series_cannot_be_paid_for_there(place: Any) -> None:
    series = {"name": "dear", "dataset": "visits", "measure": "count", "horizon": 3, "epsilon": 0.5}
    assert place.call("wang", "POST", "/series", series).status_code == 201
    small = dict(BLOCK, name="small", epsilon=0.1)
    assert place.call("wang", "POST", "/datasets/visits/blocks", small).status_code == 409
    assert place.call("wang", "GET", "/datasets/visits").json()["blocks"] == []
    spent = place.service.ledger.account("visits").spent
    assert place.call("wang", "POST", "/series/dear/steps", {"step": 1, "rows": ROWS}).status_code == 201
    assert place.service.ledger.account("visits").spent == spent


def test_agents_of_one_person_hold_only_so_many_waiting_calls(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each held a connection for a minute, and a server has a bounded number of them for all."""
    looks: list[Any] = []
    monkeypatch.setattr(app, "find_wait", lambda *parts: looks.append(parts) or find_wait(*parts))
    headers = {"Authorization": f"Bearer {place.tokens['li']}"}

    def ask(key: str) -> Any:
        said = {"dataset": "visits", "sql": COUNT, "epsilon": 0.01, "key": key, "wait_seconds": 60}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": said}}
        return place.client.post("/mcp", content=json.dumps(message), headers=headers).json()["result"]

    monkeypatch.setattr(app, "MOST_WAITS", 1)
    for key in ("first", "second"):  # one wait at a time, and one after the other
        ask(key)
    assert len(looks) > 2
    monkeypatch.setattr(app, "MOST_WAITS", 0)
    looks.clear()
    monkeypatch.setattr(Slots, "_run", lambda *_: time.sleep(0.1))  # what is asked now runs on and on
    assert ask("third")["structuredContent"]["final"] is False
    assert len(looks) == 1


def test_a_name_from_a_provider_is_never_taken_for_an_id(place: Any) -> None:
    database = place.service.database
    li = find_principal(database, "li")["id"]
    create_principal(database, kind="person", name=li)
    give_role(database, find_principal(database, li)["id"], "auditor", "visits")
    found = find_by_secret(database, place.tokens["li"], "token")
    assert found is not None
    assert ("auditor", "visits") in found.roles
