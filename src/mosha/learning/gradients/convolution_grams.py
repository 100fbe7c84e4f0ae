"""Inner products between the windows that a convolution looks at, without laying the windows out.

The inner product of two windows is a sum over the kernel of inner products between places, and windows that overlap
share these: they are worked out once for all pairs of places. Two windows that both move by one place go down a
diagonal of that matrix, where neighbors are as many entries apart as the matrix is wide, and one more.
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn import functional

from mosha.learning.gradients.norms import between_rows

__all__ = ["between_places", "between_windows"]


def between_places(values: Tensor) -> Tensor:
    """Inner products over channels between all places of all rows of a unit: shape (units, places, places).

    The shape of what is given is (units, rows, channels, *space).

    >>> import torch
    >>> between_places(torch.tensor([[[[1.0, 2.0, 3.0]]]]))
    tensor([[[1., 2., 3.],
             [2., 4., 6.],
             [3., 6., 9.]]])
    """
    return between_rows(values.flatten(3).transpose(1, 2).flatten(2).transpose(1, 2))


def between_windows(x: Tensor, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int]) -> Tensor:
    """Inner products between all windows of all rows of a unit: shape (units, windows, windows).

    >>> import torch
    >>> x = torch.tensor([[[[1.0, 2.0, 3.0]]]])
    >>> between_windows(x, [2], [1], [0], [1])  # of (1, 2) and (2, 3)
    tensor([[[ 5.,  8.],
             [ 8., 13.]]])
    """
    units, rows, _, *sizes = x.shape
    between = between_places(x).view(units, rows, *sizes, rows, *sizes)
    if max(padding) > 0:
        around = [side for one in reversed(padding) for side in (one, one)]
        between = functional.pad(between, [*around, 0, 0, *around])
        sizes = [size + 2 * one for size, one in zip(sizes, padding, strict=True)]
    hops = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]  # from a place to the next in each axis
    wide = rows * math.prod(sizes)
    entries = between.flatten(1)
    for hop, count, reach in reversed(list(zip(hops, kernel, dilation, strict=True))):
        entries = _sums_along(entries, (wide + 1) * hop * reach, count)
    counts = [
        (size - reach * (count - 1) - 1) // step + 1
        for size, count, step, reach in zip(sizes, kernel, stride, dilation, strict=True)
    ]
    shape, steps = [rows, *counts], [math.prod(sizes), *(hop * step for hop, step in zip(hops, stride, strict=True))]
    windows = entries.as_strided((units, *shape, *shape), (entries.stride(0), *(wide * step for step in steps), *steps))
    return windows.reshape(units, math.prod(shape), -1)


def _sums_along(entries: Tensor, hop: int, count: int) -> Tensor:
    """Of each entry and those that follow it in hops, `count` in all."""
    if count == 1:
        return entries
    length = entries.shape[1] - (count - 1) * hop
    found = entries[:, :length] + entries[:, hop : hop + length]
    for number in range(2, count):
        found += entries[:, number * hop : number * hop + length]
    return found
