"""Hadamard response: a column of a Hadamard matrix in which the row of the value is likely positive."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from mosha.core.measurement import Rng
from mosha.local.protocols.device import draw_below, flip_coin
from mosha.local.protocols.protocol import Protocol
from mosha.local.protocols.randomizer import bytes_for, pack, unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Hadamard"]


@dataclass(frozen=True)
class Hadamard(Protocol):
    """A number below a power of two, K; y supports x if x + 1 and y have an even number of bits in common.

    Guarantee:
        x + 1 > 0, so exactly K / 2 numbers y support x. With odds a : b a supporting y has probability 2 a / ((a + b)
        K), any other 2 b / ((a + b) K): no two values differ by more than a / b <= e^epsilon on any report. Exact: a
        uniform y is turned into one of the other half by flipping the lowest bit of x + 1, which pairs the halves.

    Units:
        A report is y, in as few bytes as hold K numbers.

    >>> Hadamard(1000, 1.0).settings, round(Hadamard(1000, 1.0).variance, 3)
    ({'columns': 1024}, 4.683)
    """

    name = "hadamard"

    @property
    def columns(self) -> int:
        return 1 << self.size.bit_length()

    @property
    def settings(self) -> dict[str, int]:
        return {"columns": self.columns}

    @property
    def truth(self) -> Fraction:
        return Fraction(self.odds.top, self.odds.top + self.odds.bottom)

    @property
    def lie(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        return self.truth / 2, Fraction(1, 4)

    @property
    def width(self) -> int:
        return bytes_for(self.columns)

    @property
    def cells(self) -> int:
        return self.columns

    def draw(self, value: int, rng: Rng) -> bytes:
        row = value + 1
        column = draw_below(self.columns, rng)
        supports = (row & column).bit_count() % 2 == 0
        if supports != flip_coin(self.odds.top, self.odds.top + self.odds.bottom, rng):
            column ^= row & -row
        return column.to_bytes(self.width, "little")

    def draw_many(self, values: NDArray[np.int64], rng: Rng) -> NDArray[np.uint8]:
        import numpy as np

        from mosha.noise import bernoulli

        kind = "<u2" if self.columns <= 1 << 16 else "<u4"
        size = 2 if kind == "<u2" else 4
        columns = np.frombuffer(rng.bytes(size * len(values)), kind) & np.array(self.columns - 1, kind)
        rows = (values + 1).astype(kind)
        wrong = _has_odd_parity(rows & columns) == bernoulli(self.truth, len(values), rng=rng)
        columns = columns ^ (rows & (~rows + np.array(1, kind))) * wrong
        return pack(columns, self.width)

    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = unpack(reports) < self.columns
        return found

    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        import numpy as np

        return np.bincount(unpack(reports), minlength=self.columns)

    def supports(self, counters: NDArray[np.int64]) -> NDArray[np.int64]:
        """The transform of Walsh and Hadamard gives supporting minus other reports."""
        import numpy as np

        found = np.array(counters, np.int64)
        length = 1
        while length < len(found):
            pairs = found.reshape(-1, 2, length)
            found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
            length *= 2
        return np.asarray((found[0] + found[1 : self.size + 1]) // 2)


def _has_odd_parity(numbers: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
    """Whether the number of bits is odd."""
    import numpy as np

    for shift in (16, 8, 4, 2, 1):
        if numbers.dtype.itemsize * 8 > shift:
            numbers = numbers ^ (numbers >> np.array(shift, numbers.dtype))
    return np.asarray(numbers & np.array(1, numbers.dtype)).astype(np.bool_)
