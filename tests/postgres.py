"""A real PostgreSQL server for the tests: made in a temporary folder, on a free port, ended by its process id."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
    "jit": "off",
}


def binaries() -> Path | None:
    """The newest server on this machine, as Debian installs it or as the path finds it."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = sorted(versions, key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0)
    found = newest[-1] if newest else shutil.which("postgres")
    return Path(found).parent if found else None


def _owner() -> dict[str, str]:
    """PostgreSQL refuses to run as root: then it runs as the user that its package made."""
    if os.geteuid() != 0:
        return {}
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL refuses to run as root and this machine has no user 'postgres'")
    return {"user": "postgres", "group": "postgres"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, folder: Path, commands: Path) -> None:
        self.folder, self.commands = folder, commands
        self.owner = _owner()
        self.port = None  # a second start keeps the first port, so that clients find the server again
        if self.owner:
            shutil.chown(folder, **self.owner)
        make = [commands / "initdb", "--no-sync", "--auth=trust", "--username=mosha", "--no-locale", "--encoding=UTF8"]
        self._quietly([*make, folder / "data"])
        self.start()

    def _quietly(self, command: Any) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self.owner)  # type: ignore[call-overload]

    def start(self) -> None:
        for attempt in range(5):
            if self.port is None or attempt:  # type: ignore[unreachable]
                self.port = _free_port()  # type: ignore[assignment]
            settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
            command = [self.commands / "postgres", "-D", self.folder / "data", "-p", str(self.port), *settings]
            with (self.folder / "log").open("ab") as log:
                self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self.owner)  # type: ignore[call-overload]
            if self._answers():
                return
        pytest.fail(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def _answers(self) -> bool:
        import psycopg

        while self.process.poll() is None:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
                return True
            time.sleep(0.05)  # type: ignore[unreachable]
        return False

    def url(self, database: str) -> str:
        return f"postgresql://mosha@127.0.0.1:{self.port}/{database}"

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(how)
        self.process.wait(60)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A running server; skipped only where its binaries are not installed."""
    commands = binaries()
    if commands is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    pytest.importorskip("psycopg", reason="the extra 'postgres' is not installed")
    folder = Path(tempfile.mkdtemp(prefix="mosha-postgres-"))
    server = Server(folder, commands)
    try:
        yield server
    finally:
        server.stop(signal.SIGQUIT)  # at once: its data is forgotten with it
        shutil.rmtree(folder, ignore_errors=True)
