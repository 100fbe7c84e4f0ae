"""What everybody may see of the book: it moves once a minute, and is worked out once, however many look.

Guarantee:
    The public head is that of the last row before this minute. What is found for the public is found at most once a
    minute, so that nobody can watch row by row how the chain grows, nor keep the server busy by reading.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from mosha.ledger import Ledger
from mosha.ledger.storage.chain import Head
from mosha.server.clock import now

__all__ = ["PublicView"]

MINUTE = 60_000_000  # microseconds
BLOCK = 256
T = TypeVar("T")


class PublicView:
    """A book as the public sees it in this minute."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.RLock()
        self._begun = 0
        self._found: dict[str, Any] = {}

    def find(self, name: str, make: Callable[[], T]) -> T:
        """What was made under this name in this minute; it is made once."""
        with self._lock:
            begun = now() // MINUTE * MINUTE
            if begun != self._begun:
                self._begun, self._found = begun, {}
            if name not in self._found:
                self._found[name] = make()
            return cast("T", self._found[name])

    def find_head(self) -> Head:
        """The newest row that was there when this minute began; the first one in a book that is younger."""
        return self.find("head", self._look_for_head)

    def _look_for_head(self) -> Head:
        last = self._ledger.head.sequence
        while last > 0:
            first = max(0, last - BLOCK)
            rows = self._ledger.entries(first, most=last - first)
            found = next((row for row in reversed(rows) if row.at < self._begun), None)
            if found is not None or first == 0:
                return (found or rows[0]).head
            last = first
        return self._ledger.head
