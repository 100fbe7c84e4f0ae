"""The chain: every row of the book carries the hash of all rows before it.

    hash(n) = SHA-256( hash(n - 1) + canonical JSON of [n, at, kind, body] )

Whoever edits, removes or reorders a row changes its hash and all later ones; whoever knows a later hash (a
`Head`) finds out. The chain has no key: a thief who can write the whole book can also forge all of it, except
for heads that were kept elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from mosha.core.errors import InvalidParameter

__all__ = ["GENESIS", "Content", "Entry", "Head", "canonical", "follow"]

Content = dict[str, Any]  # what a row says: JSON data by name


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: object) -> str:
    r"""The one JSON text of plain data: sorted keys, no spaces, ASCII, finite numbers.

    >>> canonical({"b": 1, "a": [0.5, "é"]})
    '{"a":[0.5,"\\u00e9"],"b":1}'
    """
    return _ENCODER.encode(value)


@dataclass(frozen=True, slots=True)
class Head:
    """The last row of a book: who knows it can tell later whether anything before it was changed.

    `sequence` is its place, and `hash` chains it to all rows before it.

    >>> Head.parse(str(Head(0, "0" * 64))) == GENESIS
    True
    """

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"

    @staticmethod
    def parse(text: str) -> Head:
        """The head that `str(head)` wrote as `text`."""
        if not isinstance(text, str) or not re.fullmatch(r"\d{1,18}:[0-9a-f]{64}", text):
            raise InvalidParameter("ledger.bad_head", parameter="head")
        sequence, digest = text.split(":")
        return Head(int(sequence), digest)


GENESIS = Head(0, "0" * 64)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the book; `at` is in microseconds since 1970, `body` is canonical JSON.

    `sequence` counts rows from 1, `kind` is one word, and `hash` chains the row to the one before it.

    >>> Entry(sequence=1, at=0, kind="note", body='{"topic":"look"}', hash="").content()
    {'topic': 'look'}
    """

    sequence: int
    at: int
    kind: str
    body: str
    hash: str

    @property
    def head(self) -> Head:
        return Head(self.sequence, self.hash)

    @property
    def label(self) -> str:
        """How receipts name the row: its place and the beginning of its hash."""
        return f"{self.sequence}-{self.hash[:12]}"

    def content(self) -> Content:
        """What the row says, as plain data."""
        loaded: dict[str, Any] = json.loads(self.body)
        return loaded

    def follows(self, previous: Head) -> bool:
        """Whether this is the untouched row after `previous`.

        A kind is one word, so that no other kind and body read the same when they are put side by side.
        """
        digest = _digest(previous.hash, self.sequence, self.at, self.kind, self.body)
        return self.kind.isidentifier() and self.sequence == previous.sequence + 1 and self.hash == digest


def follow(previous: Head, at: int, kind: str, content: Content) -> Entry:
    """The row after `previous`.

    >>> entry = follow(GENESIS, 0, "open", {"account": "visits"})
    >>> entry.follows(GENESIS), entry.follows(entry.head)
    (True, False)
    """
    sequence, body = previous.sequence + 1, canonical(content)
    return Entry(sequence, at, kind, body, _digest(previous.hash, sequence, at, kind, body))


def _digest(previous: str, sequence: int, at: int, kind: str, body: str) -> str:
    row = f'{previous}[{sequence},{at},"{kind}",{body}]'  # canonical JSON too, for `body` is
    return hashlib.sha256(row.encode()).hexdigest()
