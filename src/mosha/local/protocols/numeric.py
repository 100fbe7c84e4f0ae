"""One number of a device, told without bias: two ends (Duchi), a window (piecewise), or now and then either."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, get_args

from mosha.core.measurement import Rng
from mosha.core.options import MeanMethod, choose
from mosha.local.protocols.device import draw_below, flip_coin
from mosha.local.protocols.odds import Odds
from mosha.local.protocols.randomizer import Randomizer, pack, unpack
from mosha.local.protocols.window import Window

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Numeric", "numeric_by_name", "worst_variance"]

OUTPUTS = (1 << 16) - 2  # cells of the window; the two numbers above them are the two ends
_GRID = 1 << 20  # steps of a value that is told by the two ends
_COINS = 1 << 16
METHODS: tuple[MeanMethod, ...] = get_args(MeanMethod)


@dataclass(frozen=True)
class Numeric(Randomizer):
    """A number between 0 and 1: by a window with probability windows / 65536, else by one of the two ends.

    Guarantee:
        Which of the two is used does not depend on the value, and either is epsilon-private: the window by its own
        proof; the upper end has a probability between b / (a + b) and a / (a + b), affine in the value, so that for
        two values either end differs by a / b <= e^epsilon at most. All draws are whole numbers: exact.

    Units:
        A value is a share of the way, from 0 to 1. A report is two bytes: a cell, or 65534 for 0, or 65535 for 1.
    """

    epsilon: float
    windows: int
    name: ClassVar[str] = "numeric"

    @property
    def settings(self) -> dict[str, int]:
        return {"windows": self.windows, "outputs": OUTPUTS, "length": self.window.length, "grid": _GRID}

    @property
    def window(self) -> Window:
        return Window(self.epsilon, OUTPUTS, round(OUTPUTS / (math.exp(self.epsilon / 2) + 1)))

    @property
    def width(self) -> int:
        return 2

    @property
    def cells(self) -> int:
        """How many windows, the sum of their cells and of the squares (from the middle), how many ends of each kind."""
        return 5

    def draw(self, value: float, rng: Rng) -> bytes:
        if flip_coin(self.windows, _COINS, rng):
            return self.window.draw(value, rng)
        odds = self.odds
        upper = odds.bottom * _GRID + round(value * _GRID) * (odds.top - odds.bottom)
        return (OUTPUTS + (draw_below(_GRID * (odds.top + odds.bottom), rng) < upper)).to_bytes(2, "little")

    def draw_many(self, values: NDArray[np.float64], rng: Rng) -> NDArray[np.uint8]:
        import numpy as np

        from mosha.noise import bernoulli, uniform

        by_window = bernoulli(Fraction(self.windows, _COINS), len(values), rng=rng)
        found = np.empty(len(values), np.int64)
        if by_window.any():
            found[by_window] = self.window.cells_of(values[by_window], rng)
        rest = values[~by_window]
        odds = self.odds
        upper = odds.bottom * _GRID + np.rint(rest * _GRID).astype(np.int64) * (odds.top - odds.bottom)
        found[~by_window] = OUTPUTS + (uniform(_GRID * (odds.top + odds.bottom), len(rest), rng=rng) < upper)
        return pack(found, 2)

    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        import numpy as np

        numbers = unpack(reports)
        if self.windows == 0:
            return np.asarray(numbers >= OUTPUTS)
        return np.asarray(numbers < OUTPUTS) if self.windows == _COINS else np.ones(len(numbers), np.bool_)

    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        import numpy as np

        numbers = unpack(reports).astype(np.int64)
        cells = numbers[numbers < OUTPUTS] - OUTPUTS // 2
        ends = np.bincount(numbers[numbers >= OUTPUTS] - OUTPUTS, minlength=2)
        return np.array([len(cells), cells.sum(), (cells * cells).sum(), *ends], np.int64)

    @property
    def line(self) -> tuple[float, float]:
        """(slope, start): slope * (cell - middle) + start estimates the value without bias."""
        window, odds = self.window, self.odds
        n, w, gap = window.outputs, window.length, odds.top - odds.bottom
        slope = Fraction(window.total, gap * w * window.places)
        mean = odds.bottom * n * (n - 1) + gap * w * (w - 1)  # twice the expected cell at place 0, times the total
        start = slope * (OUTPUTS // 2) - Fraction(mean, 2 * gap * w * window.places)
        return float(slope), float(start)

    @property
    def ends(self) -> tuple[float, float]:
        """What the two ends estimate."""
        odds = self.odds
        gap = odds.top - odds.bottom
        return -odds.bottom / gap, odds.top / gap

    def moments(self, counters: NDArray[np.int64]) -> tuple[float, float]:
        """The mean and the mean square of the estimates of all reports."""
        count, total, squares, lower, upper = (int(c) for c in counters)
        slope, start = self.line
        low, high = self.ends
        every = count + lower + upper
        first = slope * total + start * count + low * lower + high * upper
        second = slope**2 * squares + 2 * slope * start * total + start**2 * count + low**2 * lower + high**2 * upper
        return first / every, second / every

    @property
    def reach(self) -> float:
        """The distance between the largest and the smallest estimate of one report."""
        slope, start = self.line
        half = OUTPUTS // 2
        reached = [start - slope * half, start + slope * (OUTPUTS - 1 - half)] if self.windows else []
        reached += list(self.ends) if self.windows < _COINS else []
        return max(reached) - min(reached)

    def variance_at(self, value: float) -> float:
        """The variance of the estimate of one report of this value, exactly that of the whole numbers drawn."""
        share = self.windows / _COINS
        low, high = self.ends
        upper = (value - low) / (high - low)
        second = low**2 * (1 - upper) + high**2 * upper
        window, odds = self.window, self.odds
        slope, start = self.line
        place = value * window.places
        base = math.floor(place)
        by_window = 0.0
        for at, weight in ((base, 1 - (place - base)), (base + 1, place - base)):
            if weight:
                by_window += weight * _second_moment(window, at, slope, start, odds)
        return share * by_window + (1 - share) * second - value**2


def _second_moment(window: Window, at: int, slope: float, start: float, odds: Odds) -> float:
    """The mean square of slope * (cell - middle) + start, where the window starts `at`."""

    def squares(first: int, count: int) -> float:
        low = slope * (first - OUTPUTS // 2) + start
        return count * low**2 + low * slope * count * (count - 1) + slope**2 * (count - 1) * count * (2 * count - 1) / 6

    every, inside = squares(0, window.outputs), squares(at, window.length)
    return (odds.bottom * every + (odds.top - odds.bottom) * inside) / window.total


def numeric_by_name(method: MeanMethod, epsilon: float) -> Numeric:
    """The randomizer of that name: "hybrid" (Wang et al. 2019), "piecewise" or "duchi".

    >>> round(worst_variance(numeric_by_name("hybrid", 1.0)), 3)
    4.289
    """
    Odds.of(epsilon)
    choose("method", method, MeanMethod)
    if method == "duchi":
        return Numeric(epsilon, 0)
    if method == "piecewise":
        return Numeric(epsilon, _COINS)
    return Numeric(epsilon, round(_COINS * -math.expm1(-epsilon / 2)) if epsilon > 0.6099 else 0)


def worst_variance(randomizer: Numeric) -> float:
    """The largest variance of one report of a number between -1 and 1: at an end or in the middle."""
    return 4 * max(randomizer.variance_at(value) for value in (0.0, 0.5, 1.0))
