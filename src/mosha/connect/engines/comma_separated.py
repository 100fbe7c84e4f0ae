"""Comma-separated text: the first line names the columns, every cell is text, a double quote encloses cells.

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
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlglot import exp

from mosha.connect.sql.dialect import Node, binary, call, choose, column, number, text
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import alias, select
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.names.extras import load_guest

__all__ = ["cell_columns", "header", "separator_of"]

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
    """The names in the first line of the first file."""
    try:
        path = min(glob.glob(place, recursive=True))  # noqa: PTH207
        with _bytes_of(path) as file:
            line = file.readline(MOST_HEADER).decode("utf-8-sig").rstrip("\r\n")
        names = next(csv.reader([line], delimiter=separator), [])
    except (OSError, EOFError, ValueError, csv.Error):
        names = []
    if not names:
        raise problem from None
    if "" in names or len({name.lower() for name in names}) < len(names):
        raise DataError("connect.header_names_columns", place=place, spent="nothing")
    return names


def _bytes_of(path: str) -> Any:
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rb")
    if not path.lower().endswith(".zst"):
        return Path(path).open("rb")
    arrow = load_guest("pyarrow", extra="arrow", needed_for="reading a file that zstd packed")
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
