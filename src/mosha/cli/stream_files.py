"""The files and pipes that `mosha stream` reads: CSV with a header, line by line."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

from mosha.core.errors import DataError

__all__ = ["check_file", "feed", "header_of", "rows_of"]


def check_file(file: str, columns: list[str]) -> None:
    """What is public about a file is looked at before anything is paid: that it is there, and its header."""
    if file == "-":
        return
    try:
        with Path(file).open(newline="", encoding="utf-8") as lines:
            line = next(lines, "")
    except (OSError, UnicodeDecodeError):
        raise DataError(
            f"{file!r} is not a text file that can be read (a CSV with a header). Nothing was spent."
        ) from None
    absent = [name for name in columns if name not in next(csv.reader([line]), [])]
    if absent:
        raise DataError(f"the header of {file!r} has no column {absent[0]!r}. Nothing was spent.")


def header_of(line: str, column: str) -> list[str]:
    header = next(csv.reader([line]), [])
    if column not in header:
        raise DataError(f"the header has no column {column!r}. The stream is paid; run it again with a right header.")
    return header


def rows_of(lines: Iterator[str], header: list[str]) -> list[dict[str, str]]:
    """Each line by itself: an open quote in one takes nobody else's line with it."""
    return [dict(zip(header, row, strict=False)) for line in lines for row in csv.reader([line])]


def feed(file: str, queue: SimpleQueue[str | None]) -> None:
    """Lines as they appear: standard input until it is closed, a file for ever."""
    if file == "-":
        for line in sys.stdin:
            queue.put(line)
        queue.put(None)
        return
    with Path(file).open(newline="", encoding="utf-8") as lines:
        kept = ""
        while True:
            part = lines.readline()
            kept += part
            if kept.endswith("\n"):
                queue.put(kept)
                kept = ""
            elif not part:
                time.sleep(0.05)
