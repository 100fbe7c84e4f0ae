"""Points of projective spaces over the whole numbers modulo a prime."""

from __future__ import annotations

__all__ = ["count_points"]


def count_points(q: int, t: int) -> int:
    """How many points the space of t coordinates modulo the prime q has.

    >>> count_points(3, 3)
    13
    """
    return int(q**t - 1) // (q - 1)
