"""The tape: where layers note what they saw, while a private batch passes, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Protocol

import torch
from torch import Tensor

from mosha.core.errors import DataError
from mosha.learning.gradients.norms import RowNorms, between_rows, gram_is_cheaper
from mosha.learning.gradients.records import Direct, Outer, Record, Sequence, bytes_to_form

__all__ = ["Context", "Key", "Note", "Tape"]


Note = Callable[..., None]
"""What a layer does with the tensors of its backward pass: it writes them on the tape."""


class Context(Protocol):
    """What autograd hands from a forward pass to its backward pass: tensors, and what a layer keeps by name."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    note: Note
    kind: torch.dtype
    how: Any
    shape: list[int]
    sizes: tuple[int, ...]
    kept: Any

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep these tensors until the backward pass."""


@dataclass(frozen=True)
class Key:
    """A parameter, or some rows of one (attention keeps three projections in one matrix)."""

    name: str
    rows: tuple[int, int] | None = None


@dataclass
class Tape:
    """Records of one physical batch.

    `units` are the people or examples of the batch, each with `each` consecutive rows; `spare` bytes may be used to
    keep gradients that were formed, `names` says what a parameter is called by its identity. Which gradients are formed
    is decided for the largest batch that the plan allows (`most` units), never by how many were drawn: one unit more
    must not change the arithmetic of the others. While public batches of several sizes are looked at (`looking`),
    layers learn how many entries a row has in their first axis (`folds`) and which values all rows share (`shared`).
    Where `seen` is a list, what layers note is listed there.
    """

    memory: int
    names: dict[int, str]
    recording: bool = False
    units: int = 0
    each: int = 1
    spare: int = 0
    spare_for_convolutions: int = 0
    most: int = 128
    records: dict[Key, list[Record]] = field(default_factory=dict)
    norms: RowNorms = field(default_factory=RowNorms)
    looking: bool = False
    seen: list[Tensor] | None = None
    folds: dict[str, int] = field(default_factory=dict)
    shared: set[tuple[str, int]] = field(default_factory=set)

    @contextmanager
    def record(self, rows: int, each: int) -> Iterator[None]:
        """Note everything that happens to a batch of `rows` rows, `each` of which belong together."""
        self.start(rows, each)
        try:
            yield
        finally:
            self.recording = False

    def start(self, rows: int, each: int) -> None:
        """From now on layers note what happens to a batch of `rows` rows; what was noted before is gone."""
        self.recording, self.units, self.each = True, rows // each, each
        self.spare, self.spare_for_convolutions = self.memory, 2 * self.memory
        self.records, self.norms = {}, RowNorms()

    def key(self, parameter: Tensor | None, rows: tuple[int, int] | None = None) -> Key:
        """The key of a parameter: one and the same wherever the parameter is used (tied weights)."""
        return Key(self.names.get(id(parameter), ""), rows)

    def add(self, key: Key, record: Record) -> None:
        self.records.setdefault(key, []).append(record)

    def rows_of(self, layer: str, values: Tensor, *, folded: bool = False) -> Tensor:
        """`values` in single precision, after a check that its first axis is the batch.

        Where `folded`, each row may have several entries there, one after another, as many as in every look before.
        """
        rows = self.units * self.each
        if values.ndim == 0 or values.shape[0] != rows:
            times, rest = divmod(values.shape[0] if values.ndim else 0, rows)
            usual = self.folds.get(layer) or (times if self.looking else 0)
            if not folded or rest or times < 2 or times != usual:
                raise DataError("learning.first_axis", layer=layer)
            self.folds[layer] = times
        values = values.detach()
        values = values if values.dtype == torch.float32 else values.float()
        if self.seen is not None:
            self.seen.append(values)
        return values

    def has_rows(self, place: str, values: Tensor) -> bool:
        """Whether the first axis of these values is the batch, in all looks: others are shared by all rows."""
        key, follows = (place, values.ndim), values.ndim > 0 and values.shape[0] == self.units * self.each
        if self.looking and not follows:
            self.shared.add(key)
        if key not in self.shared and not follows:
            raise DataError("learning.first_axis", layer=place)
        return key not in self.shared

    def share(self, layer: str, values: Tensor) -> Tensor:
        """What all rows share (a first axis of one) for each of them; broadcasting would have done the same."""
        rows = self.units * self.each
        if values.ndim < 2 or values.shape[0] != 1 or rows == 1:
            return values
        if self.looking:
            self.shared.add((layer, values.ndim))
        return values.expand(rows, *values.shape[1:])

    def matrix(self, layer: str, key: Key, a: Tensor, g: Tensor) -> None:
        """Note the gradient of a matrix: outputs are a row of `a` times the matrix, summed over all inner axes."""
        self.matrices(layer, [(key, a)], g)

    def matrices(self, layer: str, seen: list[tuple[Key, Tensor]], g: Tensor) -> None:
        """The same for several matrices with an `a` each, whose outputs were added up: one `g` for all."""
        of_outputs, *of_inputs = (
            self.rows_of(layer, v, folded=True).reshape(self.units, -1, v.shape[-1]) for v in (g, *(a for _, a in seen))
        )
        positions, outputs = of_outputs.shape[1:]
        inputs = sum(a.shape[2] for a in of_inputs)
        needed = bytes_to_form(self.most, outputs, inputs)
        by_gram = needed > self.spare or gram_is_cheaper(positions, outputs, inputs)
        self.spare -= 0 if by_gram else needed
        between = cache(partial(between_rows, of_outputs))
        for (key, _), a in zip(seen, of_inputs, strict=True):
            if by_gram:
                self.add(key, Sequence(a, of_outputs, between))
            else:  # replaces the product that would sum them
                self.add(key, Direct(torch.bmm(of_outputs.transpose(1, 2), a)))

    def has_room_to_form(self, weight: Tensor, x: Tensor, g: Tensor) -> bool:
        """Whether the gradients of a convolution are formed and kept, and room is taken for them.

        They always are where they need less than inputs and gradients of outputs, which are kept otherwise.
        """
        needed, seen = bytes_to_form(self.most, 1, weight.numel()), (x.numel() + g.numel()) // self.units
        if needed <= 4 * self.most * seen:
            return True
        if needed > self.spare_for_convolutions:
            return False
        self.spare_for_convolutions -= needed
        return True

    def affine(self, layer: str, weight: Key | None, bias: Key | None, a: Tensor, g: Tensor) -> None:
        """Note the gradients of a matrix and of a bias, of those that have a key."""
        if a.ndim == 2 and self.each == 1 and len(a) == self.units:
            a, g = self.rows_of(layer, a), self.rows_of(layer, g)
            of_g = self.norms.of(g)  # both ask for them
            if weight is not None:
                self.add(weight, Outer(a, g, self.norms.of(a), of_g))
            if bias is not None:
                self.add(bias, Direct(g, of_g))
            return
        if weight is not None:
            self.matrix(layer, weight, a, g)
        if bias is not None:
            self.vector(layer, bias, g)

    def vector(self, layer: str, key: Key, g: Tensor) -> None:
        """Note the gradient of a bias: `g`, summed over all axes but the first and the last."""
        g = self.rows_of(layer, g, folded=True)
        self.record_gradients(layer, key, g if g.ndim == 2 else g.reshape(g.shape[0], -1, g.shape[-1]).sum(dim=1))

    def record_gradients(self, layer: str, key: Key, gradients: Tensor) -> None:
        """Note gradients that have been formed, one (or as many as were folded) for each row."""
        gradients = self.rows_of(layer, gradients, folded=True)
        if len(gradients) > self.units:
            gradients = gradients.reshape(self.units, -1, *gradients.shape[1:]).sum(dim=1)
        self.add(key, Direct(gradients))
