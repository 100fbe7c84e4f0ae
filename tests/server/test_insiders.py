"""What people inside tried: to ask without approval, to learn what others spend, to make more of a token than it is."""

import base64
import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import markdown
import pytest

import mosha
from mosha.core.errors import Interrupted, MoshaError, SourceUnavailable
from mosha.core.language import say
from mosha.local.collect.tickets import Tickets
from mosha.mechanisms import Count, laplace
from mosha.server import clock
from mosha.server.api.schemas import check, text
from mosha.server.api.table import OPERATIONS
from mosha.server.catalogue import heads
from mosha.server.catalogue.grants import make_grant
from mosha.server.catalogue.publications import MOST_OPEN
from mosha.server.clock import now
from mosha.server.errors import BadRequest
from mosha.server.people.credentials import issue
from mosha.server.people.principals import create_principal, find_principal, give_role
from mosha.server.store.database import open_database
from mosha.server.store.migrations import _VERSIONS, migrate
from mosha.server.work.queue import claim, finish, waiting_numbers
from mosha.server.work.slots import LEAD, WAKING
from mosha.server.work.withheld import WithheldAccount
from tests.server.clocked import add_dataset, make_rows
from tests.server.house import COUNT, LONG, opened
from tests.server.test_queue import put_request

DAY = {"limit_per_day": {"epsilon": 0.9, "delta": 1e-8}}
GRANT = {"epsilon": 0.9, "delta": 1e-8, "expires": "2099-01-01"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("insiders")) as house:
        yield house


def add_person(house: Any, name: Any, *roles: Any) -> None:
    """Somebody with these roles, and a token."""
    database = house.service.database
    identity = create_principal(database, kind="person", name=name)
    for role, dataset in roles:
        give_role(database, identity, role, dataset)
    house.tokens[name] = issue(database, identity, "token", seconds=86_400).secret


def find_patterns() -> list[Any]:
    """Every schema with a pattern, in bodies and addresses."""

    def walk(schema: Any) -> Iterator[Any]:
        if isinstance(schema, dict):
            if isinstance(schema.get("pattern"), str):
                yield schema
            for part in schema.values():
                yield from walk(part)

    return [found for one in OPERATIONS for part in (one.body, one.query) for found in walk(part)]


def grant_of(house: Any, who: Any) -> Any:
    return next(one for one in house.call(who, "GET", "/grants").json()["grants"] if one["dataset"] == "visits")


def test_what_needs_approval_still_needs_it_when_a_grant_is_passed_on_to_an_agent(place: Any) -> None:
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
    assert asked["state"] != "waiting"
    assert place.wait("helper", asked["id"])["state"] == "answered"


def test_a_cap_a_day_still_holds_when_a_grant_is_passed_on_to_an_agent(place: Any) -> None:
    database, ledger = place.service.database, place.service.ledger
    add_person(place, "sui")
    said = {"principal": "sui", "epsilon": 1.0, "expires": "2099-01-01", "limit_per_day": {"epsilon": 0.05}}
    capped = make_grant(database, ledger, "visits", said, "wang")
    agents = {}
    for name, day in (("wide", 0.9), ("2099-01-01", 0.9)):
        agent = place.call("sui", "POST", "/agents", {"name": name}).json()["id"]
        body = {"principal": agent, "epsilon": 0.9, "expires": "2099-01-01", "limit_per_day": {"epsilon": day}}
        assert place.call("sui", "POST", f"/grants/{capped['id']}/grants", body).status_code == 201
        agents[name] = place.call("sui", "POST", "/tokens", {"label": name, "agent": agent}).json()["token"]
    place.tokens["wide"] = agents["wide"]
    assert place.answer("wide", key="within", epsilon=0.04)["state"] == "answered"
    beyond = {"dataset": "visits", "sql": COUNT, "price": {"epsilon": 0.04}}
    assert not place.call("wide", "POST", "/previews", beyond).json()["fits"]
    for who in ("wide", "sui"):
        refused = place.call(who, "POST", "/requests", beyond, key="beyond")
        assert (refused.status_code, refused.json()["code"]) == (409, "server.not_enough")
    assert place.answer("sui", key="what is left", epsilon=0.005)["state"] == "answered"


def test_a_preview_tells_an_analyst_nothing_of_what_others_spent(place: Any) -> None:
    def look(epsilon: Any) -> Any:
        return place.call("li", "POST", "/previews", body | {"price": {"epsilon": epsilon}}).json()

    body = {"dataset": "visits", "sql": COUNT}
    prices = (0.05, 0.5, 1.5, 2.7, 2.95, 3.5)
    before = [look(price) for price in prices]
    assert place.answer("zhang", key="zhang asks", epsilon=0.31)["state"] == "answered"
    for price, earlier in zip(prices, before, strict=True):
        assert {part for part, value in look(price).items() if value != earlier[part]} == set(), price
    for payer in before[0]["payers"]:
        assert payer["own"] == ("left" in payer) == ("fits" in payer)


def test_a_session_and_a_token_are_good_for_no_more_than_the_token_behind_them(place: Any) -> None:
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


def test_the_public_registry_names_nobody_and_not_what_is_spent(place: Any) -> None:
    series = {"name": "weekly", "title": "weekly", "measure": "count", "horizon": 4, "epsilon": 0.1}
    made = place.call("wang", "POST", "/series", series | {"dataset": "visits"})
    assert made.status_code == 201, made.text
    told = place.client.get("/api/v1/series/weekly?format=registry").text
    assert "privacy_unit" in told
    for secret in ("visits/li", "zhang", "spent so far", "helper"):
        assert secret not in told


def test_everybody_sees_the_book_as_it_was_when_the_minute_began_and_it_is_read_once(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody watches row by row how the chain grows, nor keeps the server busy by reading what is drawn up for all."""
    ledger, begun = place.service.ledger, clock.now() // heads.MINUTE * heads.MINUTE + heads.MINUTE
    drawn, draw = [], ledger.statement
    monkeypatch.setattr(heads, "now", lambda: begun)
    monkeypatch.setattr(ledger, "statement", lambda name: drawn.append(name) or draw(name))
    paths = ["series/weekly?format=registry", "ledger/head", "series/weekly"]
    seen = [place.client.get(f"/api/v1/{path}").text for path in paths]
    head = place.client.get("/api/v1/ledger/head").json()["head"]
    assert all(head in text for text in seen)
    ledger.note("decision/of-this-minute", {})
    assert [place.client.get(f"/api/v1/{path}").text for path in paths] == seen
    assert str(ledger.head) not in "".join(seen)
    assert drawn == ["visits"]
    monkeypatch.setattr(heads, "now", lambda: begun + 60 * heads.MINUTE)
    assert str(ledger.head) in place.client.get("/api/v1/series/weekly?format=registry").text


def test_a_list_by_state_tells_the_end_of_a_request_no_sooner_than_its_tick(place: Any) -> None:
    asked = place.ask("li", key="until its tick", epsilon=0.01).json()["id"]
    place.wait("li", asked)
    change = "UPDATE requests SET visible = ? WHERE id = ?"
    place.service.database.run(change, 10**18, asked)

    def list_by(state: Any) -> set[Any]:
        return {one["id"] for one in place.call("li", "GET", f"/requests?state={state}").json()["requests"]}

    assert asked in list_by("running")
    assert asked not in list_by("done")
    place.service.database.run(change, 1, asked)
    assert asked in list_by("done")
    assert asked not in list_by("running")


def test_the_public_head_moves_once_a_minute_and_that_of_an_auditor_with_every_row(place: Any) -> None:
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
        for who, account in (("li", "visits/li"), ("wang", "visits")):
            for form in ("json", "html", "markdown"):
                shown = place.call(who, "GET", f"/statements?account={account}&format={form}").text
                is_same_minute = rows[-1].at // 60_000_000 == now() // 60_000_000
                assert not is_same_minute or str(ledger.head) not in shown
        assert str(ledger.head) in place.call("sun", "GET", "/statements?account=visits").text


def _ends_of(house: Any, request: Any) -> tuple[Any, ...]:
    """Rows of the book about how a question ended, and the moment from which that can be seen."""
    rows = house.service.ledger.entries()
    paid = [row.sequence for row in rows if row.kind == "pay" and row.content().get("key") == f"request {request}"]
    found = house.service.database.row("SELECT started, visible FROM requests WHERE id = ?", request)
    return [row for row in rows if row.content().get("payment") in paid], found["started"], found["visible"]


def test_how_a_question_ended_is_in_the_book_at_its_tick_and_not_before(place: Any) -> None:
    """A row that were written at once would tell whoever has the numbers of other rows how long the question ran."""
    add_dataset(place, "few", make_rows(10), timing="off", deadline=LONG)
    sql = COUNT.replace("visits", "few")
    assert place.answer("li", sql, key="warm", dataset="few")["state"] == "answered"
    place.service.database.run("UPDATE datasets SET timing = 'fixed', deadline = 8 WHERE name = 'few'")
    tries = 0
    while tries < 20:  # on a machine so busy that nothing was paid for in time there is nothing to see
        tries += 1
        asked = place.ask("li", sql, key=f"at its tick {tries}", dataset="few").json()["id"]
        place.wait("li", asked)
        ends, started, visible = _ends_of(place, asked)
        if ends:
            break
    assert ends
    assert visible - started == 8_000_000
    assert all(row.at >= visible - (LEAD if row.kind == "release" else WAKING) * 1e6 - 50_000 for row in ends)


def test_a_worker_that_is_lost_leaves_no_row_before_the_tick(place: Any) -> None:
    add_dataset(place, "lost", make_rows(10), timing="off", deadline=LONG)
    sql, slots = COUNT.replace("visits", "lost"), place.service.slots
    assert place.answer("li", sql, key="warm it", dataset="lost")["state"] == "answered"
    place.service.database.run("UPDATE datasets SET timing = 'fixed', deadline = 8 WHERE name = 'lost'")
    lost = False
    for number in range(20):
        asked = place.ask("li", sql, key=f"lost {number}", dataset="lost").json()["id"]
        while not (final := place.call("li", "GET", f"/requests/{asked}").json()["final"]) and not slots._measured:
            time.sleep(0.02)
        if not final:  # the answer is there, and waits
            os.kill(next(iter(slots._measured)).pid, signal.SIGKILL)
            lost = place.wait("li", asked)["state"] == "failed"
        if lost:
            break
    assert lost
    late = time.monotonic() + LONG  # type: ignore[operator]
    while not any(row.kind == "fail" for row in _ends_of(place, asked)[0]):  # a busy machine notes it later
        assert time.monotonic() < late
        time.sleep(0.05)
    ends, started, visible = _ends_of(place, asked)
    assert visible - started == 8_000_000
    assert all(row.at >= visible - WAKING * 1e6 - 50_000 for row in ends)


@pytest.mark.parametrize("problem", [None, ZeroDivisionError, MemoryError, Interrupted, SourceUnavailable])
def test_nothing_is_noted_between_the_payment_and_the_tick(problem: Any) -> None:
    """Whatever a step comes to: an answer, an error of its own, a lack of memory, a deadline, a source that is gone."""
    ledger = mosha.Ledger.memory()
    account = ledger.account("visits", unit=mosha.Row(), epsilon=2)
    heads = []

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        heads.append(ledger.head)
        if problem is not None:
            raise problem("core.step_failed") if issubclass(problem, MoshaError) else problem
        return 7, state

    withheld = WithheldAccount(account, lambda: heads.append(ledger.head))
    counting = replace(laplace(Count(), unit=mosha.Row(), epsilon=0.5), step=step)
    with contextlib.suppress(MoshaError):
        assert withheld.open(counting, key="k").step([1, 2]).value == 7
    assert len(heads) == 2
    assert heads[0] == heads[1] != ledger.head
    assert withheld.holds("k")
    assert withheld.is_same(account)


def test_one_who_asks_has_a_question_running_until_its_tick(tmp_path: Path) -> None:
    database = open_database(tmp_path / "server.db")
    migrate(database)
    for name in ("first", "second"):
        put_request(database, name, "li")
    row = claim(database, "i", most_running=1)
    assert finish(database, row, "i", "answered", {}, now() + 60_000_000)
    assert claim(database, "i", most_running=1) is None
    assert waiting_numbers(database) == {"queued": 1, "running": 1}
    database.run("UPDATE requests SET visible = 1 WHERE visible IS NOT NULL")
    assert waiting_numbers(database) == {"queued": 1}
    assert claim(database, "i", most_running=1)["id"] == "second"
    database.close()


def test_a_reviewer_of_one_dataset_reviews_that_one_and_sees_nothing_of_others(place: Any) -> None:
    database, ledger = place.service.database, place.service.ledger
    add_dataset(place, "clinic", make_rows(20), timing="off", deadline=LONG)
    add_person(place, "qian", ("reviewer", "clinic"))
    grants = {}
    for name in ("visits", "clinic"):
        said = {"principal": "li", "epsilon": 0.2, "approve_above": 0.0, "expires": "2099-01-01"}
        grants[name] = make_grant(database, ledger, name, said, "wang")["id"]
    asked = {}
    for name, grant in grants.items():
        sql = COUNT.replace("visits", name)
        asked[name] = place.ask("li", sql, key=f"for {name}", epsilon=0.01, dataset=name, grant=grant).json()["id"]
    assert {one["id"] for one in place.call("qian", "GET", "/requests?state=waiting").json()["requests"]} == {
        asked["clinic"]
    }
    reply = place.call("qian", "POST", f"/requests/{asked['clinic']}/decision", {"verdict": "approve", "reason": "ok"})
    assert reply.status_code == 200, reply.text
    other = place.call("qian", "POST", f"/requests/{asked['visits']}/decision", {"verdict": "approve", "reason": "ok"})
    assert other.status_code == 404
    place.wait("li", asked["clinic"])
    answered = place.answer("zhang", key="of visits", epsilon=0.01)["id"]
    for who, name, request in (("li", "clinic", asked["clinic"]), ("zhang", "visits", answered)):
        said = {"slug": f"all-{name}", "title": name, "request": request}
        assert place.call(who, "POST", "/publications", said).status_code == 201
    listed = place.call("qian", "GET", "/publications")
    assert listed.status_code == 200
    assert [one["slug"] for one in listed.json()["publications"]] == ["all-clinic"]
    browser = httpx.Client(base_url=place.client.base_url, timeout=60)
    browser.post("/api/v1/sessions", json={"token": place.tokens["qian"]})
    page = browser.get("/review")
    assert page.status_code == 200
    assert "all-clinic" in page.text
    assert "all-visits" not in page.text
    browser.close()


def test_nobody_pushes_the_proposals_of_others_out_of_review(place: Any) -> None:
    database = place.service.database
    answered = [place.answer("zhang", key=f"proposal {n}", epsilon=0.001)["id"] for n in range(2)]
    first = {"slug": "first-come", "title": "First come", "request": answered[0]}
    assert place.call("zhang", "POST", "/publications", first).status_code == 201
    again = place.call("zhang", "POST", "/publications", first | {"slug": "again"})
    assert (again.status_code, again.json()["code"]) == (409, "server.wrong_state")
    zhang = find_principal(database, "zhang")["id"]
    for number in range(250):  # as many as it takes, whoever made them
        database.run(
            "INSERT INTO publications (slug, request, title, words, author, state, created)"
            " VALUES (?, ?, 'x', '{}', ?, 'proposed', ?)",
            *(f"flood-{number}", answered[1], zhang, now() + number),
        )
    full = place.call("zhang", "POST", "/publications", first | {"slug": "more", "request": answered[1]})
    assert full.status_code in (409, 429)
    browser = httpx.Client(base_url=place.client.base_url, timeout=60)
    browser.post("/api/v1/sessions", json={"token": place.tokens["zhao"]})
    address, seen = "/review", ""
    while address:
        shown = browser.get(address).text
        seen += shown
        older = re.search(r'href="(/review\?proposed=\d+)"', shown)
        address = older and older[1]  # type: ignore[assignment]
    assert "flood-249" in seen
    assert "first-come" in seen
    browser.close()


def test_one_author_has_only_so_many_proposals_waiting(tmp_path: Path) -> None:
    with opened(tmp_path) as house:
        answered = [house.answer("li", key=f"answer {n}", epsilon=0.001)["id"] for n in range(2)]
        li = find_principal(house.service.database, "li")["id"]
        for number in range(MOST_OPEN):
            house.service.database.run(
                "INSERT INTO publications (slug, request, title, words, author, state, created)"
                " VALUES (?, ?, 'x', '{}', ?, 'proposed', ?)",
                *(f"flood-{number}", answered[0], li, now() + number),
            )
        said = {"slug": "one-more", "title": "One more", "request": answered[1]}
        assert house.call("li", "POST", "/publications", said).status_code == 429


@pytest.mark.parametrize("pattern", sorted({schema["pattern"] for schema in find_patterns()}))
def test_a_pattern_that_ends_ends_before_a_new_line(pattern: Any) -> None:
    """Every pattern of every operation: what JSON Schema calls the end is the end."""
    assert pattern.startswith("^")
    good = {"^[0-9]{4}-[0-9]{2}-[0-9]{2}": "2026-01-01"}.get(pattern, "a")
    check(good, text(pattern=pattern), "name")
    if pattern.endswith("$"):
        with pytest.raises(BadRequest):
            check(f"{good}\n", text(pattern=pattern), "name")


def test_a_day_is_followed_by_nothing_but_a_time(place: Any) -> None:
    for said in ("2099-01-01\n", "2099-01-01 or later", "2099-01-01T00:00:00+00:00\n"):
        body = {"principal": "li", "epsilon": 0.1, "expires": said}
        assert place.call("wang", "POST", "/datasets/visits/grants", body).status_code == 422, said


def test_a_name_or_a_purpose_makes_no_markup_in_a_statement(place: Any) -> None:
    purpose = "<img src=x onerror=alert(1)> [free](javascript:alert(1)) ![](http://watch.example/a.png) | `x` **b**"
    said = {"principal": "li", "epsilon": 0.01, "expires": "2099-01-01", "purpose": purpose}
    assert place.call("wang", "POST", "/datasets/visits/grants", said).status_code == 201
    told = place.call("sun", "GET", "/statements?account=visits&format=markdown").text
    html = markdown.markdown(told, extensions=["tables"])
    for tag in ("<img", "<a ", "<strong", "<code"):
        assert tag not in html
    assert "onerror=alert(1)" in html
    page = place.call("sun", "GET", "/statements?account=visits&format=html").text
    assert "<img" not in page


def test_tickets_that_somebody_makes_up_use_up_no_honest_one(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter of a fixed size would be full after enough of them, and would take every honest ticket for a copy."""
    monkeypatch.setattr(Tickets, "take_new", lambda _, tickets: [False] * len(tickets))  # a filter that is full
    survey = mosha.local.Frequency(["yes", "no"], epsilon=1)
    assert place.call("wang", "POST", "/surveys", {"name": "open", "title": "?", "survey": survey.to_dict()}).json()
    report, ticket = (base64.b64encode(part).decode() for part in (survey.report("yes"), b"honest"))
    for accepted in (1, 0):
        sent = place.call(None, "POST", "/surveys/open/reports", {"reports": [report], "tickets": [ticket]})
        assert sent.json() == {"accepted": accepted, "rejected": 1 - accepted}
    assert place.call(None, "POST", "/surveys/open/reports", {"reports": [report]}).json()["accepted"] == 1


def test_a_copy_of_a_report_counts_once_where_tickets_are_asked_for(place: Any) -> None:
    survey = mosha.local.Frequency(["yes", "no"], epsilon=1)
    said = {"name": "copies", "title": "Copies?", "survey": survey.to_dict(), "tickets": "required"}
    assert place.call("wang", "POST", "/surveys", said).json()["tickets"] == "required"
    report, ticket = (base64.b64encode(part).decode() for part in (survey.report("yes"), b"a device"))

    def send(**more: Any) -> Any:
        return place.call(None, "POST", "/surveys/copies/reports", {"reports": [report]} | more)

    assert send(tickets=[ticket]).json() == {"accepted": 1, "rejected": 0}
    assert send(tickets=[ticket]).json() == {"accepted": 0, "rejected": 1}
    assert (send().status_code, send().json()["code"]) == (422, "server.tickets_needed")
    assert send(tickets=[]).status_code == 422
    found = place.call("wang", "GET", "/surveys/copies/estimate").json()
    assert (found["accepted"], found["rejected"]["replayed"]) == (1, 1)
    plain = said | {"name": "plain", "tickets": "optional"}
    assert place.call("wang", "POST", "/surveys", plain).status_code == 201
    browser = httpx.Client(base_url=place.client.base_url, timeout=60)
    browser.post("/api/v1/sessions", json={"token": place.tokens["wang"]})
    for name, tickets in (("copies", "required"), ("plain", "optional")):
        assert say(f"console.survey_copies_{tickets}", "en") in unescape(browser.get(f"/survey/{name}").text)
    browser.close()


def test_the_name_of_an_agent_tells_nobody_who_exists(place: Any) -> None:
    def make(who: Any, name: Any) -> Any:
        return place.call(who, "POST", "/agents", {"name": name})

    zhang = place.call("zhang", "GET", "/me").json()["id"]
    for name in ("zhang", "nobody at all", zhang, "wang"):
        made = make("li", name)
        assert (made.status_code, made.json()["name"]) == (201, f"li/{name}")
    assert make("zhang", "nobody at all").status_code == 201
    assert make("li", "zhang").status_code == 409  # li's own
    found = place.call("ada", "POST", f"/principals/{zhang}/changes", {})
    assert found.json()["name"] == "zhang"
    token = {"label": "x", "agent": "nobody at all"}
    assert place.call("li", "POST", "/tokens", token).status_code == 201
    own = {one["principal"] for one in place.call("li", "GET", "/tokens").json()["tokens"]}
    assert find_principal(place.service.database, "zhang/nobody at all")["id"] not in own
    for name in ("zhang/nobody at all", "zhao", "who is this"):
        assert place.call("li", "POST", "/tokens", {"label": "x", "agent": name}).status_code == 404


def test_agents_of_an_older_store_are_called_after_their_person(tmp_path: Path) -> None:
    database = open_database(tmp_path / "server.db")
    with database.transaction() as transaction:
        transaction.run("CREATE TABLE versions (version INTEGER PRIMARY KEY)")
        for number, statements in enumerate(_VERSIONS[:2], start=1):
            for statement in statements.split(";"):
                transaction.run(statement)
            transaction.run("INSERT INTO versions VALUES (?)", number)
        add = "INSERT INTO principals (id, kind, name, parent, state, created) VALUES (?, ?, ?, ?, 'active', 1)"
        transaction.run(add, "p-1", "person", "li", None)
        transaction.run(add, "p-2", "agent", "helper", "p-1")
    migrate(database)
    assert find_principal(database, "p-2")["name"] == "li/helper"
    database.close()


def test_a_token_for_one_dataset_lists_no_question_about_another(place: Any) -> None:
    asked = place.answer("li", key="listed", epsilon=0.001)["id"]
    said = {"label": "elsewhere", "datasets": ["clinic"], "days": 1}
    place.tokens["elsewhere"] = place.call("li", "POST", "/tokens", said).json()["token"]
    assert asked in {one["id"] for one in place.call("li", "GET", "/requests").json()["requests"]}
    assert place.call("elsewhere", "GET", "/requests?mine=true&dataset=visits").json()["requests"] == []
