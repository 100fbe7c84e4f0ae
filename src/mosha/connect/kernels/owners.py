"""Owners of foreign keys as an array, and rows that are given to them while they are read (`paths.md`, *Looked up*)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mosha.connect.kernels.columns import Gathered, Table, Wanted, fill_values, keep_rows
from mosha.connect.plan.source import Array

__all__ = ["Owners", "PairTable", "find_owners"]

SPARSEST = 8
"""There is a place for every number between the least key and the largest: at most so many for each row."""

Batches = Iterator[Mapping[str, Array]]


@dataclass(frozen=True)
class Owners:
    """Whose each value of a key is: codes below `people` from the least key on, negative where it has no one owner."""

    low: int
    codes: Array
    people: int

    def find(self, keys: Array) -> tuple[Array, int]:
        """The owner of each key, and how many keys have none."""
        from mosha.connect.kernels.owner_kernels import look_up  # noqa: PLC0415  (numba is an extra and takes time to load)

        persons = np.empty(len(keys), np.int32)
        return persons, look_up(keys, self.codes, self.low, persons)

    def give(self, found: Gathered) -> Gathered:
        """The rows whose key has one owner, who stands in its place."""
        persons, lost = self.find(found.persons)
        given = Gathered(persons, found.groups, found.values, found.hashes)
        return keep_rows(given, persons >= 0) if lost else given

    def sum_up(
        self, batches: Batches, wish: Wanted, labels: range, keys: Callable[[Array], tuple[Array, ...]]
    ) -> PairTable:
        """What each person has in each of the groups `labels`, added up as rows come; other groups are left out."""
        from mosha.connect.kernels.kernel import add_to_cells  # noqa: PLC0415

        none = np.empty(0, np.int32)
        values = np.empty((0, wish.width), np.int32 if wish.magnitude < 2**31 else np.int64)
        named = lambda at: keys(at + labels.start)
        table = PairTable(none, self.people, none, len(labels), values, wish, named)
        codes = np.array(table.pair_codes, np.int64)
        for batch in batches:
            persons, _ = self.find(batch["p"])
            if len(persons) > len(values):
                values = np.empty((len(persons), wish.width), values.dtype)
            fill_values(values, 0, batch, wish)
            add_to_cells(persons, batch["g"] - labels.start, values, codes, table.cells, len(labels))
        return table


@dataclass(frozen=True)
class PairTable(Table):
    """A table of which only the sums of each person and group are known."""

    @cached_property
    def cells(self) -> Array:
        """A line for each person and group: the number of rows, then the other sums of `pair_codes`."""
        return np.zeros((self.people * self.group_count, self.cell_width), np.int64)

    @cached_property
    def counts(self) -> Array:
        return np.asarray(self.cells[:, 0].reshape(self.people, self.group_count).sum(axis=1))

    @cached_property
    def present(self) -> Array:
        return np.asarray(self.cells[:, 0].reshape(self.people, self.group_count).any(axis=0))

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        from mosha.connect.kernels.kernel import pairs_in_cells  # noqa: PLC0415

        pairs = np.empty((len(self.cells), len(self.pair_codes) + 1), np.int64)
        starts = pairs_in_cells(self.cells, pairs, np.array(self.pair_codes, np.int64), self.group_count)
        return starts, pairs[: starts[-1]]

    @property
    def size(self) -> int:
        return 2 * self.cells.nbytes + 16 * self.people


def find_owners(batches: Batches) -> Owners | None:
    """Whose each key "k0" is, from labels "p" of persons; None where keys are too far apart for an array."""
    from mosha.connect.kernels.column_kernels import codes_of  # noqa: PLC0415
    from mosha.connect.kernels.owner_kernels import NOBODY, list_owners  # noqa: PLC0415

    parts = [(batch["k0"].view(np.int64), batch["p"].view(np.int64)) for batch in batches]
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return None
    (low, high), (least, most) = (_find_ends([part[place] for part in parts]) for place in (0, 1))
    rows, size, people = sum(len(keys) for keys, _ in parts), high - low + 1, most - least + 1
    if size > SPARSEST * rows + 65536:
        return None
    if people >= min(2 * rows + 65536, 2**31):
        codes, unique = codes_of(np.concatenate([persons for _, persons in parts]))
        parts, least, people = [(np.concatenate([keys for keys, _ in parts]), codes)], 0, len(unique)
    owners = np.full(size, NOBODY, np.int32)
    for keys, persons in parts:
        list_owners(keys, persons, (low, least), owners)
    return Owners(low, owners, people)


def _find_ends(arrays: Sequence[Array]) -> tuple[int, int]:
    """The least and the largest number in any of these."""
    return min(int(array.min()) for array in arrays), max(int(array.max()) for array in arrays)
