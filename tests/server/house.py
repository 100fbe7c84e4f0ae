"""A service in a temporary folder with the demo hospital, asked through its ASGI application or as a real process."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from mosha.server.app import make_app
from mosha.server.demo import make_demo
from mosha.server.patience import PatientProtocol
from mosha.server.service import Service
from mosha.server.settings import read_settings

COUNT = "SELECT COUNT(*) AS n FROM visits"
LONG: dict[str, Any] = 300.0  # type: ignore[assignment]  # no test waits longer for a question; a machine that is busy may take most of it
BY_WARD = "SELECT ward, AVG(days) AS days FROM visits GROUP BY ward"


class House:
    """A running server and everybody's tokens."""

    def __init__(self, client: Any, tokens: Any, service: Any) -> None:
        self.client, self.tokens, self.service = client, tokens, service

    def call(self, who: Any, method: Any, path: Any, body: Any = None, *, key: Any = None, headers: Any = None) -> Any:
        sent = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        sent |= {"Idempotency-Key": key} if key else {}
        content = None if body is None else json.dumps(body)
        return self.client.request(method, f"/api/v1{path}", content=content, headers=sent | (headers or {}))

    def ask(
        self, who: Any, sql: Any = COUNT, *, key: Any, epsilon: float = 0.1, dataset: str = "visits", **more: Any
    ) -> Any:
        body = {"dataset": dataset, "sql": sql, "price": {"epsilon": epsilon}} | more
        return self.call(who, "POST", "/requests", body, key=key)

    def wait(self, who: Any, request: Any, *, seconds: Any = LONG) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.call(who, "GET", f"/requests/{request}").json()
            if found["final"]:
                return found
            time.sleep(0.1)
        raise AssertionError(f"no end: {found['state']}")

    def wait_for_end(self, request: Any, *, seconds: Any = LONG) -> Any:
        """After how many microseconds the end of a request may be seen, as soon as that is written down."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            row = self.service.database.row("SELECT visible - started AS after FROM requests WHERE id = ?", request)
            if row["after"] is not None:
                return row["after"]
            time.sleep(0.05)
        raise AssertionError("no end was written")

    def time_ends(self, timing: Any, deadline: Any) -> None:
        """From now on, ends of all datasets appear by this rule."""
        self.service.database.run("UPDATE datasets SET timing = ?, deadline = ?", timing, deadline)

    def answer(self, who: Any, sql: Any = COUNT, *, key: Any, **more: Any) -> Any:
        asked = self.ask(who, sql, key=key, **more)
        assert asked.status_code == 202, asked.text
        return self.wait(who, asked.json()["id"])


@contextmanager
def opened(folder: Path, **options: Any) -> Iterator[Any]:
    settings = read_settings(folder, environment={}, **({"timing": "off", "demo": True, "deadline": LONG} | options))  # type: ignore[arg-type]
    service = Service(settings)
    service.slots.look = partial(service.slots.look, seconds=300.0)
    tokens = make_demo(service)
    with run_app(make_app(service)) as address, httpx.Client(base_url=address, timeout=120) as client:
        yield House(client, tokens, service)


@contextmanager
def run_app(app: Any, **options: Any) -> Iterator[str]:
    """A real server in a thread, at a free port."""
    chosen: dict[str, Any] = {
        "port": 0,
        "log_level": "critical",
        "lifespan": "on",
        "http": PatientProtocol,
        "ws": "none",
    } | options
    server = uvicorn.Server(uvicorn.Config(app, **chosen))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        end = time.monotonic() + 120
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < end, "the server never started"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(120)
