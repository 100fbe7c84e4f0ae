"""Pages for those who run a server: people, registering a dataset by fields, blocks, series, retiring, downloads."""

import html
import io
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow.ipc
import pyarrow.parquet
import pytest
import yaml

from mosha.core.errors import StepFailed
from mosha.ledger.publishing.registry import find_problems
from mosha.mechanisms import Count, laplace
from tests.server.house import BY_WARD, opened


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("curators")) as house:
        (house.service.settings.folder / "data" / "stays.csv").write_text("pid,ward,nights\n1,a,3\n2,b,4\n")
        house.browsers = []
        yield house
        for browser in house.browsers:
            browser.close()


def open_browser(house: Any) -> Any:
    client = httpx.Client(base_url=house.client.base_url, follow_redirects=True, timeout=60)
    house.browsers.append(client)
    return client


class Visitor:
    """Somebody with a browser, who sends forms as a page has them."""

    def __init__(self, house: Any, name: Any) -> None:
        self.client = open_browser(house)
        made = self.client.post("/api/v1/sessions", json={"token": house.tokens[name]}).json()
        self.csrf = made["csrf"]

    def send(self, address: Any, /, **fields: Any) -> Any:
        return self.client.post(address, data=fields | {"csrf": self.csrf})

    def get(self, path: Any) -> Any:
        return self.client.get(path)


def test_an_administrator_invites_somebody_gives_a_role_and_lets_them_go(place: Any) -> None:
    ada = Visitor(place, "ada")
    reply = ada.send("/people", name="<b>Mei", kind="person")
    assert reply.status_code == 200, reply.text
    assert "&lt;b&gt;Mei" in reply.text
    link = re.search(r"/enter\?link=(mosha_\w+_[\w-]+)", reply.text)[1]
    mei = open_browser(place)
    assert "Mei" in mei.post("/enter", data={"link": link}).text
    identity = mei.get("/api/v1/me").json()["id"]
    ada.send(f"/people/{identity}/changes", do="give", role="reviewer", dataset="visits")
    assert mei.get("/api/v1/me").json()["roles"] == [{"role": "reviewer", "dataset": "visits"}]
    assert ada.send("/people", name="<b>Mei").status_code == 422  # the name is taken, and still in its field
    ada.send(f"/people/{identity}/changes", do="disabled")
    assert mei.get("/api/v1/me").status_code == 401


def test_people_are_nobody_elses_business(place: Any) -> None:
    li = Visitor(place, "li")
    assert li.get("/people").status_code == 404
    assert li.send("/people", name="x", kind="person").status_code in (404, 422)


FIELDS = {
    "path": "stays.csv",
    "name": "stays",
    "title": "Stays",
    "epsilon": "1",
    "delta": "1e-6",
    "unit": "pid",
    "at_most": "3",
    "column_name": ["pid", "ward", "nights"],
    "column_type": ["integer", "text", "integer"],
    "low": ["", "", "0"],
    "high": ["", "", "30"],
    "values": ["", "a, b", ""],
    "origin": ["", "codebook", "law"],
}


def test_a_curator_declares_a_table_field_by_field(place: Any) -> None:
    wang = Visitor(place, "wang")
    looked = wang.send("/register", path="stays.csv", do="look").text
    assert looked.count('name="column_name"') == 3
    refused = wang.send("/register", **(FIELDS | {"origin": ["", "codebook", ""], "do": "propose"}))
    assert refused.status_code == 422  # a bound without an origin
    assert 'value="30"' in refused.text
    wrong = wang.send("/register", **(FIELDS | {"high": ["", "", "many"], "do": "propose"}))
    assert wrong.status_code == 422
    assert 'value="many"' in wrong.text
    made = wang.send("/register", **FIELDS, do="propose")
    assert made.status_code == 200, made.text
    Visitor(place, "zhao").send("/datasets/stays/sign")
    found = place.call("wang", "GET", "/datasets/stays").json()
    assert found["state"] == "open"
    columns = {column["name"]: column for column in found["declaration"]["columns"]}
    assert (columns["nights"]["between"], columns["ward"]["keys"]) == ([0, 30], ["a", "b"])
    assert found["declaration"]["unit"] == {"person": "pid", "at_most": 3}


def test_a_file_of_text_does_not_say_what_its_columns_hold_so_the_curator_does(place: Any) -> None:
    """No type is read off the rows. A range of a column that is text is refused; numbers can be averaged."""
    wang = Visitor(place, "wang")
    looked = wang.send("/register", path="stays.csv", do="look").text
    assert "choose the type of each" in looked
    assert re.findall(r'<select name="column_type"[^>]*><option value="(\w+)">', looked) == ["text"] * 3
    fields = FIELDS | {"name": "typed", "path": "stays.csv", "do": "propose"}
    refused = wang.send("/register", **fields | {"column_type": ["integer", "text", "text"]})
    assert refused.status_code == 422
    assert re.search(r'<select name="column_type" aria-label="nights[^>]*aria-invalid', refused.text)
    again = wang.send("/register", **fields)
    assert again.status_code == 422  # the source is registered already, under another name
    assert re.findall(r'<select name="column_type"[^>]*><option value="(\w+)">', again.text) == fields["column_type"]


def test_blocks_and_series_are_opened_on_the_page_of_a_dataset(place: Any) -> None:
    wang = Visitor(place, "wang")
    block = {"name": "2026", "column": "day", "from": "2026-01-01", "until": "2027-01-01", "epsilon": "2"}
    assert "2027-01-01" in wang.send("/datasets/visits/blocks", **block, delta="1e-6").text
    assert wang.send("/datasets/visits/blocks", **block, delta="1e-6").status_code == 422
    page = wang.get("/datasets/visits").text
    tree = page[page.index('class="tree"') : page.index("Granted from this")]
    assert re.search(
        r'Blocks \(1\).*account=visits[^"]*2026&amp;format=html".*day ≥ 2026-01-01.*0 of 2 spent', tree, re.DOTALL
    )
    answered = place.answer("li", key="of the block", epsilon=0.01, block="2026")
    assert answered["state"] == "answered"
    assert any(account.endswith("/2026") for account in answered["accounts"])
    series = {"name": "weekly", "title": "每周 <i>住院</i>", "measure": "count", "horizon": "4", "epsilon": "0.1"}
    page = wang.send("/datasets/visits/series", **series).text
    assert "每周 &lt;i&gt;住院" in page
    assert wang.send("/datasets/visits/series", **(series | {"epsilon": "99", "name": "dear"})).status_code == 422
    assert "每周" in place.client.get("/public").text
    shown = place.client.get("/series/weekly")
    assert shown.status_code == 200
    assert re.search(r"<code class=\"hash\">\d+:[0-9a-f]{64}</code>", shown.text)
    assert "format=registry" in shown.text
    entry = yaml.safe_load(place.client.get("/api/v1/series/weekly?format=registry").text)
    assert find_problems(entry) == []


def test_what_the_registry_asks_for_is_said_by_the_curator_and_an_entry_is_whole_or_there_is_none(place: Any) -> None:
    """Each entry that the pages give passes the registry's own checks, slug and tier too."""
    wang, sun = Visitor(place, "wang"), Visitor(place, "sun")
    file = "/api/v1/statements?account=visits&format=registry"
    said = {
        "data_curators": "St. Mary's\n市医院",
        "registry_authors": "wang",
        "description": "Stays",
        "intended_use": "Beds",
    }
    page = wang.send("/datasets/visits/registry", **said).text
    assert "Still to be said: 1" in page
    assert "市医院" in page
    refused = sun.client.get(file)
    assert refused.status_code == 409
    assert "registry entry not filled in yet" in sun.get("/audit").text
    assert "format=registry" not in sun.get("/audit").text
    assert "needs data_product_region." in refused.json()["detail"]
    wrong = wang.send("/datasets/visits/registry", **said, data_product_region="\\\\alpha")
    assert wrong.status_code == 422
    assert "St. Mary" in wrong.text
    wang.send("/datasets/visits/registry", **said, data_product_region="Shanghai", data_product_sector="Healthcare")
    entry = yaml.safe_load(sun.client.get(file).text)
    assert find_problems(entry) == []
    assert entry["tier"] == 2
    assert entry["deployment"]["basic"]["data_curators"] == ["St. Mary's", "市医院"]
    assert "format=registry" in wang.get("/datasets/visits").text
    assert "format=registry" in sun.get("/audit").text


def test_a_declaration_is_changed_by_fields_and_signed_by_somebody_who_sees_the_change(place: Any) -> None:
    """What nobody touched stays to the letter, whom it hides stays, and the version in force goes on until then."""
    wang, zhao, li = (Visitor(place, name) for name in ("wang", "zhao", "li"))
    assert li.get("/datasets/visits/declaration").status_code == 404
    before = wang.client.get("/api/v1/datasets/visits").json()
    page = wang.get("/datasets/visits/declaration").text
    names = re.findall(r'name="column_name" value="(\w+)"', page)
    fields = {"unit": "patient_id", "at_most": "4", "column_name": names}
    fields["column_type"] = re.findall(r'name="column_type"[^>]*><option value="(\w*)"', page)
    for part in ("low", "high", "values"):
        fields[part] = [html.unescape(one) for one in re.findall(rf'<input name="{part}"[^>]* value="([^"]*)"', page)]
    fields["origin"] = [
        (re.search(r'<option value="(\w+)" selected', one) or ["", ""])[1]
        for one in re.findall(r'<select name="origin".*?</select>', page, re.DOTALL)
    ]
    days = names.index("days")
    wrong = wang.send("/datasets/visits/declaration", **fields | {"high": ["many"] * len(names)})
    assert wrong.status_code == 422
    assert 'value="many"' in wrong.text
    fields["high"][days] = "60"  # type: ignore[index]
    changed = wang.send("/datasets/visits/declaration", **fields)
    assert changed.url.path == "/datasets/visits"
    assert "Proposed, not yet signed: version 2" in changed.text
    assert "Proposed, not yet signed" not in li.get("/datasets/visits").text
    after = wang.client.get("/api/v1/datasets/visits").json()
    assert (after["version"], after["newest_version"]) == (1, 2)
    notice = zhao.get("/datasets/visits").text.split("Proposed, not yet signed")[1].split("</ul>")[0]
    assert "0 – 60" in notice  # noqa: RUF001
    assert notice.count("<li>") == 1
    zhao.send("/datasets/visits/sign")
    now = {one["name"]: one for one in wang.client.get("/api/v1/datasets/visits").json()["declaration"]["columns"]}
    old = {one["name"]: one for one in before["declaration"]["columns"]}
    assert now["days"]["between"] == [0, 60]
    assert {name: one for name, one in now.items() if name != "days"} == {
        name: one for name, one in old.items() if name != "days"
    }


def test_pictures_of_an_answer_show_all_of_its_numbers_and_its_notebook_names_a_kernel(place: Any) -> None:
    sql = "SELECT ward, AVG(days) AS days, COUNT(*) AS n FROM visits GROUP BY ward"
    path, li = f"/requests/{place.answer('li', sql, key='pictures', epsilon=0.05)['id']}", Visitor(place, "li")
    drawn = li.get(f"{path}/chart.svg").text
    assert re.findall(r'font-size="16">(\w+)<', drawn) == ["days", "n"]
    assert len(re.findall(r">\S+ ± [0-9.,]+<", drawn)) == 8
    assert li.get(f"{path}/chart.png").content.startswith(b"\x89PNG")
    assert li.get(f"{path}/notebook.ipynb").json()["metadata"]["kernelspec"]["language"] == "python"


def test_an_answer_is_downloaded_as_parquet_and_arrow(place: Any) -> None:
    found = place.answer("li", BY_WARD, key="files", epsilon=0.05)
    replies = [
        place.call("li", "GET", f"/requests/{found['id']}/answer?format={form}") for form in ("parquet", "arrow")
    ]
    tables = [
        pyarrow.parquet.read_table(io.BytesIO(replies[0].content)),
        pyarrow.ipc.open_file(io.BytesIO(replies[1].content)).read_all(),
    ]
    for table in tables:
        assert table.column_names == ["ward", "days", "days ±0.95"]
        assert table["days"].to_pylist() == [row[1] for row in found["answer"]["rows"]]
        assert table.schema.metadata[b"mosha.entry"].decode() == str(found["answer"]["receipt"]["entry"])


def test_the_tree_of_budgets_folds_and_leads_to_the_statement_of_every_account(place: Any) -> None:
    page = Visitor(place, "wang").get("/datasets/visits").text
    assert re.search(r"<details open><summary[^>]*>Granted from this \(\d+\)", page)
    tree = page[page.index('class="tree"') :]
    links = {html.unescape(link) for link in re.findall(r'href="(/api/v1/statements\?account=[^"]+format=html)"', tree)}
    assert len(links) > 1
    for link in links:
        statement = Visitor(place, "wang").get(link)
        assert "text/html" in statement.headers["content-type"]
        (policy,) = statement.headers.get_list("content-security-policy")
        assert "style-src 'unsafe-inline'" in policy  # its look is in the file
        assert "script" not in policy
        assert "default-src 'none'" in policy


def test_whoever_asks_sees_what_is_left_to_them_and_of_the_whole_dataset(place: Any) -> None:
    page = Visitor(place, "li").get("/ask/visits").text
    part = page[page.index('data-part="budget"') :]
    assert part.index('class="gauge') < part.index("The whole dataset, for everybody together")


def test_a_survey_is_closed_for_good_by_those_who_may(place: Any) -> None:
    wang, li = Visitor(place, "wang"), Visitor(place, "li")
    wang.send("/surveys", title="Well?", name="well", epsilon="1", values="yes\nno")
    assert 'action="/survey/well/close"' in wang.get("/survey/well").text
    assert "/close" not in li.get("/survey/well").text
    assert li.send("/survey/well/close").status_code == 404
    closed = wang.send("/survey/well/close").text
    assert "This survey is closed" in closed
    assert "/close" not in closed
    report = {"reports": ["bAA="], "tickets": ["AAAAAAAAAAAAAAAAAAAAAA=="]}
    assert place.call(None, "POST", "/surveys/well/reports", report).status_code == 409


class Broken(dict[str, Any]):
    """Data whose disk is broken."""

    def keys(self) -> Any:
        raise OSError


def test_failures_are_shown_and_lifted_with_a_reason(place: Any) -> None:
    """Only where there were some, to those who see the budget; the reason is in the chain."""
    wang = Visitor(place, "wang")
    assert "Questions that failed" not in wang.get("/datasets/visits").text
    account = place.service.ledger.account("visits")
    broken = account.open(laplace(Count(), unit=account.unit, epsilon=1e-4))
    with pytest.raises(StepFailed):
        broken.step(Broken())
    assert account.failures == 1
    page = wang.get("/datasets/visits").text
    assert "1 paid questions failed" in page
    assert "Questions that failed" not in Visitor(place, "li").get("/datasets/visits").text
    refused = wang.send("/datasets/visits/lift", reason=" ")
    assert refused.status_code == 422
    assert re.search(r'id="reason-lift"[^>]*aria-invalid', refused.text)
    assert "Questions that failed" not in wang.send("/datasets/visits/lift", reason="the disk was full").text
    assert account.failures == 0
    assert "the disk was full" in Visitor(place, "sun").get("/audit").text


def test_a_frozen_dataset_answers_nobody_until_a_reviewer_thaws_it(place: Any) -> None:
    assert Visitor(place, "wang").send("/datasets/visits/freeze", reason="a doubt").status_code == 200
    assert place.ask("li", key="while frozen", epsilon=0.01).status_code >= 400
    assert Visitor(place, "wang").send("/datasets/visits/thaw", reason="no doubt").status_code >= 400
    assert Visitor(place, "zhao").send("/datasets/visits/thaw", reason="no doubt").status_code == 200
    assert place.answer("li", key="after the frost", epsilon=0.01)["state"] == "answered"


def test_a_retired_dataset_answers_nothing_any_more(place: Any) -> None:
    """The last test of this file: the dataset of all others is closed for good."""
    assert Visitor(place, "wang").send("/datasets/visits/retire", reason="the study is over").status_code == 200
    assert place.ask("li", key="too late", epsilon=0.01).json()["code"] == "server.dataset_closed"
    found = place.call("wang", "GET", "/datasets/visits").json()
    said = {"unit": {"person": "patient_id"}, "columns": {"days": {"type": "integer", "between": [0, 30]}}}
    again = place.call("wang", "PUT", "/datasets/visits/declaration", {"declaration": said})
    assert (again.status_code, again.json()["code"]) == (409, "server.wrong_state")
    assert place.call("wang", "GET", "/datasets/visits").json()["newest_version"] == found["newest_version"]
