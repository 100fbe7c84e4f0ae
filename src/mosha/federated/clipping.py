"""Bounding what one client sends: an update becomes whole steps whose Euclidean length is at most `STEPS`, exactly."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive

__all__ = ["STEPS", "bounded_steps", "bounded_sum_steps", "clip_in_range", "lengths", "scaled_steps"]

STEPS: Final = 1 << 20
"""The longest update has so many grid steps; a step is the clip over this number, whatever the clip is."""

_MARGIN: Final = 1.0 - 2.0**-20  # more than all rounding of a length and of a product; see `bounded_steps`
_LARGEST_DIMENSION: Final = 1 << 30


SMALLEST_CLIP: Final = 1e-30
LARGEST_CLIP: Final = 1e30


def clip_in_range(clip: float) -> float:
    """A clip under which no scale STEPS / clip, nor a product with it, leaves the range of 32-bit floats.

    >>> clip_in_range(1)
    1.0
    """
    value = positive("clip", clip)
    if not SMALLEST_CLIP <= value <= LARGEST_CLIP:
        raise InvalidParameter("federated.clip_out_of_range", parameter="clip")
    return value


def lengths(updates: NDArray[np.generic]) -> NDArray[np.float64]:
    """The Euclidean length of each row in double precision; NaN for a row with anything that is no finite number.

    >>> lengths(np.array([[3.0, 4.0], [np.nan, 1.0], [1e300, 0.0]]))
    array([5.e+000,     nan, 1.e+300])
    """
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", updates, updates, dtype=np.float64, casting="unsafe")
        found: NDArray[np.float64] = np.sqrt(squares)
        for row in np.flatnonzero(~(squares > 1e-200) | ~np.isfinite(squares)):
            peak = float(np.abs(updates[row]).max(initial=0.0))
            whole = np.isfinite(updates[row]).all()
            parts = updates[row].astype(np.float64) / peak if whole and peak > 0 else np.zeros(1)
            found[row] = peak * np.sqrt((parts * parts).sum()) if whole else np.nan
    return found


def bounded_steps(updates: NDArray[np.generic], clip: float) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Each row shortened to `clip` and cut to whole steps of clip / STEPS; and which rows were within `clip` already.

    A row that holds anything but finite numbers has no direction: it becomes zero and counts as too long.

    Guarantee:
        Each row of the result is an integer vector of length at most STEPS, and depends on that row alone.
        With u the unit of the row's float type, the product p = fl(x s) has |p_i| <= (1 + u) s |x_i| (what underflows
        is cut to zero), and s = fl(STEPS m / max(L, clip)) with m = 1 - 2**-20 and L the float length, too small by at
        most (d + 4) 2**-53 relative, d <= 2**30; with clip in [1e-30, 1e30] no s is infinite. So
        |p| <= (1 + 2**-22) STEPS m < STEPS, and cutting towards zero makes no entry larger.

    Units:
        `updates` and `clip` are in the unit of the model's weights; the result is in steps of clip / STEPS.

    >>> steps, short = bounded_steps(np.array([[3.0, 4.0], [0.0, 0.5], [np.inf, 1.0]]), clip=1.0)
    >>> np.round(steps / STEPS, 4).tolist(), short.tolist()
    ([[0.6, 0.8], [0.0, 0.5], [0.0, 0.0]], [False, True, False])
    """
    norms = lengths(updates)
    steps = scaled_steps(updates, norms, clip)
    return steps, norms <= clip


def scaled_steps(
    updates: NDArray[np.generic], norms: NDArray[np.float64], clip: float, shares: NDArray[np.float64] | None = None
) -> NDArray[np.int32]:
    """The rows as whole steps, given their lengths (see `bounded_steps`); `shares` in [0, 1] shorten them further.

    No product is NaN: a row whose length is finite has finite entries alone (`lengths`), its scale is finite, and all
    other rows are set to zero.
    """
    limit = clip_in_range(clip)
    if updates.ndim != 2 or updates.dtype not in (np.float32, np.float64):
        raise InvalidParameter("federated.updates_not_rows", parameter="updates")
    if updates.shape[1] > _LARGEST_DIMENSION:
        raise InvalidParameter("federated.model_too_large", most="2**30")
    with np.errstate(all="ignore"):
        scale = np.where(np.isfinite(norms), STEPS * _MARGIN / np.maximum(norms, limit), 0.0)
        scale = scale if shares is None else scale * np.clip(np.nan_to_num(shares), 0.0, 1.0)
        extreme = norms > 1e30
        product = updates * scale.astype(updates.dtype)[:, None]
        for row in np.flatnonzero(extreme | ~np.isfinite(norms)):  # where a 32-bit product could leave its range
            finite = np.isfinite(norms[row])
            product[row] = updates[row].astype(np.float64) * scale[row] if finite else 0.0
    cut: NDArray[np.int32] = product.astype(np.int32)
    return cut


def bounded_sum_steps(updates: NDArray[np.generic], clip: float) -> NDArray[np.int64]:
    """Each row shortened to a sum of absolute values of at most `clip`, in whole steps of clip / STEPS.

    Guarantee:
        The absolute values of each row of the result sum to at most STEPS: as in `bounded_steps`, in double precision,
        with the length replaced by the sum of absolute values.

    >>> bounded_sum_steps(np.array([[3.0, -1.0]]), clip=1.0) / STEPS
    array([[ 0.74999905, -0.24999905]])
    """
    limit = clip_in_range(clip)
    with np.errstate(all="ignore"):
        values = updates.astype(np.float64)
        sums = np.abs(values).sum(axis=1, keepdims=True)
        whole = np.isfinite(sums)
        scaled = np.where(whole, values, 0.0) * np.where(whole, STEPS * _MARGIN / np.maximum(sums, limit), 0.0)
    cut: NDArray[np.int64] = np.where(np.isnan(scaled), 0.0, scaled).astype(np.int64)
    return cut
