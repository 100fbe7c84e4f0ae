"""The server's clock: microseconds since 1970, and how they are written."""

from __future__ import annotations

import time
from datetime import UTC, datetime

__all__ = ["END_OF_TIME", "as_text", "now"]

END_OF_TIME = 2**62  # later than everything: lists that begin with the newest begin before it


def now() -> int:
    return time.time_ns() // 1000


def as_text(moment: int | None) -> str | None:
    """A moment as ISO 8601 in UTC.

    >>> as_text(0)
    '1970-01-01T00:00:00+00:00'
    """
    return None if moment is None else datetime.fromtimestamp(moment / 1e6, UTC).isoformat(timespec="seconds")
