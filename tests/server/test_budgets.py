"""What bounds a question besides the budget: a maximum for each, approval above a price, grants that are reserves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mosha.events import Laplace
from tests.server.house import COUNT, opened

GRANT = {"principal": "zhang", "delta": 1e-7, "expires": "2099-01-01"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("budgets"), overbooking="refuse") as house:
        yield house


def grant(house: Any, **said: Any) -> Any:
    return house.call("wang", "POST", "/datasets/visits/grants", GRANT | said)


def test_a_question_above_the_maximum_of_its_grant_is_refused_and_costs_nothing(place: Any) -> None:
    made = grant(place, epsilon=0.4, most_per_question=0.05).json()
    body = {"dataset": "visits", "sql": COUNT, "price": {"epsilon": 0.06}, "grant": made["id"]}
    assert place.call("zhang", "POST", "/previews", body).json()["fits"] is False
    refused = place.call("zhang", "POST", "/requests", body, key="above")
    assert refused.json()["code"] == "server.above_most"
    found = place.call("zhang", "POST", "/requests", body | {"price": {"epsilon": 0.05}}, key="at")
    assert place.wait("zhang", found.json()["id"])["state"] == "answered"
    assert place.service.ledger.account(made["account"]).spent == pytest.approx(0.05)


def test_above_a_price_a_question_waits_and_an_approval_is_for_that_question_alone(place: Any) -> None:
    asked = place.ask("li", key="dear", epsilon=0.6)
    assert asked.json()["state"] == "waiting"
    assert place.service.ledger.account("visits/li").spent == 0
    decision = {"verdict": "approve", "reason": "the yearly report"}
    assert place.call("li", "POST", f"/requests/{asked.json()['id']}/decision", decision).status_code == 404
    assert place.call("zhao", "POST", f"/requests/{asked.json()['id']}/decision", decision).status_code == 200
    assert place.wait("li", asked.json()["id"])["state"] == "answered"
    assert place.service.ledger.account("visits/li").spent == pytest.approx(0.6)
    other = place.ask("li", f"{COUNT} WHERE days > 1", key="dear too", epsilon=0.39)
    assert other.json()["state"] in ("queued", "running", "answered")  # a slot may be quicker than the reply


def test_a_server_that_does_not_overbook_makes_every_grant_a_reserve(place: Any) -> None:
    """3 in all: li and zhang have 1 each, and 0.4 were granted above; taking back frees what was not spent."""
    refused = grant(place, epsilon=0.7)
    assert refused.status_code == 409
    assert refused.json()["code"] == "server.overbooked"
    kept = grant(place, epsilon=0.6, purpose="kept for the yearly report")
    assert kept.status_code == 201
    assert grant(place, epsilon=0.01).status_code == 409
    assert place.call("wang", "DELETE", f"/grants/{kept.json()['id']}").status_code == 200
    assert grant(place, epsilon=0.5).status_code == 201


def test_overbooking_is_shown_where_it_is_allowed(tmp_path: Path) -> None:
    with opened(tmp_path) as house:
        assert grant(house, epsilon=2.0).status_code == 201
        assert "More is granted than there is" in page_of(house)


SERIES = {"name": "weekly", "dataset": "visits", "measure": "count", "horizon": 4, "epsilon": 0.9}


def test_series_and_trainings_are_counted_where_a_dataset_is_overbooked(tmp_path: Path) -> None:
    """3 in all, 2 are granted: a series for 0.9 fits, and with a training beside it more is promised than there is."""
    with opened(tmp_path) as house:
        assert house.call("wang", "POST", "/series", SERIES).status_code == 201
        booked = house.call("wang", "GET", "/datasets/visits/grants").json()["booked"]
        assert (booked["granted"], booked["elsewhere"], booked["limit"]) == pytest.approx((2.0, 0.9, 3.0))
        assert "More is granted than there is" not in page_of(house)
        assert reserve(house, scale=5.0).status_code == 201
        shown = page_of(house)
    assert "More is granted than there is" in shown
    assert "Series and trainings took 1.1 beside the grants" in shown


def test_a_server_that_does_not_overbook_refuses_series_and_trainings_that_take_what_was_granted(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, overbooking="refuse") as house:
        refused = house.call("wang", "POST", "/series", SERIES | {"epsilon": 1.1})
        assert (refused.status_code, refused.json()["code"]) == (409, "server.overbooked")
        assert reserve(house, scale=0.9).json()["code"] == "server.overbooked"
        assert house.service.ledger.account("visits").spent == 0
        assert house.call("wang", "POST", "/series", SERIES).status_code == 201
        assert reserve(house, scale=5.0).json()["code"] == "server.overbooked"
        assert reserve(house, scale=20.0).status_code == 201
        assert grant(house, epsilon=0.1).status_code == 409


def reserve(house: Any, *, scale: Any) -> Any:
    said = {"dataset": "visits", "name": "a model", "event": Laplace(scale).to_dict(), "steps": 1}
    return house.call("wang", "POST", "/trainings", said, key=f"training {scale}")


def page_of(house: Any) -> Any:
    with httpx.Client(base_url=house.client.base_url, follow_redirects=True, timeout=60) as wang:
        wang.post("/demo", data={"person": "wang"})
        return wang.get("/datasets/visits").text
