"""Bad input in every form: said beside the field, in the reader's language; nothing typed is lost, nothing is spent."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from mosha.core.language import phrase, translate
from mosha.server.catalogue.details import NEEDED
from mosha.server.errors import Conflict
from tests.server.house import BY_WARD, opened
from tests.server.test_curator_pages import FIELDS, Visitor

GRANT = {"principal": "li", "epsilon": "0.1", "delta": "0", "expires": "2099-01-01", "approve_above": "0.1"}
BLOCK = {"name": "year", "column": "day", "from": "2026-01-01", "until": "", "epsilon": "1", "delta": "0"}
SERIES = {"name": "weekly", "title": "Weekly", "measure": "count", "column": "", "horizon": "4", "epsilon": "0.1"}
GRAPH = {"path": "edges.csv", "hides": "edge", "vertices": "9", "name": "friends", "title": "", "epsilon": "1"}
ENTRY = dict.fromkeys(NEEDED, "x")
SURVEY = {"title": "Sleep?", "name": "sleep", "epsilon": "1", "values": "yes\nno"}
AGENT = {"name": "helper", "grant": "g-0", "epsilon": "0.1", "limit_per_day": "0.01"}
EDGES = {"unit": {"edge": True}, "vertices": 3}
DECLARED = {"unit": "patient_id", "at_most": "4", "column_name": ["patient_id", "ward", "day", "days", "age"]}
DECLARED |= {
    "column_type": ["integer", "text", "date", "integer", "integer"],
    "origin": ["", "codebook", "", "law", "law"],
}
DECLARED |= {"low": ["", "", "", "0", "0"], "high": ["", "", "", "30", "120"], "values": ["", "cardiology", "", "", ""]}
RAW = {"path": "stays.csv", "name": "raw", "epsilon": "1", "delta": "0", "do": "propose", "declaration": "{}"}
PROPOSE = FIELDS | {"do": "propose", "name": "proposed"}
FORMS = [
    ("ada", "/people", {"name": "li", "kind": "person"}, "name"),
    ("ada", "/people", {"name": "a/b", "kind": "person"}, "name"),
    ("ada", "/people", {"name": "", "kind": "team"}, "name"),
    ("ada", "/people/{team}/changes", {"do": "members", "member": "nobody at all"}, "member"),
    ("li", "/agents", AGENT | {"name": "a/b"}, "name"),
    ("li", "/agents", AGENT | {"limit_per_day": "0"}, "limit_per_day"),
    ("li", "/agents", AGENT | {"epsilon": "much"}, "epsilon"),
    ("wang", "/register", {"path": "../../etc/passwd", "do": "look"}, "path"),
    ("wang", "/register", {"path": "env:NO_SUCH_VARIABLE", "do": "look"}, "path"),
    ("wang", "/register", PROPOSE | {"origin": ["", "codebook", ""]}, "origin"),
    ("wang", "/register", PROPOSE | {"high": ["", "", "many"]}, "high"),
    ("wang", "/register", PROPOSE | {"high": ["", "", "nan"]}, "high"),
    ("wang", "/register", PROPOSE | {"high": ["", "", "-30"]}, "high"),
    ("wang", "/register", PROPOSE | {"high": ["", "", ""]}, "high"),
    ("wang", "/register", PROPOSE | {"values": ["1.5, 2", "a, b", ""]}, "values"),
    ("wang", "/register", PROPOSE | {"at_most": "2.5"}, "at_most"),
    ("wang", "/register", PROPOSE | {"name": "Not A Name"}, "name"),
    ("wang", "/datasets/visits/declaration", DECLARED | {"high": ["", "", "", "many", "120"]}, "high"),
    ("wang", "/datasets/visits/declaration", DECLARED | {"at_most": "0,5"}, "at_most"),
    ("wang", "/register", PROPOSE | {"epsilon": "-1"}, "epsilon"),
    ("wang", "/register", PROPOSE | {"delta": "small"}, "delta"),
    ("wang", "/register", RAW | {"declaration": '{"unit": '}, "declaration"),
    ("wang", "/register/graph", GRAPH | {"path": "nowhere.csv"}, "path"),
    ("wang", "/register/graph", GRAPH | {"vertices": "0"}, "vertices"),
    ("wang", "/register/graph", GRAPH | {"vertices": "2.5"}, "vertices"),
    ("wang", "/register/graph", GRAPH | {"hides": "node", "max_degree": "many"}, "max_degree"),
    ("wang", "/register/graph", GRAPH | {"hides": "node", "vertices_file": ""}, "vertices_file"),
    ("wang", "/register/graph", GRAPH | {"name": "Friends!"}, "name"),
    ("wang", "/register/graph", GRAPH | {"epsilon": "0"}, "epsilon"),
    ("wang", "/datasets/visits/registry", ENTRY | {"registry_authors": "a\n" + "b" * 201}, "registry_authors"),
    ("wang", "/datasets/visits/registry", ENTRY | {"data_product_region": "\\\\alpha"}, "data_product_region"),
    ("wang", "/datasets/visits/grants", GRANT | {"principal": "nobody at all"}, "principal"),
    ("wang", "/datasets/visits/grants", GRANT | {"epsilon": "-3"}, "epsilon"),
    ("wang", "/datasets/visits/grants", GRANT | {"epsilon": "0,5"}, "epsilon"),
    ("wang", "/datasets/visits/grants", GRANT | {"epsilon": ""}, "epsilon"),
    ("wang", "/datasets/visits/grants", GRANT | {"delta": "tiny"}, "delta"),
    ("wang", "/datasets/visits/grants", GRANT | {"delta": "0,000001"}, "delta"),
    ("wang", "/datasets/visits/grants", GRANT | {"expires": "tomorrow"}, "expires"),
    ("wang", "/datasets/visits/grants", GRANT | {"expires": "2020-01-01"}, "expires"),
    ("wang", "/datasets/visits/grants", GRANT | {"principal": ""}, "principal"),
    ("wang", "/datasets/visits/grants", GRANT | {"approve_above": "-1"}, "approve_above"),
    ("wang", "/datasets/visits/blocks", BLOCK | {"name": "a year"}, "name"),
    ("wang", "/datasets/visits/blocks", BLOCK | {"epsilon": "-1"}, "epsilon"),
    ("wang", "/datasets/visits/blocks", BLOCK | {"epsilon": ""}, "epsilon"),
    ("wang", "/datasets/visits/blocks", BLOCK | {"from": "spring"}, "from"),
    ("wang", "/datasets/visits/blocks", BLOCK | {"until": "2025-01-01"}, "until"),
    ("wang", "/datasets/visits/blocks", BLOCK | {"column": "days", "from": "nine"}, "from"),
    ("wang", "/datasets/visits/series", SERIES | {"name": "Every Week"}, "name"),
    ("wang", "/datasets/visits/series", SERIES | {"measure": "sum"}, "column"),
    ("wang", "/datasets/visits/series", SERIES | {"horizon": "0"}, "horizon"),
    ("wang", "/datasets/visits/series", SERIES | {"horizon": "2.5"}, "horizon"),
    ("wang", "/datasets/visits/series", SERIES | {"epsilon": "none"}, "epsilon"),
    ("wang", "/datasets/visits/series", SERIES | {"epsilon": "500"}, "epsilon"),
    ("wang", "/series/{series}/steps", {"step": "1", "file": ""}, "file"),
    ("wang", "/series/{series}/steps", {"step": "1", "file": "patient_id,ward\n1,surgery\n"}, "file"),
    ("wang", "/series/{series}/steps", {"step": "1", "file": 'patient_id,days\n1,3\n2,"'}, "file"),
    ("wang", "/series/{series}/steps", {"step": "1", "file": "patient_id,days\n1,3\n2\n"}, "file"),
    ("wang", "/series/{series}/steps", {"step": "1", "file": "patient_id,days\n1_0,3\n"}, "file"),
    ("wang", "/series/{series}/steps", {"step": "2", "file": "patient_id,days\n1,3\n"}, "file"),
    ("wang", "/datasets/visits/freeze", {"reason": " "}, "reason"),
    ("wang", "/datasets/visits/retire", {"reason": ""}, "reason"),
    ("wang", "/surveys", SURVEY | {"values": "yes"}, "values"),
    ("wang", "/surveys", SURVEY | {"values": "yes\nyes"}, "values"),
    ("wang", "/surveys", SURVEY | {"name": "Sleep Well"}, "name"),
    ("wang", "/surveys", SURVEY | {"epsilon": "0"}, "epsilon"),
    ("zhao", "/review/{waiting}", {"verdict": "deny", "reason": " "}, "reason"),
    ("zhao", "/review/publications/{slug}", {"verdict": "deny", "reason": ""}, "reason"),
    ("sun", "/audit", {"head": "rubbish"}, "head"),
    ("li", "/requests/{request}/publication", {"title": "Stays", "slug": "Not A Slug"}, "slug"),
    ("li", "/requests/{request}/publication", {"title": "", "slug": "stays"}, "title"),
]
ASKED = [
    ("/ask/visits", {"mode": "form", "measure": "average", "column": "days", "epsilon": "much"}, "epsilon"),
    ("/ask/visits", {"mode": "form", "measure": "average", "column": "days", "epsilon": "-1"}, "epsilon"),
    ("/ask/visits", {"mode": "form", "measure": "average", "column": "days", "within": "close"}, "within"),
    ("/ask/visits", {"mode": "form", "measure": "average", "column": "days", "rows": "few"}, "rows"),
    ("/ask/visits", {"mode": "form", "measure": "average", "column": ""}, "column"),
    ("/ask/visits", {"mode": "form", "measure": "count", "column_of": "days", "test": "is", "value": "x"}, "value"),
    ("/ask/visits", {"mode": "form", "measure": "count", "column_of": "days", "test": "is", "value": ""}, "value"),
    ("/ask/visits", {"mode": "form", "measure": "count", "column_of": "ward", "test": "is", "value": "attic"}, "value"),
    ("/ask/visits", {"mode": "form", "measure": "count", "column_of": "day", "test": "is", "value": "May"}, "value"),
    ("/ask/visits", {"mode": "sql", "sql": "SELECT days FROM visits", "epsilon": "0.1"}, "sql"),
    ("/ask/visits/table", {"epsilon": "much"}, "epsilon"),
    ("/ask/visits/table", {"delta": "tiny"}, "delta"),
    ("/ask/visits/table", {"rows": "many"}, "rows"),
    ("/ask/visits/table", {"rows": "2.5"}, "rows"),
    ("/ask/visits/table", {"rows": "0"}, "rows"),
    ("/ask/visits/table", {"rows": "-4"}, "rows"),
    ("/ask/visits/table", {"epsilon": "0,4"}, "epsilon"),
    ("/ask/calls/graph", {"graph": "edges", "epsilon": "much"}, "epsilon"),
    ("/ask/calls/graph", {"graph": "stars", "number": "2.5"}, "number"),
    ("/ask/calls/graph", {"graph": "stars", "number": "0"}, "number"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("forms"), previews_per_minute=10_000) as house:
        (house.service.settings.folder / "data" / "stays.csv").write_text("pid,ward,nights\n1,a,3\n2,b,4\n")
        (house.service.settings.folder / "data" / "edges.csv").write_text("from,to\n0,1\n1,2\n")
        graph = {"name": "calls", "kind": "graph", "source": {"path": "edges.csv"}, "declaration": EDGES}
        assert house.call("wang", "POST", "/datasets", graph | {"promise": {"epsilon": 5.0}}).status_code == 201
        house.call("zhao", "POST", "/datasets/calls/countersign", {})
        grant = {"principal": "li", "epsilon": 3.0, "expires": "2099-01-01"}
        assert house.call("wang", "POST", "/datasets/calls/grants", grant).status_code == 201
        answered = house.answer("li", BY_WARD, key="to publish", epsilon=0.05)["id"]
        proposed = {"request": answered, "slug": "stays-proposed", "title": "Stays"}
        assert house.call("li", "POST", "/publications", proposed).status_code == 201
        series = {"name": "fed", "dataset": "visits", "measure": "sum", "column": "days", "horizon": 4, "epsilon": 0.1}
        assert house.call("wang", "POST", "/series", series).status_code == 201
        house.browsers = []
        house.names = {
            "series": "fed",
            "request": answered,
            "waiting": house.ask("li", key="dear", epsilon=0.6).json()["id"],
            "slug": "stays-proposed",
            "team": house.call("ada", "POST", "/principals", {"name": "team a", "kind": "team"}).json()["id"],
        }
        house.visitors = {name: Visitor(house, name) for name in ("ada", "wang", "li", "zhao", "sun")}
        yield house
        for browser in house.browsers:
            browser.close()


def check_page(text: Any, wrong: Any, typed: Any) -> None:
    """The field is marked, describes itself by a sentence that is there, and has what was typed."""
    tags = [tag for tag in re.findall(r"<(?:input|select|textarea)\b[^>]*>", text) if 'aria-invalid="true"' in tag]
    assert [re.search(r'\bname="(\w+)"', tag)[1] for tag in tags] == [wrong]
    place = re.search(r'aria-describedby="([^"]+)"', tags[0])[1]
    said = re.search(rf'id="{re.escape(place)}"[^>]*>(.*?)</(?:p|div)>', text, re.DOTALL)[1]
    assert re.search(r"[\u4e00-\u9fff]{2}", said), said
    for value in typed.values():
        for one in value if isinstance(value, list) else [value]:
            assert one.replace('"', "&#34;") in text, one


@pytest.mark.parametrize(("who", "address", "typed", "wrong"), FORMS)
def test_what_is_wrong_with_a_form_is_said_beside_its_field(
    place: Any, who: Any, address: Any, typed: Any, wrong: Any
) -> None:
    visitor, before = place.visitors[who], place.service.ledger.head
    visitor.client.cookies.set("mosha-language", "zh")
    reply = visitor.send(address.format(**place.names), **typed)
    assert reply.status_code == 422, reply.text
    shown = {name: value for name, value in typed.items() if name not in ("do", "grant", "step", "file")}
    check_page(reply.text, wrong, {name: value for name, value in shown.items() if value != "sum"})
    assert place.service.ledger.head == before


@pytest.mark.parametrize(("address", "typed", "wrong"), ASKED)
def test_what_is_wrong_with_a_question_is_said_beside_its_field(
    place: Any, address: Any, typed: Any, wrong: Any
) -> None:
    visitor, before = place.visitors["li"], place.service.ledger.head
    visitor.client.cookies.set("mosha-language", "zh")
    reply = visitor.client.get(address, params=typed)
    assert reply.status_code == 200
    check_page(reply.text, wrong, {wrong: typed[wrong]})
    assert place.service.ledger.head == before


def test_groups_that_are_found_in_the_data_are_one_click_away(place: Any) -> None:
    visitor, sql = place.visitors["li"], "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    visitor.client.cookies.set("mosha-language", "en")
    text = visitor.client.get("/ask/visits", params={"mode": "sql", "sql": sql, "epsilon": "0.02"}).text
    check = re.search(r'href="(/ask/visits[?][^"]*delta=[^"]*)"', text)
    assert "The values of age are not declared" in text
    two = {"mode": "sql", "sql": "SELECT AVG(days) AS a, COUNT(*) AS n FROM visits", "epsilon": "0.02"}
    assert "The form has no words" in visitor.client.get("/ask/visits", params=two).text
    shown = visitor.client.get(check[1].replace("&amp;", "&")).text
    assert "The groups are found in the data" in shown
    assert 'name="delta" value="1' in shown


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (
            phrase("server.both", parts=[phrase("server.above", above=0), phrase("server.at_most", most=1e6)]),
            "大于 0 且不大于 1,000,000",
        ),
        (phrase("server.either", parts=["ward", "days"]), "ward 或 days"),
        (phrase("server.either", parts=[phrase("server.kind_string"), phrase("server.kind_number")]), "文本或数"),
    ],
)
def test_what_is_expected_reads_well_in_chinese(expected: Any, said: str) -> None:
    assert translate(expected, "zh") == said


def test_a_state_is_named_in_the_language_of_its_sentence() -> None:
    assert "已冻结" in Conflict("server.dataset_closed", state="frozen").render("zh")
    assert Conflict("server.dataset_closed", state="frozen").public == {"state": "frozen"}


def test_a_form_that_is_right_marks_nothing(place: Any) -> None:
    for path in ("/register", "/datasets/visits", "/surveys", "/people"):
        assert "aria-invalid" not in place.visitors["wang"].get(path).text


def test_a_declaration_is_sent_as_a_file_and_stays_in_its_field(place: Any) -> None:
    said = b'{"unit": {"person": "pid"}, "columns": {"nights": {"between": [0, 30], "origin": "law"}}, "more": 1}'
    data = {name: value for name, value in RAW.items() if name != "declaration"}
    data |= {"csrf": place.visitors["wang"].csrf, "declaration": ""}
    files = {"upload": ("stays.json", said, "application/json")}
    refused = place.visitors["wang"].client.post("/register", data=data, files=files)
    assert refused.status_code == 422
    assert "&#34;nights&#34;" in refused.text
    files["upload"] = ("stays.json", said.replace(b', "more": 1', b""), "application/json")
    made = place.visitors["wang"].client.post("/register", data=data, files=files)
    assert made.status_code == 200, made.text
    assert made.url.path == "/datasets/raw"


def test_a_step_is_published_from_a_file_and_its_next_form_is_for_the_next_step(place: Any) -> None:
    """With the mark of Excel, other columns beside, and numbers that are read as numbers; twice is refused."""
    visitor, file = place.visitors["wang"], "\ufeffward,patient_id,days\nsurgery, 7,3\nsurgery,8,30\n"
    visitor.client.cookies.set("mosha-language", "en")
    assert 'name="step" value="1"' in visitor.get("/series/fed").text
    assert 'type="file"' not in place.visitors["li"].get("/series/fed").text
    page = visitor.send("/series/fed/steps", step="1", file=file)
    assert page.status_code == 200
    assert "Publish step 2" in page.text
    again = visitor.send("/series/fed/steps", step="1", file=file)
    assert again.status_code == 422
    assert "The next step of this series is 2" in again.text
    for rows in ({"patient_id": ["7"], "days": [1]}, {"patient_id": [True], "days": [1]}):
        refused = place.call("wang", "POST", "/series/fed/steps", {"step": 2, "rows": rows})
        assert (refused.status_code, refused.json()["parameter"]) == (422, "rows.patient_id")


def test_what_is_too_large_is_refused_on_a_page(place: Any) -> None:
    reply = place.visitors["wang"].send("/series/fed/steps", step="2", file="x" * 300_000)
    assert reply.status_code == 413
    assert "<h1>" in reply.text
    assert "262144" in reply.text.replace(",", "")


@pytest.mark.parametrize("body", [b"", b"--x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xff\r\n--x--'])
def test_a_broken_form_is_refused_and_nothing_more(place: Any, body: Any) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    reply = place.visitors["wang"].client.post("/register", content=body, headers=headers)
    assert reply.status_code in (403, 422)
