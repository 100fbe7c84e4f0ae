"""The server's end of a worker: a process that is started, asked, and killed when its time is over."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Lost", "TooLate", "WorkerProcess"]


class Lost(Exception):
    """The process ended in the middle of a job."""


class TooLate(Exception):
    """The process had no answer in time, and was killed."""


class WorkerProcess:
    """One worker; started when it is first needed, and again after it was killed."""

    def __init__(self, options: Mapping[str, object]) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._jobs = 0
        self._busy: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self, *, warm: bool = False) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.kill()
        command = [sys.executable, "-m", "mosha.server.work.worker"]
        self._process = subprocess.Popen(  # noqa: S603  (our own module)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._send(dict(self._options) | {"parent": os.getpid(), "warm": warm})

    def _send(self, message: Mapping[str, object]) -> None:
        process = self._process  # another thread may kill it meanwhile
        if process is None or process.stdin is None:
            raise Lost
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            raise Lost from None

    def do(self, job: Mapping[str, object], *, until: float) -> dict[str, Any]:
        """What the worker answers, before the monotonic clock shows `until`; Lost or TooLate otherwise."""
        self.start()
        self._jobs += 1
        self._send(dict(job) | {"job": self._jobs})
        return self._read_answer(until)

    def go_on(self, *, until: float) -> dict[str, Any]:
        """Let a worker go on that has said `measured`: what it answers then."""
        self._send({})
        return self._read_answer(until)

    def _read_answer(self, until: float) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._read_line(until))
        if answer.get("job") != self._jobs:
            self.kill()
            raise Lost
        return answer

    def _read_line(self, until: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        pipe, read = self._process.stdout, b""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not read.endswith(b"\n"):
                if not selector.select(max(0.0, until - time.monotonic())):
                    self.kill()
                    raise TooLate
                piece = os.read(pipe.fileno(), 65_536)
                if not piece:
                    self.kill()
                    raise Lost
                read += piece
        return read

    def in_background(self, work: Callable[[], None]) -> threading.Thread:
        """Do something with this worker while its slot goes on; `wait` waits for it."""
        self._busy = threading.Thread(target=work, daemon=True)
        self._busy.start()
        return self._busy

    def wait(self) -> None:
        """Until what goes on in the background is done."""
        if self._busy is not None:
            self._busy.join()
            self._busy = None

    def kill(self) -> None:
        """End the process for good, whatever it does."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
