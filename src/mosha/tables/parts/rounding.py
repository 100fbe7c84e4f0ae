"""Numbers of an answer with the digits that their error bars support: post-processing of what was released."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["make_whole", "round_columns", "round_numbers", "round_together"]

CONFIDENCE = 0.95
MOST_DIGITS = 15
"""A float has no more."""


def round_columns(
    columns: Mapping[str, Any],
    errors: Callable[[float], Mapping[str, Any]],
    *,
    whole: Collection[str],
    in_rows: Collection[str],
) -> dict[str, NDArray[Any]]:
    """All columns of an answer: counts whole, the others with two digits of their bars of 95%.

    Args:
        columns: the noisy numbers.
        errors: their bars, by confidence.
        whole: the columns that count something.
        in_rows: the columns whose bar is a number of rows: they keep their digits, as do those that have no bar.
    """
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    rest = [name for name, column in arrays.items() if name not in {*whole, *in_rows} and column.dtype.kind in "fO"]
    bars = errors(CONFIDENCE) if rest else {}
    return {
        name: make_whole(column) if name in whole else round_numbers(column, bars[name]) if name in rest else column
        for name, column in arrays.items()
    }


def round_numbers(numbers: NDArray[Any], bars: object) -> NDArray[Any]:
    """Each number with two digits of its bar, no zero with a sign; texts and numbers without a bar stay as they are.

    >>> round_numbers(np.array([2.71828, 1234.5678, 7.25]), [0.0123, 88.0, np.inf]).tolist()
    [2.718, 1235.0, 7.25]
    """
    digits = _count_digits(np.asarray(bars, np.float64))
    found = numbers.copy()
    for number in np.unique(digits[digits <= MOST_DIGITS]).tolist():
        here = digits == number
        if numbers.dtype.kind == "f":
            found[here] = np.round(numbers[here], number) + 0.0  # a zero without a sign
        else:
            found[here] = [round(v, number) + 0.0 if isinstance(v, float) else v for v in numbers[here].tolist()]
    return found


def round_together(numbers: Sequence[float]) -> list[int]:
    """Whole numbers whose sum, up to any place, is that of the numbers, rounded: rounding errors do not add up.

    >>> round_together([0.4, 0.4, 0.4, 2.0])
    [0, 1, 0, 2]
    """
    upto = np.rint(np.cumsum(np.asarray(numbers, np.float64))).astype(np.int64)
    return [int(number) for number in np.diff(upto, prepend=0)]


def _count_digits(bars: NDArray[np.float64]) -> NDArray[np.int64]:
    """As `digits_of` counts them; more than a float has where there is no bar."""
    known = np.isfinite(bars) & (bars > 0)
    return np.where(known, 1 - np.floor(np.log10(bars, out=np.zeros_like(bars), where=known)), MOST_DIGITS + 1).astype(
        np.int64
    )


def make_whole(column: NDArray[Any]) -> NDArray[Any]:
    """Counts as whole numbers; what is no number stays."""
    if column.dtype.kind == "f":
        whole = np.rint(column)
        return np.asarray(whole, np.int64 if np.all(np.abs(whole) < 2.0**62) else np.float64)
    if column.dtype.kind == "O":
        return np.array([round(v) if isinstance(v, float) and np.isfinite(v) else v for v in column.tolist()], object)
    return column
