"""Every page that there is, in a real browser, in both languages, wide and light, narrow and dark: axe-core finds
nothing serious, the policy of the pages refuses nothing, nobody else is asked, nothing is cut or needs a script."""

import importlib.util
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.routing import Match, Route

from mosha.server.pages import page_routes
from tests.server.house import opened
from tests.server.make_screens import PLACES, prepare
from tests.server.screens import driven
from tests.server.test_forms import ASKED, FORMS

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
AXE = Path(importlib.util.find_spec("axe_playwright_python").origin).parent / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SCRIPT = f"""(async () => {{
  const found = await axe.run(document, {{ runOnly: {RULES}, resultTypes: ["violations"] }});
  return found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => one.id + ": " + one.nodes.map((node) => node.target + " " + node.html.slice(0, 200)).join(" | "));
}})()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("axe"), previews_per_minute=10_000) as house:
        more = prepare(house)
        with driven(str(house.client.base_url).rstrip("/")) as found:
            found.house, found.more = house, more
            yield found


def enter(page: Any, who: Any, language: Any) -> None:
    page.forget()
    page.speak(language)
    page.open("/")
    if who:
        page.follow(f"button[value={who}]")


def places_of(page: Any, who: str) -> dict[str, str]:
    return PLACES[who] | page.more.get(who, {})


FILES = {  # addresses that give no page
    *("/static/{name}", "/audit/export.jsonl", "/public/{slug}/answer.csv", "/oidc/start", "/oidc/callback"),
    *(f"/requests/{{request}}/{name}" for name in ("chart.svg", "chart.png", "notebook.ipynb")),
}


def find_route(routes: Any, method: str, path: str) -> str:
    """The address, with its parts in braces, that answers."""
    asked = {"type": "http", "method": method, "path": urlsplit(path).path, "headers": []}
    return next((route.path for route in routes if route.matches(asked)[0] is Match.FULL), "")


def test_every_page_that_there_is_is_looked_at(page: Any) -> None:
    """What this file and `make screens` look at is all that the server shows."""
    routes: list[Route] = page_routes(page.house.service)
    looked = {find_route(routes, "GET", path) for who in PLACES for path in places_of(page, who).values()}
    assert {route.path for route in routes if "GET" in (route.methods or ())} - FILES == looked - {""}


class Forms(HTMLParser):
    """The forms of a page: where each is sent, which fields are typed into, whether it has a button."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: dict[str, dict[str, Any]] = {}
        self.inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "form":
            self.inside = said.get("id") or f"form {len(self.forms)}"
            place = (str(said.get("method", "get")).upper(), str(said.get("action", "")))
            self.forms[self.inside] = {"place": place, "typed": set(), "has_button": False}
        form = self.forms.get(said.get("form") or self.inside or "")
        if form is None:
            return
        if tag == "button" and said.get("type", "submit") == "submit":
            form["has_button"] = True
        if tag == "textarea" or (tag == "input" and said.get("type") not in ("hidden", "radio", "checkbox", "range")):
            form["typed"].add(said["name"])

    def handle_endtag(self, tag: str) -> None:
        self.inside = None if tag == "form" else self.inside


def read_forms(page: Any) -> dict[tuple[str, str, str], set[str]]:
    """Every form of every page, as its visitor sees it: method, address with its parts in braces, and what is typed."""
    routes, found = page_routes(page.house.service), {}
    for who in PLACES:
        enter(page, who, "en")
        for path in places_of(page, who).values():
            page.open(path)
            for form in Forms(page.run("document.documentElement.outerHTML")).forms.values():
                method, action = form["place"]
                assert form["has_button"], (path, action)  # without a script it is sent all the same
                found[method, find_route(routes, method, action) or action, path] = form["typed"]
    return found


def test_every_form_is_sent_without_a_script_and_tried_with_wrong_input(page: Any) -> None:
    """Whatever can be typed wrongly has a case in `test_forms.py`; a purpose can be anything."""
    routes, free = page_routes(page.house.service), {"purpose"}
    tried = {find_route(routes, "POST", address.format_map(defaultdict(lambda: "x"))) for _, address, _, _ in FORMS}
    tried |= {find_route(routes, "GET", address) for address, _, _ in ASKED}
    untried = {
        (method, place, path)
        for (method, place, path), typed in read_forms(page).items()
        if typed - free and place not in tried and not place.startswith("/api/v1/requests/")  # a file of synthetic rows
    }
    assert not untried


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("who", PLACES)
def test_nothing_serious_is_found_on_any_page_wide_and_narrow_light_and_dark(
    page: Any, who: Any, language: str
) -> None:
    enter(page, who, language)
    wrong: dict[tuple[str, object], Any] = {}
    axe = AXE.read_text(encoding="utf-8") + "; true"
    for name, path in places_of(page, who).items():
        page.addresses.clear()
        page.reports.clear()
        page.open(path)
        if found := find_strangers(page):
            wrong[name, "asks"] = found
        page.run(axe)
        for width, dark in ((1200, False), (390, True)):  # colors do not depend on the width, what scrolls does
            page.resize(width, dark=dark)
            if found := page.run(SCRIPT):
                wrong[name, width] = found
            if page.is_cut():
                wrong[name, f"{width} is cut"] = True
    assert not wrong


def find_strangers(page: Any) -> list[str]:
    """What the policy of a page refused, what its scripts complained of, and whoever else was asked."""
    page.wait("document.readyState === 'complete'")
    reports = [said for said in page.reports if not re.search(r"status of (404|422)", said)]
    return reports + [one for one in page.addresses if not one.startswith((f"{page.base}/", "data:", "about:"))]


@pytest.mark.parametrize(
    "planted",
    [
        "<img src='https://elsewhere.example/x.png' alt=''>",
        "<p style='color: red'>x</p>",
        "<img src='/static/nothing.svg' alt='' onerror='1'>",
    ],
)
def test_a_page_that_asks_elsewhere_or_needs_what_is_inline_would_be_found(page: Any, planted: str) -> None:
    enter(page, "", "en")
    page.open("/words")
    page.addresses.clear()
    page.reports.clear()
    assert find_strangers(page) == []
    page.run(f"document.querySelector('main').insertAdjacentHTML('beforeend', {planted!r})")
    page.wait("true")
    for _ in range(200):
        if find_strangers(page):
            return
        time.sleep(0.05)
    raise AssertionError("nothing was found")


def test_the_first_page_is_light_with_all_that_it_loads(page: Any) -> None:
    """At most 60 kB as a browser counts them on the wire; what is sent is not even compressed."""
    for language in ("en", "zh"):
        page.forget()
        page.speak(language)
        page.open("about:blank")
        page.send("Network.clearBrowserCache")
        page.open("/")
        sizes = page.run(
            "performance.getEntries().filter((one) => one.transferSize !== undefined).map((one) => one.transferSize)"
        )
        assert len(sizes) >= 3
        assert 2000 < sum(sizes) <= 60_000


def test_the_check_can_fail(page: Any) -> None:
    enter(page, "", "en")
    page.open("/explore")
    page.run("document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=\"/static/mosha.svg\">')")
    page.run(AXE.read_text(encoding="utf-8") + "; true")
    assert any(one.startswith("image-alt") for one in page.run(SCRIPT))
