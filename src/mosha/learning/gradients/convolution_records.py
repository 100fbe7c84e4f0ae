"""Weight gradients of convolutions: formed for every example, or noted without being kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mosha.learning.gradients.convolution_grams import between_places, between_windows
from mosha.learning.gradients.norms import CANCELLATION, Squares, gram_norms_squared, row_norms_squared
from mosha.learning.gradients.records import Record, silence, weigh

__all__ = ["Convolved", "How", "Pieces", "convolution_backward"]

PIECE = 7 << 19  # bytes of gradients that are formed at once
TRAFFIC = 40  # assumed: keeping a formed entry costs as much as so many multiply-adds of a Gram matrix
ADDITIONS = 24  # assumed: what is done with an entry of a Gram matrix costs as much as so many multiply-adds


@dataclass(frozen=True)
class How:
    """How a convolution goes over its inputs: one number for each axis, and the groups of channels."""

    stride: list[int]
    padding: list[Any]
    dilation: list[int]
    groups: int

    def is_pointwise(self, weight: Tensor) -> bool:
        """Whether every place of the outputs is a matrix times one place of the inputs."""
        return math.prod(weight.shape[2:]) == self.groups == 1 and max(self.padding) == 0


def convolution_backward(g: Tensor, x: Tensor, weight: Tensor, how: How, mask: list[bool]) -> Any:
    """The gradients of inputs, weights and bias, of those that the mask wants."""
    zeros = [0] * len(how.stride)
    arguments = (g, x, weight, [0], how.stride, how.padding, how.dilation, False, zeros, how.groups, mask)
    return torch.ops.aten.convolution_backward(*arguments)


def _pieces(count: int, size: int) -> Iterator[slice]:
    """So many things of that size, in equal pieces of PIECE bytes at most, or one by one."""
    pieces = max(1, -(-count // max(1, PIECE // max(1, size))))
    most = max(1, -(-count // pieces))
    for start in range(0, count, most):
        yield slice(start, start + most)


def _at_once(x: Tensor, g: Tensor, weight: Tensor, how: How) -> Tensor:
    """The weight gradient of every row: the batch becomes groups of one convolution, which needs as much again.

    Of the weight only the shape is looked at. A convolution without groups may round otherwise, so that a row which is
    alone in a piece for two is formed twice: which rows are alone depends on how many were drawn.
    """
    if how.is_pointwise(weight):
        return torch.bmm(g.flatten(2), x.flatten(2).transpose(1, 2)).view(-1, *weight.shape)
    if len(x) == 1 and how.groups == 1 and 2 * 4 * weight.numel() <= PIECE:
        return _at_once(torch.cat([x, x]), torch.cat([g, g]), weight, how)[:1]
    shaped = weight.new_empty(len(x) * weight.shape[0], *weight.shape[1:])  # expanded it would be copied
    grouped = How(how.stride, how.padding, how.dilation, how.groups * len(x))
    x, g = x.reshape(1, -1, *x.shape[2:]), g.reshape(1, -1, *g.shape[2:])
    formed = convolution_backward(g, x, shaped, grouped, [False, True, False])[1]
    return formed.view(-1, *weight.shape)  # type: ignore[no-any-return]


class Pieces:
    """Gradients that were formed some units at a time, and stay so: to put them together is to copy them all."""

    def __init__(self, pieces: list[Tensor]) -> None:
        self._pieces = pieces

    def squared_norms(self) -> Squares:
        return np.concatenate([row_norms_squared(piece) for piece in self._pieces])

    def per_unit(self) -> Tensor:
        return torch.cat(self._pieces)

    def weighted_sum(self, weights: Tensor, out: Tensor) -> None:
        own = self._split(weights)
        for number, (piece, some) in enumerate(zip(self._pieces, own, strict=True)):
            out.addmv_(piece.reshape(len(piece), -1).t(), some, beta=min(1, number))  # the first over what was there

    def without(self, rows: Tensor) -> Record:
        return Pieces([silence(*both) for both in zip(self._pieces, self._split(rows), strict=True)])

    def _split(self, values: Tensor) -> tuple[Tensor, ...]:
        return torch.split_with_sizes(values, [len(piece) for piece in self._pieces])


class Convolved:
    """Gradients of a convolution that are not kept: inputs `x` and gradients `g` of outputs, `each` rows a unit.

    Norms come from Gram matrices where those are cheaper, else from gradients that are formed and forgotten; the
    weighted sum is one convolution over all rows. A unit whose positions cancel counts as for `Sequence`: at least as
    a part of the sum of the norms of its terms, of which the sum over all rows may round something away.
    """

    def __init__(self, x: Tensor, g: Tensor, weight: Tensor, how: How, each: int) -> None:
        if how.is_pointwise(weight) and max(how.stride) > 1:  # the other places are not looked at
            x = x[:, :, *(slice(None, None, step) for step in how.stride)].contiguous()
            how = replace(how, stride=[1] * len(how.stride))
        self._x, self._g, self._weight, self._how, self._each = x, g, weight, how, each

    def gram_is_cheaper(self, *, than_keeping: bool) -> bool:
        """Whether Gram matrices are taken to cost less than forming: where channels are many and positions few.

        Where formed gradients are kept, forming saves the sum over all rows.
        """
        if self._how.groups > 1:
            return False
        (outputs, inputs), each = self._weight.shape[:2], self._each
        places, positions = each * math.prod(self._x.shape[2:]), each * math.prod(self._g.shape[2:])
        gram = places**2 * inputs + self._entries * ADDITIONS + positions**2 * (outputs + ADDITIONS)
        return bool(gram < self._weight.numel() * (TRAFFIC + (0 if than_keeping else positions)))

    @property
    def _entries(self) -> int:
        """Of the Gram matrix of one unit: a row and a column for each place of its padded inputs."""
        padded = (size + 2 * more for size, more in zip(self._x.shape[2:], self._how.padding, strict=True))
        return int(self._each * math.prod(padded)) ** 2

    def squared_norms(self) -> Squares:
        if self.gram_is_cheaper(than_keeping=False):
            return np.concatenate([self._of_grams(rows) for rows in self._rows(self._entries)])
        return np.concatenate([self._of_formed(rows) for rows in self._rows(self._each * self._weight.numel())])

    def _rows(self, entries: int) -> Iterator[slice]:
        """All rows in pieces of whole units, where so many entries are worked out for each unit."""
        for units in _pieces(len(self._x) // self._each, 4 * entries):
            yield slice(units.start * self._each, units.stop * self._each)

    def _form_gradients(self, rows: slice) -> Tensor:
        formed = _at_once(self._x[rows], self._g[rows], self._weight, self._how)
        return formed if self._each == 1 else formed.view(-1, self._each, *self._weight.shape).sum(dim=1)

    def form(self) -> Pieces:
        """The same gradients, kept."""
        return Pieces([self._form_gradients(rows) for rows in self._rows(self._each * self._weight.numel())])

    def _of_grams(self, rows: slice) -> Squares:
        x, g = (v[rows].view(-1, self._each, *v.shape[1:]) for v in (self._x, self._g))
        inputs, outputs = math.prod(self._weight.shape[1:]), self._weight.shape[0]
        return gram_norms_squared(self._grams, x, g, inputs=inputs, outputs=outputs)

    def _grams(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        how, kernel = self._how, list(self._weight.shape[2:])
        return between_windows(x, kernel, how.stride, how.padding, how.dilation), between_places(g)

    def _of_formed(self, rows: slice) -> Squares:
        length = self._length(self._x[rows], self._g[rows]).cpu().numpy()
        found: Squares = np.maximum(row_norms_squared(self._form_gradients(rows)), CANCELLATION * np.square(length))
        return found

    def _length(self, x: Tensor, g: Tensor) -> Tensor:
        """The sum over positions of the norms of a unit's terms, each the window of a position times its gradient."""
        how, groups = self._how, self._how.groups
        of_x, of_g = (v.double().square().view(len(v), groups, -1, *v.shape[2:]).sum(dim=2) for v in (x, g))
        ones = of_x.new_ones(groups, 1, *self._weight.shape[2:])
        zeros = [0] * len(how.stride)
        windows = torch.convolution(of_x, ones, None, how.stride, how.padding, how.dilation, False, zeros, groups)
        terms = windows.mul_(of_g).sum(dim=1).clamp_min(0).sqrt()
        return terms.flatten(1).sum(dim=1).view(-1, self._each).sum(dim=1)

    def per_unit(self) -> Tensor:
        return self.form().per_unit()

    def weighted_sum(self, weights: Tensor, out: Tensor) -> None:
        g = weigh(self._g, weights, self._each)
        summed = convolution_backward(g, self._x, self._weight, self._how, [False, True, False])[1]
        out.copy_(summed.reshape(-1))

    def without(self, rows: Tensor) -> Record:
        lost = rows.repeat_interleave(self._each)
        return Convolved(silence(self._x, lost), silence(self._g, lost), self._weight, self._how, self._each)
