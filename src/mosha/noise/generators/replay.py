"""Streams that can be replayed: one keyed and secret, one seeded and for tests only.

Both are AES-256 in counter mode under a key that is a pure function of their arguments.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING, Final, NoReturn, final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mosha.core.errors import InsecureRandomness, InvalidParameter
from mosha.noise.generators.secure_random import Words, byte_count, words

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["KeyedRandom", "SeededRandom"]

_SALT: Final = b"mosha.noise.KeyedRandom.1"
_SMALLEST_KEY: Final = 32


class _CounterStream:
    """The AES-256-CTR key stream of one key, handed out in order: bytes(a) + bytes(b) == bytes(a + b)."""

    __slots__ = ("_encryptor", "_lock")

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._lock = threading.Lock()

    def take(self, n: int) -> bytes:
        with self._lock:
            return self._encryptor.update(bytes(n))


def _encode(context: tuple[str | int | bytes, ...]) -> bytes:
    """The context as bytes, one to one: every part carries its kind and its length."""
    parts = []
    for part in context:
        if isinstance(part, bool) or not isinstance(part, str | int | bytes):
            raise InvalidParameter("noise.wrong_context", parameter="context", kind=type(part).__name__)
        kind = b"b" if isinstance(part, bytes) else b"s" if isinstance(part, str) else b"i"
        body = part if isinstance(part, bytes) else str(part).encode()
        parts.append(kind + len(body).to_bytes(8, "little") + body)
    return b"".join(parts)


@final
class KeyedRandom:
    """The secret stream that belongs to (key, `context`): the same pair gives the same bytes, for ever.

    A release that was interrupted after it was paid for can be made again, bit for bit, without a
    second payment: derive the generator from the ledger's key and the receipt's identity.

    Guarantee:
        The AES key is HKDF-SHA256(key, salt, context), a pseudo-random function of the context for whoever
        does not hold `key`; the context is encoded one to one. So streams of different contexts are
        computationally independent and uniform. Use one context for one release only: noise used
        twice on different data can be subtracted away. A forked child is refused for that reason.

    Units:
        Bytes; `key` is at least 32 bytes of secret, uniform randomness.

    >>> key = bytes(range(32))
    >>> KeyedRandom(key, "visits", 7).bytes(4) == KeyedRandom(key, "visits", 7).bytes(4)
    True
    """

    __slots__ = ("_process", "_stream")

    def __init__(self, key: bytes, *context: str | int | bytes) -> None:
        if not isinstance(key, bytes):
            raise InvalidParameter("noise.key_not_bytes", parameter="key", kind=type(key).__name__)
        if len(key) < _SMALLEST_KEY:
            raise InvalidParameter("noise.key_too_short", parameter="key", least=_SMALLEST_KEY, length=len(key))
        derivation = HKDF(algorithm=hashes.SHA256(), length=32, salt=_SALT, info=_encode(context))
        self._stream = _CounterStream(derivation.derive(key))
        self._process = os.getpid()

    @property
    def secure(self) -> bool:
        """True: whoever does not hold the key cannot predict the stream."""
        return True

    @property
    def replayable(self) -> bool:
        """True: the stream can be made again, so an account takes it from nobody; a measurement derives its own."""
        return True

    def bytes(self, n: int, /) -> bytes:
        """The next `n` bytes of the stream."""
        if self._process != os.getpid():
            raise InsecureRandomness("noise.keyed_random_forked")
        return self._stream.take(byte_count(n))

    def words(self, n: int, dtype: DTypeLike = "<u8") -> Words:
        """The next `n` unsigned integers of type `dtype`."""
        return words(self, n, dtype)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InsecureRandomness("noise.keyed_random_copied")

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __deepcopy__(self, memo: dict[int, object]) -> NoReturn:
        self.__reduce_ex__(2)

    def __repr__(self) -> str:
        return "KeyedRandom(...)"


@final
class SeededRandom:
    """A predictable stream for tests: whoever knows the seed knows the noise. Accounts refuse it.

    Guarantee:
        None about privacy (`secure` is False). The same seed gives the same bytes on every machine.

    Units:
        Bytes; `seed` is any integer.

    >>> SeededRandom(7).bytes(4) == SeededRandom(7).bytes(4)
    True
    >>> SeededRandom(7).secure
    False
    """

    __slots__ = ("_seed", "_stream")

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise InvalidParameter("core.not_whole", parameter="seed", kind=type(seed).__name__)
        self._seed = seed
        self._stream = _CounterStream(hashlib.sha256(f"mosha.noise.SeededRandom.1:{seed}".encode()).digest())

    @property
    def secure(self) -> bool:
        """False: an account refuses this generator."""
        return False

    def bytes(self, n: int, /) -> bytes:
        """The next `n` bytes of the stream."""
        return self._stream.take(byte_count(n))

    def words(self, n: int, dtype: DTypeLike = "<u8") -> Words:
        """The next `n` unsigned integers of type `dtype`."""
        return words(self, n, dtype)

    def __repr__(self) -> str:
        return f"SeededRandom({self._seed})"
