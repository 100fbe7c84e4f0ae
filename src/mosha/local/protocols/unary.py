"""Unary encoding: one bit a value, each reported with noise (basic RAPPOR, and its optimised form)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from mosha.core.measurement import Rng
from mosha.local.protocols.device import draw_below
from mosha.local.protocols.odds import Odds
from mosha.local.protocols.protocol import Protocol
from mosha.local.protocols.randomizer import draw_in_blocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OptimisedUnary", "SymmetricUnary", "bit_counts", "padding_clear"]


@dataclass(frozen=True)
class _Unary(Protocol):
    """A bitmap: the bit of the true value is 1 with probability `truth`, each other one with probability `lie`."""

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        return self.truth * self.lie, self.lie**2

    @property
    def width(self) -> int:
        return (self.size + 7) // 8

    @property
    def cells(self) -> int:
        return self.size

    def draw(self, value: int, rng: Rng) -> bytes:
        truth, lie = self.truth, self.lie
        top, bottom = lie.numerator, lie.denominator
        found = 0
        for place in range(self.size):
            if place != value and draw_below(bottom, rng) < top:
                found |= 1 << place
        if draw_below(truth.denominator, rng) < truth.numerator:
            found |= 1 << value
        return found.to_bytes(self.width, "little")

    def draw_many(self, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        return draw_in_blocks(self._draw_block, values, self.width, rng, each=2 * self.width)

    def _draw_block(self, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        import numpy as np

        from mosha.local.protocols.coin_bytes import coin_bytes
        from mosha.noise import bernoulli

        rows = coin_bytes(self.lie).draw(len(values) * self.width, rng).reshape(len(values), self.width)
        if self.size % 8:
            rows[:, -1] &= np.uint8((1 << self.size % 8) - 1)
        flat = rows.reshape(-1)
        places = np.arange(0, flat.size, self.width) + (values >> 3)
        bits = np.left_shift(1, values & 7).astype(np.uint8)
        kept = bernoulli(self.truth, len(values), rng=rng)
        flat[places] = (flat[places] & ~bits) | (bits * kept)
        return rows

    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        return padding_clear(reports, self.size)

    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        return bit_counts(reports)[: self.size]

    def supports(self, counters: NDArray[np.int64]) -> NDArray[np.int64]:
        return counters


@dataclass(frozen=True)
class SymmetricUnary(_Unary):
    """Every bit is flipped with probability 1 / (e^(epsilon/2) + 1): basic RAPPOR.

    Guarantee:
        With odds a : b of epsilon / 2, each bit is told with a / (a + b). Two values differ in two bits, each of
        which changes the probability of a report by a / b at most: together (a / b)^2 <= e^epsilon.

    Units:
        A report is a bitmap, bit i of byte j for value 8 j + i.

    >>> round(SymmetricUnary(100, 1.0).variance, 3)
    3.918
    """

    name: ClassVar[str] = "symmetric-unary"

    @property
    def odds(self) -> Odds:
        return Odds.of(self.epsilon / 2)

    @property
    def truth(self) -> Fraction:
        return Fraction(self.odds.top, self.odds.top + self.odds.bottom)

    @property
    def lie(self) -> Fraction:
        return 1 - self.truth


@dataclass(frozen=True)
class OptimisedUnary(_Unary):
    """The true bit is told with probability 1/2, each 0 becomes a 1 with probability 1 / (e^epsilon + 1).

    Guarantee:
        Values x and x' differ in two bits. At bits (1, 0) of (x, x') a report has probability 1/2 a / (a + b)
        under x and b / (a + b) 1/2 under x', the ratio a / b <= e^epsilon; at (0, 1) the inverse; else they are equal.

    Units:
        A report is a bitmap, bit i of byte j for value 8 j + i.

    >>> round(OptimisedUnary(100, 1.0).variance, 4)  # 4 e / (e - 1)^2
    3.6827
    """

    name: ClassVar[str] = "optimised-unary"

    @property
    def truth(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def lie(self) -> Fraction:
        return Fraction(self.odds.bottom, self.odds.top + self.odds.bottom)


def padding_clear(reports: NDArray[np.uint8], size: int) -> NDArray[np.bool_]:
    """Which bitmaps have no bit beyond the last value."""
    import numpy as np

    if size % 8 == 0:
        return np.ones(len(reports), np.bool_)
    return np.asarray(reports[:, -1] >> np.uint8(size % 8) == 0)


def bit_counts(reports: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each bit is set: a table of bytes for each column, then their bits."""
    import numpy as np

    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int64)
    columns = [np.bincount(reports[:, place], minlength=256) for place in range(reports.shape[1])]
    return np.asarray(np.array(columns, np.int64) @ bits).reshape(-1)
