"""Rates: a bucket of tokens for each principal and kind of work, filled by the clock, kept in the store.

Several server processes share the buckets where they share the store.
"""

from __future__ import annotations

import math
import threading

from mosha.server.clock import now
from mosha.server.errors import TooMany
from mosha.server.store.database import Database

__all__ = ["Rates"]


class Rates:
    """Who has asked how often of late; in memory where one process serves, in the store where several do."""

    def __init__(self, database: Database) -> None:
        self._database = database if database.shared else None
        self._lock = threading.Lock()
        self._buckets: dict[tuple[str, str], tuple[float, int]] = {}

    def take(self, principal: str, kind: str, *, per_minute: int) -> None:
        """Take one token, or refuse and say when there is one again."""
        left = (
            self._take_shared(principal, kind, per_minute)
            if self._database
            else self._take(principal, kind, per_minute)
        )
        if left < 0:
            raise TooMany("server.too_many", seconds=max(1, math.ceil(-left * 60 / per_minute)))

    def _take(self, principal: str, kind: str, per_minute: int) -> float:
        with self._lock:
            if len(self._buckets) > 100_000:
                self._buckets.clear()
            tokens, at = self._buckets.get((principal, kind), (float(per_minute), now()))
            left, moment = _refill(tokens, at, per_minute)
            self._buckets[principal, kind] = (left if left >= 0 else left + 1), moment
            return left

    def _take_shared(self, principal: str, kind: str, per_minute: int) -> float:
        assert self._database is not None
        with self._database.transaction() as transaction:
            new = "INSERT INTO buckets VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
            transaction.run(new, principal, kind, float(per_minute), now())
            find = "SELECT tokens, at FROM buckets WHERE principal = ? AND kind = ? FOR UPDATE"
            row = transaction.row(find, principal, kind) or {"tokens": float(per_minute), "at": now()}
            left, moment = _refill(row["tokens"], row["at"], per_minute)
            change = "UPDATE buckets SET tokens = ?, at = ? WHERE principal = ? AND kind = ?"
            transaction.run(change, left if left >= 0 else left + 1, moment, principal, kind)
            return left


def _refill(tokens: float, at: int, per_minute: int) -> tuple[float, int]:
    """What is left after taking one more, below zero where there was none, and the moment that this is true of."""
    moment = now()
    filled = min(float(per_minute), tokens + max(0, moment - at) / 60e6 * per_minute)
    return filled - 1, moment
