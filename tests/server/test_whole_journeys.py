"""Journeys that need several people, in a real browser, in both languages, by mouse and by keys: the first hour of a
server, a question that is approved, a year's end, a newcomer who answers a survey, a ledger out of reach."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from mosha.core.errors import LedgerUnavailable
from mosha.server.app import make_app
from mosha.server.service import Service
from mosha.server.serving import say_how_to_enter
from mosha.server.settings import read_settings
from tests.server.clocked import add_dataset, make_rows
from tests.server.house import LONG, run_app
from tests.server.screens import answer_survey, driven, enter
from tests.server.test_more_journeys import call_it

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")


@contextmanager
def open_empty_server(folder: Path) -> Iterator[tuple[str, str]]:
    """A server that nobody has used yet: its address, and the line with the link that it prints once."""
    service, lines = Service(read_settings(folder, environment={}, timing="off", deadline=LONG)), list[str]()
    with run_app(make_app(service)) as address:
        say_how_to_enter(service, address, {}, lines.append)
        yield address, lines[-1].split()[-1]


def invite(page: Any, name: str) -> str:
    """Make somebody, and the link by which they come in."""
    page.open("/people")
    page.fill("#name", name)
    page.follow("form[action='/people'] button")
    return str(page.run("document.querySelector('#link').innerText")).strip()


def come_in(page: Any, link: str) -> None:
    page.forget("mosha")
    page.open(link)
    page.follow("main form button")


@pytest.mark.parametrize("by_keys", [False, True])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_hour_of_a_server_leads_to_the_first_answer(tmp_path: Path, language: str, by_keys: bool) -> None:
    """The printed link, people, a table, a signature, a grant, a question; the guide says what is next and goes."""
    with open_empty_server(tmp_path) as (address, link), driven(address) as page:
        page.by_keys = by_keys
        page.speak(language)
        rows = "".join(f"{n},{'ab'[n % 2]},{n % 9}\n" for n in range(300))
        (tmp_path / "data" / "stays.csv").write_text(f"pid,ward,nights\n{rows}")
        come_in(page, link)
        done = "document.querySelectorAll('.guide .done').length"
        assert page.run("document.querySelectorAll('.guide li').length") == 5
        before = page.run(done)
        officer, analyst = (invite(page, name) for name in ("Mei", "Lan"))
        cards = "[...document.querySelectorAll('.card')].filter((one) => one.innerText.startsWith('Mei'))"
        mei = page.run(f"{cards}[0].querySelector('select[id^=role-]').id")
        page.choose(f"#{mei}", "reviewer")
        page.follow(f"form:has(#{mei}) button[value=give]")
        page.open("/register")
        page.fill("#path", "stays.csv")
        page.follow("button[value=look]")
        for part in ("low", "high"):
            page.run(f"document.querySelectorAll('input[name={part}]')[2].id = 'nights-{part}'")
        page.run("document.querySelectorAll('select[name=origin]')[2].id = 'nights-origin'")
        page.run("document.querySelectorAll('select[name=column_type]')[2].id = 'nights-type'")
        page.choose("#nights-type", "integer")
        page.fill("#nights-low", "0")
        page.fill("#nights-high", "30")
        page.choose("#nights-origin", "codebook")
        page.fill("#at_most", "1")
        page.fill("#name", "stays")
        page.follow("button[value=propose]")
        mine = page.remember()
        come_in(page, officer)
        page.open("/datasets/stays")
        page.follow("form[action$='/sign'] button")
        page.recall(mine)
        page.open("/datasets/stays")
        page.fill("#principal", "Lan")
        page.fill("#epsilon", "0.8")
        page.fill("#approve_above", "0.6")
        page.follow("form[action$='/grants'] button")
        page.open("/")
        assert page.run(done) == 4 > before
        come_in(page, analyst)
        page.follow("a.button[href^='/ask/stays']")
        page.fill("#epsilon", "0.5")
        page.wait("document.querySelector('[data-part=preview] form button.main')?.innerText.includes('0.5')")
        page.follow("[data-part=preview] form button.main")
        page.wait("document.querySelectorAll('td.chart svg .error').length >= 1")
        page.recall(mine)
        page.open("/")
        assert page.run("document.querySelectorAll('.guide').length") == 0
        assert page.reports == []


def test_a_question_is_approved_and_runs_once_and_a_changed_one_is_asked_for_again(page: Any) -> None:
    """She sees the price, the bar and what is left before she agrees; his answer is there, and paid for once."""
    said = {
        "principal": "li",
        "epsilon": 20.0,
        "expires": "2099-01-01",
        "approve_above": 0.5,
        "purpose": call_it(page, "big"),
    }
    grant = page.house.call("wang", "POST", "/datasets/clinic/grants", said).json()["id"]
    price = 3 if page.language == "en" else 4  # what was asked before at the same price is not asked again
    asked = f"/ask/clinic?grant={grant}&mode=sql&epsilon={price}&sql=SELECT+COUNT(*)+AS+n+FROM+clinic"
    enter(page, "li")
    page.open(f"/ask/clinic?grant={grant}&mode=sql&epsilon=30&sql=SELECT+COUNT(*)+AS+n+FROM+clinic")
    page.follow("[data-part=preview] .notice.refused a")  # too much: what fits is one click away
    assert float(page.run("document.querySelector('#epsilon').value")) <= 20
    page.open(asked)
    page.fill("#purpose", "yearly report")
    page.follow("[data-part=preview] form button.main")
    waiting = page.run("location.pathname")
    enter(page, "zhao")
    page.open("/review")
    form = f"form[action='/review/{waiting.split('/')[-1]}']"
    shown = page.run(f"document.querySelector({form!r}).closest('article').innerText")
    assert "yearly report" in shown
    assert "±" in shown
    assert f"20 → {20 - price}" in shown.replace("\n", " ")
    page.follow(f"{form} button[value=approve]")
    enter(page, "li")
    page.open(waiting)
    page.wait("document.querySelectorAll('td.chart').length === 1")
    page.open(asked)
    page.follow("[data-part=preview] form button.main")
    assert page.run("location.pathname") == waiting  # the same again is reading again
    page.open(f"{asked}+WHERE+days+%3C+9")
    page.fill("#purpose", "another report")
    page.follow("[data-part=preview] form button.main")
    assert page.run("!!document.querySelector('.tag.waiting')")
    budget = page.house.call("li", "GET", f"/grants/{grant}").json()["budget"]
    assert budget["spent"] == pytest.approx(price)
    page.house.call("wang", "DELETE", f"/grants/{grant}")


def test_a_year_ends_its_block_is_followed_by_another_and_the_dataset_is_closed(page: Any) -> None:
    """A curator opens the new year, an officer thaws what was frozen, nobody asks what is retired, statements stay."""
    name = call_it(page, "year")
    add_dataset(page.house, name, make_rows(60), timing="off", deadline=LONG)
    answered = page.house.answer("li", f"SELECT COUNT(*) AS n FROM {name}", key=name, dataset=name, epsilon=1.0)["id"]
    enter(page, "wang")
    page.open(f"/datasets/{name}")
    page.fill("#block-name", "y2027")
    page.choose("#block-column", "day")
    page.fill("#block-from", "2027-01-01")
    page.fill("#block-epsilon", "5")
    page.follow("form[action$='/blocks'] button")
    assert "2027-01-01" in page.text()
    page.fill("#reason-freeze", "a doubt")
    page.follow("form[action$='/freeze'] button")
    assert page.run("!document.querySelector('#reason-thaw')")  # not by the one who froze it
    enter(page, "zhao")
    page.open(f"/datasets/{name}")
    page.fill("#reason-thaw", "looked into")
    page.follow("form[action$='/thaw'] button")
    enter(page, "wang")
    page.open(f"/datasets/{name}")
    for field in ("data_curators", "registry_authors", "description", "intended_use", "data_product_region"):
        page.fill(f"#{field}", "Shanghai")  # what the public registry asks for
    page.choose("#data_product_sector", "Healthcare")
    page.follow("form[action$='/registry'] button")
    page.fill("#reason-retire", "the study is over")
    page.follow("form[action$='/retire'] button")
    enter(page, "li")
    page.open(f"/ask/{name}")
    assert page.run("!document.querySelector('[data-part=preview] form')")
    page.open(f"/requests/{answered}")
    assert page.run("document.querySelectorAll('td.chart svg').length") == 1  # old answers can be read
    enter(page, "sun")
    page.open("/audit")
    assert "the study is over" in page.text()
    found = page.run("[...document.querySelectorAll('a[href*=statements]')].map((one) => one.href)")
    links = [link for link in found if parse_qs(urlsplit(link).query)["account"] == [name]]
    assert len(links) == 4
    cookies = page.cookies()
    texts = [httpx.get(link, cookies=cookies, timeout=60).raise_for_status().text for link in links]
    assert sum(name in text for text in texts) == 4
    chain = httpx.get(f"{page.base}/audit/export.jsonl", cookies=cookies, timeout=60).text.splitlines()
    page.fill("#head", "{sequence}:{hash}".format(**json.loads(chain[-1])))
    page.follow("form[action='/audit'] button")
    assert page.run("!!document.querySelector('.notice.done')")


def test_a_newcomer_is_led_from_the_first_page_to_a_survey_and_to_its_estimate(page: Any) -> None:
    page.open("/")
    page.follow("form[action='/demo/survey'] button")
    page.run("localStorage.clear()")
    page.open(page.run("location.pathname"))
    before = page.house.call("wang", "GET", "/surveys/fever-at-work/estimate").json()["accepted"]
    answer_survey(page)
    enter(page, "wang")
    page.open("/surveys")
    page.follow("a[href='/survey/fever-at-work']")
    assert page.run("document.querySelectorAll('[data-part=estimate] td.chart svg .error').length") == 3
    assert page.house.call("wang", "GET", "/surveys/fever-at-work/estimate").json()["accepted"] == before + 1


def test_while_the_ledger_is_out_of_reach_forecasts_go_on_and_nothing_is_spent(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A banner says so; what one would get is still shown, what was typed stays, published answers can be read."""

    def be_gone(*_: object, **__: object) -> None:
        raise LedgerUnavailable("ledger.busy")

    enter(page, "li")
    page.open("/ask/visits?epsilon=0.0123")
    storage, head = page.house.service.ledger._storage, page.house.service.ledger.head
    with monkeypatch.context() as patch:
        for part in ("read", "write"):
            patch.setattr(storage, part, be_gone)
        page.follow("[data-part=preview] form button.main")
        assert page.run("!!document.querySelector('[data-part=preview] [role=alert]')")
        page.open("/ask/visits?epsilon=0.0123")
        assert page.run("!!document.querySelector('[data-part=budget] .notice.refused')")
        assert page.run("document.querySelector('[data-part=preview] td.number').innerText").startswith("±")
        assert page.run("!document.querySelector('[data-part=preview] form')")
        assert page.run("document.querySelector('#epsilon').value") == "0.0123"
        for who, path in (
            ("li", "/"),
            ("li", "/requests"),
            ("zhao", "/"),
            ("", "/public"),
            ("", "/explore?part=quick"),
        ):
            page.forget("mosha")
            if who:
                enter(page, who)
            page.open(path)
            assert page.run("!document.querySelector('main > [role=alert]')"), path
    assert page.house.service.ledger.head == head
    page.reports.clear()  # the browser reports the status of what was refused
