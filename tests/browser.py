"""A real browser for the tests: headless, with a profile of its own, and nothing to talk to."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--window-size=1000,1400",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """`browser(*words)` runs the browser once with these arguments and gives what it printed."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    folder = tempfile.mkdtemp(prefix="mosha-browser-")

    def run(*words: Any) -> Any:
        done = subprocess.run(
            [program, *FLAGS, f"--user-data-dir={folder}", *words], capture_output=True, timeout=300, check=True
        )
        return done.stdout.decode("utf-8")

    try:
        yield run
    finally:
        shutil.rmtree(folder, ignore_errors=True)
