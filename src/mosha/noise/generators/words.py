"""Random bytes read as unsigned integers, always little-endian so that a stream means the same everywhere."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mosha.core.errors import InvalidParameter

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from mosha.core.randomness import Rng

    Words: TypeAlias = NDArray[np.unsignedinteger[Any]]

__all__ = ["Words", "byte_count", "word", "words"]

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
