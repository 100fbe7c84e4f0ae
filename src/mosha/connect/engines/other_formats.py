"""Files that DuckDB does not read itself: other encodings, JSON lines, Excel, SQLite, Delta and Iceberg tables.

Guarantee:
    Which columns there are, and of what type, comes from a header, a declaration or a table's own definition, never
    from rows. Each record is read by itself: one that cannot be read does not count, and changes no other.
"""

from __future__ import annotations

import codecs
import csv
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mosha.connect.engines.duckdb_fields import csv_field
from mosha.connect.engines.plain_columns import has_half_character
from mosha.connect.language.schema import Type
from mosha.connect.plan.source import Field
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.language import phrase
from mosha.core.names.extras import load_guest

if TYPE_CHECKING:
    from mosha.connect.engines.duckdb import DuckDB, LocalSource

__all__ = ["JSON_LINES", "find_format", "open_encoded", "open_other"]

JSON_LINES = (".jsonl", ".ndjson")
SQLITE_START, PARQUET_START = b"SQLite format 3\x00", b"PAR1"
KNOWN = {".csv", ".tsv", ".txt", ".gz", ".zst", ".parquet", ".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3"}
READABLE = (
    "CSV", "Parquet", "JSON lines", "Excel (.xlsx)", "SQLite", "DuckDB", "Delta", "Iceberg", "PostgreSQL",
    "MariaDB", "pandas, Polars and Arrow tables", "Spark", "a dict of columns",
)  # fmt: skip
UNREADABLE = {
    ".json",
    ".xls",
    ".ods",
    ".feather",
    ".orc",
    ".avro",
    ".pkl",
    ".pickle",
    ".h5",
    ".sas7bdat",
    ".dta",
    ".xml",
}


def find_format(place: str) -> str:
    """Which of these formats a path has; empty where DuckDB reads it itself."""
    path = Path(place)
    ending = path.suffix.lower()
    if ending in JSON_LINES:
        return "jsonl"
    if ending == ".xlsx":
        return "xlsx"
    if ending in {".sqlite", ".sqlite3", ".db"} and _starts_as(path, SQLITE_START):
        return "sqlite"
    if path.is_dir() and (path / "_delta_log").is_dir():
        return "delta"
    if path.is_dir() and any(path.glob("metadata/*.metadata.json")):
        return "iceberg"
    if ending in UNREADABLE or (ending not in KNOWN and path.is_file() and not _starts_as(path, PARQUET_START)):
        raise DataError("connect.format_unreadable", ending=ending, formats=list(READABLE), spent="nothing")
    return ""


def _starts_as(path: Path, start: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(start)) == start
    except OSError:
        return False


def open_other(engine: DuckDB, place: str, kind: str, *, table: str | None, columns: Sequence[str]) -> LocalSource:
    """The table in a file of one of these formats."""
    if kind in {"delta", "iceberg"}:
        return engine.frame(_open_lake(place, kind), whole=False)
    if kind == "sqlite":
        problem = False
        try:
            return _open_sqlite(engine, place, table)
        except sqlite3.Error:  # whose words may hold data; raised below, outside of the handler
            problem = True
        if problem:
            raise DataError("connect.file_absent", place=place, spent="nothing")
    if kind == "xlsx":
        return _open_excel(engine, place, table)
    return _open_json_lines(engine, place, columns)


def _open_lake(place: str, kind: str) -> object:
    """The rows of a Delta or Iceberg folder, read by the packages of their own."""
    needed = phrase(f"connect.reading_{kind}")
    if kind == "delta":
        guest = load_guest("deltalake", extra="delta", needed_for=needed)
    else:
        guest = load_guest("pyiceberg.table", extra="iceberg", needed_for=needed)
    found = None
    try:
        if kind == "delta":
            found = guest.DeltaTable(place).to_pyarrow_dataset()
        else:
            newest = max(Path(place).glob("metadata/*.metadata.json"), key=lambda path: path.name)
            found = guest.StaticTable.from_metadata(str(newest)).scan().to_arrow()
    except Exception:  # noqa: BLE001  (any error of a guest, whose words may hold data; raised below)
        found = None
    if found is None:
        raise DataError("connect.folder_unreadable", place=place, kind=kind.capitalize(), spent="nothing")
    return found


def open_encoded(engine: DuckDB, place: str, separator: str, encoding: str) -> LocalSource:
    """Comma-separated text in an encoding in which a line feed is one byte, such as GBK; each line is one record."""
    try:
        codec = codecs.lookup(encoding)
        plain = "\n".encode(codec.name) == b"\n"
    except (LookupError, ValueError, TypeError):
        plain = False
    if not plain:
        raise InvalidParameter("connect.unknown_encoding", parameter="encoding", given=str(encoding))
    lines = _decode_lines(place, codec.name)
    names = next(csv.reader([next(lines, "")], delimiter=separator), [])
    return _as_texts(engine, place, _check_names(place, names), (_split_line(line, separator) for line in lines))


def _decode_lines(place: str, encoding: str) -> Iterator[str]:
    try:
        content = Path(place).read_bytes()
    except OSError:
        raise DataError("connect.file_absent", place=place, spent="nothing") from None
    for line in content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        with suppress(UnicodeDecodeError):
            text = line.decode(encoding)
            if text:
                yield text


def _split_line(line: str, separator: str) -> list[str | None]:
    try:
        cells = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []
    return [cell or None for cell in cells]


def _check_names(place: str, names: Sequence[object]) -> list[str]:
    found = [str(name) if name is not None else "" for name in names]
    if not found or "" in found or len({name.lower() for name in found}) < len(found):
        raise DataError("connect.header_names_columns", place=place, spent="nothing")
    return found


def _as_texts(
    engine: DuckDB, place: str, names: Sequence[str], records: Iterable[Sequence[str | None]], kinds: Sequence[str] = ()
) -> LocalSource:
    """Records as columns of texts; one with more cells than there are names does not count."""
    kept = [list(record) + [None] * (len(names) - len(record)) for record in records if 0 < len(record) <= len(names)]
    columns = {}
    for i, name in enumerate(names):
        array = np.empty(len(kept), object)
        cells = (record[i] for record in kept)
        array[:] = [None if cell is not None and has_half_character(cell) else cell for cell in cells]
        columns[name] = array
    if kinds:
        fields = tuple(csv_field(name, kind, {}) for name, kind in zip(names, kinds, strict=True))
    else:
        fields = tuple(Field(name, Type.TEXT, loose=True) for name in names)
    return engine.texts(columns, fields, place)


def _write_cell(value: object) -> str | None:
    """A value as it would stand in a CSV file; what has no such form is missing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time().isoformat() == "00:00:00" else value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, str | int | float) and value != "" else None


def _open_json_lines(engine: DuckDB, place: str, columns: Sequence[str]) -> LocalSource:
    if not columns:
        raise DataError("connect.json_needs_columns", spent="nothing")

    def read() -> Iterator[list[str | None]]:
        for line in _decode_lines(place, "utf-8"):
            with suppress(ValueError, RecursionError):
                record = json.loads(line)
                if isinstance(record, dict):
                    yield [_write_cell(record.get(name)) for name in columns]

    return _as_texts(engine, place, list(columns), read())


def _open_excel(engine: DuckDB, place: str, sheet: str | None) -> LocalSource:
    excel = load_guest("openpyxl", extra="excel", needed_for=phrase("connect.reading_excel"))
    try:
        book = excel.load_workbook(place, read_only=True, data_only=True)
    except Exception:  # noqa: BLE001  (what the package says may hold cells)
        raise DataError("connect.file_absent", place=place, spent="nothing") from None
    with closing(book):
        if sheet is not None and sheet not in book.sheetnames:
            raise DataError("connect.no_such_table", table=sheet, tables=list(book.sheetnames), spent="nothing")
        rows = (book[sheet] if sheet is not None else book.worksheets[0]).iter_rows(values_only=True)
        names = _check_names(place, [name for name in next(rows, ()) if name is not None])
        records = ([_write_cell(value) for value in row[: len(names)]] for row in rows)
        return _as_texts(engine, place, names, records)


def _open_sqlite(engine: DuckDB, place: str, table: str | None) -> LocalSource:
    with closing(sqlite3.connect(f"{Path(place).resolve().as_uri()}?mode=ro", uri=True)) as book:
        found = book.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name").fetchall()
        tables = [name for (name,) in found]
        if table not in tables:
            code = "connect.which_table" if table is None else "connect.no_such_table"
            raise DataError(code, table=str(table), tables=tables, spent="nothing")
        quoted = '"' + str(table).replace('"', '""') + '"'
        told = book.execute(f"PRAGMA table_info({quoted})").fetchall()
        names, kinds = [row[1] for row in told], [_read_kind(str(row[2])) for row in told]
        book.text_factory = _decode_text
        rows = book.execute(f"SELECT * FROM {quoted}")  # noqa: S608  (a quoted name from the book itself)
        return _as_texts(
            engine, place, _check_names(place, names), ([_write_cell(v) for v in row] for row in rows), kinds
        )


def _decode_text(data: bytes) -> str | None:
    """A text of SQLite; bytes that are no UTF-8 are missing, for different ones would read the same."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _read_kind(declared: str) -> str:
    """What a column of SQLite was declared to hold, by SQLite's own rules of affinity."""
    upper = declared.upper()
    if "INT" in upper:
        return "BIGINT"
    if any(word in upper for word in ("REAL", "FLOA", "DOUB", "NUM", "DEC")):
        return "DOUBLE"
    return {"DATE": "DATE", "DATETIME": "TIMESTAMP", "TIMESTAMP": "TIMESTAMP", "BOOLEAN": "BOOLEAN"}.get(
        upper, "VARCHAR"
    )
