"""Eleven faults that were found in a peer, each as a test that our server does not have it."""

import json
from pathlib import Path
from typing import Any

import pytest

from mosha.core.errors import MoshaError
from mosha.server.settings import read_settings
from mosha.server.work.slots import FAILED
from tests.server.house import BY_WARD, COUNT, opened


def test_1_nothing_is_computed_from_rows_before_payment(house: Any) -> None:
    """A preview and a description are the same whatever the rows are: even when there are none at all."""
    body = {"dataset": "visits", "sql": BY_WARD, "price": {"epsilon": 0.1}, "rows": 1000}

    def look() -> list[Any]:
        found = house.call("wang", "POST", "/previews", body), house.call("li", "GET", "/datasets/visits")
        return [reply.content for reply in found]

    data = house.service.settings.folder / "data" / "visits.csv"
    before, rows = look(), data.read_bytes()
    data.unlink()
    try:
        assert look() == before
    finally:
        data.write_bytes(rows)


def test_2_a_header_that_names_somebody_signs_nobody_in(house: Any) -> None:
    for headers in ({"user-name": "li"}, {"X-Forwarded-User": "li"}, {"Authorization": "Basic bGk6bGk="}):
        assert house.call(None, "GET", "/me", headers=headers).status_code == 401


def test_3_all_analysts_together_stay_within_the_cap_of_the_dataset(tmp_path: Path) -> None:
    with opened(tmp_path) as house:
        until = house.call("li", "GET", "/grants").json()["grants"][0]["expires"]
        for name in ("li", "zhang"):  # twice the cap of 3 is granted
            said = {"principal": name, "epsilon": 3.0, "delta": 1e-6, "expires": until}
            assert house.call("wang", "POST", "/datasets/visits/grants", said).status_code == 201
        ended = [house.ask(name, key=f"{name} {i}", epsilon=0.9) for i in range(3) for name in ("li", "zhang")]
        for name, reply in zip(["li", "zhang"] * 3, ended, strict=True):
            if reply.status_code == 202:
                house.wait(name, reply.json()["id"])
            else:
                assert reply.json()["code"] == "server.not_enough"
                assert "visits" not in json.dumps({k: v for k, v in reply.json().items() if k != "detail"})
        account = house.service.ledger.account("visits")
        assert account.spent <= account.limit
        assert house.service.ledger.verify().ok


def test_4_and_9_each_answer_is_paid_for_once_and_before_it_is_released(house: Any) -> None:
    found = house.answer("li", COUNT, key="order", epsilon=0.01)
    key = f"request {found['id']}"
    entries = house.service.ledger.entries()
    paid = [entry for entry in entries if entry.kind == "pay" and entry.content().get("key") == key]
    assert len(paid) == 1
    ends = [e for e in entries if e.kind == "release" and e.content()["payment"] == paid[0].sequence]
    assert len(ends) == 1
    assert ends[0].sequence > paid[0].sequence


def test_5_an_empty_result_costs_what_any_result_costs_and_is_no_error(house: Any) -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 1000000"
    before = house.service.ledger.account("visits/li").spent
    found = house.answer("li", sql, key="sparse vector", epsilon=0.01)
    assert found["state"] == "answered"
    assert found["answer"]["rows"] == []
    assert house.service.ledger.account("visits/li").spent == pytest.approx(before + 0.01)


@pytest.mark.parametrize("timing", ["fixed", "ladder"])
def test_6_failures_appear_at_the_same_tick_as_answers(
    tmp_path: Path, timing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment is written down when it has come; a busy machine that has no answer by then gets more time."""
    with opened(tmp_path, workers=2) as house:
        end_of = house.service.slots._end_of

        def fail_dear_ones(worker: Any, row: Any, *more: Any) -> Any:
            return ("failed", FAILED) if row["cost"] > 0.015 else end_of(worker, row, *more)

        monkeypatch.setattr(house.service.slots, "_end_of", fail_dear_ones)
        for deadline in (8.0, 45.0):
            house.time_ends(timing, deadline)
            prices = {f"good {deadline}": 0.01, f"bad {deadline}": 0.02}
            asked = [house.ask("li", key=key, epsilon=price).json()["id"] for key, price in prices.items()]
            after = [house.wait_for_end(one) for one in asked]
            find = "SELECT outcome FROM requests WHERE id = ?"
            outcomes = [house.service.database.row(find, one)["outcome"] for one in asked]
            if outcomes[0] == "answered":
                break
        assert outcomes == ["answered", "failed"]
        if timing == "fixed":
            assert after == [deadline * 1e6] * 2
        else:  # which rung it is depends on how busy the machine is
            assert set(after) <= {min(2**rung, deadline) * 1e6 for rung in range(10)}


def test_8_a_question_changes_nobody_else(house: Any) -> None:
    names = "SELECT name FROM principals ORDER BY name"
    before = house.service.database.rows(names)
    house.answer("li", COUNT, key="nobody else", epsilon=0.01)
    assert house.service.database.rows(names) == before


@pytest.mark.parametrize(
    "body", ['{"dataset": "visits", "price": {"epsilon": NaN}}', "[]", "null", "1", '"a"', "{", '{"a": Infinity}']
)
def test_10_nan_and_lists_as_bodies_are_refused_and_no_error_of_the_server(house: Any, body: str) -> None:
    headers = {"Authorization": f"Bearer {house.tokens['li']}", "Idempotency-Key": "k"}
    reply = house.client.post("/api/v1/requests", content=body, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (422, "server.body_not_json")
    assert reply.headers["content-type"] == "application/problem+json"


def test_11_defaults_are_safe(tmp_path: Path) -> None:
    settings = read_settings(tmp_path, environment={})
    assert settings.is_loopback
    assert not settings.demo
    assert settings.timing == "ladder"
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(MoshaError, match="other machines"):
            read_settings(tmp_path, environment={}, host=host)
