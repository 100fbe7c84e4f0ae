"""Long lists are paged: a page has a bounded number of entries, and its links lead to every entry exactly once."""

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest

from mosha.events import Gaussian
from mosha.local import Frequency
from mosha.server.api.table import BY_NAME
from mosha.server.catalogue.grants import make_grant
from mosha.server.catalogue.surveys import open_survey
from mosha.server.people.principals import create_principal
from tests.server.house import opened

MANY = 104
NAMES = [f"n{number:03d}" for number in range(MANY)]
GRANTED = NAMES[:60]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("long"), requests_per_minute=10_000) as house:
        fill(house)
        yield house


def copy_row(database: Any, table: Any, row: Any, **changes: Any) -> None:
    row = dict(row) | changes
    marks = ", ".join("?" * len(row))
    database.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", *row.values())


def fill(house: Any) -> None:
    """More of everything than a page lists."""
    database, ledger = house.service.database, house.service.ledger
    waiting = house.ask("li", key="dear", epsilon=0.6).json()["id"]
    answered = house.answer("li", key="one", epsilon=0.01)["id"]
    house.call("li", "POST", "/publications", {"request": answered, "slug": "s", "title": "s"})
    house.call("zhao", "POST", "/publications/s/decision", {"verdict": "approve", "reason": "good"})
    said = {"name": "s", "dataset": "visits", "measure": "count", "horizon": 2, "epsilon": 0.01}
    assert house.call("wang", "POST", "/series", said).status_code == 201
    planned = {"name": "s", "dataset": "visits", "event": Gaussian(90.0).to_dict(), "delta": 1e-8}
    assert house.call("wang", "POST", "/trainings", planned, key="planned").status_code == 201
    survey = json.loads(Frequency(["a", "b"], epsilon=1.0, protocol="k-ary").to_json())
    rows = {
        "datasets": database.row("SELECT * FROM datasets WHERE name = 'visits'"),
        "declarations": database.row("SELECT * FROM declarations WHERE dataset = 'visits'"),
        "requests": database.row("SELECT * FROM requests WHERE id = ?", waiting),
        "publications": database.row("SELECT * FROM publications WHERE slug = 's'"),
        "schedules": database.row("SELECT * FROM schedules WHERE name = 's'"),
        "trainings": database.row("SELECT * FROM trainings"),
    }
    li = database.row("SELECT * FROM principals WHERE name = 'li'")
    limits = {"epsilon": 0.001, "expires": "2099-01-01"}
    for number, name in enumerate(NAMES):
        later = {"created": rows["requests"]["created"] + number + 1}
        copy_row(database, "datasets", rows["datasets"], name=name, source=json.dumps({"path": name}), source_hash=name)
        copy_row(database, "declarations", rows["declarations"], dataset=name)
        copy_row(database, "requests", rows["requests"], id=f"r-{name}", **later)
        copy_row(database, "publications", rows["publications"], slug=name, title=name, **later)
        copy_row(database, "publications", rows["publications"], slug=f"q-{name}", state="proposed", **later)
        copy_row(database, "schedules", rows["schedules"], id=name, name=name, **later)
        copy_row(database, "trainings", rows["trainings"], id=name, name=name, **later)
        create_principal(database, kind="person", name=name)
        create_principal(database, kind="agent", name=f"z{name}", parent=li["id"])
        if name in GRANTED:
            make_grant(database, ledger, "visits", limits | {"principal": name}, "wang")
        open_survey(database, {"name": name, "title": name, "survey": survey}, "wang")


PLACES = {
    "datasets": ("wang", "/datasets", r'href="/datasets/(n\d+)"', r"/datasets\?after="),
    "questions": ("li", "/requests", r'href="/requests/r-(n\d+)"', r"/requests\?before="),
    "published": ("", "/public", r'href="/public/(n\d+)"', r"/public\?before="),
    "series": ("", "/public", r'href="/series/(n\d+)"', r"/public\?series_before="),
    "series of a dataset": ("wang", "/datasets/visits", r'href="/series/(n\d+)"', r"/datasets/visits\?series_before="),
    "trainings": ("wang", "/datasets/visits", r"<tr><td>(n\d+)</td>", r"/datasets/visits\?trained_before="),
    "proposals": ("zhao", "/review", r'action="/review/publications/q-(n\d+)"', r"/review\?proposed="),
    "agents": ("li", "/agents", r"<strong>z(n\d+)</strong>", r"/agents\?before="),
    "surveys": ("wang", "/surveys", r'href="/survey/(n\d+)"', r"/surveys\?before="),
    "people": ("ada", "/people", r"<strong>((?:li/z)?n\d+)</strong>", r"/people\?after="),
    "grants": ("wang", "/datasets/visits", r"<strong><a [^>]*>(n\d+)</a></strong>", r"/datasets/visits\?before="),
    "review": ("zhao", "/review", r'action="/review/r-(n\d+)"', r"/review\?before="),
    "statements": ("sun", "/audit", r"account=(n\d+)&amp;format=markdown", r"/audit\?datasets_after="),
    "chain": ("sun", "/audit", r'<span class="small quiet number">#(\d+) ', r"/audit\?before="),
}


@pytest.mark.parametrize("what", PLACES)
def test_a_long_list_is_paged_and_its_links_lead_to_every_entry_once(place: Any, what: Any) -> None:
    who, address, entry, link = PLACES[what]
    headers = {"Authorization": f"Bearer {place.tokens[who]}"} if who else {}
    found, pages = [], 0
    with httpx.Client(base_url=place.client.base_url, headers=headers, timeout=60) as client:
        while address:
            text = client.get(address).raise_for_status().text
            here = re.findall(entry, text)
            assert 0 < len(here) <= 100
            found += here
            pages += 1
            following = re.search(rf'href="({link}[^"]*)"', text)
            address = unescape(following[1]) if following else None
    assert pages >= 2
    assert len(found) == len(set(found))
    chain = [str(number) for number in range(1, place.service.ledger.head.sequence + 1)]
    assert set({"chain": chain, "grants": GRANTED}.get(what, NAMES)) <= set(found)


def test_a_place_in_a_list_that_makes_no_sense_is_the_beginning(place: Any) -> None:
    with httpx.Client(base_url=place.client.base_url, timeout=60) as client:
        for said in ("9" * 40, "-1", "x", "٣", ""):
            assert client.get("/public", params={"before": said, "series_before": said}).status_code == 200


def test_the_whole_chain_is_downloaded_by_those_who_may_read_it(place: Any) -> None:
    """As it can be checked elsewhere: every row, in order, and no answer."""
    with httpx.Client(base_url=place.client.base_url, timeout=60) as client:
        assert client.get("/audit/export.jsonl").status_code in (401, 404)
        assert client.get("/audit/export.jsonl", headers=token(place, "li")).status_code == 404
        reply = client.get("/audit/export.jsonl", headers=token(place, "sun"))
    rows = [json.loads(line) for line in reply.text.splitlines()]
    assert [row["sequence"] for row in rows] == list(range(1, place.service.ledger.head.sequence + 1))
    assert all("answer" not in row["content"] for row in rows)


def token(place: Any, who: Any) -> dict[str, Any]:
    return {"Authorization": f"Bearer {place.tokens[who]}"}


def test_whatever_lists_takes_a_place_to_begin_and_a_number_to_end() -> None:
    """Except what is short by itself: one's own tokens and grants, hooks of a server, lessons."""
    short = {"listTokens", "listMyGrants", "listWebhooks", "listLessons"}
    lists = {name: set(one.query) for name, one in BY_NAME.items() if name.startswith("list")}
    assert {name for name, query in lists.items() if not ("limit" in query and query & {"before", "after"})} == short
