"""Hostile input: a typed refusal within limits, and nothing is spent."""

import json
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mosha.server import patience
from mosha.server.asking.requests import request_id
from mosha.server.people.credentials import find_by_secret
from tests.server.house import opened, run_app

TERMS = " AND ".join(["days>1"] * 3000)
CUBE = "SELECT days, age, patient_id, COUNT(*) n FROM visits GROUP BY days, age, patient_id"
EACH = {"days": list(range(1000)), "age": list(range(1000)), "patient_id": list(range(1000))}
SQL = {"dataset": "visits", "price": {"epsilon": 0.1}}
DEEP = "[" * 100_000
HOSTILE = {
    "deep json": ('{"dataset": ' + DEEP + "]" * 100_000 + "}", 422),
    "deep but closed": ('{"plan": ' + '{"a":' * 200 + "1" + "}" * 200 + "}", 422),
    "huge integer": ('{"dataset": "visits", "sql": "SELECT 1", "price": {"epsilon": ' + "9" * 5000 + "}}", 422),
    "large integer": ('{"dataset": "visits", "sql": "SELECT 1", "price": {"epsilon": ' + "9" * 400 + "}}", 422),
    "infinite by exponent": ('{"dataset": "visits", "sql": "SELECT 1", "price": {"epsilon": 1e999}}', 422),
    "boolean as number": (json.dumps(SQL | {"sql": "SELECT 1", "price": {"epsilon": True}}), 422),
    "megabyte of sql": (json.dumps(SQL | {"sql": "SELECT " + "1," * 500_000}), 413),
    "chain of sums": (json.dumps(SQL | {"sql": "SELECT SUM(" + "+".join(["days"] * 3000) + ") n FROM visits"}), 422),
    "product of keys": (json.dumps(SQL | {"sql": CUBE, "keys": EACH}), 422),
    "name twice": ('{"dataset": "visits", "dataset": "salaries", "sql": "x", "price": {}}', 422),
    "half a surrogate": ('{"dataset": "\\ud800", "sql": "x", "price": {}}', 422),
    "nul": ('{"dataset": "a\\u0000b", "sql": "x", "price": {}}', 422),
    "not utf-8": (b'{"dataset": "\xff\xfe"}', 422),
    "right to left": (json.dumps(SQL | {"sql": "SELECT COUNT(*) n FROM visits WHERE ward = '\u202eabc'"}), None),
    "nothing inside": (json.dumps(SQL | {"sql": "SELECT MAX() AS n, MATCH_AGAINST(ward, 1) AS m FROM visits"}), 422),
    "two statements": (json.dumps(SQL | {"sql": "SELECT COUNT(*) FROM visits; DROP TABLE visits"}), 422),
    "a file": (json.dumps(SQL | {"sql": "SELECT COUNT(*) FROM read_csv('/etc/passwd')"}), 422),
    "no price": (json.dumps({"dataset": "visits", "sql": "SELECT COUNT(*) n FROM visits", "price": {}}), 422),
    "two prices": (json.dumps(SQL | {"sql": "SELECT COUNT(*) n FROM visits", "price": {"epsilon": 1, "rho": 1}}), 422),
    "negative": (json.dumps(SQL | {"sql": "SELECT COUNT(*) n FROM visits", "price": {"epsilon": -1}}), 422),
    "unknown field": (json.dumps(SQL | {"sql": "SELECT COUNT(*) n FROM visits", "admin": True}), 422),
    "plan of lies": (json.dumps(SQL | {"plan": {"kind": "os.system", "args": ["rm"]}}), 422),
    "plan with code": (json.dumps(SQL | {"plan": {"__class__": "x", "aggregates": "eval"}}), 422),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("path", ["/previews", "/requests"])
def test_hostile_bodies_are_refused_and_spend_nothing(house: Any, name: Any, path: str) -> None:
    body, status = HOSTILE[name]
    headers = {"Authorization": f"Bearer {house.tokens['zhang']}", "Idempotency-Key": f"hostile {name}"}
    reply = house.client.post(f"/api/v1{path}", content=body, headers=headers)
    if status is None:
        assert reply.status_code < 500
        return
    assert reply.status_code == status, reply.text
    assert reply.json()["code"]
    zhang = find_by_secret(house.service.database, house.tokens["zhang"], "token")
    asked = request_id(zhang.id, f"hostile {name}")
    assert house.service.database.row("SELECT id FROM requests WHERE id = ?", asked) is None


def test_three_thousand_conditions_are_priced_like_one(house: Any) -> None:
    """More conditions than a parser's stack is deep: a question like any other, in a preview that reads nothing."""
    body = json.dumps(SQL | {"sql": f"SELECT COUNT(*) n FROM visits WHERE {TERMS}"})
    headers = {"Authorization": f"Bearer {house.tokens['li']}"}
    reply = house.client.post("/api/v1/previews", content=body, headers=headers)
    assert reply.status_code == 200
    assert reply.json()["price"] == SQL["price"]


@pytest.mark.parametrize("key", ["", "a" * 201, "a\tb", "schlüssel"])
def test_keys_that_are_none_are_refused(house: Any, key: Any) -> None:
    body = json.dumps(SQL | {"sql": "SELECT COUNT(*) n FROM visits"})
    headers = [(b"Authorization", f"Bearer {house.tokens['li']}".encode()), (b"Idempotency-Key", key.encode("latin-1"))]
    reply = house.client.post("/api/v1/requests", content=body, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (422, "server.idempotency_key")


def _raw(house: Any, text: Any) -> Any:
    """Bytes as no client would send them."""
    with socket.create_connection(("127.0.0.1", house.client.base_url.port), timeout=120) as line:
        line.sendall(text)
        return line.recv(65_536)


def test_header_injection_and_broken_requests_are_refused(house: Any) -> None:
    token = house.tokens["li"].encode()
    injected = b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + b"\r\nX: a\r\n\tb\r\n\r\n"
    assert b" 500 " not in _raw(house, injected).split(b"\r\n")[0]
    assert _raw(house, b"GET / HTTP/9.9\r\n\r\n").startswith(b"HTTP/1.1 4")
    assert _raw(house, b"\x00\x01\x02\r\n\r\n").startswith(b"HTTP/1.1 4")


def test_a_body_without_an_end_does_not_grow_beyond_the_limit(house: Any) -> None:
    def endless() -> Iterator[Any]:
        for _ in range(100):
            yield b"a" * 65_536

    headers = {"Authorization": f"Bearer {house.tokens['li']}", "Idempotency-Key": "endless"}
    reply = house.client.post("/api/v1/requests", content=endless(), headers=headers)
    assert reply.status_code == 413


@pytest.mark.parametrize("begun", [b"", b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-Slow: "])
@pytest.mark.parametrize("after", [False, True])
def test_a_client_that_never_ends_its_headers_holds_no_connection(
    house: Any, monkeypatch: pytest.MonkeyPatch, begun: bytes, after: bool
) -> None:
    """Neither one that sends nothing, nor one that sends a byte now and then, at first or after another request."""
    monkeypatch.setattr(patience, "HEAD", 1.0)
    with socket.create_connection(("127.0.0.1", house.client.base_url.port), timeout=120) as line:
        if after:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"alive" in line.recv(65_536)
        line.sendall(begun or b"G")
        line.settimeout(0.2)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                if line.recv(65_536) == b"":
                    break
            except TimeoutError:
                line.sendall(b"a" if begun else b"E")
            except ConnectionError:
                break
        else:
            raise AssertionError("the connection is still open")
    assert house.client.get("/healthz").status_code == 200


def test_a_body_that_comes_byte_by_byte_is_refused_in_time(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BODY", 1.0)
    token = house.tokens["li"].encode()
    head = b"POST /api/v1/requests HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nIdempotency-Key: slow\r\n"
    with socket.create_connection(("127.0.0.1", house.client.base_url.port), timeout=120) as line:
        line.sendall(head + b"Authorization: Bearer " + token + b'\r\n\r\n{"')
        told = line.recv(65_536)
    assert told.startswith(b"HTTP/1.1 408 ")
    assert b"server.body_too_slow" in told


@contextmanager
def _asking(port: int, times: int) -> Iterator[socket.socket]:
    """Somebody with little room who asks for a page so often, without having read one."""
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        line.settimeout(120)
        line.connect(("127.0.0.1", port))
        line.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * times)
        yield line


def test_a_client_that_does_not_read_its_answers_holds_no_connection(
    house: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More was asked for than the system keeps for a reader: all of it is dropped."""
    monkeypatch.setattr(patience, "READ", 0.5)
    with _asking(house.client.base_url.port, 40) as line:
        ended = select.poll()
        ended.register(line, select.POLLERR | select.POLLHUP)
        assert ended.poll(120_000)
    assert house.client.get("/healthz").status_code == 200


def test_a_client_that_reads_slowly_gets_all_of_its_answers(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "READ", 1.5)
    monkeypatch.setattr(patience, "RATE", 1)
    wanted, found = 10 * len(house.client.get("/openapi.json").content), 0
    with _asking(house.client.base_url.port, 10) as line:
        while found < wanted:
            time.sleep(0.015)
            piece = line.recv(65_536)
            assert piece
            found += len(piece)


def test_nobody_takes_the_connections_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """One address has its share of them, unless a proxy or this machine stands for many."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    def count_answered(**options: Any) -> int:
        with run_app(app, **({"lifespan": "off"} | options)) as address, ExitStack() as stack:
            port = int(address.rpartition(":")[2])
            lines, answered = [], 0
            for _ in range(5):
                with suppress(ConnectionError):  # dropped as soon as it is there
                    lines.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120)))
            for line in lines:
                with suppress(ConnectionError):
                    line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    answered += bool(line.recv(1000))
            return answered

    monkeypatch.setattr(patience, "SHARE", 3)
    assert count_answered(proxy_headers=False) == 5
    monkeypatch.setattr(patience, "is_near", lambda _: False)
    assert count_answered(proxy_headers=True) == 5
    assert count_answered(proxy_headers=True, forwarded_allow_ips="192.0.2.1, 127.0.0.0/8") == 5
    assert count_answered(proxy_headers=True, forwarded_allow_ips="192.0.2.1") == 3  # past the proxy
    assert count_answered(proxy_headers=False) == 3
    monkeypatch.setattr(patience, "MOST", 2)
    assert count_answered(proxy_headers=True) == 2


def test_all_addresses_of_one_network_under_ipv6_have_one_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SHARE", 2)
    protocol = patience.PatientProtocol.__new__(patience.PatientProtocol)
    protocol.config = SimpleNamespace(proxy_headers=False, forwarded_allow_ips=None)  # type: ignore[assignment]

    def is_one_too_many(*hosts: str) -> bool:
        """Whether the last of these connections is."""
        protocol.client = (hosts[-1], 1)
        protocol.connections = [SimpleNamespace(client=(host, 1)) for host in hosts]  # type: ignore[assignment]
        return protocol._is_one_too_many()

    assert is_one_too_many("2001:db8::1", "2001:db8::2", "2001:db8::ffff:1")
    assert not is_one_too_many("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")
    assert is_one_too_many("192.0.2.7", "::ffff:192.0.2.7", "192.0.2.7")
    assert not is_one_too_many("::1", "::1", "::1")


def test_a_session_must_come_from_our_own_pages(house: Any) -> None:
    made = house.client.post("/api/v1/sessions", content=json.dumps({"token": house.tokens["li"]}))
    assert made.status_code == 201
    cookie, csrf = {"mosha": made.cookies["mosha"]}, made.json()["csrf"]
    house.client.cookies.clear()
    body = json.dumps({"label": "stolen"})

    def post(**headers: Any) -> Any:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent["Cookie"] = f"mosha={cookie['mosha']}"
        return house.client.post("/api/v1/tokens", content=body, headers=sent).status_code

    assert post() == 403
    assert post(X_CSRF_Token="wrong") == 403
    assert post(X_CSRF_Token=csrf, Sec_Fetch_Site="cross-site") == 403
    assert post(X_CSRF_Token=csrf, Origin="https://evil.example") == 403
    assert post(X_CSRF_Token=csrf, Sec_Fetch_Site="same-origin") == 201
    assert "httponly" in made.headers["set-cookie"].lower()
    assert "samesite=lax" in made.headers["set-cookie"].lower()


def test_a_link_signs_in_once(house: Any) -> None:
    person = house.call("wang", "POST", "/principals", {"name": "newcomer", "kind": "person"}).json()
    link = house.call("wang", "POST", f"/principals/{person['id']}/links", {}).json()["link"]
    secret = link.split("=")[1]
    assert house.client.get(link).status_code == 200  # a scanner that looks at the link does not use it up
    first = house.client.post("/api/v1/sessions", content=json.dumps({"link": secret}))
    house.client.cookies.clear()
    second = house.client.post("/api/v1/sessions", content=json.dumps({"link": secret}))
    house.client.cookies.clear()
    assert (first.status_code, second.status_code) == (201, 401)
    again = house.call("wang", "POST", f"/principals/{person['id']}/links", {})
    assert again.status_code == 404  # only an administrator lets somebody in who has been in before


def test_secrets_are_kept_as_hashes_alone(house: Any) -> None:
    stored = json.dumps(house.service.database.rows("SELECT * FROM credentials"))
    for token in house.tokens.values():
        assert token.split("_", 2)[2] not in stored
    assert find_by_secret(house.service.database, house.tokens["li"], "session") is None


def test_pages_and_answers_carry_the_headers_that_browsers_need(house: Any) -> None:
    for path in ("/", "/api/v1/ledger/head", "/healthz", "/nowhere"):
        headers = house.client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_rates_are_bounded(tmp_path: Path) -> None:
    with opened(tmp_path, previews_per_minute=3) as small:
        body = SQL | {"sql": "SELECT COUNT(*) AS n FROM visits"}
        replies = [small.call("li", "POST", "/previews", body) for _ in range(4)]
        assert [reply.status_code for reply in replies] == [200, 200, 200, 429]
        assert int(replies[-1].headers["retry-after"]) >= 1
