"""Sums under encryption: anybody can add ciphertexts, one key holder can open the sum (the extra `homomorphic`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.language import phrase
from mosha.core.names.extras import load_guest
from mosha.federated.secure.keys import Ring

__all__ = ["KeyHolder", "add_encrypted", "encrypt_numbers", "sum_under_encryption"]

DEGREE = 4096
MODULUS = 1_073_692_673
"""A prime below 2**30 that is 1 modulo 2 * DEGREE: the plaintexts of one ciphertext are DEGREE numbers below it."""

MOST_INPUTS = 1 << 13
"""Each number is sent as two halves of 16 bits; sums of so many halves stay below MODULUS."""


def _guest() -> Any:
    return load_guest("tenseal", extra="homomorphic", needed_for=phrase("federated.homomorphic"))


class KeyHolder:
    """Whoever can open sums: a party that never sees a single input, and does not work together with the server.

    BFV at degree 4096 with the library's parameters for 128 bits; additions are exact, as in the ring modulo 2**32 that
    secure aggregation uses, so `Distributed.encode` can be sent either way.

    Guarantee:
        The opened sum is as private as the noise inside of it: put shares of noise into the inputs (`Distributed`).
        Encryption hides single inputs from the server as long as the key holder keeps the key to itself and opens sums
        of all inputs alone. Nothing proves to the key holder how many inputs a ciphertext has: a server that breaks
        the protocol could have a single one opened. Masks (`SecureServer`) do prove it, and need no such party.

    Units:
        Whole numbers modulo 2**32.

    >>> holder = KeyHolder()
    >>> sent = [encrypt_numbers(np.array([n, 2], np.uint32), holder.public_key) for n in (1, 10, 2**32 - 1)]
    >>> holder.open_sum(add_encrypted(sent, holder.public_key), width=2).tolist()
    [10, 6]
    """

    def __init__(self) -> None:
        guest = _guest()
        self._context = guest.context(guest.SCHEME_TYPE.BFV, poly_modulus_degree=DEGREE, plain_modulus=MODULUS)
        public = self._context.copy()
        public.make_context_public()
        self.public_key: bytes = public.serialize()

    def open_sum(self, total: Sequence[bytes], *, width: int) -> Ring:
        """The sum of `width` numbers that is in the ciphertexts `total`, modulo 2**32."""
        read = _guest().bfv_vector_from
        halves = [np.array(read(self._context, part).decrypt(), np.int64) for part in total]
        whole = np.concatenate(halves)[: 2 * width].reshape(2, width) % MODULUS
        total_numbers: Ring = ((whole[0] + (whole[1] << 16)) & 0xFFFFFFFF).astype(np.uint32)
        return total_numbers


def encrypt_numbers(numbers: Ring, public_key: bytes) -> list[bytes]:
    """On a client: its numbers as ciphertexts that only the key holder can open.

    Args:
        numbers: whole numbers modulo 2**32, such as `Distributed.encode` gives.
        public_key: of the key holder.

    >>> holder = KeyHolder()
    >>> len(encrypt_numbers(np.array([1, 2], np.uint32), holder.public_key))
    1
    """
    guest, values = _guest(), np.asarray(numbers)
    if values.ndim != 1 or values.dtype != np.uint32 or values.size == 0:
        raise InvalidParameter("federated.not_in_the_ring", parameter="numbers")
    context = guest.context_from(public_key)
    halves = np.concatenate([values & 0xFFFF, values >> 16]).astype(np.int64)
    parts = (halves[start : start + DEGREE] for start in range(0, halves.size, DEGREE))
    return [guest.bfv_vector(context, part.tolist()).serialize() for part in parts]


def add_encrypted(inputs: Sequence[Sequence[bytes]], public_key: bytes) -> list[bytes]:
    """At the server: the encrypted sum. Nothing can be read here.

    Args:
        inputs: what clients sent, at most 8,192 of them.
        public_key: of the key holder.

    >>> holder = KeyHolder()
    >>> sent = [encrypt_numbers(np.array([n], np.uint32), holder.public_key) for n in (1, 10)]
    >>> holder.open_sum(add_encrypted(sent, holder.public_key), width=1).tolist()
    [11]
    """
    guest = _guest()
    if not 1 <= len(inputs) <= MOST_INPUTS or len({len(sent) for sent in inputs}) != 1:
        raise InvalidParameter("federated.ciphertexts_differ", parameter="inputs", most=MOST_INPUTS)
    context = guest.context_from(public_key)
    total = [guest.bfv_vector_from(context, part) for part in inputs[0]]
    for sent in inputs[1:]:
        for place, part in enumerate(sent):
            total[place] += guest.bfv_vector_from(context, part)
    return [part.serialize() for part in total]


def sum_under_encryption(inputs: Mapping[int, Ring]) -> Ring:
    """The sum of all `inputs` with every party in one process: for simulations, tests and comparisons.

    >>> sum_under_encryption({1: np.array([1, 2], np.uint32), 2: np.array([3, 4], np.uint32)}).tolist()
    [4, 6]
    """
    holder = KeyHolder()
    sent = [encrypt_numbers(numbers, holder.public_key) for numbers in inputs.values()]
    return holder.open_sum(add_encrypted(sent, holder.public_key), width=len(next(iter(inputs.values()))))
