"""A table on this machine, as DuckDB reads it: its FROM clause, its size and its state."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlglot import exp

from mosha.connect.plan.person_steps import OwnerJoin, Pick
from mosha.connect.plan.relation import Compute, Limit, PublicJoin, Relation, Scan, Where
from mosha.connect.plan.source import FRAME, Source
from mosha.connect.sql.dialect import DUCKDB, Node
from mosha.connect.sql.rows import find_repeated

__all__ = ["LocalSource", "files_version", "size_of", "tell_unchanged"]

MOST_KEYS = 20_000_000
"""Of more rows than these it is not looked up whether a key repeats."""


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(Source):
    """A table that DuckDB reads: `origin` builds its FROM clause.

    `rows` is its size where that is cheap to know; `version` tells its present state, None where that cannot be told.
    Of a table that is not `whole`, rows may have been left out for what they hold: it is what a plan or a reader gave.
    """

    origin: Callable[[], Node] = exp.Null
    rows: int | None = None
    version: Callable[[], str | None] = lambda: None
    place: str = ""
    form: Callable[[], str | None] | None = None
    is_empty: Callable[[str], bool] | None = None  # whether a statement has no rows
    facts: dict[str, bool] = field(default_factory=dict)  # which keys are unique, by statement and version
    whole: bool = True

    @property
    def keeps_every_row(self) -> bool:
        """Of a frame, a Parquet file or a stored table, whose size is known without a look at what rows hold."""
        return self.whole and self.rows is not None

    def learn_unique(self, names: Sequence[str]) -> None:
        version = self.version()
        if self.is_empty is None or version is None or self.rows is None or self.rows > MOST_KEYS:
            return
        statement = DUCKDB.sql(find_repeated(self, names, DUCKDB))
        self.facts[f"{statement}\n{version}"] = self.is_empty(statement)

    def has_unique(self, names: Sequence[str]) -> bool:
        if not self.facts:
            return False
        version = self.version()
        return version is not None and self.facts.get(
            f"{DUCKDB.sql(find_repeated(self, names, DUCKDB))}\n{version}", False
        )

    def read_form(self) -> str | None:
        """What analysing a statement about the table depends on; None where that cannot be told.

        Tables whose contents may change unseen can still tell their columns, or when their file was written: `form`.
        """
        return self.version() if self.form is None else self.form()

    def table(self, name: str) -> Node:
        return exp.alias_(self.origin(), name, table=True, quoted=True, copy=False)

    @property
    def origin_name(self) -> str:
        """The file, or the table of a database; frames are numbered as they come, so all have one name."""
        if self.place:
            return self.place
        node = self.origin()
        registered = isinstance(node, exp.Table) and not node.args.get("db")
        return FRAME if registered else DUCKDB.sql(node)


def files_version(place: str) -> str:
    """The state of all files of a path or glob: a changed file has another size or time."""
    states = [(path, Path(path).stat()) for path in sorted(glob.glob(place, recursive=True))]  # noqa: PTH207
    return repr([(path, state.st_mtime_ns, state.st_size, state.st_ino) for path, state in states])


def tell_unchanged(place: str, state: str) -> str | None:
    """The state of a file while it is still that; None from then on."""
    return state if files_version(place) == state else None


def size_of(relation: Relation) -> int | None:
    """At most how many rows a relation has, where that is cheap to know."""
    if isinstance(relation, Scan):
        return relation.source.rows if isinstance(relation.source, LocalSource) else None
    if isinstance(relation, (Where, Compute, Limit, Pick)):
        return size_of(relation.parent)
    if isinstance(relation, OwnerJoin) and relation.several == "nobody":
        return size_of(relation.left)
    if isinstance(relation, PublicJoin):
        left = size_of(relation.left)
        return None if left is None or relation.at_most is None else left * relation.at_most
    return None
