"""The tape of noise: number i of it belongs to draw i of a stream, whoever unrolls it and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.measurement import Rng
from mosha.noise.unbounded import unbounded_gaussian, unbounded_laplace

__all__ = ["BLOCK", "Law", "Tape"]

BLOCK = 16384
"""So many draws are made at once: noise for later steps waits in memory and never in a checkpoint."""


@dataclass(frozen=True)
class Law:
    """The law of each number on a tape: "laplace" or "gaussian" of so many steps."""

    noise: str
    scale: Fraction

    def draw(self, count: int, width: int, rng: Rng) -> NDArray[Any]:
        sample = unbounded_laplace if self.noise == "laplace" else unbounded_gaussian
        return sample(self.scale, count * width, rng=rng).reshape(count, width)

    @property
    def deviation(self) -> float:
        """The standard deviation in steps (of the Gaussian law an upper bound)."""
        scale = float(self.scale)
        if self.noise == "gaussian":
            return scale
        q = np.exp(-1 / scale)
        return float(np.sqrt(2 * q) / -np.expm1(-1 / scale))


class Tape:
    """Numbers of one law, drawn in blocks; `source(block)` is the generator of a block.

    Guarantee:
        With a source that gives each block a stream of its own, number i is a function of (source, i) alone: a replay
        reads the same noise.
    """

    def __init__(self, law: Law, width: int, source: Callable[[int], Rng], block: int = BLOCK) -> None:
        self._law, self._width, self._source, self.size = law, width, source, block
        self._block = -1
        self._drawn: NDArray[Any] = np.zeros((0, width))
        self._rows: list[Any] | None = None
        self.made: tuple[int, Any] | None = None
        """What a mechanism made of a whole block ahead of the data: the block's number, and what it is."""

    def block(self, number: int) -> NDArray[Any]:
        """The draws of one block, a row each."""
        if number != self._block:
            self._drawn = self._law.draw(self.size, self._width, self._source(number))
            self._block, self._rows = number, None
        return self._drawn

    def row(self, number: int) -> Any:
        """Noise for one draw: an integer where the width is 1, else an array of integers of any size."""
        block, place = divmod(number, self.size)
        if block != self._block or self._rows is None:
            drawn = self.block(block)
            self._rows = drawn[:, 0].tolist() if self._width == 1 else list(drawn.astype(object))
        return self._rows[place]
