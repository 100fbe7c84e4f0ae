"""Journeys in a real browser, in both languages, by mouse and by keys: analysts who collude, an agent with a cap a day,
help on a word, names that are hard to show, a server that is killed while somebody waits."""

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from mosha.server.catalogue.datasets import countersign, propose_dataset
from mosha.server.catalogue.grants import make_grant
from mosha.server.demo import DECLARATION, TYPES
from tests.server.house import LONG
from tests.server.processes import ServerProcess, prepare
from tests.server.screens import driven, enter
from tests.server.test_more_journeys import call_it

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
SHOWN = "document.querySelector(':popover-open')?.innerText ?? ''"


def enter_by_link(page: Any, name: Any) -> None:
    """Come in as somebody who has no door in the demo: by a link, as they would."""
    person = page.house.call("ada", "GET", f"/principals?after={name[:-1]}").json()["principals"][0]
    assert person["name"] == name
    made = page.house.call("ada", "POST", f"/principals/{person['id']}/links", {}).json()
    page.forget("mosha")
    page.open(made["link"])
    page.follow("main form button")


def open_datasets(page: Any, population: Any) -> None:
    """Two tables about the same people, one analyst each, and one cap of 1 above both."""
    service = page.house.service
    for name, who in ((f"{population}_a", "li"), (f"{population}_b", "zhang")):
        path = service.settings.folder / "data" / f"{name}.csv"
        rows = [f"{patient},surgery,2026-01-01,3,40" for patient in range(200)]
        path.write_text("\n".join([",".join(TYPES), *rows]) + "\n")
        said = {"name": name, "declaration": DECLARATION, "promise": {"epsilon": 1.0}, "timing": "off"}
        said |= {"population": {"name": population, "epsilon": 1.0}, "deadline": LONG}
        propose_dataset(service.database, said, {"path": str(path)}, TYPES, "wang")
        countersign(service.database, service.ledger, name, "zhao")
        grant = {"principal": who, "epsilon": 0.8, "expires": "2099-01-01"}
        make_grant(service.database, service.ledger, name, grant, "wang")


def ask_to_count(page: Any, name: Any, epsilon: Any) -> None:
    page.open(f"/ask/{name}?mode=sql&sql=SELECT+COUNT(*)+AS+n+FROM+{name}&epsilon={epsilon}")


def test_two_analysts_cannot_add_up_what_their_tables_tell_about_the_same_people(page: Any) -> None:
    """Each has 0.8 of a table of their own; the account of the people has 1 for both. The second is told no more."""
    population = call_it(page, "people")
    open_datasets(page, population)
    enter(page, "li")
    ask_to_count(page, f"{population}_a", 0.7)
    page.follow("[data-part=preview] form button")
    page.wait("document.querySelectorAll('td.chart').length === 1")
    others = page.run("location.pathname")
    enter_by_link(page, "zhang")
    ask_to_count(page, f"{population}_b", 0.7)
    assert page.run("!!document.querySelector('[data-part=preview] .notice.refused')")
    assert not page.run("!!document.querySelector('[data-part=preview] form')")
    shown = page.run("document.querySelector('main').innerText")
    assert "0.8" in shown  # their own numbers
    assert not page.run(
        "!!document.querySelector('[data-part=preview] .notice.refused a')"
    )  # no price that fits neither
    assert "0.3" not in shown  # not what the people's account has left
    assert f"{population}_a" not in shown
    ask_to_count(page, f"{population}_b", 0.25)
    page.follow("[data-part=preview] form button")
    page.wait("document.querySelectorAll('td.chart').length === 1")
    page.open("/requests")
    assert f"{population}_a" not in page.text()
    page.open(others)
    assert page.run("!!document.querySelector('main > [role=alert]')")
    page.reports.clear()  # the browser reports the status of a page that is not there
    assert page.house.service.ledger.account(population).spent <= 1.0


def test_somebody_with_two_grants_chooses_which_one_pays(page: Any) -> None:
    """The choice moves the gauge, the price that is left and what the button sends, without a reload."""
    word = call_it(page, "second")
    said = {"principal": "li", "epsilon": 500.0, "delta": 1e-7, "expires": "2099-01-01", "purpose": word}
    new = page.house.call("wang", "POST", "/datasets/clinic/grants", said).json()["id"]
    enter(page, "li")
    page.open("/ask/clinic?mode=sql&sql=SELECT+COUNT(*)+AS+n+FROM+clinic&epsilon=0.01")
    sent = "document.querySelector('[data-part=preview] form [name=grant]').value"
    assert page.run(sent) == new
    page.run("window.stayed = true")
    grants = page.house.call("li", "GET", "/grants").json()["grants"]
    old = next(one for one in grants[::-1] if one["dataset"] == "clinic")
    page.choose("#grant", old["id"])
    page.wait(f"{sent} === {old['id']!r}")
    assert "1,000" in page.run("document.querySelector('[data-part=budget]').innerText")
    assert page.run("window.stayed")
    page.house.call("wang", "DELETE", f"/grants/{new}")


def use_tool(page: Any, token: Any, **arguments: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": arguments}}
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{page.base}/mcp", content=json.dumps(message), headers=headers, timeout=60)


def test_an_agent_is_given_a_cap_a_day_and_is_stopped_by_it(page: Any) -> None:
    """Its person makes it, watches it spend without a reload, sees that its day is used up, and stops it for good."""
    name = call_it(page, "helper")
    enter(page, "li")
    page.open("/agents")
    grants = page.house.call("li", "GET", "/grants").json()["grants"]
    page.fill("#name", name)
    page.choose("#grant", next(one["id"] for one in grants if (one["dataset"], one["state"]) == ("clinic", "open")))
    page.fill("#epsilon", "0.1")
    page.fill("#limit_per_day", "0.025")
    page.follow("form[action='/agents'] button")
    token = page.run("document.querySelector('#token').innerText").strip()
    page.run("window.stayed = true")
    asked = {"dataset": "clinic", "sql": "SELECT COUNT(*) AS n FROM clinic", "epsilon": 0.01, "wait_seconds": 30}
    found = [use_tool(page, token, **asked, key=str(n)).json()["result"] for n in range(4)]
    assert [bool(one.get("isError")) for one in found] == [False, False, True, True]
    page.wait("!!document.querySelector('[data-part^=agent] .notice.refused')")
    assert page.run("window.stayed")
    assert "0.02" in page.run("document.querySelector('[data-part^=agent]').innerText")
    page.follow("form[action$='/stop'] button")
    assert page.run("!!document.querySelector('[data-part^=agent] .tag.waiting')")
    assert use_tool(page, token, **asked, key="too late").status_code == 401


def test_a_word_is_explained_where_it_stands(page: Any) -> None:
    """Beside a heading, and at the end of the page for every word that the page uses; Escape closes it again."""
    enter(page, "li")
    page.open("/ask/visits")
    assert page.run(SHOWN) == ""
    for selector in (".help", ".word[popovertarget=word-epsilon]"):
        page.press(selector)
        page.wait(f"({SHOWN}).length > 40")
        page.key("Escape")
        page.wait(f"({SHOWN}) === ''")
    words = page.run("[...document.querySelectorAll('.word')].map(one => one.innerText)")
    assert len(words) >= 6
    assert page.run("[...document.querySelectorAll('[popovertarget]')].every(one => one.popoverTargetElement)")


HARD = "\u05e9\u05dc\u05d5\u05dd \u202e<b>evil</b> " + "Rindfleischetikettierung" * 4


def test_names_that_are_hard_to_show_are_harmless_and_legible(page: Any) -> None:
    """Right-to-left letters, an override of direction, markup and a very long word, in a window of 390 pixels."""
    name = call_it(page, "hard")
    (page.house.service.settings.folder / "data" / f"{name}.csv").write_text("pid,nights\n1,3\n")
    declared = {"unit": {"person": "pid"}, "columns": {"pid": {}, "nights": {"between": [0, 30], "origin": "law"}}}
    said = {"name": name, "title": HARD, "source": {"path": f"{name}.csv"}, "declaration": declared}
    assert page.house.call("wang", "POST", "/datasets", said | {"promise": {"epsilon": 1.0}}).status_code == 201
    page.house.call("zhao", "POST", f"/datasets/{name}/countersign", {})
    team = {"name": f"{name} " + "x" * 60, "kind": "team"}
    assert page.house.call("ada", "POST", "/principals", team).status_code == 201
    page.resize(390)
    for who, paths in {"wang": ("/", "/datasets", f"/datasets/{name}", "/people"), "sun": ("/audit",)}.items():
        enter(page, who)
        for path in paths:
            page.open(path)
            assert not page.is_cut(), path
            assert page.run("!document.querySelector('main b')"), path
    enter(page, "wang")
    page.open(f"/datasets/{name}")
    assert page.run("document.querySelector('h1').textContent") == HARD
    left = "document.querySelector('h1').getBoundingClientRect().left >= 0"
    assert page.run(left)


def test_a_question_survives_a_killed_server_a_reload_and_a_second_tab(tmp_path: Path) -> None:
    """Killed while somebody waits: the same page shows an end after a restart, and the price was paid at most once.

    Four wait at once: in both languages, by mouse and by keys.
    """
    tokens = prepare(tmp_path, timing="fixed", deadline=12.0)
    server = ServerProcess(tmp_path, timing="fixed", deadline=12.0)
    base, prices = str(server.client.base_url).rstrip("/"), (0.05, 0.06, 0.07, 0.08)
    with driven(base) as page, driven(base) as second:
        addresses = []
        for turn, price in enumerate(prices):
            page.forget()
            page.speak("zh" if turn % 2 else "en")
            page.by_keys = turn >= 2
            enter(page, "li")
            page.open(f"/ask/visits?epsilon={price}&measure=count&mode=form")
            page.follow("[data-part=preview] form button")
            addresses.append(page.run("location.pathname"))
            assert page.run("!!document.querySelector('[data-poll]')")
        server.kill()
        server = ServerProcess(tmp_path, timing="fixed", deadline=12.0)
        page.base = second.base = str(server.client.base_url).rstrip("/")
        paid = 0.0
        for turn, (price, address) in enumerate(zip(prices, addresses, strict=True)):
            shown = []
            for tab in (second, page):
                tab.speak("zh" if turn % 2 else "en")
                tab.by_keys = turn >= 2
                enter(tab, "li")
                tab.open(address)
                tab.wait("!!document.querySelector('.tag.answered, .tag.failed, .tag.refused')")
                shown.append(tab.run("document.querySelector('.tag').className"))
            assert shown[0] == shown[1]
            paid += 0.0 if "refused" in shown[0] else price
        grants = server.call(tokens["li"], "GET", "/grants").json()["grants"]
        assert grants[0]["budget"]["spent"] == pytest.approx(paid)
    server.kill()
