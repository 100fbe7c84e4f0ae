"""Every page in a real browser, in both languages, wide and light, narrow and dark: axe-core finds nothing serious."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.house import opened
from tests.server.make_screens import PLACES, prepare
from tests.server.screens import driven

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


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("who", PLACES)
def test_nothing_serious_is_found_on_any_page_wide_and_narrow_light_and_dark(
    page: Any, who: Any, language: str
) -> None:
    enter(page, who, language)
    wrong = {}
    for name, path in (PLACES[who] | page.more.get(who, {})).items():
        page.open(path)
        page.run(AXE.read_text(encoding="utf-8") + "; true")
        for width, dark in ((1200, False), (390, True)):  # colors do not depend on the width, what scrolls does
            page.resize(width, dark=dark)
            if found := page.run(SCRIPT):
                wrong[name, width] = found
    assert not wrong


def test_the_check_can_fail(page: Any) -> None:
    enter(page, "", "en")
    page.open("/explore")
    page.run("document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=\"/static/mosha.svg\">')")
    page.run(AXE.read_text(encoding="utf-8") + "; true")
    assert any(one.startswith("image-alt") for one in page.run(SCRIPT))
