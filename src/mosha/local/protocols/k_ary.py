"""Randomised response over any number of values: the truth, or any other value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from mosha.core.event import Event
from mosha.core.events import RandomizedResponse
from mosha.core.measurement import Rng
from mosha.local.protocols.device import draw_below
from mosha.local.protocols.protocol import Protocol
from mosha.local.protocols.randomizer import bytes_for, draw_in_blocks, pack, unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["KAry"]


@dataclass(frozen=True)
class KAry(Protocol):
    """The truth with probability e^epsilon / (e^epsilon + k - 1), else one of the other k - 1 values, uniformly.

    Guarantee:
        With odds a : b, P(y | x) is a / Z for y = x and b / Z for each other y, Z = a + (k - 1) b for every x. No two
        values differ by more than a / b <= e^epsilon on any report. One integer below Z decides: exact.

    Units:
        A report is the number of a value, in as few bytes as hold k numbers.

    >>> KAry(2, 1.0).width, round(float(KAry(2, 1.0).truth), 6)  # e / (1 + e)
    (1, 0.731059)
    """

    name = "k-ary"

    @property
    def event(self) -> Event:
        return RandomizedResponse(self.epsilon, self.size)

    @property
    def _total(self) -> int:
        return self.odds.top + (self.size - 1) * self.odds.bottom

    @property
    def truth(self) -> Fraction:
        return Fraction(self.odds.top, self._total)

    @property
    def lie(self) -> Fraction:
        return Fraction(self.odds.bottom, self._total)

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(0)

    @property
    def width(self) -> int:
        return bytes_for(self.size)

    @property
    def cells(self) -> int:
        return self.size

    @property
    def largest_support(self) -> int:
        return 1

    def draw(self, value: int, rng: Rng) -> bytes:
        odds = self.odds
        drawn = draw_below(odds.top + (self.size - 1) * odds.bottom, rng) - odds.top
        if drawn < 0:
            reported = value
        else:
            other = drawn // odds.bottom
            reported = other + (other >= value)
        return reported.to_bytes(self.width, "little")

    def draw_many(self, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        return draw_in_blocks(self._draw_block, values, self.width, rng, each=4)

    def _draw_block(self, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        import numpy as np

        from mosha.noise import bernoulli, uniform

        others = uniform(self.size - 1, len(values), rng=rng)
        others += others >= values
        return pack(np.where(bernoulli(self.truth, len(values), rng=rng), values, others), self.width)

    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = unpack(reports) < self.size
        return found

    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        import numpy as np

        return np.bincount(unpack(reports), minlength=self.size)

    def supports(self, counters: NDArray[np.int64]) -> NDArray[np.int64]:
        return counters
