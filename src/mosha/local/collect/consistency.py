"""Shares that could be shares: none negative, all together one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["consistent"]


@explain_wrong_calls
def consistent(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest to these `shares` that are not negative and sum to one (Norm-Sub): post-processing, free.

    One number is taken off all shares and what falls below zero is set to zero. This is the projection onto a convex
    set that holds the truth, so the distance to the truth never grows.

    >>> consistent(np.array([0.7, 0.5, -0.2])).round(3).tolist()
    [0.6, 0.4, 0.0]
    """
    try:
        shares = np.asarray(shares, np.float64)
    except (TypeError, ValueError, OverflowError):
        shares = np.empty(0)
    if shares.ndim != 1 or not len(shares) or not np.isfinite(shares).all():
        raise InvalidParameter("local.not_shares", parameter="shares")
    ordered = np.sort(shares)[::-1]
    surplus = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
    kept = int(np.flatnonzero(ordered > surplus)[-1])
    return np.asarray(np.maximum(shares - surplus[kept], 0.0))
