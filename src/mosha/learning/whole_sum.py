"""The exact sum of a step: single-precision sums of physical batches, cut to whole numbers and added up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Size, Tensor

from mosha.learning.engine import Landing

__all__ = ["PIECE", "WholeSum"]

PIECE = 1 << 16  # coordinates that are worked on together, so that they stay in the cache
LINE = 16  # numbers in single precision in a line of the cache


class WholeSum:
    """A coordinate in whole steps of the grid for each entry of each parameter, then `extras` more.

    The sums of the first batch wait in single precision in the second half of the same memory: whoever cuts them to
    whole numbers goes from the first to the last, and writes none of them before it was read. So a step of one batch
    needs no memory but that of its answer, and cutting can be left to the pass that adds noise.

    Guarantee:
        Every coordinate is the sum, over the batches since `begin`, of its single-precision sum cut towards zero, with
        no rounding between batches. What a batch does not mention counts as zero, and so does what stood there before.

    >>> sums = WholeSum({"weight": Size([2, 2]), "bias": Size([2])}, extras=1)
    >>> sums.begin()
    >>> for values in ([1.5, -1.5], [2.0, 0.9]):
    ...     with sums.batch() as land:
    ...         land("weight", 1, 2, lambda out: out.copy_(torch.tensor(values)))
    >>> sums.finished().tolist()
    [0, 3, -1, 0, 0, 0, 0]
    """

    def __init__(self, shapes: Mapping[str, Size], extras: int) -> None:
        self._starts: dict[str, int] = {}
        self._size = 0
        for name, shape in shapes.items():
            self._starts[name] = self._size
            self._size += shape.numel()
        self._total, self._waiting, self._behind = _memory(self._size, extras)
        self._empty, self._cut = True, True

    @property
    def extras(self) -> Tensor:
        """The coordinates behind those of the parameters; whole numbers, to be added to after a batch."""
        return self._total[self._size :]

    def begin(self) -> None:
        """Forget what stands there: the first batch overwrites it, which spares the pass that would write zeros."""
        self._empty, self._cut = True, True

    @contextmanager
    def batch(self) -> Iterator[Landing]:
        """Inside, the sums of one batch land, no coordinate twice."""
        written: list[tuple[int, int]] = []
        self._cut_down()

        def land(name: str, place: int, entries: int, write: Callable[[Tensor], object]) -> None:
            start = self._starts[name] + place
            written.append((start, start + entries))
            if self._empty:
                write(self._waiting[start : start + entries])
                return
            found = torch.empty(entries)
            write(found)
            for first in range(0, entries, PIECE):
                part = found[first : first + PIECE].to(torch.int64)  # towards zero
                self._total[start + first : start + first + len(part)].add_(part)

        yield land
        if self._empty:
            self._zero_between(written)
            self._empty, self._cut = False, False

    def _zero_between(self, written: list[tuple[int, int]]) -> None:
        end = 0
        for start, following in [*sorted(written), (self._size, self._size)]:
            if start > end:
                self._waiting[end:start].zero_()
            end = following
        self.extras.zero_()

    def _cut_down(self) -> None:
        """Cut what waits in single precision towards zero."""
        if not self._cut:
            for first in range(0, self._size, PIECE):
                part = self._waiting[first : first + PIECE].to(torch.int64)
                self._total[first : first + len(part)].copy_(part)
            self._cut = True
            self._behind.zero_()

    def finished(self) -> Tensor:
        """The sum of all batches; it stays where it is, and the next `begin` gives its memory away."""
        if self._empty:  # there was none
            self._total.zero_()
            self._empty = False
        self._cut_down()
        return self._total

    def given_away(self) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
        """The same, where the second says what waits in single precision, to be cut by the taker; then comes `taken`.

        This is empty afterwards: who failed to take it and asks again finds no floats that look like whole numbers.
        """
        if self._cut:
            return self.finished().numpy(), None
        self.begin()
        return self._total.numpy(), self._waiting.numpy()

    def taken(self) -> None:
        """Erase what was given away and lies behind the whole numbers: who holds them could look there."""
        self._behind.zero_()


def _memory(size: int, extras: int) -> tuple[Tensor, Tensor, Tensor]:
    """Room for whole numbers, in its second half for as many single ones that do not touch the extras; what is behind.

    Products are written faster to the beginning of a line of the cache: so room is left in front, of up to one line.
    """
    first = size + size % 2 if extras == 0 else size  # of the single ones, counted from the first whole number
    front = -first % LINE if first % 2 == 0 else 0
    single = torch.empty(front + 2 * (size + extras) + 2)
    whole = single[: len(single) // 2 * 2].view(torch.int64)[front // 2 :][: size + extras]
    behind = single[front + 2 * (size + extras) :]  # where the last single one may lie
    single[:front].zero_()  # memory that was freed elsewhere is not given away
    behind.zero_()
    return whole, single[front + first : front + first + size], behind
