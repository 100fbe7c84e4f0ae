"""A range for a number that nobody knows one for: bought from the budget, to the nearest power of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.connect.engines.source import answer
from mosha.connect.language.cases import Case, when
from mosha.connect.language.expression import Expression
from mosha.connect.language.value import Rows
from mosha.connect.plan.aggregation import Aggregation
from mosha.connect.plan.bounding import Bound, NormBound, Unbounded
from mosha.core.budget import Budget
from mosha.core.event import Event
from mosha.core.events import DiscreteLaplace
from mosha.core.language import make_note
from mosha.core.measurement import Rng
from mosha.exact.grid import add_noise
from mosha.mechanisms.laplace import laplace_multiplier
from mosha.noise import discrete_laplace
from mosha.noise.parameters import enlarge_scale
from mosha.tables.parts.bounded_number import TO_BE_BOUGHT, Measured, Range
from mosha.tables.parts.bounds import Limits
from mosha.tables.parts.norm_choice import LITTLE
from mosha.tables.parts.part import Frame, pure_epsilon, within

__all__ = ["EXTREMES", "SHARE_FOR_RANGES", "RangeChoice", "range_note"]

SHARE_FOR_RANGES = 0.1
SMALLEST, LARGEST = -20, 40
BITS = 12
EMPTY = 0.01
"""How often one of the buckets without rows may look as if it had some."""

EXTREMES = (
    (-(2.0 ** (LARGEST + 1)), -(2.0**LARGEST)),
    (2.0**LARGEST, 2.0 ** (LARGEST + 1)),
    (-(2.0**LARGEST), 2.0**LARGEST),
    (-(2.0**SMALLEST), 2.0**SMALLEST),
    (0.0, 2.0**LARGEST),
)
"""The ranges furthest out, the widest and the narrowest that can be bought, and one from zero."""

ODDNESS = 0.5
SURE = 1.645
"""So many deviations hold 95% of normal noise, on one side."""

_BUCKET = "power of two"


def edges() -> list[float]:
    """Powers of two from -2**40 to 2**40, none closer to zero than 2**-20."""
    powers = [2.0**i for i in range(SMALLEST, LARGEST + 1)]
    return [-power for power in reversed(powers)] + powers


def bucket(of: Expression) -> Expression:
    """How many edges lie at or below a number, by halving: NULL stays NULL."""

    def search(first: int, last: int) -> Any:
        if first == last:
            return first
        middle = (first + last + 1) // 2
        case: Case = when(of < marks[middle - 1], search(first, middle - 1))
        return case.else_(search(middle, last))

    marks = edges()
    return when(~of.is_null(), search(0, len(marks)))


@dataclass(frozen=True)
class RangeChoice:
    """The range that holds nearly all values, between powers of two: a noisy histogram of orders of magnitude.

    Guarantee:
        Every unit's rows weigh at most W together (a person's: 1, scaled down; else as many rows as a unit has), over
        all buckets; 2 W move when it is replaced. Discrete Laplace noise of that scale over epsilon on all buckets,
        those without rows too, costs DiscreteLaplace (its end: `clamping.md`). What is made of it is post-processing.
    """

    epsilon: float
    numbers: int

    @staticmethod
    def plan(budget: Budget, share: float, numbers: int) -> RangeChoice:
        return RangeChoice(pure_epsilon(budget, share / numbers), numbers)

    @property
    def event(self) -> Event:
        return DiscreteLaplace(laplace_multiplier(self.epsilon)) * self.numbers

    def choose(self, frame: Frame, measured: Measured, limits: Limits, rng: Rng) -> list[float]:
        """The range of one number: from the first bucket that noise alone would not fill to the last one.

        Behind its two ends stands the share of values that lie outside, and what it is at most: the same histogram
        says it, for nothing.
        """
        relation = within(frame, frame.relation).where(~measured.of.is_null())
        bound: Bound = NormBound(1, {"rows": 1}, BITS) if limits.by_person else Unbounded()
        weight = 1 << BITS if limits.by_person else limits.rows or 1
        cell = bucket(measured.of)
        totals = answer(Aggregation(relation, ((_BUCKET, cell),), (("rows", Rows()),), bound=bound))
        exact = np.zeros(len(edges()) + 1, np.int64)
        exact[np.asarray(totals.keys[0]).astype(np.int64)] = np.asarray(totals["rows"]).astype(np.int64)
        scale = enlarge_scale(Fraction(laplace_multiplier(self.epsilon)) * weight * (2 if limits.twice else 1))
        noisy = add_noise(exact, discrete_laplace(scale, len(exact), rng=rng))
        found = _between(*_find_filled_buckets(noisy / float(scale)))
        return [*found, *_find_clipped(noisy / float(scale), found)]


def _find_filled_buckets(noisy: NDArray[np.float64]) -> tuple[int, int]:
    """The first and the last bucket with more than noise, in scales of it, and neighbors with little more.

    Where none has more than noise, the one that is likeliest if numbers around 1 are likelier than others.
    """
    full = np.flatnonzero(noisy > math.log(len(noisy) / (2 * EMPTY)))
    if not full.size:
        return (int(np.argmax(noisy - ODDNESS * _oddness())),) * 2
    first, last = int(full[0]), int(full[-1])
    while first > 0 and noisy[first - 1] > LITTLE:
        first -= 1
    while last < len(noisy) - 1 and noisy[last + 1] > LITTLE:
        last += 1
    return first, last


def _oddness() -> NDArray[np.float64]:
    """How many doublings each bucket is away from 1 or -1."""
    half = np.abs(np.arange(SMALLEST, LARGEST + 1))
    return np.concatenate([half[::-1], [abs(SMALLEST)], half]).astype(np.float64)


def _between(first: int, last: int) -> Range:
    """From the lower edge of one bucket to the upper edge of another; the bucket around zero is zero."""
    marks = edges()
    zero = len(marks) // 2
    low = 0.0 if first == zero else marks[max(first - 1, 0)]
    high = 0.0 if last == zero else marks[min(last, len(marks) - 1)]
    if first == last == 0 or first == last == len(marks):
        low, high = (2 * low, low) if first == 0 else (high, 2 * high)
    if 0 < low <= high / 4:
        low = 0.0  # a wider range costs little there, and small values are kept
    if low / 4 <= high < 0:
        high = 0.0
    return (low, high) if low < high else (-(2.0**SMALLEST), 2.0**SMALLEST)


def _find_clipped(noisy: NDArray[np.float64], found: Range) -> tuple[float, float]:
    """The share of values outside of a range, and a bound on it that holds for 95% of all releases.

    Args:
        noisy: the buckets, in scales of their noise. That of k of them together has a deviation of sqrt(2 k), and is
            nearly normal for as many as there are.
        found: the range.
    """
    marks = np.array([-math.inf, *edges(), math.inf])
    outside = (marks[1:] <= found[0]) | (marks[:-1] >= found[1])
    total, out = float(noisy.sum()), float(noisy[outside].sum())
    if total <= SURE * math.sqrt(2 * len(noisy)):
        return 0.0, 1.0  # too few rows to tell
    most = out + SURE * math.sqrt(2 * int(outside.sum()))
    return min(max(out / total, 0.0), 1.0), min(max(most / total, 0.0), 1.0)


def range_note(key: str, found: Sequence[float]) -> str:
    """Which range was bought for a number, and how much lies outside of it.

    >>> range_note("days in a range to be bought", (0.0, 32.0))
    'The range of days, [0, 32], was chosen with a tenth of the budget.'
    >>> range_note("days in a range to be bought", (0.0, 32.0, 0.012, 0.031)).split(". ")[1].split(";")[0]
    'What lies outside counts as its ends: about 1.2% of the values, at most 3.1%'
    """
    low, high, *clipped = found
    ends = {"column": key.removesuffix(TO_BE_BOUGHT), "low": f"{low:g}", "high": f"{high:g}"}
    if not clipped:
        return make_note("tables.note_range", **ends)
    share, most = (f"{100 * part:.2g}%" for part in clipped)
    return make_note("tables.note_range_clips", **ends, share=share, most=most)
