"""Requests to a server that openapi.json allows, and requests that it does not: see `tests/server/fuzzed.py`."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.server.fuzzed import find_operations, make_king, try_operation
from tests.server.house import opened


def attempts(*, seconds: float, count: int) -> int:
    """Go round all operations until the time is over or enough was sent."""
    rates = {"previews_per_minute": 10**9, "requests_per_minute": 10**9, "waiting_per_principal": 10**9}
    sent, end = 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), **rates) as house:
        token = make_king(house)
        while sent < count and time.monotonic() < end:
            for operation in find_operations():
                if sent < count and time.monotonic() < end:
                    sent += try_operation(house, operation, token, examples=40, afresh=True)
    return sent
