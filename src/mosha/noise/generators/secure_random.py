"""Unpredictable bytes: entropy of the operating system, expanded by AES-256 in counter mode.

Every expansion takes a fresh 32-byte key from `os.urandom`, uses it once and drops it, so no state
survives from which an earlier or later byte could be computed. Only small requests share a pool;
what the pool has handed out is overwritten, and a child process never inherits a usable pool.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from mosha.core.errors import InsecureRandomness, InvalidParameter

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from mosha.core.measurement import Rng

    Words: TypeAlias = NDArray[np.unsignedinteger[Any]]

__all__ = ["SecureRandom", "Words", "byte_count", "secure", "word", "words"]

_KEY_BYTES: Final = 32
_POOL_BYTES: Final = 8192
_LARGEST_FROM_POOL: Final = 512  # above this a key of its own costs less than it is worth
_ZEROS: Final = bytes(1 << 18)

_forks = 0


def _count_fork() -> None:
    global _forks  # noqa: PLW0603 - the one number that says which process generation we are
    _forks += 1


if hasattr(os, "register_at_fork"):  # where processes can fork
    os.register_at_fork(after_in_child=_count_fork)


def _expand(n: int) -> bytes:
    """`n` bytes under a key that nothing else will ever use, which is why the counter may start at zero."""
    cipher = Cipher(algorithms.AES(os.urandom(_KEY_BYTES)), modes.CTR(bytes(16)))
    zeros = memoryview(_ZEROS)[:n] if n <= len(_ZEROS) else bytes(n)
    return cipher.encryptor().update(zeros)


def _make_pieces(largest: int) -> Callable[[int], memoryview]:
    """One expansion, handed out in pieces of at most `largest` bytes; each takes the place of the one before."""
    encryptor = Cipher(algorithms.AES(os.urandom(_KEY_BYTES)), modes.CTR(bytes(16))).encryptor()
    room = memoryview(bytearray(largest + 16))  # the cipher asks for a block more
    zeros = memoryview(_ZEROS if largest <= len(_ZEROS) else bytes(largest))

    def piece(n: int) -> memoryview:
        encryptor.update_into(zeros[:n], room)
        return room[:n]

    return piece


class _Pool:
    """Bytes for small requests, valid in the process and fork generation that made it."""

    __slots__ = ("_buffer", "_lock", "_position", "owner")

    def __init__(self) -> None:
        self.owner = (os.getpid(), _forks)
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._position = 0

    def take(self, n: int) -> bytes:
        with self._lock:
            end = self._position + n
            if end > len(self._buffer):
                self._buffer = bytearray(_expand(_POOL_BYTES))
                self._position, end = 0, n
            taken = bytes(self._buffer[self._position : end])
            self._buffer[self._position : end] = _ZEROS[:n]
            self._position = end
            return taken


@final
class SecureRandom:
    """Random bytes that nobody outside the process can predict, and that no `seed` can repeat: one is refused.

    Guarantee:
        Each byte is handed out once: to one caller, one thread, one process. Requests above 512 bytes
        are AES-256-CTR under a fresh operating-system key. Smaller ones are cut, under a lock, from a
        pool made the same way; a pool is bound to (process id, number of forks seen) and replaced
        as a whole when either differs, so parent and child never cut from one pool. Indistinguishable
        from uniform as far as AES-256 and `os.urandom` are.

    Units:
        Bytes. `words` gives unsigned integers of the asked type, little-endian.

    Sharp edge: a virtual machine restored twice from one snapshot restarts with the same pool (at most
    8192 bytes). Python cannot promise that a freed key is erased from memory.

    >>> generator = SecureRandom()
    >>> len(generator.bytes(16)), generator.secure
    (16, True)
    """

    __slots__ = ("_pool",)

    def __init__(self, *seed: object) -> None:
        if seed:
            raise InvalidParameter("noise.secure_random_seeded", parameter="seed")
        self._pool = _Pool()

    @property
    def secure(self) -> bool:
        """True: an account accepts this generator."""
        return True

    def bytes(self, n: int, /) -> bytes:
        """The next `n` bytes."""
        if type(n) is not int or n < 0:
            n = byte_count(n)
        if n > _LARGEST_FROM_POOL:
            return _expand(n)
        pool = self._pool
        if pool.owner != (os.getpid(), _forks):
            pool = self._pool = _Pool()
        return pool.take(n)

    def pieces(self, largest: int, /) -> Callable[[int], memoryview]:
        """For many bytes that are used at once: what gives the next n <= `largest` of them, in memory that is reused.

        All come from one key, which goes when the last piece is not wanted any more.
        """
        return _make_pieces(largest)

    def words(self, n: int, dtype: DTypeLike = "<u8") -> Words:
        """The next `n` unsigned integers of type `dtype`."""
        return words(self, n, dtype)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InsecureRandomness("noise.secure_random_copied")

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __deepcopy__(self, memo: dict[int, object]) -> NoReturn:
        self.__reduce_ex__(2)

    def __repr__(self) -> str:
        return "SecureRandom()"


_process_wide: Final = SecureRandom()


def secure() -> SecureRandom:
    """The generator that the whole process shares, and that every sampler uses unless told otherwise.

    >>> secure() is secure()
    True
    """
    return _process_wide


if not TYPE_CHECKING:
    Words = np.ndarray


def byte_count(n: object) -> int:
    """`n` as a number of bytes or words; anything else is refused."""
    try:
        count = operator.index(n)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidParameter("core.not_whole", parameter="n", kind=type(n).__name__) from None
    if count < 0:
        raise InvalidParameter("noise.negative_number_of_bytes", parameter="n")
    return count


def words(rng: Rng, n: int, dtype: DTypeLike = "<u8") -> Words:
    """The next `n` unsigned integers of type `dtype` (a read-only view of the bytes)."""
    kind = np.dtype(dtype)
    if kind.kind != "u":
        raise InvalidParameter("noise.words_not_unsigned", parameter="dtype", kind=str(kind))
    return np.frombuffer(rng.bytes(byte_count(n) * kind.itemsize), dtype=kind.newbyteorder("<"))


def word(rng: Rng, n: int = 8) -> int:
    """The next `n` bytes as one integer below 256**n."""
    return int.from_bytes(rng.bytes(n), "little")
