"""One value in one sealed file: plain values and arrays, replaced as a whole, never run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosha.core.language import Phrase
from mosha.files.packing import Kind, pack, unpack
from mosha.files.sealed import SealedFile, own_secret

__all__ = ["SealedStore"]


class SealedStore:
    """A file that holds one tree of plain values and arrays (`packing`), sealed (`sealed`) and replaced atomically.

    Guarantee:
        That of `SealedFile`: what was edited, cut or made for another `purpose` is refused. Reading makes values and
        runs no code, whoever wrote the file.

    Args:
        path: the file. The key of its seal lies beside it in `<file>.key`, unless a secret is given.
        purpose: what the file is for; a file of another purpose is refused.
        what: what to call it in errors.
        again: what to do if its key is gone, as a sentence.
        secret: at least 32 random bytes.
        kinds: further types that may be stored.
    """

    def __init__(
        self,
        path: Path,
        *,
        purpose: str,
        what: Phrase,
        again: Phrase,
        secret: bytes | None = None,
        kinds: Mapping[str, Kind] | None = None,
    ) -> None:
        self.path, self._purpose, self._what, self._again = path, purpose, what, again
        self._secret, self._kinds = secret, kinds

    def write(self, value: object) -> None:
        """Replace what is stored; on disk when this returns.

        Raises:
            InvalidParameter: for a value that no file can hold; the file stays as it was.
            OSError: if it cannot be written; the file stays as it was.
        """
        content = pack(value, self._kinds)
        self._file().write(content)

    def read(self) -> Any:
        """What was stored last, or None if there is no file.

        Raises:
            StateRefused: for a file that this secret and purpose did not seal. Nothing of it is used.
            OSError: if it cannot be read.
        """
        data = self._file().read()
        return None if data is None else unpack(data, self._kinds)

    def _file(self) -> SealedFile:
        secret = self._secret or own_secret(self.path, what=self._what, again=self._again)
        magic = f"mosha-{self._purpose}-1\n".encode()
        return SealedFile(self.path, secret=secret, magic=magic, purpose=self._purpose, what=self._what)
