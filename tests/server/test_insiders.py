"""What people inside tried: to ask without approval, to learn what others spend, to make more of a token than it is."""

import httpx
import pytest

from mosha.server.clock import now
from tests.server.house import COUNT, opened

DAY = {"limit_per_day": {"epsilon": 0.9, "delta": 1e-8}}
GRANT = {"epsilon": 0.9, "delta": 1e-8, "expires": "2099-01-01"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("insiders")) as house:
        yield house


def grant_of(house, who):
    return next(one for one in house.call(who, "GET", "/grants").json()["grants"] if one["dataset"] == "visits")


def test_what_needs_approval_still_needs_it_when_a_grant_is_passed_on_to_an_agent(place):
    agent = place.call("li", "POST", "/agents", {"name": "helper"}).json()
    above = grant_of(place, "li")
    made = place.call("li", "POST", f"/grants/{above['id']}/grants", GRANT | DAY | {"principal": agent["id"]})
    assert made.status_code == 201, made.text
    token = place.call("li", "POST", "/tokens", {"label": "helper", "agent": agent["id"]}).json()["token"]
    place.tokens["helper"] = token
    dear = {"dataset": "visits", "sql": COUNT, "price": {"epsilon": above["approve_above"] + 0.1}}
    assert place.call("helper", "POST", "/previews", dear).json()["needs_approval"]
    assert place.call("helper", "POST", "/requests", dear, key="round about").json()["state"] == "waiting"
    cheap = dear | {"price": {"epsilon": 0.01}}
    asked = place.call("helper", "POST", "/requests", cheap, key="cheap").json()
    assert asked["state"] == "queued"
    assert place.wait("helper", asked["id"])["state"] == "answered"


def test_a_preview_tells_an_analyst_nothing_of_what_others_spent(place):
    def look(epsilon):
        return place.call("li", "POST", "/previews", body | {"price": {"epsilon": epsilon}}).json()

    body = {"dataset": "visits", "sql": COUNT}
    prices = (0.05, 0.5, 1.5, 2.7, 2.95, 3.5)
    before = [look(price) for price in prices]
    assert place.answer("zhang", key="zhang asks", epsilon=0.31)["state"] == "answered"
    for price, earlier in zip(prices, before, strict=True):
        assert {part for part, value in look(price).items() if value != earlier[part]} == set(), price
    for payer in before[0]["payers"]:
        assert payer["own"] == ("left" in payer) == ("fits" in payer)


def test_a_session_and_a_token_are_good_for_no_more_than_the_token_behind_them(place):
    said = {"label": "narrow", "datasets": ["nothing"], "verbs": ["dataset.list", "token.create"], "days": 1}
    narrow = place.call("zhang", "POST", "/tokens", said | {"most_per_question": 0.01}).json()
    place.tokens["narrow"] = narrow["token"]
    assert place.ask("narrow", key="a", epsilon=0.005).status_code == 404
    browser = httpx.Client(base_url=place.client.base_url, timeout=60)
    opened_now = browser.post("/api/v1/sessions", json={"token": narrow["token"]})
    assert opened_now.status_code == 201
    assert opened_now.json()["expires"] <= narrow["expires"]
    headers = {"X-CSRF-Token": opened_now.json()["csrf"], "Idempotency-Key": "b"}
    asked = {"dataset": "visits", "sql": COUNT, "price": {"epsilon": 0.005}}
    assert browser.post("/api/v1/requests", json=asked, headers=headers).status_code == 404
    wider = place.call("narrow", "POST", "/tokens", {"label": "wider", "days": 3000}).json()
    assert wider["expires"] <= narrow["expires"]
    place.tokens["wider"] = wider["token"]
    assert place.ask("wider", key="c", epsilon=0.005).status_code == 404
    place.call("zhang", "DELETE", f"/tokens/{narrow['id']}")
    assert browser.post("/api/v1/requests", json=asked, headers=headers).status_code == 401
    browser.close()


def test_the_public_registry_names_nobody_and_not_what_is_spent(place):
    series = {"name": "weekly", "title": "weekly", "measure": "count", "horizon": 4, "epsilon": 0.1}
    made = place.call("wang", "POST", "/series", series | {"dataset": "visits"})
    assert made.status_code == 201, made.text
    told = place.client.get("/api/v1/series/weekly?format=registry").text
    assert "privacy_unit" in told
    for secret in ("visits/li", "zhang", "spent so far", "helper"):
        assert secret not in told


def test_a_list_by_state_tells_the_end_of_a_request_no_sooner_than_its_tick(place):
    asked = place.ask("li", key="until its tick", epsilon=0.01).json()["id"]
    place.wait("li", asked)
    change = "UPDATE requests SET visible = ? WHERE id = ?"
    place.service.database.run(change, 10**18, asked)

    def list_by(state):
        return {one["id"] for one in place.call("li", "GET", f"/requests?state={state}").json()["requests"]}

    assert asked in list_by("running")
    assert asked not in list_by("done")
    place.service.database.run(change, 1, asked)
    assert asked in list_by("done")
    assert asked not in list_by("running")


def test_the_public_head_moves_once_a_minute_and_that_of_an_auditor_with_every_row(place):
    for number in range(3):
        place.answer("li", f"{COUNT} WHERE days > {number}", key=f"head {number}", epsilon=0.01)
        ledger = place.service.ledger
        assert place.call("sun", "GET", "/ledger/head").json()["head"] == str(ledger.head)
        before = now() // 60_000_000
        told = place.client.get("/api/v1/ledger/head").json()["head"]
        rows = ledger.entries()
        at = next(row.at for row in rows if str(row.head) == told)
        assert at // 60_000_000 < before + 1
        assert at // 60_000_000 < before or told == str(rows[0].head)
        assert ledger.verify(head=told).ok
