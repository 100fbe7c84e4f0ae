"""What is hard to show: many groups, long names, extreme numbers, what is closed, over or was never declared."""

import math
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from mosha.server.pages.numbers import find_factor, write_above, write_name, write_plainly
from tests.server.hard_places import ROOMS, prepare_hard
from tests.server.house import opened
from tests.server.screens import driven
from tests.server.test_accessibility import AXE, SCRIPT, enter
from tests.server.test_curator_pages import Visitor
from tests.server.test_shown import read

pytestmark = pytest.mark.filterwarnings("ignore::mosha.core.faults.weakness.WeakPromise")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("hard"), previews_per_minute=10_000, requests_per_minute=10_000) as house:
        house.browsers = []
        house.places = prepare_hard(house)
        yield house
        for browser in house.browsers:
            browser.close()


def find_preview(text: str) -> str:
    return text[text.index('data-part="preview"') :]


def test_a_table_that_does_not_say_how_many_rows_a_person_has_can_be_asked(place: Any) -> None:
    """The limit is bought with the answer: the page guesses it, says so, and the guess moves the bars."""
    one, three = (read(place, "li", f"/ask/money?at_most={most}&mode=form&measure=count") for most in (1, 3))
    bars = [float(re.search(r"± ([0-9.]+)", find_preview(text))[1]) for text in (one, three)]
    assert bars[1] > 2 * bars[0]
    assert 'name="at_most"' in one
    assert 'action="/ask/money"' in find_preview(one)
    visitor = Visitor(place, "li")
    for typed in ("0", "2.5", "some"):
        text = visitor.get(f"/ask/money?at_most={typed}&mode=form&measure=count").text
        assert re.search(rf'name="at_most" value="{typed}" aria-invalid="true"', text), typed
    assert 'name="at_most"' not in read(place, "li", "/ask/visits")  # there it is declared


def test_a_price_for_an_accuracy_needs_no_declared_limit(place: Any) -> None:
    text = read(place, "li", "/ask/money?mode=form&measure=count&within=20")
    assert "Person(" not in text


def test_an_answer_with_many_groups_is_paged_and_every_group_is_on_one_page(place: Any) -> None:
    address = place.places["li"]["hard-many-groups"]
    found: list[str] = []
    following: Any = address
    while following:
        text = read(place, "li", following)
        found += re.findall(r"<td>(room \d+)</td>", text)
        links = [int(place) for place in re.findall(r'href="\?from=(\d+)&', text)]
        following = next((f"{address}?from={place}" for place in links if place == len(found)), None)
    assert found == ROOMS
    assert len(re.findall(r"<td>room \d", read(place, "li", f"{address}?from=999999999"))) == 100
    csv = place.call("li", "GET", f"{address}/answer?format=csv").text
    assert all(room in csv for room in ROOMS)


@pytest.mark.parametrize(("name", "word"), [("frozen", "已冻结"), ("retired", "已停用"), ("lapsed", "2020-01-01")])
def test_what_is_closed_or_over_says_so_first_and_offers_no_question(place: Any, name: str, word: str) -> None:
    text = read(place, "li", f"/ask/{name}")
    assert word in text[: text.index('id="by-form"')]
    assert 'name="purpose"' not in text
    home = read(place, "li", "/")
    assert f'href="/ask/{name}"' not in home
    assert 'href="/ask/rooms"' in home


def test_a_grant_that_came_to_its_end_is_not_called_open(place: Any) -> None:
    assert 'class="tag expired"' in read(place, "wang", "/datasets/lapsed")
    assert 'class="tag expired"' not in read(place, "wang", "/datasets/frozen")


def test_a_question_without_an_answer_is_not_called_one(place: Any) -> None:
    for name in ("denied", "waiting", "withdrawn"):
        assert "的答案</h1>" not in read(place, "li", place.places["li"][f"hard-{name}"])
    assert "的答案</h1>" in read(place, "li", place.places["li"]["hard-huge"])


@pytest.mark.parametrize("epsilon", [1e-6, 0.001, 0.1, 0.4, 1.0, 3.0, 10.0, 50.0, 300.0, 900.0])
def test_a_factor_of_the_odds_is_never_rounded_down(epsilon: float) -> None:
    digits = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    text = write_above(find_factor(epsilon)).replace(",", "")
    value, _, power = text.replace("×10", "e").partition("e")  # noqa: RUF001
    shown = math.inf if text == "∞" else float(f"{value}e{power.translate(digits) or 0}")
    assert shown >= find_factor(epsilon)
    assert shown - 1 <= 1.011 * (find_factor(epsilon) - 1) or math.isinf(shown)


def test_an_answer_with_a_delta_or_in_another_measure_does_not_promise_a_factor_alone(place: Any) -> None:
    said = {"dataset": "visits", "sql": "SELECT COUNT(*) AS n FROM visits"}
    for price, words in (({"epsilon": 0.01, "delta": 1e-9}, "有不超过 10⁻⁹ 的概率"), ({"epsilon": 0.02}, "最多使")):
        identity = place.call("li", "POST", "/requests", said | {"price": price}, key=str(price)).json()["id"]
        place.wait("li", identity)
        assert words in read(place, "li", f"/requests/{identity}")


def test_numbers_have_the_digits_that_their_bars_support_and_years_are_no_amounts() -> None:
    assert (write_plainly(228_242_421.0, 16_362.0), write_plainly(16_362.0, 16_362.0)) == ("228,242,000", "16,000")
    assert write_plainly(2.28242e14, 1.6362e13) == "2.28×10¹⁴"  # noqa: RUF001
    assert write_plainly(0.00000030084, 0.00000000084) == "3.0084×10⁻⁷"  # noqa: RUF001
    assert (write_name(2026), write_name(True), write_name("a")) == ("2026", "True", "a")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_nothing_that_is_hard_to_show_is_cut_or_hard_to_reach(place: Any) -> None:
    """Every hard page in a window of 390 pixels; axe-core looks at it, light and dark in turn."""
    axe, wrong, dark = AXE.read_text(encoding="utf-8") + "; true", [], False
    with driven(str(place.client.base_url).rstrip("/")) as page:
        for who, paths in place.places.items():
            enter(page, who, "zh")
            for name, path in paths.items():
                dark = not dark
                page.resize(390, dark=dark)
                page.open(path)
                page.run(axe)
                if (found := page.run(SCRIPT)) or page.is_cut():
                    wrong.append((name, found))
    assert not wrong
