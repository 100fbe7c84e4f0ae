"""The state of a running stream on disk: sealed, replaced in one piece, flushed before any output leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mosha.core.errors import InvalidParameter, StateRefused
from mosha.core.language import phrase
from mosha.files.locks import FileLock
from mosha.files.sealed import SealedFile, check_secret, own_secret

__all__ = ["Checkpoint", "check_place"]

_MAGIC = b"mosha-stream-2\n"
_FIRST = b"mosha-stream-1\n"  # written by earlier versions: one piece under a key derived from the secret alone


class Checkpoint:
    """One sealed file, held by one process.

    The key lies beside it in `<file>.key`, readable by the owner alone, unless a secret of at least 32 bytes is given.

    Guarantee:
        AES-256-GCM under a key derived from the secret and bound to the stream's name (`files/sealed.py`): whoever
        lacks the secret reads nothing and changes nothing unnoticed. `save` returns after the new file and its folder
        are on disk; a crash leaves the old file or the new one. An older copy put back is found out by the ledger
        (`service.py`).
    """

    def __init__(self, path: str | Path, name: str, secret: bytes | None = None) -> None:
        given = None if secret is None else check_secret(secret)
        self.path, self._name = check_place(path), name
        self._held_lock = self._lock()
        what = phrase("streams.this_stream", name=name)
        try:
            master = own_secret(self.path, what=what, again=phrase("streams.start_anew")) if given is None else given
        except OSError:
            self.close()
            raise self._refuse_access() from None
        except BaseException:
            self.close()
            raise
        self._file = SealedFile(self.path, secret=master, magic=_MAGIC, purpose=name, what=what)
        self._seal = AESGCM(_derive_secret(master, "seal"))
        self.noise_key = _derive_secret(master, "noise")
        self.digest_key = _derive_secret(master, "digest")
        self.home = self._lock_place.stat().st_ino  # the lock is never replaced: a copy of it has another number

    @property
    def _lock_place(self) -> Path:
        return self.path.with_name(self.path.name + ".lock")

    def _lock(self) -> FileLock:
        try:
            lock = FileLock.take(self._lock_place)
        except OSError:
            raise self._refuse_access() from None
        if lock is None:
            raise StateRefused("streams.state_in_use", stream=self._name, spent="nothing")
        return lock

    def _refuse_access(self) -> StateRefused:
        return StateRefused("streams.state_files_closed", stream=self._name, path=str(self.path), spent="nothing")

    def load(self) -> dict[str, Any] | None:
        """What was saved last, or None where nothing was."""
        try:
            opened = self._read_first() or self._file.read()
        except OSError:
            raise self._refuse_access() from None
        if opened is None:
            return None
        found: dict[str, Any] = json.loads(opened)
        return found

    def _read_first(self) -> bytes | None:
        """What an earlier version sealed; None where the file is not of that kind."""
        try:
            sealed = self.path.read_bytes()
        except FileNotFoundError:
            return None
        if not sealed.startswith(_FIRST):
            return None
        body = sealed.removeprefix(_FIRST)
        try:
            return self._seal.decrypt(body[:12], body[12:], self._name.encode())
        except (InvalidTag, ValueError):
            raise StateRefused("streams.state_of_another_stream", stream=self._name) from None

    def save(self, content: dict[str, object]) -> None:
        """Replace the file in one piece and flush it."""
        try:
            self._file.write([_pad(json.dumps(content).encode())])
        except OSError:
            raise StateRefused("streams.state_not_written") from None

    def close(self) -> None:
        self._held_lock.release()


def check_place(path: str | Path) -> Path:
    """Where a state may be kept: a file, there or not, in a folder that is there; looked at before anything is made."""
    try:
        place = Path(path)
        folder, inside = place.is_dir(), place.parent.is_dir()
    except (TypeError, ValueError, OSError):
        raise InvalidParameter("streams.no_state_path", parameter="state", spent="nothing") from None
    if "\0" in str(place):
        raise InvalidParameter("streams.nul_in_path", parameter="state", spent="nothing")
    if folder:
        raise InvalidParameter("streams.state_is_folder", parameter="state", path=str(place), spent="nothing")
    if not inside:
        raise InvalidParameter("streams.no_state_folder", parameter="state", path=str(place.parent), spent="nothing")
    return place


def _pad(text: bytes) -> bytes:
    """With blanks up to a power of two, 4,096 bytes at least: the length of a file tells little about its persons."""
    return text.ljust(max(4096, 1 << (len(text) - 1).bit_length()))


def _derive_secret(master: bytes, purpose: str) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt=b"mosha.streams.1", info=purpose.encode()).derive(master)
