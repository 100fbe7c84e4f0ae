"""A witness beside the book: the last head that was written, so that an older copy of the book is noticed.

Two slots of one fixed size, each with its own checksum. A head is written over the older of the two, and only if it
is later than both: a torn write spoils what was older anyway, and a late writer sets nothing back. The witness is
written after each commit, one writer at a time, and may lag behind the book (a crash); it is never ahead of it, unless
the book went back.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from mosha.core.errors import InvalidParameter, LedgerTampered, LedgerUnavailable
from mosha.files.locks import lock_now, unlock
from mosha.ledger.storage.chain import Head

__all__ = ["Witness"]

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
