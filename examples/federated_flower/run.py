"""Start a SuperLink and SuperNodes on this machine, run the app on them, stop them again. Offline, on loopback.

python examples/federated_flower/run.py [server|client|shares|turns|hospitals|question]
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, Self

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = pathlib.Path(sys.executable).parent
PLACES = {"ledger": "privacy.db", "checkpoint": "checkpoint", "report": "report.json", "secret": "noise.secret"}


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Loopback:
    """A SuperLink and some SuperNodes, as processes of this one, in a folder of their own."""

    def __init__(self, nodes: int = 3, folder: pathlib.Path | None = None) -> None:
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="federated-"))
        self.nodes = nodes
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = os.environ | {
            "FLWR_HOME": str(self.folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
        }

    def __enter__(self) -> Self:
        port = free_port()
        home = self.folder / "flwr"
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
        )
        self._start("superlink", "flower-superlink", "--insecure", "--disable-runtime-dependency-installation",
                    "--port", str(port))  # fmt: skip
        self._await_port(port)
        self.port = port
        for ward in range(1, self.nodes + 1):
            self._start(f"ward {ward}", *self.node(ward))
        return self

    def node(self, ward: int) -> list[str]:
        """The command that a ward is started with."""
        return ["flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port()),
                "--node-config", f"ward={ward}"]  # fmt: skip

    def _start(self, name: str, program: str, *arguments: str) -> None:
        with (self.folder / f"{name.replace(' ', '-')}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603  (our own programs)
                [PROGRAMS / program, *arguments], stdout=log, stderr=log, env=self.environment, cwd=self.folder,
                start_new_session=True,
            )  # fmt: skip

    def _await_port(self, port: int) -> None:
        for _ in range(600):
            with contextlib.closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError("the SuperLink did not start: see superlink.log")

    def run(self, source: pathlib.Path = HERE, **config: Any) -> None:
        """Submit the app; its files go to the folder of this federation."""
        app = self.folder / source.name
        if not app.exists():
            shutil.copytree(source, app, ignore=shutil.ignore_patterns("__pycache__", "run.py"))
        settings = {name: str(self.folder / place) for name, place in PLACES.items()} | {"wards": self.nodes} | config
        said = " ".join(f"{name}={json.dumps(value)}" for name, value in settings.items())
        done = subprocess.run(  # noqa: S603  (our own programs)
            [PROGRAMS / "flwr", "run", str(app), "here", "--run-config", said],
            env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])

    def report(self) -> dict[str, Any]:
        place = self.folder / "report.json"
        with contextlib.suppress(OSError, ValueError):
            found: dict[str, Any] = json.loads(place.read_text())
            return found
        return {}  # type: ignore[unreachable]

    def wait(self, until: Callable[[dict[str, Any]], Any], seconds: float = 240) -> dict[str, Any]:
        """Until the report says so."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.report()
            if until(found):
                return found
            time.sleep(0.5)
        raise RuntimeError(f"the federation did not get there: see {self.folder}")

    def stop(self, name: str, how: int = signal.SIGTERM) -> None:
        """End one process and what it started."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        process.wait(timeout=60)

    def __exit__(self, *problem: object) -> None:
        for name in list(self.processes):
            self.stop(name)


def main(where: str = "server") -> None:
    with Loopback() as federation:
        federation.run(where=where)
        told = federation.wait(lambda report: report.get("done"))
        for line in told["rounds"]:
            print(line)
        print(f"paid at the server: epsilon {told['spent']:.3f}; files in {federation.folder}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
