"""A randomiser: one private value in, one report of a fixed number of bytes out, and how reports are counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from mosha.core.event import Event
from mosha.core.events import Pure
from mosha.core.randomness import Rng
from mosha.local.odds import Odds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Randomiser", "bytes_for", "in_blocks", "pack", "unpack"]

_BLOCK = 1 << 14  # reports that are drawn at a time: what they need stays near the processor


class Randomiser(ABC):
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
    def possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which rows are reports that this randomiser can make."""

    @abstractmethod
    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The counters of these (possible) reports; those of two sets of reports add up."""

    def described(self) -> dict[str, Any]:
        """The law in whole numbers, for a device in another language."""
        return {"protocol": self.name, "odds": [self.odds.top, self.odds.bottom], **self.settings}


def in_blocks(
    draw: Callable[[NDArray[np.int64], Rng], NDArray[np.uint8]], values: NDArray[np.int64], width: int, rng: Rng
) -> NDArray[np.uint8]:
    """What `draw` makes of the values, some thousand at a time: reports are independent, so the law is the same."""
    import numpy as np

    rows = np.empty((len(values), width), np.uint8)
    for start in range(0, len(values), _BLOCK):
        rows[start : start + _BLOCK] = draw(values[start : start + _BLOCK], rng)
    return rows


def pack(numbers: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """Numbers as rows of `width` bytes, little-endian."""
    import numpy as np

    words = np.ascontiguousarray(numbers, dtype="<u4" if width > 2 else f"<u{width}")
    rows = words.view(np.uint8).reshape(len(words), -1)
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
