"""The exact sum of a step: single-precision sums of physical batches, cut to whole numbers and added up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Size, Tensor

from mosha.learning.gradients.engine import Landing

__all__ = ["ExactSum", "scale_in_place"]

PIECE = 1 << 16  # coordinates that are worked on together, so that they stay in the cache
LINE = 16  # numbers in single precision in a line of the cache


class ExactSum:
    """A coordinate in whole steps of the grid for each entry of each parameter, and `extras` more.

    The sums of the first batch wait in single precision, where the answer will be: a step of one batch needs no other
    memory, and cutting is left to the pass that adds noise. From the first step with a second batch on there are 64
    bits for each coordinate, and the sums of a first batch wait in the second half of them.

    Guarantee:
        Every coordinate is the sum, over the batches since `begin`, of its single-precision sum cut towards zero, with
        no rounding between batches. What a batch does not mention counts as zero, and so does what stood there before.

    >>> sums = ExactSum({"weight": Size([2, 2]), "bias": Size([2])}, extras=1)
    >>> sums.begin()
    >>> for values in ([1.5, -1.5], [2.0, 0.9]):
    ...     with sums.batch() as land:
    ...         land("weight", 1, 2, lambda out: out.copy_(torch.tensor(values)))
    >>> sums.finish().tolist(), sums.extras.tolist()
    ([0, 3, -1, 0, 0, 0], [0])
    """

    def __init__(self, shapes: Mapping[str, Size], extras: int) -> None:
        self._starts: dict[str, int] = {}
        self._size = 0
        for name, shape in shapes.items():
            self._starts[name] = self._size
            self._size += shape.numel()
        self.extras = torch.zeros(extras, dtype=torch.int64)  # to be added to after a batch
        self._memory = torch.empty(self._size)
        self._single, self._whole = self._memory, None  # type: Tensor, Tensor | None
        self._empty, self._cut = True, True

    def begin(self) -> None:
        """Forget what stands there: zeros are written over sums that were not given away.

        What was given away is the taker's: the first batch overwrites it, which spares the pass that would write zeros.
        """
        if not self._empty:
            self.erase()

    def erase(self) -> None:
        """Write zeros over everything, and begin: after a failure nobody will add noise to what stands there."""
        self._memory.zero_()
        self.extras.zero_()
        self._empty, self._cut = True, True

    @contextmanager
    def erase_on_failure(self) -> Iterator[None]:
        """Inside, sums are added up and answered; whatever breaks that off, they are gone."""
        try:
            yield
        except BaseException:
            self.erase()
            raise

    @contextmanager
    def batch(self) -> Iterator[Landing]:
        """Inside, the sums of one batch land, no coordinate twice."""
        written: list[tuple[int, int]] = []
        whole = None if self._empty else self._cut_down()

        def land(name: str, place: int, entries: int, write: Callable[[Tensor], object]) -> None:
            start = self._starts[name] + place
            written.append((start, start + entries))
            if whole is None:
                write(self._single[start : start + entries])
                return
            found = torch.empty(entries)
            write(found)
            for first in range(0, entries, PIECE):
                part = found[first : first + PIECE].to(torch.int64)  # towards zero
                whole[start + first : start + first + len(part)].add_(part)

        with self.erase_on_failure():
            yield land
            if self._empty:
                self._zero_but(written)

    def _zero_but(self, written: list[tuple[int, int]]) -> None:
        """Zeros where no sum of the first batch was written."""
        end = 0
        for start, following in [*sorted(written), (self._size, self._size)]:
            if start > end:
                self._single[end:start].zero_()
            end = following
        self.extras.zero_()
        self._empty, self._cut = False, False

    def _cut_down(self) -> Tensor:
        """The whole numbers, after what waits in single precision was cut towards zero.

        Pieces go from first to last: whole number i takes the place of sums that were read with or before its own.
        """
        waiting = self._single
        if self._whole is None:
            lines = -(-self._size // LINE) * LINE  # products are written faster to the beginning of a line
            self._memory = torch.empty(2 * lines)
            self._whole = self._memory.view(torch.int64)[: self._size]
            self._single = self._memory[lines : lines + self._size]
        if not self._cut:
            for first in range(0, self._size, PIECE):
                part = waiting[first : first + PIECE].to(torch.int64)
                self._whole[first : first + len(part)].copy_(part)
            self._memory[2 * self._size :].zero_()
            self._cut = True
            if waiting is not self._single:
                waiting.zero_()  # whoever still holds the last answer could look there
        return self._whole

    def finish(self) -> Tensor:
        """The sum of all batches but for the extras; it stays where it is, until the next `begin`."""
        if self._empty:
            self._zero_but([])
        return self._cut_down()

    def give_away(self) -> tuple[NDArray[np.int64] | NDArray[np.float32], NDArray[np.int64]]:
        """The sum of all batches, in single precision where it was not cut yet, and the extras.

        The taker writes noisy numbers to the same memory. This is empty afterwards: who failed to take it and asks
        again finds zeros.
        """
        if self._empty:
            self._zero_but([])
        found = self._whole if self._cut and self._whole is not None else self._single
        extras = self.extras.numpy().copy()
        self.extras.zero_()
        self._empty, self._cut = True, True
        return found.numpy(), extras


def scale_in_place(whole: NDArray[np.int64], factor: float) -> NDArray[np.float32]:
    """The numbers times the factor, both rounded to single precision, in the first half of their memory.

    Pieces go from first to last: result i takes the place of half of number i // 2, which was read with or before it.
    """
    single, result = np.float32(factor), whole.view(np.float32)[: len(whole)]
    for first in range(0, len(whole), PIECE):
        part = whole[first : first + PIECE].astype(np.float32)
        np.multiply(part, single, out=result[first : first + PIECE])
    return result
