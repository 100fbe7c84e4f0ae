"""The state of a running stream on disk: sealed, replaced in one piece, flushed before any output leaves."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mosha.core.errors import InvalidParameter, StateRefused

__all__ = ["Checkpoint", "checked_place"]

_MAGIC = b"mosha-stream-1\n"


class Checkpoint:
    """One sealed file, held by one process.

    The key lies beside it in `<file>.key`, readable by the owner alone, unless a secret of at least 32 bytes is given.

    Guarantee:
        AES-256-GCM under a key derived from the secret and bound to the stream's name: whoever lacks the secret reads
        nothing and changes nothing unnoticed. `save` returns after the new file and its folder are on disk; a crash
        leaves the old file or the new one. An older copy put back is found out by the ledger (`service.py`).
    """

    def __init__(self, path: str | Path, name: str, secret: bytes | None = None) -> None:
        given = None if secret is None else _checked(secret)
        self.path, self._name = checked_place(path), name
        self._lock = self._locked()
        try:
            master = self._own_secret() if given is None else given
        except BaseException:
            self.close()
            raise
        self._seal = AESGCM(_derived(master, "seal"))
        self.noise_key = _derived(master, "noise")
        self.digest_key = _derived(master, "digest")

    def _locked(self) -> int:
        try:
            handle = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            raise self._closed_to_us() from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise StateRefused(
                f"the state of stream {self._name!r} is in use by another process. Nothing was spent or read."
            ) from None
        return handle

    def _closed_to_us(self) -> StateRefused:
        return StateRefused(
            f"the files of stream {self._name!r} ({str(self.path)!r} and beside it) cannot be opened: look at their "
            "rights and their folder's, or name another file. Nothing was spent or read."
        )

    def _own_secret(self) -> bytes:
        place = self.path.with_name(self.path.name + ".key")
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            try:
                kept = place.read_bytes()
            except OSError:
                raise self._closed_to_us() from None
            return _checked(kept)
        except OSError:
            raise self._closed_to_us() from None
        if self.path.exists():
            os.close(handle)
            place.unlink()
            raise StateRefused(
                f"the key of stream {self._name!r} is gone: its state cannot be read. Start a new stream."
            )
        made = secrets.token_bytes(32)
        os.write(handle, made)
        os.fsync(handle)
        os.close(handle)
        return made

    def load(self) -> dict[str, Any] | None:
        """What was saved last, or None where nothing was."""
        try:
            sealed = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            raise self._closed_to_us() from None
        body = sealed.removeprefix(_MAGIC)
        try:
            opened = self._seal.decrypt(body[:12], body[12:], self._name.encode())
            found: dict[str, Any] = json.loads(opened)
        except (InvalidTag, ValueError):
            raise StateRefused(
                f"the state file is not that of stream {self._name!r}, was edited or has another key. Nothing was read."
            ) from None
        return found

    def save(self, content: dict[str, Any]) -> None:
        """Replace the file in one piece and flush it."""
        nonce = secrets.token_bytes(12)
        sealed = self._seal.encrypt(nonce, _padded(json.dumps(content).encode()), self._name.encode())
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + nonce + sealed)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            raise StateRefused("the state could not be written: no output leaves before it is on disk.") from None
        fresh.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def checked_place(path: str | Path) -> Path:
    """Where a state may be kept: a file, there or not, in a folder that is there; looked at before anything is made."""
    try:
        place = Path(path)
        folder, inside = place.is_dir(), place.parent.is_dir()
    except (TypeError, ValueError, OSError):
        raise InvalidParameter("the state of a stream is kept in a file: give its path. Nothing was spent.") from None
    if "\0" in str(place):
        raise InvalidParameter("no file has a NUL in its name: give the path of the state. Nothing was spent.")
    if folder:
        raise InvalidParameter(f"{str(place)!r} is a folder: the state of a stream is a file. Nothing was spent.")
    if not inside:
        raise InvalidParameter(f"there is no folder {str(place.parent)!r} to keep the state in. Nothing was spent.")
    return place


def _padded(text: bytes) -> bytes:
    """With blanks up to a power of two, 4,096 bytes at least: the length of a file tells little about its persons."""
    return text.ljust(max(4096, 1 << (len(text) - 1).bit_length()))


def _checked(secret: bytes) -> bytes:
    if not isinstance(secret, bytes) or len(secret) < 32:
        raise InvalidParameter("the secret of a stream is at least 32 random bytes: make one with os.urandom(32).")
    return secret


def _derived(master: bytes, purpose: str) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt=b"mosha.streams.1", info=purpose.encode()).derive(master)
