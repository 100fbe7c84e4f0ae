"""Shamir's secret sharing: any `threshold` shares give the secret, fewer say nothing about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.measurement import Rng

__all__ = ["PRIME", "SECRET_BYTES", "SHARE_BYTES", "combine", "split"]

PRIME: Final = 2**256 + 297
"""The least prime above all secrets of 32 bytes."""

SECRET_BYTES, SHARE_BYTES = 32, 33
_DRAWN_BYTES = 48  # a coefficient is this many random bytes modulo PRIME: within 2**-127 of uniform


def split(secret: bytes, *, threshold: int, points: Sequence[int], rng: Rng) -> dict[int, bytes]:
    """One share of `secret` for each point.

    Guarantee:
        A share is the value at its point of a polynomial of degree threshold - 1 whose constant term is the secret and
        whose other coefficients are uniform (within 2**-127 each). Any threshold - 1 values at distinct points other
        than zero are then uniform and independent of the secret; any `threshold` determine it.

    Units:
        A secret has 32 bytes, a share 33; points are distinct and between 1 and 2**31.

    >>> from mosha.noise import secure
    >>> shares = split(b"k" * 32, threshold=2, points=[1, 2, 3], rng=secure())
    >>> combine({point: shares[point] for point in (1, 3)}, threshold=2)[:4]
    b'kkkk'
    """
    if len(secret) != SECRET_BYTES:
        raise InvalidParameter("federated.secret_size", size=SECRET_BYTES)
    if len(set(points)) != len(points) or not all(0 < point <= 1 << 31 for point in points):
        raise InvalidParameter("federated.points_not_distinct", parameter="points")
    if not 1 <= threshold <= len(points):
        raise InvalidParameter("federated.threshold_of_shares", parameter="threshold")
    drawn = rng.bytes(_DRAWN_BYTES * (threshold - 1))
    higher = [int.from_bytes(drawn[i : i + _DRAWN_BYTES]) % PRIME for i in range(0, len(drawn), _DRAWN_BYTES)]
    constant = int.from_bytes(secret)
    shares = {}
    for point in points:
        value = 0
        for coefficient in higher:
            value = (value + coefficient) * point % PRIME
        shares[point] = ((value + constant) % PRIME).to_bytes(SHARE_BYTES)
    return shares


def combine(shares: Mapping[int, bytes], *, threshold: int) -> bytes:
    """The secret that these shares (the first `threshold` of them by point) are of."""
    if len(shares) < threshold:
        raise DataError("federated.too_few_shares")
    points = tuple(sorted(shares)[:threshold])
    weights = _weights(points)
    total = sum(w * int.from_bytes(shares[p]) for w, p in zip(weights, points, strict=True)) % PRIME
    if total >> (8 * SECRET_BYTES):
        raise DataError("federated.shares_of_two_secrets")
    return total.to_bytes(SECRET_BYTES)


@lru_cache(maxsize=4096)
def _weights(points: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange's weights at zero."""
    found = []
    for point in points:
        above, below = 1, 1
        for other in points:
            if other != point:
                above *= other
                below *= other - point
        found.append(above * pow(below, -1, PRIME) % PRIME)
    return tuple(found)
