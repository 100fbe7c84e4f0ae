"""Other people's libraries, each in an environment of its own under `.bench/`."""

from __future__ import annotations

import hashlib
import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["PeerTooSlow", "PeerUnavailable", "peer", "run"]

_FOLDER = Path(__file__).resolve().parent.parent / ".bench"


class PeerUnavailable(RuntimeError):
    """The peer could not be installed here; its rows are left out, with this as the reason."""


class PeerTooSlow(RuntimeError):
    """The peer was stopped at its limit, after so many CPU seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:.0f} CPU seconds")
        self.seconds = seconds


def peer(*requirements: str) -> Path:
    """The Python of an environment with these requirements, made when first asked for.

    >>> python = peer("opendp==0.16.0")  # doctest: +SKIP
    """
    name = re.sub(r"[^\w.=-]+", "_", requirements[0])
    if len(requirements) > 1:
        name += "-" + hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:8]
    home = _FOLDER / name
    python = home / "bin" / "python"
    done = home / ".installed"
    if not done.exists():
        home.parent.mkdir(exist_ok=True)
        _quietly([sys.executable, "-m", "venv", "--clear", str(home)], requirements)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
        _quietly(install, requirements)
        done.touch()
    return python


def run(python: Path, code: str, *arguments: object, at_most: float | None = None) -> Any:
    """Run `code` in the peer's environment and read the last line of JSON it prints; `arguments` are sys.argv[1:].

    After `at_most` seconds of the clock it is stopped: `PeerTooSlow` says how many CPU seconds it had used.
    """
    command = [str(python), "-c", code, *(str(argument) for argument in arguments)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=at_most)
    except subprocess.TimeoutExpired:
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        raise PeerTooSlow(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) from None
    if done.returncode != 0:
        raise PeerUnavailable(f"the peer's script failed: {_last_line(done.stderr)}")
    return json.loads(_last_line(done.stdout))


def _quietly(command: list[str], requirements: tuple[str, ...]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PeerUnavailable(f"cannot install {' '.join(requirements)}: {_last_line(done.stderr)}")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]
