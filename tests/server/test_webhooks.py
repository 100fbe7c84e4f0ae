"""Another program is told that something happened: signed, once it can be seen, and never what an answer was."""

import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from mosha.server.catalogue.webhooks import deliver_due, is_https_or_here
from tests.server.house import COUNT, LONG, opened


@pytest.fixture
def listener() -> Iterator[tuple[Any, ...]]:
    """A program that listens; the first message is refused, so that it must come again."""
    taken = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            taken.append((self.headers["Mosha-Signature"], body))
            self.send_response(503 if len(taken) == 1 else 204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", taken
    server.shutdown()
    server.server_close()


def wait_for(taken: Any, events: Any, seconds: Any = LONG) -> None:
    end = time.monotonic() + seconds
    while {json.loads(body)["event"] for _, body in taken} < events:
        assert time.monotonic() < end, taken
        time.sleep(0.1)


def test_events_are_told_signed_and_without_values(tmp_path: Path, listener: Any) -> None:
    url, taken = listener
    with opened(tmp_path) as house:
        said = {"url": url, "events": ["request.waiting", "request.decided", "request.ended", "budget.low"]}
        made = house.call("ada", "POST", "/webhooks", said).json()
        assert "key" not in house.call("ada", "GET", "/webhooks").json()["webhooks"][0]
        asked = house.ask("li", COUNT, key="dear", epsilon=0.6, purpose="a secret purpose").json()
        house.call("zhao", "POST", f"/requests/{asked['id']}/decision", {"verdict": "approve", "reason": "good"})
        answer = house.wait("li", asked["id"])["answer"]
        wait_for(taken, {"request.waiting", "request.decided", "request.ended"})
        before = len(taken)
        house.service.database.run("UPDATE deliveries SET due = 0")  # what was refused is sent again, the same
        deliver_due(house.service.database)
        assert json.loads(taken[0][1]) in [json.loads(body) for _, body in taken[before:]]
        for signature, body in taken:
            moment, digest = (part.partition("=")[2] for part in signature.split(","))
            assert hmac.new(made["key"].encode(), f"{moment}.{body}".encode(), "sha256").hexdigest() == digest
            assert set(json.loads(body)) == {"id", "event", "at", "request", "dataset"}
            for secret in ("purpose", "SELECT", "answered", str(answer["rows"][0][0])):
                assert secret not in body
        assert house.call("ada", "DELETE", f"/webhooks/{made['id']}").status_code == 204
        assert house.call("ada", "DELETE", f"/webhooks/{made['id']}").status_code == 404


def test_an_end_is_told_at_its_tick_and_no_earlier(tmp_path: Path, listener: Any) -> None:
    url, taken = listener
    with opened(tmp_path) as house:
        house.call("ada", "POST", "/webhooks", {"url": url, "events": ["request.ended"]})
        house.time_ends("fixed", 6.0)  # seconds: what has no answer by then ends at that moment too
        asked = house.ask("li", COUNT, key="tick", epsilon=0.01).json()
        find = "SELECT due FROM deliveries"
        end = time.monotonic() + LONG  # type: ignore[operator]
        while (row := house.service.database.row(find)) is None and time.monotonic() < end:
            time.sleep(0.05)
        ended = house.service.database.row("SELECT visible FROM requests WHERE id = ?", asked["id"])
        assert row["due"] == ended["visible"]
        assert not taken


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://example.org/hook", True),
        ("http://127.0.0.1:9/hook", True),
        ("http://example.org/hook", False),
        ("https://user:secret@example.org/", False),
        ("file:///etc/passwd", False),
        ("https://", False),
        ("http://[::1", False),
    ],
)
def test_messages_go_by_https_or_stay_on_this_machine(url: str, good: bool) -> None:
    assert is_https_or_here(url) is good
