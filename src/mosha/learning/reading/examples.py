"""The private data of a training: examples by position, gathered into batches of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import DataLoader, Subset, TensorDataset, default_collate

from mosha.core.errors import InvalidParameter, MoshaError
from mosha.core.measurement import Rng
from mosha.exact.bounding import identify, list_entries, to_array
from mosha.learning.reading.layout import Flat, Layout, Target, to_tensor
from mosha.mechanisms.plans.sampling import shuffle

__all__ = ["Collate", "Examples", "Rows", "group_by_owner"]

Collate = Callable[[list[object]], object]
"""From a list of examples to a batch."""


class Rows(Protocol):
    """A data set: a number of examples, each at a position."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> object: ...


class Examples:
    """A data set with a length, and whose each example is.

    Columns (a tuple or a mapping of tensors, arrays or frames, or a TensorDataset) are gathered at once; any other data
    set is read one by one. `collate` is asked for a batch of one example at a time, so that none has a part in another,
    `gather` for whole batches; `like` is a public batch that stands for the data in the look before paying.
    """

    def __init__(
        self,
        dataset: object,
        *,
        owners: Iterable[object] | None = None,
        each: int = 1,
        collate: Collate | None = None,
        gather: Collate | None = None,
        target: Target | None = None,
        like: object = None,
    ) -> None:
        if isinstance(dataset, DataLoader):
            raise InvalidParameter("learning.loader_given", parameter="dataset", spent="nothing")
        tensors = _unwrap_tensors(dataset)
        columns = _columns(tensors) if collate is None and gather is None else None
        self._dataset, self.each = cast("Rows", dataset), each
        self._gather = gather or (_gather_rows if collate is None else _one_by_one(collate))
        self._target, self._like = target, like
        self._layout = None if columns is None else Layout(columns, target)
        self._columns = None if columns is None or self._layout is None else self._layout.flatten(columns)
        self.count = _count(dataset) if self._columns is None else len(self._columns[0])
        if owners is None and each > 1:
            raise InvalidParameter("learning.no_owners", parameter="owners", spent="nothing")
        self._example: Flat | None = None
        self._owners = None if owners is None else to_array(owners)
        self._persons = None if owners is None else group_by_owner(self._owners, self.count)
        self.units = self.count if self._persons is None else len(self._persons)

    @property
    def layout(self) -> Layout:
        """What an example is made of: by `like`, by the columns, or by the first example, looked up once."""
        if self._layout is None:
            self._layout = Layout(self._look(), self._target)
        return self._layout

    @property
    def has_public_shapes(self) -> bool:
        """Whether what an example is made of is known without a look at one."""
        return self._like is not None or self._columns is not None

    def names(self) -> list[int | str]:
        """What identifies each person, in the order of units; empty where units are examples."""
        if self._persons is None:
            return []
        owners = list_entries(self._owners)
        return [identify(owners[int(rows[0])]) for rows in self._persons]

    def keep(self, persons: NDArray[np.bool_]) -> None:
        """Leave out the persons that are not marked, with all their examples."""
        self._persons = [rows for rows, kept in zip(self._persons or [], persons, strict=True) if kept]
        self.units = len(self._persons)

    def positions(self, units: NDArray[np.int64], rng: Rng) -> tuple[NDArray[np.int64], Tensor | None]:
        """The examples of these units, `each` for every one, and which of them count; short ones are filled up."""
        if self._persons is None:
            return units, None
        rows, counts = [], []
        for unit in units:
            own = self._persons[int(unit)]
            own = shuffle(own, rng)[: self.each] if len(own) > self.each else own
            counts.append(np.arange(self.each) < len(own))
            rows.append(np.concatenate([own, np.full(self.each - len(own), own[0])]))
        return np.concatenate(rows), torch.from_numpy(np.concatenate(counts))

    def batch(self, positions: NDArray[np.int64]) -> Flat:
        """The examples at these positions, as the tensors of one batch."""
        if self._columns is not None:
            places = torch.from_numpy(positions)
            return tuple(values.index_select(0, places) for values in self._columns)
        return self.layout.flatten(self._read(positions))

    def _read(self, positions: NDArray[np.int64]) -> object:
        return self._gather([self._dataset[int(place)] for place in positions])

    def _look(self) -> object:
        if self._like is not None:
            return self._like
        if self.count == 0:
            raise InvalidParameter("learning.empty_data_set", parameter="dataset", spent="nothing")
        try:
            return self._read(np.zeros(1, np.int64))
        except MoshaError:
            raise
        except Exception:  # noqa: BLE001  (whatever it says may quote the example)
            raise InvalidParameter("learning.no_first_example", parameter="dataset", spent="nothing") from None

    def shapes(self, rows: int) -> Flat:
        """A public batch: rows of `like`, or of the same shapes, zeros for whole numbers, random numbers for others."""
        if self._like is not None:
            public = self.layout.flatten(self._like)
            return tuple(values[torch.arange(rows) % len(values)] for values in public)
        return tuple(_make_up(rows, shape, kind) for shape, kind in self.layout.shapes)


def _count(dataset: object) -> int:
    try:
        return len(cast("Sized", dataset))
    except TypeError:
        raise InvalidParameter("learning.no_length", parameter="dataset", spent="nothing") from None


def _unwrap_tensors(dataset: object) -> object:
    """Tensors in place of data sets that hold them, or of a part of one; a part that names a row twice is refused."""
    if isinstance(dataset, TensorDataset):
        return dataset.tensors
    if not isinstance(dataset, Subset):
        return dataset
    if len(set(map(int, dataset.indices))) != len(dataset.indices):
        raise InvalidParameter("learning.row_named_twice", parameter="dataset", spent="nothing")
    whole = _unwrap_tensors(dataset.dataset)
    places = torch.as_tensor(list(dataset.indices), dtype=torch.int64)
    columns = _columns(whole)
    return dataset if columns is None else tree_map(lambda values: to_tensor(values)[places], columns)


def _columns(dataset: object) -> object | None:
    """The data set as tensors of one length, where it is made of columns."""
    if isinstance(dataset, Mapping):
        parts = [dict(dataset)]
    elif isinstance(dataset, tuple | list) and len(dataset) >= 2 and (isinstance(dataset, list) <= _is_flat(dataset)):
        parts = [dict(part) if isinstance(part, Mapping) else part for part in dataset]
    else:
        return None
    leaves = tree_leaves(parts)
    if not any(_is_column(part) for part in parts) and not isinstance(dataset, Mapping):
        return None
    if not leaves or not all(map(_is_column, leaves)):
        return None
    if len({len(values) for values in leaves}) > 1:
        raise InvalidParameter("learning.lengths_differ", parameter="dataset", spent="nothing")
    parts = tree_map(to_tensor, parts)
    return parts[0] if isinstance(dataset, Mapping) else tuple(parts)


def _is_flat(dataset: Iterable[object]) -> bool:
    return all(map(_is_column, dataset))


def _is_column(values: object) -> bool:
    return isinstance(values, Tensor | np.ndarray) or (hasattr(values, "to_numpy") and hasattr(values, "__len__"))


def _gather_rows(rows: list[object]) -> object:
    return default_collate([_with_tensors(row) for row in rows])


def _with_tensors(row: object) -> object:
    """An example whose lists of numbers, as Hugging Face's data sets have them, are tensors."""
    if not isinstance(row, Mapping):
        return row
    return {name: torch.as_tensor(value) if isinstance(value, list) else value for name, value in row.items()}


def _one_by_one(collate: Collate) -> Collate:
    """Batches of one example each, joined: whatever `collate` does, it sees no other example."""

    def gather(rows: list[object]) -> object:
        single = [_as_tree(collate([row])) for row in rows]
        return tree_map(lambda *values: torch.cat([to_tensor(v) for v in values]), *single)

    return gather


def _as_tree(batch: object) -> object:
    return dict(batch) if isinstance(batch, Mapping) else batch


def _make_up(rows: int, shape: torch.Size, kind: torch.dtype) -> Tensor:
    if kind.is_floating_point:
        return torch.randn((rows, *shape), dtype=kind)
    return torch.zeros((rows, *shape), dtype=kind)


def group_by_owner(owners: object, examples: int) -> list[NDArray[np.int64]]:
    """The examples of each person, as lists of positions.

    Persons are distinguished as everywhere (`exact.bounding.identify`): 1 and "1" are two persons, 1 and 1.0 are one,
    and all examples without an owner belong to one and the same person.

    >>> len(group_by_owner([1, "1", 1.0, None, float("nan")], 5))
    3
    """
    values = to_array(owners)
    if values.shape != (examples,):
        raise InvalidParameter("learning.owners_of_examples", parameter="owners")
    if values.dtype.kind not in "iu":
        seen: dict[int | str, int] = {}
        values = np.array([seen.setdefault(identify(owner), len(seen)) for owner in list_entries(values)], np.int64)
    _, places = np.unique(values, return_inverse=True)
    order = np.argsort(places, kind="stable")
    cuts = np.flatnonzero(np.diff(places[order])) + 1
    return [np.asarray(part, np.int64) for part in np.split(order, cuts) if len(part)]
