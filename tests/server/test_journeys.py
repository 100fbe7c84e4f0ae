"""Journeys through the console in a real browser, in both languages: nothing is refused by the policy of the pages,
and nothing is asked of anybody but the server."""

import shutil
from typing import Any

import httpx
import pytest
import yaml

from mosha.cli import main
from mosha.ledger.publishing.registry import find_problems
from tests.server.screens import enter, spent

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")


def test_an_analyst_asks_by_the_form(page: Any) -> None:
    """The slider moves the price and the error bar before anything is spent; the answer has a chart and downloads."""
    before = spent(page)
    enter(page, "li")
    page.open("/ask/visits")
    shown = page.run("document.querySelector('[data-part=preview] td.number').innerText")
    page.fill("#step", "3" if page.language == "en" else "4")
    page.wait(f"document.querySelector('[data-part=preview] td.number').innerText !== {shown!r}")
    price = 0.05 if page.language == "en" else 0.07
    page.wait(f"document.querySelector('#epsilon').value === '{price}'")
    assert spent(page) == before
    page.follow("[data-part=preview] form button:not([popovertarget])")
    page.wait("document.querySelectorAll('td.chart svg').length === 4")
    assert spent(page) == pytest.approx(before + price)
    links = page.run("[...document.querySelectorAll('a.button')].map(link => link.getAttribute('href'))")
    cookies = page.cookies()
    for link in [link for link in links if "answer" in link or link.endswith((".svg", ".ipynb"))]:
        reply = httpx.get(page.base + link, cookies=cookies, timeout=120)
        assert reply.status_code == 200
        assert len(reply.content) > 100


def test_an_analyst_asks_in_sql_and_is_led_to_what_is_answered(page: Any) -> None:
    """A refused question says what would be answered, one click away; the same words again cost nothing."""
    enter(page, "li")
    page.open("/ask/visits")
    page.fill("#sql", "SELECT * FROM visits")
    page.wait("!!document.querySelector('#refusal pre')")
    assert page.run("document.querySelector('[name=mode][value=sql]').checked")
    page.follow("#refusal a.button")
    page.follow("[data-part=preview] form button:not([popovertarget])")
    page.wait("document.querySelectorAll('td.chart').length === 1")
    once, first = spent(page), page.run("location.pathname")
    page.open("/ask/visits?mode=sql&sql=SELECT+COUNT(*)+FROM+visits&epsilon=0.1")
    page.follow("[data-part=preview] form button:not([popovertarget])")
    page.wait("document.querySelectorAll('td.chart').length === 1")
    assert page.run("location.pathname") == first
    assert spent(page) == once


def test_an_expensive_question_waits_for_a_privacy_officer(page: Any) -> None:
    """She sees the question, its purpose and its price; she denies, and the analyst reads why. Nothing is spent."""
    before = spent(page)
    enter(page, "li")
    page.open(f"/ask/visits?epsilon={0.55 if page.language == 'en' else 0.56}")
    page.fill("#purpose", "<b>yearly</b> report")
    page.follow("[data-part=preview] form button:not([popovertarget])")
    asked = page.run("location.pathname")
    enter(page, "zhao")
    page.open("/review")
    assert "<b>yearly</b> report" in page.text()
    page.fill("article [name=reason]", "too dear <script>")
    page.follow("article button[value=deny]")
    enter(page, "li")
    page.open(asked)
    assert "too dear <script>" in page.text()
    assert spent(page) == before


def test_a_curator_grants_and_takes_back(page: Any) -> None:
    enter(page, "wang")
    page.open("/datasets/visits")
    many = page.run("document.querySelectorAll('.tree form').length")
    page.fill("#principal", "zhang")
    page.follow("form[action$='/grants'] button")
    assert page.run("document.querySelectorAll('.tree form').length") == many + 1
    page.follow(".tree form button")
    assert page.run("document.querySelectorAll('.tree form').length") == many
    page.fill("#principal", "nobody <i>here</i>")
    page.follow("form[action$='/grants'] button")
    assert page.run("document.querySelector('#principal').value") == "nobody <i>here</i>"
    assert page.run("!!document.querySelector('.notice.refused')")
    page.reports.clear()  # the browser reports the status of a refusal


def test_an_answer_is_published_and_read_by_everybody(page: Any) -> None:
    enter(page, "li")
    slug = f"stays-{page.language}"
    answered = page.house.answer("li", key="to publish", epsilon=0.02)
    page.open(f"/requests/{answered['id']}")
    page.fill("#title", "Stays <em>in all</em>")
    page.fill("#slug", slug)
    page.follow("details button")
    enter(page, "zhao")
    page.open("/review")
    page.follow(f"form[action$='/{slug}'] button[value=approve]")
    page.forget("mosha")
    page.open(f"/public/{slug}")
    assert "Stays <em>in all</em>" in page.text()
    assert page.run("document.querySelectorAll('td.chart svg .error').length") == 1
    check_as_a_visitor(page, slug)


def check_as_a_visitor(page: Any, slug: str) -> None:
    """Whoever reads a published answer checks the head of the chain, and takes an entry of the registry along."""
    head, book = page.run("document.querySelector('code.hash').innerText"), page.house.service.settings.ledger_place
    assert main(["ledger", "verify", book, "--head", head]) == 0
    sequence, _, digest = head.partition(":")
    assert main(["ledger", "verify", book, "--head", f"{sequence}:{digest[::-1]}"]) == 3
    for file in (f"/api/v1/public/{slug}", f"/public/{slug}/answer.csv"):
        text = httpx.get(page.base + file, timeout=60).raise_for_status().text
        assert text.startswith("\ufeff") == file.endswith(".csv")  # what people open with a double click has a mark
    entry = httpx.get(f"{page.base}/api/v1/public/{slug}/registry?format=yaml", timeout=60).raise_for_status().text
    assert find_problems(yaml.safe_load(entry)) == []


def test_an_auditor_verifies_the_chain(page: Any) -> None:
    enter(page, "sun")
    page.open("/audit")
    page.follow("form[action='/audit'] button")
    page.wait("!!document.querySelector('.notice.done')")
    assert page.run("document.querySelectorAll('ol.time li').length") >= 8


def test_explore_moves_with_its_knobs(page: Any) -> None:
    page.open("/explore")
    assert "54.6" not in page.text()
    page.fill("#epsilon", "12")  # by keys it passes every place between
    page.wait("document.querySelector('[data-part=meaning]').innerText.includes('54.6')")


def test_the_language_is_chosen_on_every_page(page: Any) -> None:
    page.open("/explore?epsilon=3")
    other = "zh" if page.language == "en" else "en"
    page.follow(f"button[value={other}]")
    assert page.run("document.documentElement.lang").startswith(other)
    assert page.run("location.search") == "?epsilon=3"


def test_without_a_script_one_gets_as_far_as_the_answer(page: Any) -> None:
    """Forms and links alone: the forecast has its button, and the answer is there after a reload."""
    page.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        enter_without_script(page)
    finally:
        page.send("Emulation.setScriptExecutionDisabled", value=False)


def enter_without_script(page: Any) -> None:
    page.open("/")
    page.follow("button[value=li]")
    page.open("/ask/visits?epsilon=0.01")
    page.follow("button[form=asked]")
    assert page.run("location.search").startswith("?mode=form")
    page.follow("[data-part=preview] form button:not([popovertarget])")
    page.wait("location.pathname.startsWith('/requests/') && !!document.querySelector('td.chart')")


@pytest.mark.parametrize("path", ["/", "/explore", "/ask/visits", "/datasets/visits", "/requests"])
def test_a_narrow_window_cuts_nothing(page: Any, path: str) -> None:
    enter(page, "li")
    page.resize(390)
    page.open(path)
    assert not page.is_cut()
