"""The private data of a training: examples by position, gathered into batches of tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Subset, TensorDataset, default_collate

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.randomness import Rng
from mosha.exact.bounding import identify, list_entries, to_array
from mosha.mechanisms.sampling import shuffle

__all__ = ["Examples", "group_by_owner"]


class Examples:
    """A data set with a length, and whose each example is.

    Tensors (a tuple of them, or a TensorDataset) are gathered at once; any other data set is read one by one.
    """

    def __init__(
        self, dataset: Any, *, owners: Iterable[Any] | None = None, each: int = 1, collate: Any = None
    ) -> None:
        dataset = _unwrap_tensors(dataset)
        self._tensors = dataset if _are_tensors(dataset) else None
        self._dataset, self._collate, self.each = dataset, collate or default_collate, each
        try:
            self.count = len(dataset[0]) if self._tensors is not None else len(dataset)
        except TypeError:
            raise InvalidParameter(
                "the data set has no length: every example must have its own chance to be in a batch, so a stream "
                "cannot be sampled. Give a data set with __len__ and __getitem__, or a tuple of tensors. Nothing was "
                "spent."
            ) from None
        if owners is None and each > 1:
            raise InvalidParameter("a Person unit needs owners=...: whose each example is. Nothing was spent.")
        self._example: tuple[Any, ...] | None = None
        self._owners = None if owners is None else to_array(owners)
        self._persons = None if owners is None else group_by_owner(self._owners, self.count)
        self.units = self.count if self._persons is None else len(self._persons)

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

    def batch(self, positions: NDArray[np.int64]) -> tuple[Any, ...]:
        """The examples at these positions, as one batch."""
        if self._tensors is not None:
            places = torch.from_numpy(positions)
            return tuple(values.index_select(0, places) for values in self._tensors)
        return self.check(self._collate([self._dataset[int(place)] for place in positions]))

    @staticmethod
    def check(found: Any) -> tuple[Any, ...]:
        """A batch as it was collated, if it is one."""
        if not isinstance(found, tuple | list) or len(found) < 2:
            raise DataError("an example must be a pair (input, target), or several inputs and a target.")
        return tuple(found)

    def shapes(self, rows: int) -> tuple[Any, ...]:
        """A public batch of the same shapes and types: zeros for whole numbers, random numbers for others."""
        if self._tensors is not None:
            return tuple(_public(values, rows) for values in self._tensors)  # an empty data set has shapes as well
        if self.count == 0:
            raise InvalidParameter(
                "the data set is empty and does not say what its examples look like: give a tuple of tensors, which "
                "does, or leave it out (that it is empty is told by this error). Nothing was spent."
            )
        if self._example is None:
            try:
                self._example = self.batch(np.zeros(1, np.int64))  # looked up once
            except (KeyError, IndexError, TypeError, AttributeError):
                raise InvalidParameter(
                    "the data set gives no pair (input, target) at position 0: give a tuple of tensors, or a data set "
                    "with __len__ and __getitem__ by position. Nothing was spent."
                ) from None
        return tuple(_public(values, rows) for values in self._example)


def _unwrap_tensors(dataset: Any) -> Any:
    """Tensors in place of data sets that hold them, or of a part of one; a part that names a row twice is refused."""
    if isinstance(dataset, TensorDataset):
        return dataset.tensors
    if not isinstance(dataset, Subset):
        return dataset
    if len(set(map(int, dataset.indices))) != len(dataset.indices):
        raise InvalidParameter(
            "this Subset names a row more than once: that example would count as often, and no clip would hold for it. "
            "Name each row once. Nothing was spent."
        )
    whole = _unwrap_tensors(dataset.dataset)
    places = torch.as_tensor(list(dataset.indices), dtype=torch.int64)
    return tuple(values[places] for values in whole) if _are_tensors(whole) else dataset


def _are_tensors(dataset: Any) -> bool:
    pair = isinstance(dataset, tuple | list) and len(dataset) >= 2 and all(isinstance(v, Tensor) for v in dataset)
    if pair and len({len(values) for values in dataset}) > 1:
        raise InvalidParameter("the tensors of a data set must have one length. Nothing was spent.")
    return pair


def _public(values: Any, rows: int) -> Any:
    if not isinstance(values, Tensor):
        raise DataError("batches must be made of tensors: give a data set of tensors, or collate=... .")
    shape = (rows, *values.shape[1:])
    return (
        torch.randn(shape, dtype=values.dtype) if values.is_floating_point() else torch.zeros(shape, dtype=values.dtype)
    )


def group_by_owner(owners: object, examples: int) -> list[NDArray[np.int64]]:
    """The examples of each person, as lists of positions.

    Persons are distinguished as everywhere (`exact.bounding.identify`): 1 and "1" are two persons, 1 and 1.0 are one,
    and all examples without an owner belong to one and the same person.

    >>> len(group_by_owner([1, "1", 1.0, None, float("nan")], 5))
    3
    """
    values = to_array(owners)
    if values.shape != (examples,):
        raise InvalidParameter("owners=... must say for each example whose it is: one value an example.")
    if values.dtype.kind not in "iu":
        seen: dict[int | str, int] = {}
        values = np.array([seen.setdefault(identify(owner), len(seen)) for owner in list_entries(values)], np.int64)
    _, places = np.unique(values, return_inverse=True)
    order = np.argsort(places, kind="stable")
    cuts = np.flatnonzero(np.diff(places[order])) + 1
    return [np.asarray(part, np.int64) for part in np.split(order, cuts) if len(part)]
