"""Every test that searches (`tests/searches.py`, Hypothesis) once more, each time beginning somewhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEARCHING = ("from hypothesis import", "from tests.searches import")
ELSEWHERE = ("conftest.py", "fuzzed.py")


class Found(Exception):
    """A law does not hold; what was printed says where."""


def find_files() -> list[str]:
    """The test files that search."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    texts = {file: file.read_text(encoding="utf-8") for file in files if file.name not in ELSEWHERE}
    return [str(file) for file, text in texts.items() if any(line in text for line in SEARCHING)]


def attempts(*, seconds: float, count: int) -> int:
    """Go through all of them until the time is over; how many rounds were made."""
    end, tried = time.monotonic() + seconds, 0
    settings = os.environ | {"MOSHA_SEARCH": "afresh"}
    while tried < count and time.monotonic() < end:
        command = [sys.executable, "-m", "pytest", "-x", *find_files()]
        if subprocess.run(command, cwd=ROOT, env=settings, check=False).returncode:
            raise Found("a law does not hold")
        tried += 1
    return tried
