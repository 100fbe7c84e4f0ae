"""Who pays, as the pages tell it: several grants, limits above what is there, a guess that is called one, decisions."""

import html
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from mosha.server.pages import charts
from tests.server.house import BY_WARD, COUNT, opened
from tests.server.test_curator_pages import Visitor


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("payers"), previews_per_minute=10_000) as house:
        house.browsers = []
        yield house
        for browser in house.browsers:
            browser.close()


def give(house: Any, **more: Any) -> Any:
    grant = {"principal": "li", "epsilon": 0.2, "delta": 1e-8, "expires": "2099-01-01"} | more
    return house.call("wang", "POST", "/datasets/visits/grants", grant).json()["id"]


def spent_of(house: Any, grant: Any) -> Any:
    return house.call("li", "GET", f"/grants/{grant}").json()["budget"]["spent"]


def asked_form(text: Any) -> dict[Any, Any]:
    """What the button sends that asks."""
    form = text[text.index('<form method="post" action="/ask/') :]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")])
    return {name: html.unescape(value) for name, value in found if name != "csrf"}


def test_one_chooses_which_grant_pays_and_the_same_question_is_free_under_any_other(place: Any) -> None:
    li = Visitor(place, "li")
    old = place.call("li", "GET", "/grants").json()["grants"][0]["id"]
    page = li.get("/ask/visits").text
    assert '<select id="grant"' not in page
    assert "grant" not in asked_form(page)
    new = give(place, purpose="yearly <b>report")
    home = li.get("/").text
    assert f"?grant={old}" in home
    assert f"?grant={new}" in home
    assert "yearly &lt;b&gt;report" in home
    page = li.get(f"/ask/visits?grant={old}&mode=sql&sql={COUNT}&epsilon=0.05").text
    assert re.search(rf'<option value="{old}" selected>', page)
    assert asked_form(page)["grant"] == old
    assert f"grant={old}" in re.search(r'href="(/ask/visits\?[^"]*epsilon=0.025)"', page)[1]
    answer = li.send("/ask/visits", **asked_form(page), purpose="to know")
    place.wait("li", answer.url.path.rsplit("/", 1)[-1])
    before = (spent_of(place, old), spent_of(place, new))
    assert before[0] == pytest.approx(0.05)
    assert before[1] == 0
    again = li.get(f"/ask/visits?grant={new}&mode=sql&sql={COUNT}&epsilon=0.05&purpose=to+know").text
    assert "Reading the answer again is free" in again
    assert li.send("/ask/visits", **asked_form(again)).url.path == answer.url.path
    assert (spent_of(place, old), spent_of(place, new)) == before
    check_notebook(place, li, answer.url.path)
    assert (spent_of(place, old), spent_of(place, new)) == before


def check_notebook(house: Any, visitor: Any, path: Any) -> None:
    """The notebook of an answer finds it again from Python, though it names a grant and a purpose."""
    found = run_notebook(house, visitor, path)
    shown = house.call("li", "GET", path + "/answer").json()["rows"][0][0]
    assert found["n"][0] == pytest.approx(shown, abs=0.5)  # shown as whole people


def run_notebook(house: Any, visitor: Any, path: Any) -> Any:
    """What the code of an answer's notebook gives whoever has the token of li."""
    names: dict[str, Any] = {}
    code = visitor.get(f"{path}/notebook.ipynb").json()["cells"][1]["source"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOSHA_TOKEN", house.tokens["li"])
        exec(code, names)  # the code is ours, and this is what people do with it
    return names["answer"]


def test_every_kind_of_answer_has_a_notebook_that_costs_nothing(place: Any) -> None:
    """Asked on the pages in one line or in several, by another program, as a plan of a synthetic table."""
    li = Visitor(place, "li")
    several = "SELECT COUNT(*) AS n\nFROM visits\nWHERE ward = 'surgery'"
    pages = [f"/ask/visits?{urlencode({'mode': 'sql', 'sql': sql, 'epsilon': 0.01})}" for sql in (COUNT, several)]
    pages.append("/ask/visits/table?epsilon=0.02&delta=1e-9&columns=ward")
    paths = [f"/requests/{place.answer('li', BY_WARD, key='by a program', epsilon=0.01)['id']}"]
    for page in pages:
        form = asked_form(li.get(page).text)
        paths.append(li.send(page.split("?")[0], **form).url.path)
        place.wait("li", paths[-1].rsplit("/", 1)[-1])
    head = place.service.ledger.head
    for path in paths:
        assert f'{path}/notebook.ipynb"' in li.get(path).text
        answer = run_notebook(place, li, path)
        shown = place.call("li", "GET", f"{path}/answer").json()
        assert answer.receipt.entry == shown["receipt"]["entry"]
        assert [*answer.columns] == [one["name"] for one in shown["columns"] if one["role"] == "value"]
    assert place.service.ledger.head == head


def test_a_grant_above_what_there_is_is_refused_and_an_old_one_says_what_can_be_spent(place: Any) -> None:
    wang, before = Visitor(place, "wang"), place.service.ledger.head
    wang.client.cookies.set("mosha-language", "zh")
    said = {"principal": "zhang", "epsilon": "3.5", "delta": "0", "expires": "2099-01-01", "approve_above": ""}
    refused = wang.send("/datasets/visits/grants", **said)
    assert refused.status_code == 422
    assert "visits 总共只有 3" in refused.text
    block = {"name": "year", "column": "day", "from": "2026-01-01", "until": "", "epsilon": "4", "delta": "0"}
    assert wang.send("/datasets/visits/blocks", **block).status_code == 422
    assert place.service.ledger.head == before
    wide = give(place, epsilon=7.0)
    assert "其中实际只能用" in wang.get("/datasets/visits").text
    li = Visitor(place, "li")
    assert "the dataset promises 3 in all" in li.get(f"/ask/visits?grant={wide}").text
    agent = {"name": "helper", "grant": wide, "epsilon": "9", "limit_per_day": "0.1"}
    assert li.send("/agents", **agent).status_code == 422
    place.call("wang", "DELETE", f"/grants/{wide}")


def test_a_question_that_does_not_fit_offers_the_most_that_a_grant_pays(place: Any) -> None:
    few = give(place, epsilon=0.1, most_per_question=0.04)
    li = Visitor(place, "li")
    page = html.unescape(li.get(f"/ask/visits?grant={few}&epsilon=0.06").text)
    assert "This grant pays at most 0.04 for one question" in page
    page = html.unescape(li.get(re.search(r'href="(/ask/visits\?[^"]*epsilon=0.04)"', page)[1]).text)
    assert '<button class="main">Ask (pays epsilon 0.04)' in page
    wang = Visitor(place, "wang")
    said = {"principal": "zhang", "epsilon": "0.1", "delta": "0", "expires": "2099-01-01", "most_per_question": "0.03"}
    wang.send("/datasets/visits/grants", **said)
    grants = place.call("zhang", "GET", "/grants").json()["grants"]
    assert [grant["most_per_question"] for grant in grants].count(0.03) == 1
    for made in (few, *(grant["id"] for grant in grants if grant["most_per_question"])):
        place.call("wang", "DELETE", f"/grants/{made}")


def test_a_forecast_says_that_it_rests_on_a_guess(place: Any) -> None:
    li = Visitor(place, "li")
    assert "Computed for 1,000 rows in each group" in li.get("/ask/visits").text
    assert "Computed for 250 rows in each group" in li.get("/ask/visits?rows=250").text


def test_a_condition_is_named_as_people_see_it(place: Any) -> None:
    li = Visitor(place, "li")
    wrong = {"mode": "form", "measure": "count", "column_of": "age", "test": "above", "value": "old"}
    page = li.client.get("/ask/visits", params=wrong).text
    assert "“The condition on age”: This must be a number, such as 0.5." in page
    assert "This must be a number, such as 0.5." in page
    assert "where.age" not in re.sub(r"<[^>]*>", "", page)


@pytest.mark.parametrize(
    "typed",
    [
        {"epsilon": "0.25", "rows": "0", "within": ""},
        {"epsilon": "abc", "rows": "640", "within": "many"},
        {"epsilon": "-3", "rows": "lots", "within": "2"},
    ],
)
def test_a_wrong_number_beside_a_question_loses_no_other(place: Any, typed: Any) -> None:
    page = Visitor(place, "li").client.get("/ask/visits", params={"mode": "form", "measure": "count"} | typed).text
    for name, value in typed.items():
        assert re.search(rf'id="{name}"[^>]* value="{value}"', page), name
    assert "aria-invalid" in page


def test_one_asks_about_a_block(place: Any) -> None:
    block = {"name": "2026", "condition": {"column": "day", "from": "2026-01-01"}, "epsilon": 1.0, "delta": 1e-7}
    place.call("wang", "POST", "/datasets/visits/blocks", block)
    li = Visitor(place, "li")
    page = li.get("/ask/visits?block=2026&epsilon=0.01").text
    assert "<option selected>2026</option>" in page
    assert asked_form(page)["block"] == "2026"
    request = li.send("/ask/visits", **asked_form(page)).url.path.rsplit("/", 1)[-1]
    assert place.wait("li", request)["block"] == "2026"


def test_nobody_is_turned_away_without_a_reason(place: Any) -> None:
    asked = place.ask("zhang", key="dear", epsilon=0.6).json()["id"]
    zhao = Visitor(place, "zhao")
    zhao.client.cookies.set("mosha-language", "zh")
    for verdict in ("deny", ""):
        refused = zhao.send(f"/review/{asked}", verdict=verdict, reason=" ")
        assert refused.status_code == 422
        assert place.call("zhang", "GET", f"/requests/{asked}").json()["state"] == "waiting"
    assert "请填写此项" in zhao.send(f"/review/{asked}", verdict="deny", reason="").text
    zhao.send(f"/review/{asked}", verdict="deny", reason="too dear")
    assert place.call("zhang", "GET", f"/requests/{asked}").json()["decision"]["reason"] == "too dear"


def test_a_reviewer_is_told_what_the_forecast_assumes(place: Any) -> None:
    """The declared size where there is one, spread over the groups; else a guess that is called one."""
    asked = place.ask("zhang", BY_WARD, key="assumed", epsilon=0.6).json()["id"]
    zhao, database = Visitor(place, "zhao"), place.service.database
    promise = database.row("SELECT promise FROM datasets WHERE name = 'visits'")["promise"]
    try:
        database.run("UPDATE datasets SET promise = ? WHERE name = 'visits'", promise.replace('"size":', '"no_size":'))
        page = zhao.get("/review").text
        assert "1,000 rows in each group: a guess" in page
        said = json.loads(promise)
        said["dataset"]["size"] = 8000
        database.run("UPDATE datasets SET promise = ? WHERE name = 'visits'", json.dumps(said))
        page = zhao.get("/review").text
        wards = place.call("li", "POST", "/previews", {"dataset": "visits", "sql": BY_WARD, "price": {"epsilon": 0.1}})
        assert wards.json()["forecast"]["rows_assumed"] == 8000 / wards.json()["groups"]
        assert f"{8000 / wards.json()['groups']:,.0f} rows in each group: the size that was declared" in page
    finally:
        database.run("UPDATE datasets SET promise = ? WHERE name = 'visits'", promise)
        zhao.send(f"/review/{asked}", verdict="deny", reason="only a look")


def test_an_auditor_reads_every_price_and_a_wrong_head_in_their_language(place: Any) -> None:
    sun = Visitor(place, "sun")
    sun.client.cookies.set("mosha-language", "zh")
    page = sun.get("/audit").text
    paid = re.findall(r'<li class="pay">.*?</li>', page, re.DOTALL)
    assert paid
    assert all('<span class="tag number">' in one for one in paid)
    assert "授予额度" in page
    assert "grant/made" not in page
    head = str(place.service.ledger.head)
    wrong = sun.send("/audit", head=head[:-1] + ("0" if head[-1] != "0" else "1"))
    notice = re.search(r'<div class="notice refused".*?</div>', wrong.text, re.DOTALL)[0]
    assert not re.search(r"[A-Za-z]{4,}", re.sub(r"<[^>]*>|[0-9]+:[0-9a-f]+", "", notice)), notice


def test_a_curator_who_freezes_is_told_who_thaws(place: Any) -> None:
    wang = Visitor(place, "wang")
    assert "Only a privacy officer can thaw it" in wang.get("/datasets/visits").text
    wang.send("/datasets/visits/freeze", reason="a question came up")
    page = wang.get("/datasets/visits").text
    assert "This dataset is frozen" in page
    assert "Only a privacy officer can thaw it" in page
    zhao = Visitor(place, "zhao")
    assert "You can thaw it below" in zhao.get("/datasets/visits").text
    zhao.send("/datasets/visits/thaw", reason="answered")
    assert "This dataset is frozen" not in wang.get("/datasets/visits").text


def test_explore_computes_what_is_quick_apart_from_what_is_slow(place: Any) -> None:
    li = Visitor(place, "li")
    parts = {
        part: set(re.findall(r'<(?:section|div)[^>]* data-part="(\w+)"', li.get(f"/explore?part={part}").text))
        for part in ("quick", "models", "training", "")
    }
    assert parts["quick"] == {"meaning", "noise", "composition", "sparse", "graphs"}
    assert (parts["models"], parts["training"]) == ({"models"}, {"training"})
    assert parts[""] == parts["quick"] | parts["models"] | parts["training"]


def test_an_error_bar_takes_as_much_of_the_picture_as_of_its_range() -> None:
    drawn = charts.reach(3.0, 0, 30)
    first, last = (float(place) for place in re.search(r'class="error" d="M([0-9.]+) 10H([0-9.]+)', drawn).groups())
    assert (last - first) / 396 == pytest.approx(6 / 30)
    assert charts.reach(None, 0, 30) == ""
    assert 'width="396.00"' in charts.reach(99.0, 0, 30)


def test_home_says_what_needs_somebody_today(place: Any) -> None:
    """A decision, a signature, a frozen dataset, a grant that ends: each with its link, and nothing for the others."""
    day = (datetime.now(UTC).date() + timedelta(days=3)).isoformat()
    ending = give(place, expires=day)
    declared = {
        "unit": {"person": "patient_id"},
        "columns": {"patient_id": {}, "days": {"between": [0, 30], "origin": "law"}},
    }
    more = {"name": "later", "source": {"path": "later.csv"}, "declaration": declared, "promise": {"epsilon": 1.0}}
    (place.service.settings.folder / "data" / "later.csv").write_text("patient_id,days\n1,3\n")
    assert place.call("wang", "POST", "/datasets", more).status_code == 201
    place.ask("zhang", key="dearer", epsilon=0.7)
    homes = {who: Visitor(place, who).get("/").text for who in ("li", "zhang", "zhao", "sun")}
    assert f"Your grant for visits ends on {day}" in homes["li"]
    assert f"/ask/visits?grant={ending}" in homes["li"]
    assert "Questions of yours that wait for a privacy officer: 1" in homes["zhang"]
    assert "Questions that wait for your decision: 1" in homes["zhao"]
    assert "Read and countersign the declaration of later" in homes["zhao"]
    assert "Nothing needs you today." in homes["sun"]
    place.call("wang", "DELETE", f"/grants/{ending}")
