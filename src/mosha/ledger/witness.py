"""A witness beside the book: the last head that was written, so that an older copy of the book is noticed.

Two slots of one fixed size are written in turn, each with its own checksum: a torn write spoils one of them and
the other one still holds. The witness is written after each commit and may lag behind the book (a crash, a late
writer); it is never ahead of it, unless the book went back.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from mosha.core.errors import InvalidParameter, LedgerTampered, LedgerUnavailable
from mosha.ledger.chain import Head

__all__ = ["Witness"]

SLOT = 128


def _slot(head: Head) -> bytes:
    text = str(head)
    check = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text} {check}".encode().ljust(SLOT - 1) + b"\n"


def _head(slot: bytes) -> Head | None:
    try:
        text, _, check = slot.decode().strip().partition(" ")
        if hashlib.sha256(text.encode()).hexdigest()[:16] == check:
            return Head.parse(text)
    except (UnicodeDecodeError, InvalidParameter):
        pass
    return None


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
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerUnavailable(f"the witness {self.path} cannot be read ({error.strerror}).") from None
        heads = [head for start in (0, SLOT) if (head := _head(content[start : start + SLOT]))]
        if not heads:
            raise LedgerTampered(
                f"the witness {self.path} holds no head that can be read. Compare the book with a head that was "
                "kept elsewhere (`mosha ledger verify --head`), then remove this file to begin a new witness."
            )
        return max(heads, key=lambda head: head.sequence)

    def note(self, head: Head) -> None:
        """Remember `head`. A witness that cannot be written falls behind, and the book stays right without it."""
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            try:
                os.lseek(file, SLOT * (head.sequence % 2), os.SEEK_SET)
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
