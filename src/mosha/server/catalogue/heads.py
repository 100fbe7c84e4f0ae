"""The head of the chain as everybody sees it: it moves once a minute."""

from __future__ import annotations

from mosha.ledger import Ledger
from mosha.ledger.storage.chain import Head
from mosha.server.clock import now

__all__ = ["head_of_last_minute"]

MINUTE = 60_000_000  # microseconds
BLOCK = 256


def head_of_last_minute(ledger: Ledger) -> Head:
    """The newest row that was there when this minute began; the first one in a book that is younger."""
    until = now() // MINUTE * MINUTE
    last = ledger.head.sequence
    while last > 0:
        first = max(0, last - BLOCK)
        rows = ledger.entries(first, most=last - first)
        found = next((row for row in reversed(rows) if row.at < until), None)
        if found is not None or first == 0:
            return (found or rows[0]).head
        last = first
    return ledger.head
