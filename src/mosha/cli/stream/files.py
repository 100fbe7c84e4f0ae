"""The files and pipes that `mosha stream` reads (CSV with a header, line by line), and the small one that it writes."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

from mosha.core.errors import DataError, InvalidParameter, StateRefused
from mosha.files.atomic import replace_file

__all__ = ["ClockFile", "check_file", "checked_time", "feed", "header_of", "rows_of", "stamp"]


class ClockFile:
    """When the first step of a stream began and how far its lines were shown: public, beside the state of the stream.

    Without --start the first step is the one that the machine's clock is in, and the stream is live: which step that is
    depends on when the command is run, and on no row. A stream that goes on keeps the start it had.
    """

    def __init__(self, place: str, start: str | None, every: str) -> None:
        from mosha.streams.service.clock import seconds  # noqa: PLC0415  (a command that fails early loads nothing)

        self._place, self.shown = Path(place), 0
        self.live = start is None
        length = seconds(every)
        now = math.floor(time.time() / length) * length
        self.start = now if start in (None, "now") else checked_time(str(start), "--start")
        if not self._place.exists():
            return
        try:
            known = json.loads(self._place.read_text(encoding="utf-8"))
            first, self.shown, live = float(known["start"]), int(known["shown"]), bool(known["live"])
        except (OSError, ValueError, KeyError, TypeError):
            raise StateRefused("cli.not_its_clock", path=place, spent="nothing") from None
        if start not in (None, "now") and first != self.start:
            raise InvalidParameter("cli.other_start", parameter="--start", begin=stamp(first), spent="nothing")
        self.start, self.live = first, live if start is None else self.live

    def save(self, shown: int | None = None) -> None:
        self.shown = self.shown if shown is None else shown
        text = json.dumps({"start": self.start, "shown": self.shown, "live": self.live})
        replace_file(self._place, [text.encode()], shared=True)


def stamp(seconds: float) -> str:
    """A time as people write it, in UTC."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds")


def checked_time(text: str, option: str = "--until") -> float:
    """A public time that was given as an option."""
    from mosha.streams.service.clock import timestamp  # noqa: PLC0415

    found = timestamp(text)
    if not (math.isfinite(found) and abs(found) < 1e11):
        raise InvalidParameter("cli.not_a_time", parameter=option, spent="nothing")
    return found


def check_file(file: str, columns: list[str]) -> None:
    """What is public about a file is looked at before anything is paid: that it is there, and its header."""
    if file == "-":
        return
    try:
        with Path(file).open(newline="", encoding="utf-8") as lines:
            line = next(lines, "")
    except (OSError, UnicodeDecodeError):
        raise DataError("cli.not_a_text_file", path=file, spent="nothing") from None
    absent = [name for name in columns if name not in next(csv.reader([line]), [])]
    if absent:
        raise DataError("cli.no_column", path=file, column=absent[0], spent="nothing")


def header_of(line: str, column: str) -> list[str]:
    header = next(csv.reader([line]), [])
    if column not in header:
        raise DataError("cli.paid_header_without_column", column=column)
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
