"""Two people sign a declaration: whoever wrote it is not the second, and what was read is what is signed."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from mosha.server.demo import DECLARATION
from tests.server.house import opened
from tests.server.test_insiders import add_person


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("signatures")) as house:
        add_person(house, "both", ("curator", "*"), ("reviewer", "*"))
        yield house


def declare(house: Any, who: Any, high: Any, at_most: Any = 4) -> Any:
    columns = DECLARATION["columns"] | {"days": {"type": "integer", "between": [0, high], "origin": "codebook"}}
    said = {"unit": {"person": "patient_id", "at_most": at_most}, "columns": columns}
    reply = house.call(who, "PUT", "/datasets/visits/declaration", {"declaration": said})
    assert reply.status_code == 201, reply.text
    return reply.json()["newest_version"]


def sign(house: Any, who: Any, version: Any = None) -> Any:
    query = "" if version is None else f"?version={version}"
    return house.call(who, "POST", f"/datasets/visits/countersign{query}", {})


def test_whoever_wrote_a_version_of_somebody_elses_dataset_does_not_sign_it(place: Any) -> None:
    version = declare(place, "both", 40)
    assert sign(place, "both").status_code == 404
    assert sign(place, "zhao").json()["version"] == version
    rows = [row.content() for row in place.service.ledger.entries() if row.kind == "note"]
    noted = next(row["content"] for row in reversed(rows) if row.get("topic") == "dataset/declared")
    assert noted["author"] == place.call("both", "GET", "/me").json()["id"]


def test_a_version_that_was_written_after_the_signer_read_is_not_signed_in_its_place(place: Any) -> None:
    read = declare(place, "wang", 50)
    shown = place.call("zhao", "GET", "/datasets/visits").json()
    assert (shown["proposed"]["version"], shown["version"]) == (read, read - 1)
    assert {column["name"]: column.get("between") for column in shown["proposed"]["columns"]}["days"] == [0, 50]
    assert "proposed" not in place.call("li", "GET", "/datasets/visits").json()
    with httpx.Client(base_url=place.client.base_url, timeout=60) as browser:
        csrf = browser.post("/api/v1/sessions", json={"token": place.tokens["zhao"]}).json()["csrf"]
        page = browser.get("/datasets/visits").text
        field = re.search(r'name="version" value="(\d+)"', page)[1]
        later = declare(place, "wang", 60, at_most=5)
        late = browser.post("/datasets/visits/sign", data={"csrf": csrf, "version": field})
        assert "the newest declaration is version" in late.text
        page = browser.get("/datasets/visits").text
    assert "60" in page  # the range that changed, and the limit on one person beside it
    assert sign(place, "zhao", read).json()["code"] == "server.newer_version"
    assert place.call("zhao", "GET", "/datasets/visits").json()["version"] == read - 1
    assert sign(place, "zhao", later).json()["version"] == later
    assert place.call("zhao", "GET", "/datasets/visits").json()["proposed"] is None
