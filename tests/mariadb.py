"""A real MariaDB server for the tests: made in a temporary folder, on a free port, ended by its process id."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import _free_port

MOST_MEMORY = 4 * 2**20  # kilobytes: a statement that runs away must end here and not with the machine
SETTINGS = [
    "--bind-address=127.0.0.1",
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--skip-log-bin",
    "--skip-grant-tables",
    "--max-connections=60",
    "--lower-case-table-names=0",
]


def server_binary() -> Path | None:
    """The server on this machine: Debian keeps it where only root's path looks."""
    found = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    return Path(found) if found else None


def _owner() -> dict[str, str]:
    """As root the server runs as the user that its package made."""
    if os.geteuid() != 0:
        return {}
    try:
        pwd.getpwnam("mysql")
    except KeyError:
        pytest.skip("MariaDB does not run as root and this machine has no user 'mysql'")
    return {"user": "mysql", "group": "mysql"}


class Server:
    def __init__(self, folder: Path, binary: Path) -> None:
        self.folder, self.binary, self.owner = folder, binary, _owner()
        self.port = None  # a second start keeps the first port, so that clients find the server again
        if self.owner:
            shutil.chown(folder, **self.owner)
        make = [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={folder / 'data'}",
            "--auth-root-authentication-method=normal",
        ]
        subprocess.run([*make, "--skip-test-db"], check=True, capture_output=True, cwd=folder, **self.owner)  # type: ignore[call-overload]
        self.start()

    def start(self) -> None:
        for attempt in range(5):
            if self.port is None or attempt:  # type: ignore[unreachable]
                self.port = _free_port()  # type: ignore[assignment]
            places = [f"--datadir={self.folder / 'data'}", f"--socket={self.folder / 'socket'}", f"--port={self.port}"]
            command = [self.binary, "--no-defaults", *places, f"--pid-file={self.folder / 'pid'}", *SETTINGS]
            limited = ["sh", "-c", f'ulimit -v {MOST_MEMORY} && exec "$@"', "sh", *command]
            with (self.folder / "log").open("ab") as log:
                self.process = subprocess.Popen(limited, stdout=log, stderr=log, cwd=self.folder, **self.owner)  # type: ignore[call-overload]
            if self._answers():
                return
        pytest.fail(f"MariaDB did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def _answers(self) -> bool:
        import pymysql

        while self.process.poll() is None:
            with contextlib.suppress(pymysql.OperationalError):
                self.connect().close()
                return True
            time.sleep(0.05)  # type: ignore[unreachable]
        return False

    def connect(self, database: str | None = None) -> Any:
        import pymysql

        address = {"host": "127.0.0.1", "port": self.port, "user": "mosha"}
        return pymysql.connect(**address, database=database, charset="utf8mb4", autocommit=True)

    def make_database(self, name: str) -> str:
        """A database on the server, by its URL; a second suite of tests goes on in the same one."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4")
        return self.url(name)

    def url(self, database: str) -> str:
        return f"mariadb://mosha@127.0.0.1:{self.port}/{database}"

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(60)


@contextlib.contextmanager
def run_server() -> Iterator[Any]:
    """A running server, whose data are forgotten with it."""
    binary = server_binary()
    assert binary is not None
    folder = Path(tempfile.mkdtemp(prefix="mosha-mariadb-"))
    server = Server(folder, binary)
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Any]:
    """A running server; skipped only where its binary is not installed."""
    if server_binary() is None:
        pytest.skip("MariaDB is not installed (Debian: apt-get install mariadb-server)")
    pytest.importorskip("pymysql", reason="the extra 'mysql' is not installed")
    with run_server() as server:
        yield server
