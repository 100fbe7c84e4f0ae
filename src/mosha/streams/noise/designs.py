"""Designed encoders, kept: a horizon is served by the design of the next power of two, which is made once."""

from __future__ import annotations

from functools import lru_cache

from mosha.streams.noise.blt import Buffers, design

__all__ = ["designed"]


@lru_cache(maxsize=256)
def designed(horizon: int, buffers: int) -> Buffers:
    """Poles and zeros for about so many steps; the price is computed for the exact horizon all the same.

    >>> designed(1000, 2) is designed(1024, 2)
    True
    """
    rounded = 1 << max(4, (horizon - 1).bit_length())
    return designed(rounded, buffers) if rounded != horizon else design(rounded, buffers)
