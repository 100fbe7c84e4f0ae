"""A table where it lives, with its columns and how they are read; and the small table that comes back from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from mosha.connect.language.schema import Schema, Type
from mosha.core.fingerprint import Description, describe

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

__all__ = ["FRAME", "Array", "Field", "Source", "Totals", "find_numbers", "integers", "object_array"]

Array = npt.NDArray[Any]


MOST_LETTERS = 120
"""Of the place of a table, in a text about it."""


@dataclass(frozen=True)
class Field:
    """A column of a source: its public name and type, and how its raw form is read as that type.

    A `wild` REAL may be NaN, infinite or too large; a `loose` TEXT is read as a number or a date where one is needed;
    a `short` TEXT cannot be too long. `identify` is how a column is read that says whose a row is, if that differs: one
    value must never stand for two persons.
    """

    name: str
    type: Type
    read: Callable[[Node], Node] = lambda node: node
    wild: bool = False
    loose: bool = False
    short: bool = False
    identify: Callable[[Node], Node] | None = None


FRAME = "a frame"
"""What a frame is called: it has no name of its own."""


@dataclass(frozen=True, eq=False, repr=False)
class Source(ABC):
    """A table that an engine can read; `engine` means something to engines alone.

    `skipped` names columns whose type has no meaning here.

    `fields` are its columns: for each a name, a type and how an engine reads it.

    >>> from mosha.connect import source
    >>> table = source({"x": [1, 2]})
    >>> table, list(table.schema)
    (LocalSource(a frame, 1 columns), ['x'])
    """

    engine: object
    fields: tuple[Field, ...]
    skipped: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        loose = (field.name for field in self.fields if field.loose)
        return Schema({field.name: field.type for field in self.fields}, self.skipped, loose)

    @property
    def origin_name(self) -> str:
        """What tells this table from others, publicly: a file, the name of a table."""
        return FRAME

    @property
    def keeps_every_row(self) -> bool:
        """Whether a row is one row whatever it holds: not of text in lines, which may be unreadable, nor of a view."""
        return False

    @property
    def is_stored(self) -> bool:
        """Whether a statement that reads it twice finds the same rows at little cost: no view, no lines of text."""
        return False

    def identify(self, names: Collection[str]) -> Self:
        """The same table, in which the columns `names` say whose a row is: what may stand for several is missing."""
        if not any(field.identify and field.name in names for field in self.fields):
            return self
        chosen = ((field, field.identify if field.name in names else None) for field in self.fields)
        return replace(self, fields=tuple(replace(field, read=read) if read else field for field, read in chosen))

    def learn_unique(self, names: Sequence[str]) -> None:  # noqa: B027  (most engines cannot)
        """Find out whether `names` are a key, where the table cannot change unseen; nobody is told but the plan."""

    def has_unique(self, names: Sequence[str]) -> bool:  # noqa: ARG002
        """Whether it was found, and still holds, that no two rows share all of `names` (NULL equals nothing).

        Args:
            names: the columns.
        """
        return False

    def public_parts(self) -> Iterable[Description]:
        """What a fingerprint knows of a table: its public name and its columns."""
        return [self.origin_name, describe(self.schema)]

    def __repr__(self) -> str:
        """Public words alone: never the number of rows."""
        name = self.origin_name if len(self.origin_name) <= MOST_LETTERS else f"{self.origin_name[:MOST_LETTERS]}…"
        return f"{type(self).__name__}({name}, {len(self.fields)} columns)"

    @abstractmethod
    def table(self, name: str) -> Node:
        """The table in a FROM clause, under the alias `name`."""


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


def find_numbers(among: Array, sought: Array, order: Array | None = None) -> npt.NDArray[np.int64]:
    """The place of each whole number among different ones, -1 where it is not there; `order` sorts them if given.

    >>> find_numbers(np.array([7, 5]), np.array([5, 6, 7])).tolist()
    [1, -1, 0]
    """
    if not len(among):
        return np.full(len(sought), -1, np.int64)
    order = np.argsort(among, kind="stable") if order is None else order
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
