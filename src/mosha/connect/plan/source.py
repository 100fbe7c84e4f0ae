"""A table where it lives: its columns, and how they are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from mosha.connect.language.schema import Schema, Type
from mosha.core.fingerprint import Description, describe

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

__all__ = ["FRAME", "Field", "Source"]


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
