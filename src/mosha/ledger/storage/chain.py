"""The chain: every row of the book carries the hash of all rows before it.

    hash(n) = SHA-256( hash(n - 1) + canonical JSON of [n, at, kind, body] )

Whoever edits, removes or reorders a row changes its hash and all later ones; whoever knows a later hash (a
`Head`) finds out. The chain has no key: a thief who can write the whole book can also forge all of it, except
for heads that were kept elsewhere.

Beside a book stands its witness: the last head that was written, so that an older copy of the book is noticed. It has
two slots of one fixed size, each with its own checksum. A head is written over the older of the two, and only if it
is later than both: a torn write spoils what was older anyway, and a late writer sets nothing back. The witness is
written after each commit, one writer at a time, and may lag behind the book (a crash); it is never ahead of it,
unless the book went back.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mosha.core.errors import InvalidParameter, LedgerTampered, LedgerUnavailable
from mosha.files.locks import lock_now, unlock

__all__ = ["GENESIS", "Content", "Entry", "Head", "Witness", "canonical", "follow"]

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


SLOT = 128
TRIES = 500  # a millisecond apart
BINARY = getattr(os, "O_BINARY", 0)


def _slot(head: Head) -> bytes:
    text = str(head)
    check = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text} {check}".encode().ljust(SLOT - 1) + b"\n"


@lru_cache(maxsize=64)  # every payment reads both slots twice, and writes one
def _head(slot: bytes) -> Head | None:
    try:
        text, _, check = slot.decode().strip().partition(" ")
        if hashlib.sha256(text.encode()).hexdigest()[:16] == check:
            return Head.parse(text)
    except (UnicodeDecodeError, InvalidParameter):
        pass
    return None


def _place(head: Head | None) -> int:
    return -1 if head is None else head.sequence


def _slots(file: int) -> tuple[Head | None, Head | None]:
    os.lseek(file, 0, os.SEEK_SET)
    content = os.read(file, 2 * SLOT)
    return _head(content[:SLOT]), _head(content[SLOT:])


@contextmanager
def _lock_alone(file: int) -> Iterator[None]:
    """One writer at a time. Whoever waits too long gives up (OSError); where nothing can be locked, nobody waits."""
    locked = False
    for _ in range(TRIES):
        try:
            locked = lock_now(file, at=2 * SLOT)  # behind what is read
        except OSError:
            break
        if locked:
            break
        time.sleep(0.001)
    else:
        raise BlockingIOError("somebody else writes to the witness")
    try:
        yield
    finally:
        if locked:
            unlock(file, at=2 * SLOT)


class Witness:
    """The file that remembers the head.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     witness = Witness(Path(folder) / "privacy.db.head")
    ...     witness.note(Head(7, "a" * 64))
    ...     witness.read().sequence
    7
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Head | None:
        try:
            file = os.open(self.path, os.O_RDONLY | BINARY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerUnavailable("ledger.witness_not_readable", path=str(self.path), reason=error.strerror) from None
        try:
            heads = [head for head in _slots(file) if head]
        finally:
            os.close(file)
        if not heads:
            raise LedgerTampered("ledger.witness_without_head", path=str(self.path))
        return max(heads, key=_place)

    def note(self, head: Head) -> None:
        """Remember `head`, unless a later one is remembered. Called after its commit.

        A witness that cannot be written falls behind, and the book stays right without it.
        """
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | BINARY, 0o644)
            try:
                with _lock_alone(file):
                    slots = _slots(file)
                    older = min((0, 1), key=lambda number: _place(slots[number]))
                    if _place(slots[1 - older]) < head.sequence:
                        os.lseek(file, SLOT * older, os.SEEK_SET)
                        os.write(file, _slot(head))
            finally:
                os.close(file)
        except OSError:
            pass

    def flush(self) -> None:
        """Wait until what was noted is on disk."""
        try:
            file = os.open(self.path, os.O_RDONLY)
        except OSError:
            return
        try:
            os.fsync(file)
        finally:
            os.close(file)
