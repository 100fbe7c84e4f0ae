"""A sealed file: nobody without its secret reads it or changes it unnoticed."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mosha.core.errors import InvalidParameter, StateRefused
from mosha.core.language import Phrase
from mosha.files.atomic import Buffer, create_file, replace_file

__all__ = ["SealedFile", "check_secret", "own_secret"]

_PIECE = 1 << 24  # bytes of content under one tag
_TAG = 16
_FRESH = 32  # bytes that make the key of one write its own


class SealedFile:
    """One file of bytes under AES-256-GCM, replaced as a whole.

    Guarantee:
        Every write has a key of its own, derived from the secret and 32 fresh bytes, and its pieces are numbered and
        the last one marked: a file that was edited, cut, put together from two or made for another `purpose` is
        refused. An older file put back is not noticed here; whoever needs that keeps a number in a ledger.

    `magic` is how the file begins, for people and programs that wonder what it is; `what` names it in errors.
    """

    def __init__(self, path: Path, *, secret: bytes, magic: bytes, purpose: str, what: Phrase) -> None:
        self.path, self._secret = path, check_secret(secret)
        self._magic, self._purpose, self._what = magic, purpose.encode(), what

    def write(self, content: Iterable[Buffer]) -> None:
        """Replace the file; on disk when this returns.

        Raises:
            OSError: where it cannot be written; what stood there stays.
        """
        fresh = secrets.token_bytes(_FRESH)
        replace_file(self.path, self._seal_pieces(fresh, content))

    def read(self) -> bytearray | None:
        """What was written last, or None where there is no file.

        Raises:
            StateRefused: for a file that this secret and purpose did not seal. Nothing of it is used.
            OSError: where it cannot be read.
        """
        try:
            data = memoryview(self.path.read_bytes())
        except FileNotFoundError:
            return None
        begin = len(self._magic) + _FRESH
        if bytes(data[: len(self._magic)]) != self._magic or len(data) < begin + _TAG:
            raise self._refusal()
        seal, found = self._seal(bytes(data[begin - _FRESH : begin])), bytearray()
        body = data[begin:]
        for number, start in enumerate(range(0, len(body), _PIECE + _TAG)):
            piece = body[start : start + _PIECE + _TAG]
            nonce = _nonce(number, last=start + len(piece) == len(body))
            try:
                found += seal.decrypt(nonce, piece, self._purpose)
            except (InvalidTag, ValueError):
                raise self._refusal() from None
        return found

    def _seal_pieces(self, fresh: bytes, content: Iterable[Buffer]) -> Iterator[bytes]:
        yield self._magic + fresh
        seal, number, waiting = self._seal(fresh), 0, b""
        for piece in _pieces(content):
            if number:
                yield seal.encrypt(_nonce(number - 1, last=False), waiting, self._purpose)
            waiting, number = piece, number + 1
        yield seal.encrypt(_nonce(max(0, number - 1), last=True), waiting, self._purpose)

    def _seal(self, fresh: bytes) -> AESGCM:
        return AESGCM(HKDF(hashes.SHA256(), 32, salt=fresh, info=b"mosha.files.sealed.1").derive(self._secret))

    def _refusal(self) -> StateRefused:
        return StateRefused("files.not_this_file", path=str(self.path), what=self._what)


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _pieces(content: Iterable[Buffer]) -> Iterator[bytes]:
    """The same bytes in pieces of one length; the last may be shorter."""
    waiting = bytearray()
    for part in content:
        view = memoryview(part).cast("B")
        while len(waiting) + len(view) >= _PIECE:
            needed = _PIECE - len(waiting)
            yield bytes(waiting) + bytes(view[:needed])
            waiting.clear()
            view = view[needed:]
        waiting += view
    if waiting:
        yield bytes(waiting)


def own_secret(path: Path, *, what: Phrase, again: Phrase) -> bytes:
    """The secret of the file at `path`: 32 bytes in `<path>.key` beside it, made where there is neither file nor key.

    Raises:
        StateRefused: where the file is there and its key is gone; `again` says what to do then.
        OSError: where the key cannot be read or made.
    """
    place = path.with_name(path.name + ".key")
    if not place.exists():
        if path.exists():
            raise StateRefused("files.secret_gone", what=what, again=again)
        create_file(place, [secrets.token_bytes(32)])  # where another was first, theirs counts
    return check_secret(place.read_bytes())


def check_secret(secret: bytes) -> bytes:
    if not isinstance(secret, bytes) or len(secret) < 32:
        raise InvalidParameter("files.secret_too_short", parameter="secret", spent="nothing")
    return secret
