"""What an example is made of: which of its tensors go into the model, and which the loss compares with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from mosha.core.errors import DataError, InvalidParameter

__all__ = ["Call", "Flat", "Layout", "Target", "to_tensor"]

Flat = tuple[Tensor, ...]
"""A batch as tensors alone, those of the inputs first; every one has an entry a row."""

Target = str | int | Sequence[str]
"""What the loss compares with: the name of an entry or several names, or how many entries at the end."""

USUAL = ("labels", "label", "target", "targets", "y")  # what data sets call it


class Call(NamedTuple):
    """A batch as it is used: `loss(model(*arguments, **options), target)`."""

    arguments: tuple[object, ...]
    options: dict[str, object]
    target: object

    def ask(self, model: nn.Module) -> object:
        """What the model gives for the inputs."""
        return model(*self.arguments, **self.options)

    def change(self, augment: Callable[..., object]) -> Call:
        """The same with other inputs: `augment` is called as the model is, and gives inputs for it."""
        found = augment(*self.arguments, **self.options)
        if isinstance(found, Mapping):
            return self._replace(options={str(name): values for name, values in found.items()})
        return self._replace(arguments=found if isinstance(found, tuple) else (found,))


class Layout:
    """How a batch is taken apart into tensors, and put together again.

    A batch is a pair, several inputs with a target (or several) at the end, or a mapping whose entries are handed to
    the model by name; entries may be mappings or lists of tensors themselves.

    >>> rows = {"tokens": torch.zeros(2, 3), "mask": torch.ones(2, 3), "labels": torch.zeros(2)}
    >>> layout = Layout(rows)
    >>> layout.targets, layout.names, sorted(layout.join(layout.flatten(rows)).options)
    (1, ('labels',), ['mask', 'tokens'])
    """

    def __init__(self, batch: object, target: Target | None = None) -> None:
        self.is_mapping = isinstance(batch, Mapping)
        self.names: tuple[str, ...] = _names(batch, target) if isinstance(batch, Mapping) else ()
        self._single = isinstance(target, str) or target is None or target == 1
        self._count = 1 if target is None or not isinstance(target, int) else target
        if not self.is_mapping and (not isinstance(batch, tuple | list) or len(batch) <= self._count):
            raise DataError("learning.not_a_pair", spent="nothing")
        parts = self._split(batch)
        leaves, self._spec = tree_flatten(parts)
        self.targets = len(tree_flatten(parts[1])[0])
        self.shapes = [(values.shape[1:], values.dtype) for values in map(to_tensor, leaves)]

    def _split(self, batch: object) -> tuple[object, object]:
        """Inputs and targets."""
        if isinstance(batch, Mapping):
            inputs = {str(name): values for name, values in batch.items() if name not in self.names}
            wanted = {name: batch[name] for name in self.names}
            return inputs, wanted[self.names[0]] if self._single and self.names else wanted
        if not isinstance(batch, tuple | list):
            raise DataError("learning.not_a_pair", spent="nothing")
        cut = len(batch) - self._count
        return tuple(batch[:cut]), batch[cut] if self._single else tuple(batch[cut:])

    def flatten(self, batch: object) -> Flat:
        """The tensors of a batch; one that is made of other things than the first is refused."""
        leaves, spec = tree_flatten(self._split(batch))
        found = tuple(map(to_tensor, leaves))
        if spec != self._spec or [(values.shape[1:], values.dtype) for values in found] != self.shapes:
            raise DataError("learning.other_shapes")
        return found

    def join(self, flat: Flat) -> Call:
        """The batch as model and loss take it."""
        inputs, wanted = tree_unflatten(list(flat), self._spec)
        return Call((), inputs, wanted) if self.is_mapping else Call(inputs, {}, wanted)

    def restore(self, flat: Flat) -> object:
        """The batch as a loader gives it."""
        inputs, wanted = tree_unflatten(list(flat), self._spec)
        if not self.is_mapping:
            return (*inputs, wanted) if self._single else (*inputs, *wanted)
        return {**inputs, **({self.names[0]: wanted} if self._single and self.names else wanted)}


def _names(batch: Mapping[object, object], target: Target | None) -> tuple[str, ...]:
    """The entries that the loss compares with; none where no name says so."""
    if target is None:
        return tuple(name for name in USUAL if name in batch)[:1]
    names = (target,) if isinstance(target, str) else tuple(map(str, target)) if isinstance(target, Sequence) else ()
    if not names or not set(names) <= set(batch) or len(names) == len(batch):
        raise InvalidParameter(
            "learning.unknown_target", parameter="target", names=[str(name) for name in batch], spent="nothing"
        )
    return names


def to_tensor(values: object) -> Tensor:
    """A tensor of what NumPy, pandas or polars hold; double precision becomes single, as models have it.

    >>> to_tensor(np.ones(2)).dtype
    torch.float32
    """
    if not isinstance(values, Tensor):
        values = values.to_numpy() if hasattr(values, "to_numpy") else values
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
            raise DataError("learning.not_tensors", spent="nothing")
        values = torch.from_numpy(np.array(values))
    if values.ndim == 0:
        raise DataError("learning.not_tensors", spent="nothing")
    return values.float() if values.dtype == torch.float64 else values
