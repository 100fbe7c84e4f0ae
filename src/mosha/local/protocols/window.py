"""A window over cells: those inside it are likelier. Piecewise noise and square waves are windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mosha.core.measurement import Rng
from mosha.local.protocols.device import draw_below
from mosha.local.protocols.randomizer import Randomizer, bytes_for, pack, unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Window"]

_STEP = 1 << 32


@dataclass(frozen=True)
class Window(Randomizer):
    """One of `outputs` cells; `length` of them in a row, which slide with the value, are e^epsilon times likelier.

    Guarantee:
        Wherever the window stands, a cell inside has probability a / Z and one outside b / Z, Z = a length + b (outputs
        - length): no two values differ by more than a / b <= e^epsilon on any cell. One integer below Z decides:
        exact. Where the window stands follows from the value by any rule at all, rounded and at random: the guarantee
        does not depend on it, and on average it stands where the value says.

    Units:
        A value is a share of the way, from 0 to 1. A report is the number of a cell.

    >>> Window(1.0, outputs=1024, length=347).width
    2
    """

    epsilon: float
    outputs: int
    length: int
    name = "window"

    @property
    def settings(self) -> dict[str, int]:
        return {"outputs": self.outputs, "length": self.length}

    @property
    def places(self) -> int:
        """The last place where the window can start."""
        return self.outputs - self.length

    @property
    def total(self) -> int:
        """Z, in units of the odds."""
        return self.odds.top * self.length + self.odds.bottom * self.places

    @property
    def width(self) -> int:
        return bytes_for(self.outputs)

    @property
    def cells(self) -> int:
        return self.outputs

    def draw(self, value: float, rng: Rng) -> bytes:
        start = int(value * self.places * _STEP) + draw_below(_STEP, rng) >> 32
        return self.cell(min(start, self.places), rng).to_bytes(self.width, "little")

    def cell(self, start: int, rng: Rng) -> int:
        """A cell, where the window starts here."""
        drawn = draw_below(self.total, rng)
        inside = self.odds.top * self.length
        if drawn < inside:
            return start + drawn // self.odds.top
        outside = (drawn - inside) // self.odds.bottom
        return outside if outside < start else outside + self.length

    def draw_many(self, values: NDArray[np.float64], rng: Rng) -> NDArray[np.uint8]:
        return pack(self.cells_of(values, rng), self.width)

    def cells_of(self, values: NDArray[np.float64], rng: Rng) -> NDArray[np.int64]:
        """A cell for each value."""
        import numpy as np

        from mosha.noise import uniform

        dither = np.frombuffer(rng.bytes(4 * len(values)), "<u4").astype(np.int64)
        starts = np.minimum((values * (self.places * _STEP)).astype(np.int64) + dither >> 32, self.places)
        drawn = uniform(self.total, len(values), rng=rng)
        inside = drawn - self.odds.top * self.length
        outside = inside // self.odds.bottom
        outside += self.length * (outside >= starts)
        return np.where(inside < 0, starts + drawn // self.odds.top, outside)

    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = unpack(reports) < self.outputs
        return found

    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        import numpy as np

        return np.bincount(unpack(reports), minlength=self.outputs)
