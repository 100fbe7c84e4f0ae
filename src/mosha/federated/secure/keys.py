"""The cryptography of one round: key pairs, what two clients share, sealed letters, masks."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from mosha.core.errors import DataError
from mosha.core.measurement import Rng

__all__ = ["PrivateKey", "PublicKeys", "add_mask", "agree_secret", "fresh_pair", "open_letter", "seal_letter"]

_SALT = b"mosha.federated.secure-aggregation.1"
_NONCE = bytes(12)  # every letter has a key of its own

_CHUNK = 1 << 16
_ZEROS = bytes(4 * _CHUNK)
_scratch = threading.local()

Ring = NDArray[np.uint32]


@dataclass(frozen=True)
class PublicKeys:
    """What a client shows to the others: one key for letters, one for masks; 32 bytes each."""

    letters: bytes
    masks: bytes


PrivateKey = X25519PrivateKey


def fresh_pair(rng: Rng) -> tuple[PrivateKey, bytes]:
    """A private and a public X25519 key."""
    private = X25519PrivateKey.from_private_bytes(rng.bytes(32))
    return private, private.public_key().public_bytes_raw()


def agree_secret(private: PrivateKey, public: bytes, *context: bytes) -> bytes:
    """32 bytes that only the owners of two key pairs can compute, bound to a purpose and a round.

    Guarantee:
        HKDF-SHA256 of the X25519 secret with the context as info (each part with its length). Different contexts give
        computationally independent keys. A public key of small order is refused.
    """
    try:
        secret = private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise DataError("federated.bad_public_key") from None
    info = b"".join(len(part).to_bytes(4) + part for part in context)
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=_SALT, info=info).derive(secret)


def seal_letter(key: bytes, text: bytes, about: bytes) -> bytes:
    """`text`, encrypted and authenticated (AES-256-GCM) under a key that is used for this letter alone."""
    return AESGCM(key).encrypt(_NONCE, text, about)


def open_letter(key: bytes, letter: bytes, about: bytes) -> bytes:
    """What `seal_letter` sealed; anything else is refused."""
    try:
        return AESGCM(key).decrypt(_NONCE, letter, about)
    except InvalidTag:
        raise DataError("federated.letter_changed") from None


def add_mask(total: Ring, seed: bytes, *, negative: bool = False) -> None:
    """Add to `total`, or take from it, integers modulo 2**32 that nobody without the seed can tell from uniform.

    Guarantee:
        The key stream of AES-256 in counter mode under the 32-byte seed, which is used for one mask alone.

    >>> total = np.zeros(5, np.uint32)
    >>> add_mask(total, bytes(32)); add_mask(total, bytes(32), negative=True)
    >>> total.tolist()
    [0, 0, 0, 0, 0]
    """
    stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()
    buffer = _buffer()
    words = np.frombuffer(buffer, "<u4")
    change = np.subtract if negative else np.add
    for start in range(0, len(total), _CHUNK):
        part = total[start : start + _CHUNK]
        stream.update_into(memoryview(_ZEROS)[: 4 * len(part)], buffer)
        change(part, words[: len(part)], out=part)


def _buffer() -> bytearray:
    """One buffer for each thread: fresh memory would cost more than the cipher."""
    if not hasattr(_scratch, "buffer"):
        _scratch.buffer = bytearray(4 * _CHUNK + 16)
    found: bytearray = _scratch.buffer
    return found
