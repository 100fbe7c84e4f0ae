"""The key of a book: kept elsewhere, so that nobody who can merely write the book can write its rows.

    tag(n) = HMAC-SHA256( a key for rows, derived from the key;  "n:hash(n)" )

The hash of a row covers all rows before it, and so does its tag. The name of a key (`id`) tells keys apart and tells
nothing about them. What is derived for one purpose is of no use for another.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.language import describe_system_error
from mosha.files.atomic import create_file, is_open_to_others
from mosha.ledger.storage.chain import Head

__all__ = ["VARIABLE", "LedgerKey", "find_key_file", "make_key_file"]

VARIABLE = "MOSHA_LEDGER_KEY_FILE"
SHORTEST = 32  # bytes
LONGEST = 2**16  # bytes: a key file is no data file
ID = 16  # hexadecimal digits


class LedgerKey:
    """A key, by its name; neither `repr` nor an error shows more.

    >>> key = LedgerKey(b"32 bytes from a good generator!!")
    >>> key.id, key.matches(Head(7, "a" * 64), key.tag(Head(7, "a" * 64))), key
    ('9c3c6ec0dfafafb5', True, <LedgerKey 9c3c6ec0dfafafb5>)
    """

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes) or len(secret) < SHORTEST:
            raise InvalidParameter("ledger.key_too_short", parameter="key", shortest=SHORTEST, spent="nothing")
        self._secret = secret
        self.id = hashlib.sha256(self._derive("id")).hexdigest()[:ID]

    @staticmethod
    def of(key: LedgerKey | bytes | str | os.PathLike[str]) -> LedgerKey:
        """A key from its bytes, or from the file that holds them."""
        if isinstance(key, LedgerKey):
            return key
        if isinstance(key, bytes):
            return LedgerKey(key)
        if isinstance(key, str | os.PathLike) and os.fspath(key):
            return LedgerKey(_read_secret(Path(key)))
        raise InvalidParameter("ledger.not_a_key", parameter="key")

    def _derive(self, purpose: str) -> bytes:
        return hmac.digest(self._secret, f"mosha ledger {purpose}".encode(), "sha256")

    @cached_property
    def _for_rows(self) -> bytes:
        return self._derive("rows")

    @cached_property
    def _for_checkpoints(self) -> bytes:
        return self._derive("checkpoints")

    def tag(self, head: Head) -> str:
        """What only a holder of the key can write beside a row."""
        return hmac.digest(self._for_rows, str(head).encode(), "sha256").hex()

    def matches(self, head: Head, tag: object) -> bool:
        """Whether this is the tag of that row."""
        return isinstance(tag, str) and hmac.compare_digest(self.tag(head).encode(), tag.encode())

    def sign(self, content: bytes) -> str:
        """What only a holder of the key can write under a checkpoint."""
        return hmac.digest(self._for_checkpoints, content, "sha256").hex()

    def __repr__(self) -> str:
        return f"<LedgerKey {self.id}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise InvalidParameter("ledger.key_not_pickled")


def _read_secret(path: Path) -> bytes:
    """All bytes of a key file, which nobody but its owner may read."""
    try:
        with path.open("rb") as file:
            exposed = is_open_to_others(file.fileno())
            secret = file.read(LONGEST + 1)
    except OSError as error:
        raise InvalidParameter(
            "ledger.key_not_readable", parameter="key", path=str(path), reason=describe_system_error(error)
        ) from None
    if exposed:
        raise InvalidParameter("ledger.key_open_to_others", parameter="key", path=str(path), spent="nothing")
    if not SHORTEST <= len(secret) <= LONGEST:
        raise InvalidParameter("ledger.key_size", parameter="key", path=str(path), shortest=SHORTEST, longest=LONGEST)
    return secret


def make_key_file(path: str | os.PathLike[str]) -> LedgerKey:
    """Draw a new key into a new file that its owner alone can read (mode 0600)."""
    secret = os.urandom(SHORTEST).hex().encode() + b"\n"
    try:
        made = create_file(Path(path), [secret])
    except OSError as error:
        raise InvalidParameter(
            "ledger.key_not_writable", parameter="path", path=os.fspath(path), reason=describe_system_error(error)
        ) from None
    if not made:
        raise InvalidParameter("ledger.key_exists", parameter="path", path=os.fspath(path))
    return LedgerKey(secret)


def find_key_file() -> str | None:
    """The key file that the environment names, for commands (`MOSHA_LEDGER_KEY_FILE`)."""
    return os.environ.get(VARIABLE) or None
