"""What joins know of a table: which of its columns imply the person, and which are nobody's to name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mosha.connect.plan.relation import Relation
from mosha.tables.declaration import Declaration

__all__ = ["Links", "PublicTable"]


@dataclass(frozen=True)
class Links:
    """Keys of a table of a database.

    Fields:
        implied: columns that imply the person, with the name of the key that they hold: rows of two tables that are
            equal in the columns of one key belong to the same person, or to nobody.
        hidden: columns that the plan needs and no query names, such as the person that was reached along a path.
        path: how the person is reached, in words of the schema.
        place: the schema of the engine in which the table stands without being said, such as public.
    """

    implied: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    path: str = ""
    place: str = ""


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A table that is no secret, with what is declared about its columns."""

    relation: Relation
    declared: Declaration = field(default_factory=Declaration)
    links: Links = field(default_factory=Links)
