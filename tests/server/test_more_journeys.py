"""More journeys in a real browser, in both languages, with the mouse and by keys alone: those who run a server, graphs,
synthetic tables, surveys, series that go on by themselves."""

import os
import shutil
import signal
from typing import Any

import httpx
import pytest

from tests.server.screens import answer_survey, enter, spent

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
GRANT = {"principal": "li", "epsilon": 50.0, "expires": "2099-01-01"}


def call_it(page: Any, name: Any) -> str:
    """A name that no other run of the same journey has."""
    return f"{name}_{page.language}_{'keys' if page.by_keys else 'mouse'}"


def data_of(page: Any) -> Any:
    return page.house.service.settings.folder / "data"


def test_a_curator_declares_a_table_field_by_field_and_a_privacy_officer_signs(page: Any) -> None:
    """A bound that does not say where it comes from is refused beside the form, and what was typed stays."""
    name = call_it(page, "stays")
    (data_of(page) / f"{name}.csv").write_text("pid,ward,nights\n1,a,3\n2,b,4\n")
    enter(page, "wang")
    page.open("/register")
    page.fill("#path", f"{name}.csv")
    page.follow("button[value=look]")
    assert page.run("document.querySelectorAll('[name=column_name]').length") == 3
    fields = "document.querySelectorAll('input[name={}]')[2].id = {!r}"
    for part in ("low", "high"):
        page.run(fields.format(part, f"nights-{part}"))
    page.run("document.querySelectorAll('select[name=origin]')[2].id = 'nights-origin'")
    page.run("document.querySelectorAll('select[name=column_type]')[2].id = 'nights-type'")
    page.choose("#nights-type", "integer")
    page.fill("#nights-low", "0")
    page.fill("#nights-high", "30")
    page.fill("#name", name)
    page.follow("button[value=propose]")
    assert page.run("!!document.querySelector('.notice.refused')")
    assert page.run("document.querySelectorAll('input[name=high]')[2].value") == "30"
    page.reports.clear()  # the browser reports the status of a refusal
    page.run("document.querySelectorAll('select[name=origin]')[2].id = 'nights-origin'")
    page.choose("#nights-origin", "codebook")
    page.follow("button[value=propose]")
    enter(page, "zhao")
    page.open(f"/datasets/{name}")
    page.follow("form[action$='/sign'] button")
    assert page.house.call("wang", "GET", f"/datasets/{name}").json()["state"] == "open"


def test_somebody_is_invited_and_comes_in_by_a_link(page: Any) -> None:
    name = call_it(page, "Mei <b>")
    enter(page, "wang")
    page.open("/people")
    page.fill("#name", name)
    page.follow("form[action='/people'] button")
    link = page.run("document.querySelector('#link').innerText").strip()
    page.forget("mosha")
    page.open(link[link.index("/enter") :])
    page.follow("main form button")
    assert name in page.text()
    page.open(link[link.index("/enter") :])
    page.forget("mosha")
    page.follow("main form button")  # a link is good once
    assert page.run("!!document.querySelector('.notice.refused')")
    page.reports.clear()


def test_a_block_and_a_series_are_opened_and_the_public_page_goes_on_by_itself(page: Any) -> None:
    name = call_it(page, "weekly").replace("_", "-")
    enter(page, "wang")
    page.open("/datasets/clinic")
    page.fill("#series-name", name)
    page.fill("#series-horizon", "3")
    page.fill("#series-epsilon", "5")
    page.follow("form[action$='/series'] button")
    assert page.run("location.pathname") == f"/series/{name}"
    page.attach("#file", "week.csv", "patient_id,ward\n" + "".join(f"{n},surgery\n" for n in range(300)))
    page.follow("form[action$='/steps'] button")
    page.wait("document.querySelectorAll('[data-part=points] tbody tr').length === 1")
    page.open("/datasets/clinic")
    block = f"y{page.language}{page.by_keys:d}"
    page.fill("#block-name", block)
    page.choose("#block-column", "day")
    page.fill("#block-from", "2026-01-01")
    page.fill("#block-epsilon", "500")
    page.follow("form[action$='/blocks'] button")
    assert block in page.text()
    page.forget("mosha")
    page.open(f"/series/{name}")
    page.run("window.stayed = true")
    rows = {"patient_id": list(range(400))}
    assert page.house.call("wang", "POST", f"/series/{name}/steps", {"step": 2, "rows": rows}).status_code == 201
    page.wait("document.querySelectorAll('[data-part=points] tbody tr').length === 2")
    assert page.run("window.stayed")


def test_a_graph_is_registered_signed_and_asked_about(page: Any) -> None:
    """The error bar is there before asking; a statistic whose bar depends on the edges says so."""
    name = call_it(page, "friends")
    (data_of(page) / f"{name}.csv").write_text("from,to\n" + "".join(f"{n},{(n * 7 + 1) % 50}\n" for n in range(50)))
    enter(page, "wang")
    page.open("/register")
    page.fill("#edges", f"{name}.csv")
    page.fill("#vertices", "50")
    page.fill("#graph_name", name)
    page.fill("#graph_epsilon", "60")
    page.follow("form[action='/register/graph'] button")
    enter(page, "zhao")
    page.open(f"/datasets/{name}")
    page.follow("form[action$='/sign'] button")
    assert page.house.call("wang", "POST", f"/datasets/{name}/grants", GRANT).status_code == 201
    enter(page, "li")
    page.open(f"/ask/{name}")
    assert page.run("location.pathname") == f"/ask/{name}/graph"
    assert page.run("document.querySelector('[data-part=preview] td.number').innerText").startswith("±")
    page.choose("#graph", "clustering")
    page.wait("!document.querySelector('[data-part=preview] td.number')")
    page.choose("#graph", "edges")
    page.wait("!!document.querySelector('[data-part=preview] td.number')")
    page.follow("[data-part=preview] form button")
    page.wait("document.querySelectorAll('td.chart svg').length === 1")


def test_a_synthetic_table_is_paid_once_and_drawn_as_a_file(page: Any) -> None:
    enter(page, "li")
    page.open(f"/ask/clinic/table?epsilon=0.{5 + page.by_keys}{1 + (page.language == 'zh')}")
    page.follow("[data-part=preview] form button")
    page.wait("!!document.querySelector('form[action$=\\'/table\\']')")
    path = page.run("document.querySelector('form[action$=\\'/table\\']').getAttribute('action')")
    cookies = page.cookies()
    reply = httpx.get(f"{page.base}{path}?rows=30&seed=1&format=csv", cookies=cookies, timeout=60)
    assert reply.text.startswith("# synthetic table")
    assert len(reply.text.splitlines()) == 32


def test_a_person_answers_a_survey_and_only_the_report_leaves(page: Any) -> None:
    name = call_it(page, "sleep").replace("_", "-")
    enter(page, "wang")
    page.open("/surveys")
    page.fill("#title", "Do you <b>sleep</b> well?")
    page.fill("#name", name)
    page.fill("#values", "yes\nno")
    page.follow("form[action='/surveys'] button")
    page.forget("mosha")
    page.open(f"/survey/{name}")
    answer_survey(page)
    assert page.house.call("wang", "GET", f"/surveys/{name}/estimate").json()["accepted"] == 1
    enter(page, "wang")
    page.open(f"/survey/{name}")
    assert page.run("!!document.querySelector('[data-part=estimate][data-poll]')")  # it grows by itself


def test_a_killed_worker_and_a_reload_lose_no_question(page: Any) -> None:
    """The page shows an end whatever happened: answered or failed and paid, once; a second tab shows the same."""
    enter(page, "li")
    page.open(f"/ask/visits?epsilon=0.0{3 + page.by_keys}{1 + (page.language == 'zh')}&by=ward&mode=form&measure=count")
    before = spent(page)
    page.follow("[data-part=preview] form button")
    for worker in page.house.service.slots._workers:
        if worker.pid is not None:
            os.kill(worker.pid, signal.SIGKILL)
    address = page.run("location.pathname")
    page.open(address)
    page.wait("!!document.querySelector('.tag.answered, .tag.failed, .tag.refused')")
    state = page.house.wait("li", address.split("/")[-1])["state"]
    assert (spent(page) > before) == (state != "refused")
