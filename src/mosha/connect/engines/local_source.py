"""A table on this machine, as DuckDB reads it: its FROM clause, its size and its state.

Comma-separated text: the first line names the columns, every cell is text, a double quote encloses cells.

Guarantee:
    Nothing is guessed from rows, and every line is one record, taken apart by itself: a line more or less, whatever it
    holds, changes no other record and makes no question fail. A line ends at a line feed or a carriage return, quoted
    or not. A quote not closed in its line is a character like others. A line with too few cells has missing ones;
    one with too many, an empty one, or one that is no UTF-8 does not count. So a person's row is one record where no
    cell holds a line break; a cell that does is several lines, whose first cells may name anybody.

    With `multiline` a quoted cell may hold line breaks, as RFC 4180 has it: the reading for files in which cells may.
    One open quote then swallows the lines after it, whoever they are about: the guarantee holds for files in which all
    quotes are known to be closed, as programs that write CSV do.
"""

from __future__ import annotations

import csv
import glob
import gzip
import io
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sqlglot import exp

from mosha.connect.plan.person_steps import OwnerJoin, Pick
from mosha.connect.plan.relation import Compute, Limit, PublicJoin, Relation, Scan, Where
from mosha.connect.plan.source import FRAME, Source
from mosha.connect.sql.dialect import DUCKDB, Node, binary, call, choose, column, number, text
from mosha.connect.sql.rows import find_repeated, subquery
from mosha.connect.sql.statement import alias, select
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.language import phrase
from mosha.core.names.extras import load_guest

__all__ = [
    "LocalSource",
    "can_be_read_again",
    "cell_columns",
    "files_version",
    "have_other_columns",
    "header",
    "number_columns",
    "separator_of",
    "size_of",
    "tell_unchanged",
    "watch_columns",
]

MOST_HEADER = 2**20
NO_SEPARATOR = "\x1f"  # what stands after this character in a line does not count
YES, NO = exp.Boolean(this=True), exp.Boolean(this=False)


def separator_of(place: str, separator: str | None) -> str:
    """The separator that was said, or what the name of the file says."""
    if separator is None:
        return "\t" if re.search(r"\.tsv(\.\w+)?$", place, re.IGNORECASE) else ","
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\n\r\0' + NO_SEPARATOR:
        raise InvalidParameter("connect.separator_not_one_character", parameter="separator")
    return separator


def header(place: str, separator: str, problem: DataError) -> list[str]:
    """The names in the first line, which is the same in all files that a pattern finds.

    In a file with other columns, or the same ones in another order, one person's number would be read as another's.
    """
    names: list[str] = []
    try:
        for path in sorted(glob.glob(place, recursive=True)):  # noqa: PTH207
            found = _read_header(path, separator)
            if names and found != names:
                raise DataError("connect.headers_differ", place=place, file=Path(path).name, spent="nothing")
            names = found
    except (OSError, EOFError, ValueError, csv.Error, zlib.error):
        names = []
    if not names:
        raise problem from None
    if "" in names or len({name.lower() for name in names}) < len(names):
        raise DataError("connect.header_names_columns", place=place, spent="nothing")
    return names


def number_columns(place: str, separator: str, problem: DataError) -> dict[str, str]:
    """Which column each name of the first line is; last "", which is behind them all."""
    return {name: str(number) for number, name in enumerate([*header(place, separator, problem), ""])}


def _read_header(path: str, separator: str) -> list[str]:
    with _bytes_of(path) as file:
        line = file.readline(MOST_HEADER).decode("utf-8-sig").rstrip("\r\n")
    return next(csv.reader([line], delimiter=separator), [])


def _bytes_of(path: str) -> Any:
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rb")
    if not path.lower().endswith(".zst"):
        return Path(path).open("rb")
    arrow = load_guest("pyarrow", extra="arrow", needed_for=phrase("connect.reading_zstd"))
    return io.BufferedReader(arrow.input_stream(path, compression="zstd"))


def cell_columns(place: str, separator: str, names: Sequence[str], *, multiline: bool) -> partial[Node]:
    """What builds the table of cells, every one a text or missing."""
    if multiline:
        quoted = {"delim": text(separator), "quote": text('"'), "escape": text('"'), "header": YES, "parallel": NO}
        return partial(_read_csv, place, quoted | {"columns": _all_text(names)})
    return partial(_lines, place, separator, tuple(names))


def _lines(place: str, separator: str, names: Sequence[str]) -> Node:
    """Each line as a list of cells, the list as columns."""
    plain = {"delim": text(NO_SEPARATOR), "quote": text(""), "escape": text(""), "header": NO, "skip": number(1)}
    lines = _read_csv(place, plain | {"columns": _all_text(["line"])})
    mark = f"\\{separator}" if separator.isascii() and not separator.isalnum() else separator
    pattern = text(f'{mark}("(?:[^"]|"")*"|[^{mark}]*)')
    whole = exp.DPipe(this=text(separator), expression=column("line"))
    cells = choose(
        (call("CONTAINS", column("line"), text('"')), call("REGEXP_EXTRACT_ALL", whole, pattern, number(1))),
        otherwise=call("STRING_SPLIT", column("line"), text(separator)),
    )
    records = subquery(select([alias(cells, "cells")], lines), "lines")
    few = binary(exp.LTE, call("LEN", column("cells")), number(len(names)))
    columns = [alias(_cell(i + 1), name) for i, name in enumerate(names)]
    return exp.Subquery(this=select(columns, records, where=few))


def _cell(place: int) -> Node:
    """A cell without its quotes; an empty one is missing."""
    cell = call("LIST_EXTRACT", column("cells"), number(place))
    inner = call("SUBSTRING", cell.copy(), number(2), binary(exp.Sub, call("LENGTH", cell.copy()), number(2)))
    quoted = call("REGEXP_FULL_MATCH", cell.copy(), text('(?s)".*"'))
    bare = choose((quoted, call("REPLACE", inner, text('""'), text('"'))), otherwise=cell)
    return call("NULLIF", bare, text(""))


def _all_text(names: Sequence[str]) -> exp.Struct:
    return exp.Struct(expressions=[exp.PropertyEQ(this=text(name), expression=text("VARCHAR")) for name in names])


def _read_csv(place: str, options: Mapping[str, Node]) -> Node:
    lenient = {"auto_detect": NO, "null_padding": YES, "ignore_errors": YES, "strict_mode": NO}
    given = [exp.EQ(this=exp.Var(this=name), expression=value.copy()) for name, value in {**options, **lenient}.items()]
    return call("READ_CSV", text(place), *given)


MOST_KEYS = 20_000_000
"""Of more rows than these it is not looked up whether a key repeats."""


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(Source):
    """A table that DuckDB reads: `origin` builds its FROM clause.

    `rows` is its size where that is cheap to know; `version` tells its present state, None where that cannot be told.
    Of a table that is not `whole`, rows may have been left out for what they hold: it is what a plan or a reader gave.
    Where it is not `fixed`, two readings in one statement may differ: columns are worked out anew and may be drawn at
    random, or another file may have taken the place of this one. `changed` tells whether files have other columns than
    those that were opened.
    """

    origin: Callable[[], Node] = exp.Null
    rows: int | None = None
    version: Callable[[], str | None] = lambda: None
    place: str = ""
    form: Callable[[], str | None] | None = None
    is_empty: Callable[[str], bool] | None = None  # whether a statement has no rows
    facts: dict[str, bool] = field(default_factory=dict)  # which keys are unique, by statement and version
    whole: bool = True
    fixed: bool = True
    takes_utf8: bool = False  # text in lines, of which nobody said how it is encoded
    changed: Callable[[], bool] | None = None

    @property
    def keeps_every_row(self) -> bool:
        """Of a frame, a Parquet file or a stored table, whose size is known without a look at what rows hold."""
        return self.whole and self.rows is not None

    @property
    def is_stored(self) -> bool:
        return self.keeps_every_row and self.fixed and self.version() is not None

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

    @cached_property
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


NO_FILES = repr([])


def tell_unchanged(place: str, state: str) -> str | None:
    """The state of a file while it is still that; None from then on."""
    return state if files_version(place) == state else None


def watch_columns(
    place: str, read: Callable[[], Mapping[str, str]], state: str, opened: Mapping[str, str | None]
) -> Callable[[], bool]:
    """What tells whether files have other columns than they had in this `state`.

    A statement knows the columns as they were when the table was opened: of another file it would take one person's
    number for another's, or fail at one row. Of files that are gone the engine tells.

    Args:
        place: a path or glob.
        read: the columns, each with its type or its place.
        state: of the files, before they were opened.
        opened: the columns as they were then, of which the same is asked.
    """
    seen = [state]

    def have_changed() -> bool:
        present = files_version(place)
        if present in {seen[0], NO_FILES}:
            return False
        found: Mapping[str, str] = {}
        with suppress(DataError):  # they differ among themselves
            found = read()
        if any(found.get(name) != opened.get(name) for name in opened):
            return True
        seen[0] = present
        return False

    return have_changed


def have_other_columns(relation: Relation) -> bool:
    """Whether files have other columns than when their table was opened."""
    return any(s.changed() for s in relation.sources if isinstance(s, LocalSource) and s.changed is not None)


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


def can_be_read_again(relation: Relation) -> bool:
    """Whether a relation is one table row by row, so that to read it again takes no more than that."""
    while isinstance(relation, (Where, Compute)):
        relation = relation.parent
    return isinstance(relation, Scan)
