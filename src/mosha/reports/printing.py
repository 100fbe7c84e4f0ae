"""A page as a PDF, by the print engine of a browser that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from mosha.core.errors import InvalidParameter

__all__ = ["ENGINES", "find_engine", "print_page"]

ENGINES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
"""Programs that print a page without a window, in the order they are looked for."""

SECONDS = 120


def find_engine() -> str | None:
    """The first of them that is installed; the variable MOSHA_PRINT_ENGINE says another one."""
    wished = os.environ.get("MOSHA_PRINT_ENGINE")
    return shutil.which(wished) if wished else next(filter(None, map(shutil.which, ENGINES)), None)


def print_page(page: str, path: Path) -> None:
    """Write a page as a PDF on A4, with real text in it.

    The page has no script, and its content security policy lets nothing be fetched.
    """
    engine = find_engine()
    if engine is None:
        raise InvalidParameter("reports.no_print_engine", parameter="path", programs=list(ENGINES[:3]))
    with tempfile.TemporaryDirectory() as folder:
        source, printed = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_text(page, encoding="utf-8")
        options = [
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.append("--no-sandbox")  # which a browser refuses to have under this user
        command = [engine, *options, f"--print-to-pdf={printed}", source.as_uri()]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)  # noqa: S603  (no shell)
        except (OSError, subprocess.SubprocessError):
            raise InvalidParameter("reports.print_failed", parameter="path", program=Path(engine).name) from None
        if not printed.is_file():
            raise InvalidParameter("reports.print_failed", parameter="path", program=Path(engine).name)
        shutil.move(printed, path)
