"""openapi.json is what the application does."""

import re
from typing import Any

import pytest

from mosha.server.api.table import OPERATIONS, PREFIX


@pytest.fixture(scope="module")
def document(house: Any) -> Any:
    return house.client.get("/openapi.json").json()


def test_it_names_exactly_the_routes_that_there_are(document: Any) -> None:
    described = {(method.upper(), path) for path, ways in document["paths"].items() for method in ways}
    there = {(operation.method, PREFIX + operation.path) for operation in OPERATIONS}
    assert described == there | {("GET", "/healthz"), ("GET", "/readyz")}


def test_fixed_names_are_there(document: Any) -> None:
    for path in ("datasets", "previews", "requests", "ledger/entries"):
        assert f"/api/v1/{path}" in document["paths"]


def test_operations_have_names_of_their_own_and_every_parameter_of_the_path(document: Any) -> None:
    names = [way["operationId"] for ways in document["paths"].values() for way in ways.values()]
    assert len(set(names)) == len(names)
    for path, ways in document["paths"].items():
        for way in ways.values():
            said = {p["name"] for p in way.get("parameters", ()) if p["in"] == "path"}
            assert said == set(re.findall(r"{(\w+)}", path))


def test_only_what_spends_needs_a_key(document: Any) -> None:
    keyed = {
        way["operationId"]
        for ways in document["paths"].values()
        for way in ways.values()
        if any(p["name"] == "Idempotency-Key" for p in way.get("parameters", ()))
    }
    assert keyed == {"ask", "reserveTraining"}


def test_health_readiness_and_metrics(house: Any) -> None:
    assert house.client.get("/healthz").json() == {"alive": True}
    assert house.client.get("/readyz").json()["ready"] is True
    assert house.client.get("/metrics").status_code == 404
    headers = {"Authorization": f"Bearer {house.tokens['sun']}"}
    text = house.client.get("/metrics", headers=headers).text
    assert 'mosha_budget_spent_ratio{dataset="visits"}' in text
    assert "seconds" not in text


@pytest.mark.parametrize("language", ["en", "zh-CN,zh;q=0.9"])
def test_problems_speak_the_language_of_the_reader(house: Any, language: str) -> None:
    reply = house.client.get("/api/v1/me", headers={"Accept-Language": language})
    assert reply.json()["code"] == "server.sign_in"
    assert ("登录" in reply.json()["detail"]) == language.startswith("zh")


def test_other_methods_are_refused_as_problems(house: Any) -> None:
    reply = house.client.put("/api/v1/datasets")
    assert reply.status_code == 405
    assert reply.headers["content-type"] == "application/problem+json"
