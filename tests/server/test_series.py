"""A series: paid for whole when it begins, fed step by step, read by everybody; a step stays what it is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mosha
from tests.server.house import opened

ROWS = {"patient_id": [1, 2, 2, 3], "ward": ["surgery", "surgery", "neurology", "surgery"], "days": [3, 1, 4, 2]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("series")) as house:
        yield house


def make(place: Any, name: Any, **more: Any) -> Any:
    said = {
        "name": name,
        "dataset": "visits",
        "measure": "count",
        "horizon": 3,
        "epsilon": 0.3,
        "title": "Stays a week",
    }
    return place.call("wang", "POST", "/series", said | more)


def feed(place: Any, name: Any, step: Any, rows: Any = ROWS, who: str = "wang") -> Any:
    return place.call(who, "POST", f"/series/{name}/steps", {"step": step, "rows": rows})


def test_all_steps_are_paid_for_at_once_and_everybody_reads_them(place: Any) -> None:
    before = place.service.ledger.account("visits").spent
    assert make(place, "weekly").status_code == 201
    account = place.service.ledger.account("visits")
    assert account.spent == pytest.approx(before + 0.3)
    first = feed(place, "weekly", 1)
    assert first.status_code == 201, first.text
    assert feed(place, "weekly", 1).json() == first.json()
    assert feed(place, "weekly", 1, {"patient_id": [9]}).json() == first.json()  # what is published stays
    refused = feed(place, "weekly", 3)
    assert (refused.status_code, refused.json()["code"]) == (409, "server.series_step")
    assert feed(place, "weekly", 2).status_code == 201
    place.service.database.run("UPDATE points SET created = 0")  # the whole second has come
    shown = place.call(None, "GET", "/series/weekly").json()
    assert [point["step"] for point in shown["points"]] == [1, 2]
    assert shown["points"][0]["error"] > 0
    assert "patient_id" in shown["hidden"]
    lines = place.call(None, "GET", "/series/weekly?format=csv").text.splitlines()
    assert lines[0] == "step,at,value,±0.95"
    assert len(lines) == 3
    assert place.call(None, "GET", "/series/weekly?format=csv&bom=true").content.startswith(b"\xef\xbb\xbfstep,")
    assert feed(place, "weekly", 3).status_code == 201
    over = feed(place, "weekly", 4)
    assert (over.status_code, over.json()["code"]) == (409, "server.series_over")
    assert account.spent == pytest.approx(before + 0.3)
    assert place.service.ledger.verify().ok


def test_groups_and_sums_take_their_bounds_from_the_declaration(place: Any) -> None:
    assert make(place, "wards", measure="groups", column="ward").status_code == 201
    point = feed(place, "wards", 1).json()
    assert len(point["value"]) == len(point["error"]) == 4
    assert make(place, "days", measure="sum", column="days", shows="running").status_code == 201
    assert feed(place, "days", 1).status_code == 201
    refused = make(place, "ids", measure="sum", column="patient_id")
    assert (refused.status_code, refused.json()["parameter"]) == (422, "column")


def test_what_cannot_be_paid_for_or_is_not_there_leaves_no_trace(place: Any) -> None:
    spent = place.service.ledger.account("visits").spent
    assert make(place, "dear", epsilon=50.0).json()["code"] == "server.not_enough"
    assert place.call(None, "GET", "/series/dear").status_code == 404
    assert make(place, "Bad Name").status_code == 422
    assert make(place, "weekly").status_code == 409
    assert feed(place, "weekly", 1, who="li").status_code == 404
    assert place.service.ledger.account("visits").spent == spent


@pytest.mark.parametrize(
    ("rows", "parameter"),
    [({}, "rows.patient_id"), ({"patient_id": [1]}, "rows.ward"), ({"patient_id": [1], "ward": []}, "rows")],
)
def test_rows_that_lack_a_column_or_a_value_are_told_and_lose_no_step(place: Any, rows: Any, parameter: str) -> None:
    make(place, "careful", measure="groups", column="ward", epsilon=0.01)
    refused = feed(place, "careful", 1, rows)
    assert (refused.status_code, refused.json().get("parameter")) == (422, parameter), refused.text
    assert feed(place, "careful", 2).json()["code"] == "server.series_step"


def test_a_series_goes_on_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as house:
        make(house, "long")
        first = feed(house, "long", 1).json()
    with opened(tmp_path) as house:
        assert feed(house, "long", 1).json() == first
        house.service.database.run("DELETE FROM points")  # the store was lost after the step, the state was not
        again = feed(house, "long", 1).json()
        assert (again["value"], again["error"]) == (first["value"], first["error"])
        assert feed(house, "long", 2).status_code == 201


def test_one_ledger_page_shows_questions_series_and_what_is_charged_from_outside(place: Any) -> None:
    """A training beside the data pays from the same book; the auditor reads all of them in one line of time."""
    place.answer("li", key="for the page", epsilon=0.01)
    folder = place.service.settings.folder
    with mosha.Ledger(folder / "privacy.db") as ledger:
        account = ledger.account("visits")
        training = account.grant("training", epsilon=0.1, delta=1e-8, expires="2099-01-01", purpose="a model")
        training.open(mosha.mechanisms.laplace(mosha.mechanisms.Count(), unit=account.unit, epsilon=0.05)).step(
            ([], [])
        )
    said = json.dumps(place.call("sun", "GET", "/ledger/entries?limit=1000").json())
    for word in ("request r-", "series weekly", "visits/training"):
        assert word in said
