"""What a page shows: numbers as people write them, names in the reader's language, the most that a budget pays."""

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest

from mosha.core.language import say
from mosha.server.pages import charts
from mosha.server.pages.numbers import write_plainly
from tests.server.house import opened
from tests.server.test_curator_pages import Visitor

MINUS = "\N{MINUS SIGN}"
FRIENDS = {
    "name": "friends",
    "kind": "graph",
    "title": "Who calls whom",
    "source": {"path": "friends.csv"},
    "declaration": {"unit": {"edge": True}, "vertices": 40},
    "promise": {"epsilon": 50.0},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The demo with a graph that li may ask about, and li's answer about it."""
    with opened(tmp_path_factory.mktemp("shown")) as house:
        edges = "".join(f"{a},{(a * 7 + 1) % 40}\n" for a in range(40))
        (house.service.settings.folder / "data" / "friends.csv").write_text("from,to\n" + edges)
        assert house.call("wang", "POST", "/datasets", FRIENDS).status_code == 201
        assert house.call("zhao", "POST", "/datasets/friends/countersign", {}).status_code == 200
        grant = {"principal": "li", "epsilon": 4.0, "expires": "2099-01-01"}
        assert house.call("wang", "POST", "/datasets/friends/grants", grant).status_code == 201
        asked = {"dataset": "friends", "plan": {"graph": "stars", "options": {"leaves": 3}}, "price": {"epsilon": 1.0}}
        house.stars = house.call("li", "POST", "/requests", asked, key="stars").json()["id"]
        house.wait("li", house.stars)
        house.browsers = []
        yield house
        for browser in house.browsers:
            browser.close()


def read(house: Any, who: Any, path: Any, language: str = "zh") -> Any:
    visitor = Visitor(house, who)
    visitor.client.cookies.set("mosha-language", language)
    reply = visitor.get(path)
    assert reply.status_code == 200, reply.text
    return html.unescape(reply.text)


def test_a_number_below_zero_has_a_minus_and_what_is_rounded_to_nothing_has_none() -> None:
    assert write_plainly(-12.3, 20.0) == f"{MINUS}12"
    assert write_plainly(-0.3, 20.0) == "0"
    assert write_plainly(-1234.0) == f"{MINUS}1,234"
    assert write_plainly(float("-inf")) == f"{MINUS}∞"
    assert MINUS in charts.curves([("", [(-1.0, -2.0), (1.0, 2.0)])], title="t", across="", up="")


def test_a_line_of_a_legend_has_the_dashes_of_its_curve() -> None:
    assert 'class="line line-3"' in charts.key(3)


def test_the_mark_of_a_gauge_stands_where_a_part_of_the_limit_ends() -> None:
    drawn = charts.gauge(0.1, 4.0, 0.2, "t", mark=1.0)
    place = re.search(r'class="mark" x="([0-9.]+)" width="([0-9.]+)"', drawn)
    assert float(place[1]) + float(place[2]) / 2 == pytest.approx(50.0)
    assert "mark" not in charts.gauge(0.1, 4.0, 0.2, "t", mark=4.0)
    beyond = charts.gauge(0.5, 4.0, 2.0, "t", mark=1.0)
    assert 'class="next" x="25.00" width="25.00"' in beyond  # nobody spends more than is theirs


def test_a_sentence_that_is_empty_in_a_language_stays_empty() -> None:
    assert (say("console.gap", "en"), say("console.gap", "zh")) == (" ", "")


@pytest.mark.parametrize(("language", "name"), [("en", "stars"), ("zh", "星形数")])
def test_a_number_about_a_graph_is_named_in_the_language_of_the_page(place: Any, language: str, name: str) -> None:
    for path in (f"/requests/{place.stars}", "/ask/friends/graph?graph=stars&number=3"):
        heads = re.findall(r"<th(?: [^>]*)?>(.*?)</th>", read(place, "li", path, language))
        assert name in heads
        assert language == "en" or "stars" not in heads
    drawn = read(place, "li", f"/requests/{place.stars}/chart.svg", language)
    assert name in drawn


def test_an_answer_about_edges_says_so_and_leads_back_to_its_question(place: Any) -> None:
    page = read(place, "li", f"/requests/{place.stars}", "en")
    assert "What this tells about an edge" in page
    assert "What this tells about a person" not in page
    again = re.search(r'href="(/ask/friends/graph\?[^"]*)"', page)[1]
    assert "graph=stars" in again
    asked = read(place, "li", again, "en")
    assert re.search(r'<input[^>]*name="number"[^>]*value="3"', asked)
    assert "(pays epsilon 1)" in asked


def test_types_and_verdicts_are_words_of_the_page(place: Any) -> None:
    page = read(place, "li", "/datasets/visits")
    shown = re.sub(r"<[^>]*>", " ", page)
    assert "整数" in shown
    assert "用来区分每个人" in shown
    assert "integer" not in shown
    place.ask("li", key="dear", epsilon=0.55)
    waiting = place.call("zhao", "GET", "/requests?state=waiting").json()["requests"][0]
    decision = {"verdict": "deny", "reason": "too dear"}
    assert place.call("zhao", "POST", f"/requests/{waiting['id']}/decision", decision).status_code == 200
    assert re.search("结论.不批准", re.sub(r"<[^>]*>", "", read(place, "sun", "/audit")))


def test_home_calls_a_dataset_by_its_title_and_names_who_waits(place: Any) -> None:
    assert "Who calls whom</a></h2>" in read(place, "li", "/", "en")
    place.ask("li", key="dearer", epsilon=0.6)
    identity = place.call("li", "GET", "/me").json()["id"]
    page = read(place, "zhao", "/", "en")
    assert "<td>li</td>" in page or "<td>Li" in page
    assert f"<td>{identity}</td>" not in page


def test_a_page_says_to_which_place_of_the_menu_it_belongs(place: Any) -> None:
    for path, room in (("/ask/visits", "/datasets"), ("/datasets/visits", "/datasets"), ("/requests", "/requests")):
        assert re.findall(r'href="([^"]+)" aria-current="page"', read(place, "li", path)) == [room]


def test_a_plan_that_does_not_fit_offers_what_is_left(place: Any) -> None:
    page = read(place, "li", "/ask/friends/graph?graph=triangles&epsilon=9", "en")
    assert "<dd>\N{EN DASH} / 4</dd>" in page  # what cannot be paid leaves nothing
    link = re.search(r'href="(/ask/friends/graph\?[^"]*epsilon=3)"', page)[1]
    assert "graph=triangles" in link
    assert "(pays epsilon 3)" in read(place, "li", link, "en")


def test_an_empty_declaration_is_said_beside_its_field_and_the_field_is_open(place: Any) -> None:
    wang = Visitor(place, "wang")
    reply = wang.send("/register", do="propose", kind="table", path="stays.csv", name="stays", epsilon="1")
    assert reply.status_code == 422
    around = re.search(r"<details( open)?><summary>[^<]*</summary><label for=\"declaration\">", reply.text)
    assert around[1]
    assert re.search(r'<textarea id="declaration"[^>]*aria-invalid', reply.text)


def test_whoever_was_refused_and_chooses_a_language_or_reloads_gets_the_page_of_the_form(place: Any) -> None:
    visitor = Visitor(place, "wang")
    reply = visitor.send("/datasets/visits/grants", principal="nobody at all", epsilon="1", expires="2099-01-01")
    assert reply.status_code == 422
    assert 'name="back" value="/datasets/visits"' in reply.text
    for address in ("/datasets/visits/grants", "/register/graph", "/people/nobody/changes"):
        again = visitor.client.get(address, headers={"Accept": "text/html"})
        assert again.status_code in (200, 403), address
        assert "<main" in again.text
    assert visitor.client.get("/datasets/visits/grants").status_code == 405  # programs are told
