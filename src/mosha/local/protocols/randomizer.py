"""A randomizer: one private value in, one report of a fixed number of bytes out, and how reports are counted."""

from __future__ import annotations

import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from mosha.core.event import Event
from mosha.core.events import Pure
from mosha.core.measurement import Rng
from mosha.local.protocols.odds import Odds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FEWEST", "Randomizer", "bytes_for", "compiled_loops", "draw_in_blocks", "pack", "unpack"]

FEWEST = 30  # reports; with fewer no error bar means anything
_MANY = 1 << 16  # bytes of reports; fewer are drawn before a compiler is loaded


class Randomizer(ABC):
    """The law of one report, on the device (`draw`) and for many at a time (`draw_many`), and its counters."""

    epsilon: float
    name: ClassVar[str]

    @property
    def odds(self) -> Odds:
        return Odds.of(self.epsilon)

    @property
    def event(self) -> Event:
        """What one report costs the device."""
        return Pure(self.epsilon)

    @property
    @abstractmethod
    def width(self) -> int:
        """Bytes of one report, without its first byte."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many counters the collector keeps."""

    @property
    def settings(self) -> dict[str, int]:
        """The public whole numbers that another implementation needs."""
        return {}

    @abstractmethod
    def draw(self, value: Any, rng: Rng) -> bytes:
        """One report, with the standard library alone."""

    @abstractmethod
    def draw_many(self, values: NDArray[Any], rng: Rng) -> NDArray[np.uint8]:
        """One report a row, of the same law as `draw`."""

    @abstractmethod
    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which rows are reports that this randomizer can make."""

    @abstractmethod
    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The counters of these (possible) reports; those of two sets of reports add up."""

    def count_into(self, counters: NDArray[np.int64], reports: NDArray[np.uint8]) -> None:
        """Add these (possible) reports to the counters of a collector."""
        counters += self.tally(reports)

    @property
    def decoding_bytes(self) -> int:
        """The memory that a collector needs for an estimate, at most, beside the reports that are added at a time."""
        return 64 * self.cells

    @property
    def work_per_report(self) -> int:
        """How many bytes or counters the collector reads or writes for one report."""
        return self.width

    def describe(self) -> dict[str, Any]:
        """The law in whole numbers, for a device in another language."""
        return {"protocol": self.name, "odds": [self.odds.top, self.odds.bottom], **self.settings}


def draw_in_blocks(
    draw: Callable[[NDArray[np.int64], Rng], NDArray[np.uint8]],
    values: NDArray[np.int64],
    width: int,
    rng: Rng,
    *,
    each: int,
) -> NDArray[np.uint8]:
    """What `draw` makes of the values, 2^18 bytes of randomness at a time, which stay near the processor.

    Reports are independent, so the law is the same. `each` is how many bytes of one kind a report needs.
    """
    import numpy as np

    rows = np.empty((len(values), width), np.uint8)
    block = max(256, (1 << 18) // each)
    for start in range(0, len(values), block):
        rows[start : start + block] = draw(values[start : start + block], rng)
    return rows


def compiled_loops(count: int) -> Any:
    """The compiled loops, where numba is installed and there are bytes enough to be worth the time it takes to load."""
    return _load_compiled() if count >= _MANY else None


@cache
def _load_compiled() -> Any:
    installed = importlib.util.find_spec("numba") is not None
    return importlib.import_module("mosha.local.protocols.compiled") if installed else None


def pack(numbers: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """Numbers as rows of `width` bytes, little-endian."""
    import numpy as np

    words = np.ascontiguousarray(numbers, dtype="<u4" if width > 2 else f"<u{width}")
    rows = words.view(np.uint8).reshape(len(words), words.itemsize)
    return rows if rows.shape[1] == width else np.ascontiguousarray(rows[:, :width])


def unpack(rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """The numbers that `pack` wrote."""
    import numpy as np

    width = rows.shape[1]
    if width in (1, 2, 4):
        return np.ascontiguousarray(rows).view(f"<u{width}").reshape(-1).astype(np.uint32)
    found = rows[:, 0].astype(np.uint32)
    for place in range(1, width):
        found |= rows[:, place].astype(np.uint32) << np.uint32(8 * place)
    return found


def bytes_for(count: int) -> int:
    """How many bytes hold the numbers 0, ..., count - 1."""
    return max(1, ((count - 1).bit_length() + 7) // 8)
