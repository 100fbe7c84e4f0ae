"""What one takes is not taken from others: turns, rates, sign-ins, processes, budgets under another name."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest

from mosha.server.asking.requests import _check_queue, expire_requests, find_request, withdraw
from mosha.server.catalogue.sources import hash_source
from mosha.server.clock import now
from mosha.server.demo import DECLARATION
from mosha.server.errors import NotFound, TooMany
from mosha.server.people.credentials import find_by_secret, issue
from mosha.server.people.permissions import Principal
from mosha.server.people.principals import create_principal, find_principal, remove_member
from mosha.server.store.database import open_database
from mosha.server.store.migrations import _VERSIONS, migrate
from mosha.server.work import slots
from tests.server.house import COUNT
from tests.server.test_queue import put_request


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Any]:
    found = open_database(tmp_path / "server.db")
    migrate(found)
    yield found
    found.close()


def test_agents_use_up_the_rates_and_the_queue_of_their_person(
    house: Any, monkeypatch: pytest.MonkeyPatch, database: Any
) -> None:
    li = house.call("li", "GET", "/me").json()["id"]
    agent = house.call("li", "POST", "/agents", {"name": "one of many"}).json()["id"]
    token = house.call("li", "POST", "/tokens", {"label": "one of many", "agent": agent}).json()["token"]
    seen = []
    monkeypatch.setattr(house.service.rates, "take", lambda principal, kind, **_: seen.append((principal, kind)))
    monkeypatch.setitem(house.tokens, "one of many", token)
    body = {"dataset": "visits", "sql": COUNT, "price": {"epsilon": 0.01}}
    assert house.call("one of many", "POST", "/previews", body).status_code == 200
    house.call("one of many", "POST", "/requests", body, key="no grant, no matter")
    assert seen == [(li, "preview"), (li, "request")]
    settings = replace(house.service.settings, waiting_per_principal=2)
    for number in range(2):
        put_request(database, f"r{number}", f"agent {number}", "li")
    for principal in (Principal("li", "person", "li"), Principal("agent 9", "agent", "li/nine", parent="li")):
        with pytest.raises(TooMany):
            _check_queue(database, settings, principal)
    _check_queue(database, settings, Principal("zhang", "person", "zhang"))


def test_requests_of_an_older_store_are_of_the_person_of_their_agent(tmp_path: Path) -> None:
    database = open_database(tmp_path / "old.db")
    with database.transaction() as transaction:
        transaction.run("CREATE TABLE versions (version INTEGER PRIMARY KEY)")
        for number, statements in enumerate(_VERSIONS[:3], start=1):
            for statement in statements.split(";"):
                transaction.run(statement)
            transaction.run("INSERT INTO versions VALUES (?)", number)
        add = "INSERT INTO principals (id, kind, name, parent, state, created) VALUES (?, ?, ?, ?, 'active', 1)"
        transaction.run(add, "p-1", "person", "li", None)
        transaction.run(add, "p-2", "agent", "li/helper", "p-1")
        ask = (
            "INSERT INTO requests (id, principal, grant_id, dataset, body_hash, question, price, purpose, fingerprint,"
            " version, cost, measure, state, accounts, attempts, created, expires, hidden)"
            " VALUES (?, ?, 'g', 'd', '', '{}', '{}', '', '', 1, 0.1, 'epsilon', 'queued', '[]', 0, 1, 2, 0)"
        )
        transaction.run(ask, "r-1", "p-1")
        transaction.run(ask, "r-2", "p-2")
    migrate(database)
    assert [find_request(database, name)["person"] for name in ("r-1", "r-2")] == ["p-1", "p-1"]
    database.close()


def test_whoever_guesses_tokens_keeps_nobody_from_signing_in(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise TooMany("server.too_many", seconds=1)

    monkeypatch.setattr(house.service.rates, "take", refuse)
    wrong = house.call(None, "POST", "/sessions", {"token": f"mosha_{'a' * 16}_{'b' * 43}"})
    assert wrong.status_code == 429
    with httpx.Client(base_url=house.client.base_url, timeout=60) as browser:
        assert browser.post("/api/v1/sessions", json={"token": house.tokens["sun"]}).status_code == 201


def test_processes_beside_the_slots_are_as_many_as_there_are_slots(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks at sources or draws synthetic tables many times at once starts no more processes than that."""
    monkeypatch.setattr(slots, "TURN", 0.01)
    beside, taken = house.service.slots._beside, 0
    while beside.acquire(blocking=False):
        taken += 1
    try:
        assert taken == house.service.settings.workers
        reply = house.call("wang", "POST", "/sources/columns", {"source": {"path": "visits.csv"}})
        assert (reply.status_code, reply.headers["retry-after"]) == (429, "10")
    finally:
        for _ in range(taken):
            beside.release()


def test_a_change_of_which_a_part_is_wrong_changes_nothing(house: Any) -> None:
    database = house.service.database
    head = house.service.ledger.head
    narrow = {"role": "administrator", "dataset": "visits"}
    made = house.call("ada", "POST", "/principals", {"name": "half made", "kind": "person", "roles": [narrow]})
    assert made.status_code == 422
    with pytest.raises(NotFound):
        find_principal(database, "half made")
    before = find_by_secret(database, house.tokens["sun"], "token").roles
    good = {"role": "curator", "dataset": "visits"}
    for wrong in ({"members": ["li"]}, {"members": ["nobody of this name"]}, {"give": [good, narrow]}):
        reply = house.call("ada", "POST", "/principals/sun/changes", {"give": [good]} | wrong)
        assert reply.status_code in (404, 422), reply.text
    assert find_by_secret(database, house.tokens["sun"], "token").roles == before
    assert house.service.ledger.head == head


def make_team(house: Any, *people: str) -> tuple[Any, Any]:
    """A team of people without a role of their own, and a grant of it."""
    for name in people:
        made = create_principal(house.service.database, kind="person", name=name)
        house.tokens[name] = issue(house.service.database, made, "token", seconds=3600).secret
    team = house.call("ada", "POST", "/principals", {"name": f"team of {people[0]}", "kind": "team"}).json()["id"]
    assert house.call("ada", "POST", f"/principals/{team}/changes", {"members": people}).status_code == 200
    said = {"principal": team, "epsilon": 0.5, "expires": "2099-01-01", "approve_above": 0.1}
    return team, house.call("wang", "POST", "/datasets/visits/grants", said).json()["id"]


def test_whoever_is_removed_from_a_team_spends_nothing_of_it_any_more(house: Any) -> None:
    """What was asked and not paid is refused, what was passed on ends, what was spent stays, the rest is the team's."""
    team, grant = make_team(house, "mover", "stayer")
    answered = house.answer("mover", key="as one of the team", epsilon=0.05)
    assert answered["state"] == "answered"
    agent = house.call("mover", "POST", "/agents", {"name": "helper"}).json()["id"]
    house.tokens["helper"] = house.call("mover", "POST", "/tokens", {"label": "a", "agent": agent}).json()["token"]
    day = {"limit_per_day": {"epsilon": 0.1}, "expires": "2099-01-01", "epsilon": 0.2}
    passed = house.call("mover", "POST", f"/grants/{grant}/grants", day | {"principal": agent}).json()["id"]
    assert house.answer("helper", key="for its person", epsilon=0.01)["state"] == "answered"
    waiting = [house.ask("mover", key=f"waits {n}", epsilon=0.2).json()["id"] for n in (1, 2)]
    removed = house.call("ada", "POST", f"/principals/{team}/changes", {"remove": ["mover"]})
    assert [one["name"] for one in removed.json()["members"]] == ["stayer"]
    note = house.call("sun", "GET", "/ledger/entries?limit=1000").text
    assert '"remove": ["mover"]' in note
    for who, key in (("mover", "afterwards"), ("helper", "of nobody")):
        assert house.ask(who, key=key, epsilon=0.01).status_code == 404
    assert house.call("wang", "GET", f"/grants/{passed}").json()["state"] == "revoked"
    decide = {"verdict": "approve", "reason": "fine"}
    refused = house.call("zhao", "POST", f"/requests/{waiting[0]}/decision", decide)
    assert (refused.status_code, refused.json()["code"]) == (409, "server.approval_stale")
    house.service.database.run("UPDATE requests SET state = 'queued' WHERE id = ?", waiting[1])
    assert house.wait("mover", waiting[1])["problem"]["code"] == "server.approval_stale"
    assert house.call("mover", "GET", f"/requests/{answered['id']}/answer").status_code == 200
    budget = house.call("wang", "GET", f"/grants/{grant}").json()["budget"]
    assert (budget["spent"], budget["limit"]) == (pytest.approx(0.06), pytest.approx(0.5))
    assert house.answer("stayer", key="still one of the team", epsilon=0.05)["state"] == "answered"
    again = house.call("ada", "POST", f"/principals/{team}/changes", {"remove": ["mover"]})
    assert again.status_code == 404


def pass_on(house: Any, grant: Any, by: str, to: str, **more: Any) -> Any:
    said = {"principal": to, "epsilon": 0.2, "expires": "2099-01-01"} | more
    return house.call(by, "POST", f"/grants/{grant}/grants", said)


def test_what_was_passed_on_of_a_team_that_is_disabled_pays_for_nothing(house: Any) -> None:
    """Members who hold a part of its grant, and their agents, ask nothing while it is disabled."""
    team, grant = make_team(house, "keeper", "idler")
    assert pass_on(house, grant, "keeper", "keeper").status_code == 201
    agent = house.call("keeper", "POST", "/agents", {"name": "helper"}).json()["id"]
    house.tokens["its helper"] = house.call("keeper", "POST", "/tokens", {"label": "a", "agent": agent}).json()["token"]
    assert pass_on(house, grant, "keeper", agent, limit_per_day={"epsilon": 0.1}).status_code == 201
    waiting = house.ask("keeper", key="waits", epsilon=0.15).json()
    assert waiting["state"] == "waiting"
    assert house.answer("its helper", key="before", epsilon=0.01)["state"] == "answered"
    assert house.call("ada", "POST", f"/principals/{team}/changes", {"state": "disabled"}).status_code == 200
    for who in ("keeper", "its helper"):
        assert house.ask(who, key="meanwhile", epsilon=0.01).status_code == 404
    decide = {"verdict": "approve", "reason": "fine"}
    refused = house.call("zhao", "POST", f"/requests/{waiting['id']}/decision", decide)
    assert refused.json()["code"] == "server.approval_stale"
    house.call("ada", "POST", "/principals/keeper/changes", {"give": [{"role": "analyst", "dataset": "visits"}]})
    for who in ("keeper", "its helper"):
        assert house.ask(who, key="with a role of their own", epsilon=0.01).json()["code"] == "server.no_grant"
    assert house.call("ada", "POST", f"/principals/{team}/changes", {"state": "active"}).status_code == 200
    assert house.answer("its helper", key="afterwards", epsilon=0.01)["state"] == "answered"


def test_whoever_is_removed_while_something_is_passed_on_to_them_cannot_use_it(house: Any) -> None:
    """A grant that is written just after the others were closed is as useless as they are."""
    team, grant = make_team(house, "racer", "witness")
    agent = house.call("racer", "POST", "/agents", {"name": "helper"}).json()["id"]
    house.tokens["racer's helper"] = house.call("racer", "POST", "/tokens", {"label": "a", "agent": agent}).json()[
        "token"
    ]
    give = {"give": [{"role": "analyst", "dataset": "visits"}]}
    assert house.call("ada", "POST", "/principals/racer/changes", give).status_code == 200
    passed = pass_on(house, grant, "racer", agent, limit_per_day={"epsilon": 0.1}).json()["id"]
    assert pass_on(house, grant, "racer", "racer").status_code == 201
    assert house.ask("racer's helper", key="still of the team", epsilon=0.01).status_code == 202
    remove_member(house.service.database, team, find_principal(house.service.database, "racer")["id"])
    assert house.call("wang", "GET", f"/grants/{passed}").json()["state"] == "open"
    for who in ("racer", "racer's helper"):
        assert house.ask(who, key="raced", epsilon=0.01).json()["code"] == "server.no_grant"


def test_what_was_passed_on_makes_nobody_an_analyst_for_longer_than_they_belong_to_the_team(house: Any) -> None:
    team, grant = make_team(house, "guest", "host")
    assert pass_on(house, grant, "guest", "guest").status_code == 201
    assert house.call("guest", "GET", "/datasets/visits").status_code == 200
    assert house.call("ada", "POST", f"/principals/{team}/changes", {"remove": ["guest"]}).status_code == 200
    assert house.call("guest", "GET", "/datasets/visits").status_code == 404


def test_whoever_is_called_almost_alike_keeps_what_was_passed_on_to_them(house: Any) -> None:
    """`LIKE` of SQLite takes capitals for small letters."""
    grants = {}
    for name in ("ann_1", "ANN_1", "annx1"):
        create_principal(house.service.database, kind="person", name=name)
        identity = find_principal(house.service.database, name)["id"]
        house.tokens[name] = issue(house.service.database, identity, "token", seconds=3600).secret
        said = {"principal": name, "epsilon": 0.1, "expires": "2099-01-01"}
        above = house.call("wang", "POST", "/datasets/visits/grants", said).json()["id"]
        agent = house.call(name, "POST", "/agents", {"name": "helper"}).json()["id"]
        below = pass_on(house, above, name, agent, epsilon=0.05, limit_per_day={"epsilon": 0.05}).json()["id"]
        grants[name] = (above, below)
    assert house.call("wang", "DELETE", f"/grants/{grants['ann_1'][0]}").status_code == 200
    states = {
        name: [house.call("wang", "GET", f"/grants/{g}").json()["state"] for g in own] for name, own in grants.items()
    }
    assert states == {"ann_1": ["revoked"] * 2, "ANN_1": ["open"] * 2, "annx1": ["open"] * 2}


def test_a_question_that_waits_is_refused_once_its_asker_may_ask_no_more(house: Any) -> None:
    create_principal(house.service.database, kind="person", name="late leaver")
    identity = find_principal(house.service.database, "late leaver")["id"]
    house.tokens["late leaver"] = issue(house.service.database, identity, "token", seconds=3600).secret
    said = {"principal": "late leaver", "epsilon": 0.1, "expires": "2099-01-01", "approve_above": 0.01}
    assert house.call("wang", "POST", "/datasets/visits/grants", said).status_code == 201
    waiting = house.ask("late leaver", key="waits", epsilon=0.05).json()["id"]
    take = {"take": [{"role": "analyst", "dataset": "visits"}]}
    assert house.call("ada", "POST", "/principals/late leaver/changes", take).status_code == 200
    refused = house.call("zhao", "POST", f"/requests/{waiting}/decision", {"verdict": "approve", "reason": "fine"})
    assert refused.json()["code"] == "server.approval_stale"


def test_a_team_that_is_disabled_asks_nothing_and_decides_nothing(house: Any) -> None:
    team, _ = make_team(house, "one of many")
    assert house.ask("one of many", key="a", epsilon=0.01).status_code == 202
    gives = house.call("ada", "POST", f"/principals/{team}/changes", {"give": [{"role": "reviewer", "dataset": "*"}]})
    assert gives.status_code == 422
    assert house.call("ada", "POST", f"/principals/{team}/changes", {"state": "disabled"}).status_code == 200
    assert house.ask("one of many", key="b", epsilon=0.01).status_code == 404


def test_a_file_under_another_name_or_in_its_folder_gets_no_fresh_budget(house: Any) -> None:
    folder = house.service.settings.folder / "data"
    if not (folder / "linked.csv").exists():
        os.link(folder / "visits.csv", folder / "linked.csv")
        (folder / "pointed.csv").symlink_to(folder / "visits.csv")
    said = {"declaration": DECLARATION, "promise": {"epsilon": 3.0, "delta": 1e-6}, "name": "afresh"}
    for path in ("linked.csv", "pointed.csv", "visits.csv", "./visits.csv"):
        reply = house.call("wang", "POST", "/datasets", said | {"source": {"path": path}})
        assert (reply.status_code, reply.json()["code"]) == (409, "server.registered_before"), path


def test_a_source_that_was_registered_before_tables_had_an_identity_is_found_again() -> None:
    source = {"url": "env:NOWHERE_AT_ALL", "table": "stays"}
    known = source | {"identity": ["a server/a database", "public.stays"]}
    assert hash_source(known, identity=False) == hash_source(source) != hash_source(known)


def test_a_question_that_ran_and_waits_to_run_again_is_hidden_and_not_taken_back(database: Any) -> None:
    """It may have been paid for: `withdrawn` and `expired` say that nothing was."""
    for name, attempts in (("never ran", 0), ("ran", 1)):
        put_request(database, name, "li")
        database.run("UPDATE requests SET attempts = ?, expires = ? WHERE id = ?", attempts, now() - 1, name)
    taken = withdraw(database, find_request(database, "ran"))
    assert (taken["state"], taken["hidden"]) == ("queued", 1)
    assert expire_requests(database) == 1
    assert [find_request(database, name)["state"] for name in ("never ran", "ran")] == ["expired", "queued"]
    put_request(database, "new", "li")
    assert withdraw(database, find_request(database, "new"))["state"] == "withdrawn"
