"""What joins know of a table: which of its columns imply the person, and which are nobody's to name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mosha.connect.engines.opening import DATABASES
from mosha.connect.plan.relation import Relation
from mosha.tables.declaration import Declaration

__all__ = ["Links", "PublicTable", "find_schema"]


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


def find_schema(place: object, table: object = None) -> str:
    """The schema that a table stands in: what is said before its name, or where the engine looks by itself.

    >>> find_schema("postgresql://db.example/shop"), find_schema("postgresql://db.example/shop", "sales.orders")
    ('public', 'sales')
    """
    if isinstance(table, str) and "." in table:
        return table.rpartition(".")[0].lower()
    text = os.fspath(place) if isinstance(place, str | os.PathLike) else ""
    if text.startswith(("postgresql://", "postgres://")):
        return "public"
    if "://" in text:
        return urlsplit(text).path.strip("/").lower()
    return "main" if Path(text).suffix.lower() in DATABASES else ""
