"""Real server processes that tests start, ask, kill and start again."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import httpx

from mosha.server.demo import make_demo
from mosha.server.service import Service
from mosha.server.settings import read_settings


def prepare(folder: Path, environment: Any = None, **options: Any) -> Any:
    """The demo in a folder, filled once; everybody's tokens."""
    settings = read_settings(folder, environment=environment or {}, demo=True, **options)
    with Service(settings) as service:
        return make_demo(service)


def read_line(process: Any, *, seconds: Any) -> Any:
    """The first line that a process says; one that says nothing in time is killed."""
    killer = threading.Timer(seconds, process.kill)
    killer.start()
    try:
        return process.stdout.readline()
    finally:
        killer.cancel()


class ServerProcess:
    """`mosha serve` as its own process, at a free port. Those that are left over end with their tests."""

    started: ClassVar[list["ServerProcess"]] = []

    def __init__(self, folder: Path, **environment: Any) -> None:
        self.folder = folder
        variables = {f"MOSHA_SERVER_{name.upper()}": str(value) for name, value in environment.items()}
        command = [sys.executable, "-m", "mosha", "serve", "--demo", "--port", "0", "--folder", str(folder)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | variables
        )
        self.started.append(self)
        first = read_line(self.process, seconds=120)
        assert "listens at" in first, first
        self.client = httpx.Client(base_url=first.split()[-1], timeout=300)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                if self.client.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("never ready")

    def call(self, token: Any, method: Any, path: Any, body: Any = None, *, key: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {token}"} | ({"Idempotency-Key": key} if key else {})
        content = None if body is None else json.dumps(body)
        return self.client.request(method, f"/api/v1{path}", content=content, headers=headers)

    def ask(self, token: Any, key: Any, epsilon: float = 0.01, sql: str = "SELECT COUNT(*) AS n FROM visits") -> Any:
        body = {"dataset": "visits", "sql": sql, "price": {"epsilon": epsilon}}
        return self.call(token, "POST", "/requests", body, key=key)

    def wait(self, token: Any, request: Any, seconds: int = 300) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.call(token, "GET", f"/requests/{request}").json()
            if found["final"]:
                return found
            time.sleep(0.1)
        raise AssertionError(found["state"])

    def workers(self) -> list[Any]:
        """The process ids of its children."""
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [int(word) for word in found.stdout.split()]

    def kill(self, which: Any = signal.SIGKILL) -> None:
        self.client.close()
        self.process.send_signal(which)
        self.process.wait(120)
        self.process.stdout.close()
