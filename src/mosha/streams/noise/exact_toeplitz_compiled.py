"""The spans of a block of lifted noise, compiled: the very numbers that `Lifting` gives without a compiler.

Floats are added and multiplied in the same order, whole numbers are exact: buffers are seven digits of 20 bits, the
last one with the sign. What does not fit is left to the other road, by an answer that is no success.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

__all__ = ["DIGITS", "decay_digits", "from_digits", "lift_spans", "to_digits"]

Array = np.ndarray[Any, Any]
DIGIT = 20
MASK = (1 << DIGIT) - 1
DIGITS = 7
DECAY_DIGITS = 8  # 160 bits
LIFT = 60  # bits of buffers behind the point
PIECE, KEPT = 20, 16  # as in `Lifting`
PIECES = 6


def to_digits(number: int) -> list[int]:
    """A whole number as seven digits of 20 bits, the last one with what is left and the sign.

    >>> from_digits(to_digits(-(1 << 100) + 5)) == -(1 << 100) + 5
    True
    """
    return [(number >> DIGIT * i) & MASK for i in range(DIGITS - 1)] + [number >> DIGIT * (DIGITS - 1)]


def from_digits(digits: Any) -> int:
    """The number that has these digits."""
    return sum(int(digit) << DIGIT * i for i, digit in enumerate(digits))


def decay_digits(decay: int) -> list[int]:
    """A factor below 1, over 2**160, as eight digits."""
    return [(decay >> DIGIT * i) & MASK for i in range(DECAY_DIGITS)]


@njit(cache=True)
def round_to_float(digits: Array) -> float:
    """The nearest float, ties to even, as Python rounds whole numbers; NaN where the number has more than 140 bits."""
    size = np.empty(DIGITS, np.int64)
    sign = -1 if digits[DIGITS - 1] < 0 else 1
    carry = 0
    for i in range(DIGITS):
        moved = sign * digits[i] + carry
        carry = moved >> DIGIT if i < DIGITS - 1 else 0
        size[i] = moved & MASK if i < DIGITS - 1 else moved
    if size[DIGITS - 1] > MASK:
        return np.nan
    first = DIGITS - 1
    while first >= 0 and size[first] == 0:
        first -= 1
    if first < 0:
        return 0.0
    free = 0
    while size[first] << free <= MASK >> 1:
        free += 1
    # 60 bits from the first one on; what is below them only breaks ties
    below = np.zeros(4, np.int64)
    for i in range(4):
        if first - i >= 0:
            below[i] = size[first - i]
    top = (((below[0] << DIGIT) + below[1] << DIGIT) + below[2] << free) + (below[3] >> (DIGIT - free))
    rest = below[3] & ((1 << (DIGIT - free)) - 1)
    for i in range(first - 3):
        rest |= size[i]
    if rest != 0:
        top |= 1
    return sign * math.ldexp(float(top), DIGIT * (first - 2) - free)


@njit(cache=True)
def decay(digits: Array, decay: Array, product: Array) -> None:
    """Replace a number by floor(number decay / 2**160)."""
    product[:] = 0
    for i in range(DIGITS):
        for j in range(DECAY_DIGITS):
            product[i + j] += digits[i] * decay[j]
        for j in range(i, i + DECAY_DIGITS):  # digits stay below 2**44
            carry = product[j] >> DIGIT
            product[j] &= MASK
            product[j + 1] += carry
    for i in range(DIGITS):
        digits[i] = product[DECAY_DIGITS + i]


@njit(cache=True)
def add_span(digits: Array, high: Array, low: Array, first: int, count: int) -> None:
    """Add what a span brings to a buffer: six pieces of 16 bits, cut behind the 60th."""
    parts = np.empty(PIECES, np.int64)
    for i in range(PIECES):
        parts[i] = (np.int64(high[first + i * count]) << PIECE) + np.int64(low[first + i * count])
    for i in range(PIECES - 1, 0, -1):
        parts[i - 1] += parts[i] >> KEPT
        parts[i] &= (1 << KEPT) - 1
    digits[0] += (parts[1] << 28) + (parts[2] << 12) + (parts[3] >> 4)
    digits[2] += (parts[0] & ((1 << KEPT) - 1)) << 4  # parts[0] 2**44 = low part 2**(40 + 4) + high part 2**60
    digits[3] += parts[0] >> KEPT
    for i in range(DIGITS - 1):
        carry = digits[i] >> DIGIT
        digits[i] &= MASK
        digits[i + 1] += carry


@njit(cache=True)
def lift_spans(
    rows: Array,
    high: Array,
    low: Array,
    totals: Array,
    buffers: Array,
    decays: Array,
    first: float,
    readout: Array,
    scales: Array,
    tame: float,
    lifted: Array,
) -> bool:
    """Fill `lifted`; `totals` and `buffers` become those after the last span. False where a past is too large."""
    width, count, span, parts = buffers.shape[0], buffers.shape[1], rows.shape[1], scales.size
    past, within, product = np.empty(span), np.empty(span), np.empty(DIGITS + DECAY_DIGITS + 1, np.int64)
    for row in range(rows.shape[0]):
        c = row % width
        past[:] = float(totals[c]) * first
        weight = abs(past[0])
        for i in range(count):
            start = round_to_float(buffers[c, i]) * 2.0**-LIFT
            for j in range(span):
                past[j] += start * readout[i, j]
            weight += abs(start) * readout[i, 0]
        if not weight < tame:
            return False
        within[:] = 0.0
        for i in range(parts):
            for j in range(span):
                place = (parts - 1 - i) * span + j
                within[j] += (high[row, place] * 2.0**PIECE + low[row, place]) * scales[i]
        added = 0
        for j in range(span):
            lifted[row, j] = rows[row, j] + np.int64(math.floor(within[j] + past[j]))
            added += rows[row, j]
        totals[c] += added
        for i in range(count):
            decay(buffers[c, i], decays[i], product)
            add_span(buffers[c, i], high[row], low[row], parts * span + i, count)
    return True
