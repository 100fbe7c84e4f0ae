"""Signing in by OpenID Connect, with a real provider that the test starts."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import oidc_provider_mock
import pytest

from mosha.server.errors import SignInNeeded
from mosha.server.people import oidc
from mosha.server.people.oidc import find_or_make_person
from tests.server.house import opened

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the provider's own library


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with oidc_provider_mock.run_server_in_thread(require_nonce=True) as provider:
        issuer = f"http://localhost:{provider.server_port}"
        for subject in ("wei", "li"):
            httpx.put(f"{issuer}/users/{subject}", json={"preferred_username": subject}).raise_for_status()
        options = {"oidc_issuer": issuer, "oidc_client": "mosha", "oidc_secret": "s3cret/+"}
        with opened(tmp_path_factory.mktemp("oidc"), **options) as house:
            yield house


def visit(house: Any) -> Any:
    return httpx.Client(base_url=house.client.base_url, timeout=120)


def go_to_provider(browser: Any, subject: Any) -> tuple[Any, ...]:
    """What a person does: follow the link, say who they are; the address that leads back."""
    out = browser.get("/oidc/start")
    assert out.status_code == 303
    back = httpx.post(out.headers["location"], data={"sub": subject}, timeout=120)
    assert back.status_code == 302, back.text
    return back.headers["location"], out.headers["location"]


def test_a_person_comes_in_without_any_role_and_is_the_same_the_next_time(place: Any) -> None:
    with visit(place) as browser:
        assert "/oidc/start" in browser.get("/").text
        back, out = go_to_provider(browser, "wei")
        asked = parse_qs(urlsplit(out).query)
        assert asked["code_challenge_method"] == ["S256"]
        reply = browser.get(back)
        assert reply.status_code == 303, reply.text
        me = browser.get("/api/v1/me").json()
        assert (me["name"], me["kind"], me["roles"]) == ("wei", "person", [])
        assert browser.get("/api/v1/datasets").json()["datasets"] == []
    with visit(place) as browser:
        browser.get(go_to_provider(browser, "wei")[0])
        assert browser.get("/api/v1/me").json()["id"] == me["id"]


def test_a_name_that_somebody_has_does_not_make_one_somebody_else(place: Any) -> None:
    with visit(place) as browser:
        browser.get(go_to_provider(browser, "li")[0])
        me = browser.get("/api/v1/me").json()
        assert me["name"] == "li (2)"
        assert browser.get("/api/v1/grants").json()["grants"] == []


def test_one_who_is_called_like_the_id_of_somebody_gets_nothing_that_is_meant_for_them(place: Any) -> None:
    zhang = place.call("zhang", "GET", "/me").json()["id"]
    issuer = place.service.settings.oidc_issuer
    claims = {"iss": issuer, "sub": "impostor", "preferred_username": zhang}
    impostor = find_or_make_person(place.service.database, claims)
    grant = {"principal": zhang, "epsilon": 0.01, "expires": "2099-01-01"}
    made = place.call("wang", "POST", "/datasets/visits/grants", grant)
    assert made.json()["principal"] == zhang != impostor


def test_a_provider_that_says_too_little_of_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"issuer": "https://login.example.org", "token_endpoint": "https://login.example.org/token"}
    monkeypatch.setattr(oidc, "_read", lambda *_: said)
    with pytest.raises(SignInNeeded):
        oidc._provider("https://login.example.org")


def test_a_code_of_another_browser_is_refused(place: Any) -> None:
    with visit(place) as victim, visit(place) as attacker:
        stolen, _ = go_to_provider(attacker, "wei")
        assert victim.get(stolen).status_code == 401  # it never began
        go_to_provider(victim, "wei")
        assert victim.get(stolen).status_code == 401  # it began something else
        assert victim.get("/api/v1/me").status_code == 401
        assert attacker.get(stolen).status_code == 303
        assert attacker.get(stolen).status_code == 401  # and a code works once


def test_a_nonce_that_was_not_given_is_refused(place: Any) -> None:
    with visit(place) as browser:
        back, _ = go_to_provider(browser, "wei")
        kept = browser.cookies["mosha-oidc"].split(".")
        browser.cookies.clear()
        browser.cookies.set("mosha-oidc", ".".join([kept[0], "n" * 43, kept[2]]))
        assert browser.get(back).status_code == 401


def test_one_who_is_disabled_stays_out(place: Any) -> None:
    database = place.service.database
    with visit(place) as browser:
        issuer = place.service.settings.oidc_issuer
        person = find_or_make_person(database, {"iss": issuer, "sub": "gone", "preferred_username": "gone"})
        place.call("ada", "POST", f"/principals/{person}/changes", {"state": "disabled"})
        assert browser.get(go_to_provider(browser, "gone")[0]).status_code == 401


def test_there_is_no_such_door_where_no_provider_is_named(house: Any) -> None:
    assert house.client.get("/oidc/start").status_code == 404
    assert house.client.get("/oidc/callback?code=a&state=b").status_code == 404
