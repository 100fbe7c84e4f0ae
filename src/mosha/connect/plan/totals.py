"""The small table that comes back from an engine: key columns and exact integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mosha.connect.language.schema import Schema

__all__ = ["Totals"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Totals:
    """Exact sums per group: as private as the data, until noise is added.

    `keys` holds one array for each key column (None for the NULL key); `values` one array of integers for each
    value, int64 where all fit, else Python integers in an object array. Groups come in no particular order, or in
    the order of the question's public keys, absent ones with 0.

    `schema` has the types of the keys.

    >>> from mosha.connect.language.schema import Schema, Type
    >>> totals = Totals(Schema({"g": Type.TEXT}), (object_array(["a", "b"]),), {"rows": integers([3, 4])})
    >>> len(totals), totals["rows"].tolist()
    (2, [3, 4])
    """

    schema: Schema
    keys: tuple[Array, ...]
    values: Mapping[str, Array]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __repr__(self) -> str:
        """The names alone: sums and the number of groups are private."""
        return f"Totals({', '.join([*self.schema, *self.values])})"

    def __getitem__(self, name: str) -> Array:
        return self.values[name]

    def rows(self) -> Iterator[tuple[tuple[Any, ...], tuple[int, ...]]]:
        """Each group: its key and its sums, in plain Python."""
        keys = [column.tolist() for column in self.keys]
        values = [column.tolist() for column in self.values.values()]
        for row in range(len(self)):
            yield tuple(column[row] for column in keys), tuple(column[row] for column in values)

    def to_dict(self) -> dict[tuple[Any, ...], tuple[int, ...]]:
        """The sums of each group by its key."""
        return dict(self.rows())

    def align(self, keys: Sequence[tuple[object, ...]]) -> Totals:
        """The same sums in the order of `keys`, 0 for a group without rows."""
        rows = self._find(keys)
        columns = tuple(object_array([key[i] for key in keys]) for i in range(len(self.keys)))
        values = {}
        for name, sums in self.values.items():
            padded = np.concatenate([sums, np.zeros(1, dtype=sums.dtype)])
            values[name] = padded[rows]
        return Totals(self.schema, columns, values)

    def _find(self, keys: Sequence[tuple[object, ...]]) -> npt.NDArray[np.int64]:
        """The row of each key, -1 where it has none."""
        if len(self.keys) == 1 and self.keys[0].dtype == np.int64:
            sought = [key[0] for key in keys]
            if set(map(type, sought)) == {int}:
                return find_numbers(self.keys[0], np.array(sought, np.int64))
        place = {key: row for row, (key, _) in enumerate(self.rows())}
        return np.array([place.get(key, -1) for key in keys], dtype=np.int64)


def find_numbers(among: Array, sought: Array) -> npt.NDArray[np.int64]:
    """The place of each whole number among different ones, -1 where it is not there.

    >>> find_numbers(np.array([7, 5]), np.array([5, 6, 7])).tolist()
    [1, -1, 0]
    """
    if not len(among):
        return np.full(len(sought), -1, np.int64)
    order = np.argsort(among, kind="stable")
    at = np.minimum(np.searchsorted(among, sought, sorter=order), len(among) - 1)
    return np.where(among[order[at]] == sought, order[at], -1)


def object_array(items: Sequence[object]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def integers(items: Sequence[int]) -> Array:
    """Exact integers: int64 where all fit.

    >>> integers([1, 2]).dtype, integers([2**70]).dtype
    (dtype('int64'), dtype('O'))
    """
    limit = 2**63
    if all(-limit <= item < limit for item in items):
        return np.array(items, dtype=np.int64)
    return object_array([int(item) for item in items])
