"""Lists of edges in memory, in files and in tables: two ends of each row, read row by row."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError
from mosha.graphs.data.labels import read_end

__all__ = ["Ends", "ends_in_file", "ends_in_rows", "ends_in_table"]

Ends = tuple[NDArray[Any], NDArray[Any]]
"""Both columns of 64-bit numbers, or both of labels (int and str)."""

_WORDS = re.compile(rb"(?:[0-9]{1,18}[ \t,][0-9]{1,18}\r?\n)*+")
_CELLS = re.compile(rb"(?:[0-9]{1,18},[0-9]{1,18}\r?\n)*+")
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")


def ends_in_rows(rows: Any) -> Ends:
    """The ends in pairs; lists that are no pairs, None, and rows with an end that names nothing are left out.

    Guarantee:
        What becomes of a row depends on that row alone. Whole arrays of numbers are taken as they are, which is what
        the slow way gives for each of their rows. A row of a type that no edge has (a text, a number, a tuple of three)
        refuses the list: with or without any edge, so neighbors are refused alike.

    >>> [side.tolist() for side in ends_in_rows([(0, "1"), [2], ("a", 3), None, (None, 1)])]
    [[0, 'a'], [1, 3]]
    """
    if isinstance(rows, np.ndarray):
        if _fits_int64(rows):
            return rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
        return _label_rows(rows.tolist() if rows.dtype.kind in "iufbUSO" else map(tuple, rows))
    rows = list(rows)
    kept = [row for row in rows if isinstance(row, tuple | list | np.ndarray) and len(row) == 2]
    if len(kept) < len(rows) and not all(_may_be_an_edge(row) for row in rows):
        raise DataError("graphs.not_pairs")
    try:
        numbers = np.array(kept) if kept and all(type(end) is int for end in kept[0]) else None
    except (ValueError, TypeError, OverflowError):
        numbers = None
    if numbers is not None and numbers.ndim == 2 and _fits_int64(numbers):
        return ends_in_rows(numbers)
    return _label_rows(kept)


def _may_be_an_edge(row: object) -> bool:
    """By type alone, which is the program's: a tuple has its length in its type, a list has not."""
    return row is None or isinstance(row, list | np.ndarray) or (isinstance(row, tuple) and len(row) == 2)


def _fits_int64(values: NDArray[np.generic]) -> bool:
    return values.dtype.kind in "iu" and values.dtype != np.uint64


def _label_rows(rows: Iterable[Any]) -> Ends:
    found = [(read_end(row[0]), read_end(row[1])) for row in rows]
    kept = [ends for ends in found if ends[0] is not None and ends[1] is not None]
    first, second = np.empty(len(kept), object), np.empty(len(kept), object)
    first[:], second[:] = [ends[0] for ends in kept], [ends[1] for ends in kept]
    return first, second


def ends_in_file(text: bytes, columns: tuple[str, str] | None, *, header: bool) -> Ends:
    r"""The ends in a text file, line by line.

    Without a header: two words a line, apart by blanks, tabs or a comma; what follows them is not read, and lines that
    start with # or % are comments. With one, as in a csv: the first line names the columns, which commas part.

    >>> [side.tolist() for side in ends_in_file(b"0 1\n5\nx 1\n", None, header=False)]
    [[0, 'x'], [1, 1]]
    """
    text = text.removeprefix(b"\xef\xbb\xbf")
    wanted = (0, 1)
    if header:
        names, _, text = text.partition(b"\n")
        wanted = _find_columns([_decode_word(name) for name in names.split(b",")], columns)
    if not text.endswith(b"\n"):
        text += b"\n"
    if wanted == (0, 1) and (_CELLS if header else _WORDS).fullmatch(text):  # the same, quickly
        numbers = np.fromstring(text.replace(b",", b" ").decode(), np.int64, sep=" ")
        return numbers[::2], numbers[1::2]
    lines = text.split(b"\n")
    if header:
        rows = [[_decode_word(word) for word in line.split(b",")] for line in lines]
    else:
        rows = [
            [_decode_word(word) for word in line.replace(b",", b" ").split()]
            for line in lines
            if not line.lstrip().startswith((b"#", b"%"))
        ]
    return _label_rows((row[wanted[0]] or None, row[wanted[1]] or None) for row in rows if len(row) > max(wanted))


def _decode_word(word: bytes) -> str:
    word = word.strip()
    quoted = len(word) > 1 and word.startswith(b'"') and word.endswith(b'"')
    return (word[1:-1] if quoted else word).decode("utf-8", "backslashreplace")


def _find_columns(names: list[str], columns: tuple[str, str] | None) -> tuple[int, int]:
    """The places of the two columns of ends: by name, which is needed where there are more than two."""
    chosen = tuple(names) if columns is None else tuple(columns)
    if len(chosen) != 2 or any(name not in names for name in chosen):
        raise DataError("graphs.two_columns", parameter="columns")
    return (0, 1) if columns is None else (names.index(chosen[0]), names.index(chosen[1]))


def ends_in_table(source: Any, columns: tuple[str, str] | None) -> Ends:
    """Two columns of a table, by name where it has more; rows without both ends are left out."""
    kind = type(source).__module__.split(".")[0]
    source = source.collect() if hasattr(source, "collect") else source
    names = [str(name) for name in (source.column_names if kind == "pyarrow" else source.columns)]
    one, two = _find_columns(names, columns)
    if "duckdb" in kind:
        return _fetch_columns(source, one, two)
    if kind == "pandas":
        sides = [source.iloc[:, place] for place in (one, two)]
    else:
        sides = [source.column(place) if kind == "pyarrow" else source.to_series(place) for place in (one, two)]
    values = [_values(side) for side in sides]
    if all(isinstance(side, np.ndarray) and _fits_int64(side) for side in values):
        return values[0].astype(np.int64), values[1].astype(np.int64)
    return _label_rows(zip(*(side.tolist() if isinstance(side, np.ndarray) else side for side in values), strict=True))


def _values(side: Any) -> Any:
    """A column as an array where it holds numbers, as a list of values elsewhere: by its type, whatever is in it."""
    kind = type(side).__module__.split(".")[0]
    if kind == "pandas":
        return side.to_numpy() if isinstance(side.dtype, np.dtype) and side.dtype.kind in "iu" else side.tolist()
    if side.null_count if kind == "pyarrow" else side.null_count():
        return side.to_pylist() if kind == "pyarrow" else side.to_list()
    whole = str(side.type).startswith(("int", "uint")) if kind == "pyarrow" else side.dtype.is_integer()
    if not whole:
        return side.to_pylist() if kind == "pyarrow" else side.to_list()
    return np.asarray(side.to_numpy())


def _fetch_columns(relation: Any, one: int, two: int) -> Ends:
    import duckdb  # noqa: PLC0415  (whoever has a relation has it)

    names = ['"' + str(relation.columns[place]).replace('"', '""') + '"' for place in (one, two)]
    try:
        rows = relation.project(f"{names[0]} AS a, {names[1]} AS b").filter("a IS NOT NULL AND b IS NOT NULL")
        if all(str(kind) in _SIGNED for kind in rows.types):
            first, second = (np.ma.getdata(side).astype(np.int64) for side in rows.fetchnumpy().values())
            return first, second
        return _label_rows(rows.fetchall())
    except duckdb.Error:
        raise DataError("graphs.edges_unreadable") from None
