"""How DuckDB's column types are read as the seven types, and how columns of an answer come back."""

from __future__ import annotations

import glob
import importlib.util
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from sqlglot import exp

from mosha.connect.language.schema import Type
from mosha.connect.plan.source import Array, Field, integers, object_array
from mosha.connect.sql.dialect import DUCKDB, Kind, Listed, Node, Read, binary, call, cast, choose, column, number, text
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import Query, alias, all_of, select

__all__ = [
    "UNREADABLE_BYTE",
    "arrow_array",
    "by_code_point",
    "by_whole_texts",
    "can_read_batches",
    "count_rows",
    "count_table",
    "csv_field",
    "decode_bytes",
    "field_of",
    "find_coarse",
    "find_differing",
    "join_columns",
    "key_array",
    "leave_out",
    "list_types",
    "list_units",
    "listed_array",
    "read_arrow",
    "statement_of",
]

LIMB = 2**62
SHORT = 100_000  # texts that are taken one by one sooner than pandas is loaded
_IN_PLACE = {"int32": np.int32, "int64": np.int64, "uint32": np.uint32, "uint64": np.uint64, "double": np.float64}
UNREADABLE_BYTE = "?"
"""What DuckDB writes for each byte of a Parquet file's text that is no UTF-8."""


def _try(kind: exp.DType) -> Read:
    return lambda node: exp.TryCast(this=node, to=exp.DataType(this=kind))


def _as(kind: exp.DType) -> Read:
    return lambda node: cast(node, kind)


def _in_years(kind: Type) -> Read:
    """NULL outside the years 1 to 9999 (DuckDB has infinite dates)."""
    last = "9999-12-31" if kind is Type.DATE else "9999-12-31 23:59:59.999999"
    low, high = (DUCKDB.to(kind, text(limit)) for limit in ("0001-01-01", last))

    def read(node: Node) -> Node:
        inside = binary(exp.And, binary(exp.GTE, node, low.copy()), binary(exp.LTE, node.copy(), high.copy()))
        return choose((inside, node.copy()))

    return read


def _moment(node: Node) -> Node:
    """A TIMESTAMP WITH TIME ZONE as a wall clock in UTC."""
    return _in_years(Type.INSTANT)(call("MAKE_TIMESTAMP", call("EPOCH_US", node)))


def _read_as_is(node: Node) -> Node:
    return node


_FIELDS: Mapping[str, tuple[Type, Read]] = {
    "BIGINT": (Type.INTEGER, _read_as_is),
    **dict.fromkeys(
        ["TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"], (Type.INTEGER, _as(Kind.BIGINT))
    ),
    **dict.fromkeys(["HUGEINT", "UBIGINT", "UHUGEINT"], (Type.INTEGER, _try(Kind.BIGINT))),
    "DOUBLE": (Type.REAL, _read_as_is),
    "FLOAT": (Type.REAL, _as(Kind.DOUBLE)),
    "VARCHAR": (Type.TEXT, _read_as_is),
    "UUID": (Type.TEXT, _as(Kind.TEXT)),
    "BOOLEAN": (Type.BOOLEAN, _read_as_is),
    "DATE": (Type.DATE, _in_years(Type.DATE)),
    **dict.fromkeys(
        ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"],
        (Type.TIMESTAMP, lambda node: _in_years(Type.TIMESTAMP)(_try(Kind.TIMESTAMP)(node))),
    ),
    "TIMESTAMP WITH TIME ZONE": (Type.INSTANT, _moment),
    "TIMESTAMPTZ_NS": (Type.INSTANT, lambda node: _moment(_try(exp.DType.TIMESTAMPTZ)(node))),
}


def field_of(name: str, kind: str) -> Field | None:
    """How a column of a DuckDB type is read; None where the type has no meaning here.

    >>> field_of("cost", "DECIMAL(10,2)").type
    <Type.REAL: 'real'>
    """
    if decimal := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind):
        return _decimal(name, int(decimal[1]), int(decimal[2]))
    if kind.startswith("ENUM"):
        return Field(name, Type.TEXT, _as(Kind.TEXT), short=True)
    if kind not in _FIELDS:
        return None
    found, read = _FIELDS[kind]
    return Field(name, found, read, wild=found is Type.REAL)


def by_code_point(field: Field) -> Field:
    """The same field, text compared by code point whatever collation its column has.

    A collation that takes 'A' for 'a' would weigh the rows of two persons together: one of them would change what
    the other counts for.
    """
    if field.type is not Type.TEXT:
        return field
    plain = exp.Identifier(this="C", quoted=True)
    return replace(field, read=lambda node: exp.Paren(this=exp.Collate(this=field.read(node), expression=plain.copy())))


def by_whole_texts(field: Field) -> Field:
    """The same field of a Parquet file; where it says whose a row is, a text that may have lost bytes is missing.

    DuckDB writes a question mark for a byte that is no UTF-8, so that no text makes a question fail. Two texts may then
    read the same, which is no harm to a value but would bound two persons as one.
    """
    if field.type is not Type.TEXT:
        return field

    def identify(node: Node) -> Node:
        read = field.read(node)
        return choose((exp.Not(this=call("CONTAINS", read, text(UNREADABLE_BYTE))), read.copy()))

    return replace(field, identify=identify)


def decode_bytes(name: str) -> Field:
    """A column of texts that is read as bytes: what is no UTF-8 is missing."""
    return Field(name, Type.TEXT, lambda node: exp.Try(this=call("DECODE", node)))


def leave_out(
    names: Collection[str], fields: tuple[Field, ...], skipped: tuple[str, ...]
) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """The fields without those named, which are skipped from now on."""
    more = tuple(field.name for field in fields if field.name in names)
    return tuple(field for field in fields if field.name not in names), skipped + more


def _decimal(name: str, precision: int, scale: int) -> Field:
    """A whole decimal is an integer; any other the nearest double, by way of text where division would round twice."""
    if scale == 0:
        return Field(name, Type.INTEGER, _try(Kind.BIGINT))
    if precision <= 15:
        return Field(name, Type.REAL, _as(Kind.DOUBLE), wild=True)
    return Field(name, Type.REAL, lambda node: cast(cast(node, Kind.TEXT), Kind.DOUBLE), wild=True)


def csv_field(name: str, kind: str, formats: Mapping[str, str | None]) -> Field:
    """A CSV column is read as text and then as its type, so that an odd row is missing and not an error."""
    base = field_of(name, kind)
    if base is None or base.type is Type.TEXT:
        return Field(name, Type.TEXT)
    written = formats.get(kind)
    target = exp.DataType.build(kind, dialect="duckdb")

    def read(node: Node) -> Node:
        moment = call("TRY_STRPTIME", node, text(written)) if written else node
        return base.read(exp.TryCast(this=moment, to=target.copy()))

    return Field(name, base.type, read, base.wild, identify=_read_exactly(base.type, read))


_EXACT = {Type.INTEGER: " *[+-]?[0-9]+ *", Type.DATE: " *[0-9]{4}-[0-9]{2}-[0-9]{2} *"}
"""How a cell is written that loses nothing when it is read as a number or a day: 1.4 would be 1, and so would 0.9."""


def _read_exactly(kind: Type, read: Read) -> Read | None:
    """How a cell is read that says whose a row is: missing where it is written in any other way."""
    if kind not in _EXACT:
        return None
    return lambda node: choose((call("REGEXP_FULL_MATCH", node, text(_EXACT[kind])), read(node.copy())))


def listed_array(listed: Listed) -> Array:
    """Public values as an array that DuckDB reads in place."""
    if listed.kind.temporal:
        return np.array(listed.values, dtype="datetime64[us]")
    kinds = {Type.INTEGER: np.int64, Type.REAL: np.float64, Type.BOOLEAN: np.bool_}
    return (
        object_array(listed.values) if listed.kind is Type.TEXT else np.array(listed.values, dtype=kinds[listed.kind])
    )


def statement_of(query: Query, kinds: Sequence[Type]) -> str:
    """What is run: keys and sums as columns; a wide sum travels as two 64-bit limbs."""
    columns: list[Node] = [column(f"k{i}") for i in range(len(kinds))]
    limb = cast(number(LIMB), Kind.INT128)
    for i in range(len(query.names)):
        total = call("COALESCE", cast(column(f"s{i}"), Kind.INT128), cast(number(0), Kind.INT128))
        columns.append(alias(cast(binary(exp.IntDiv, total, limb.copy()), Kind.BIGINT), f"h{i}"))
        columns.append(alias(cast(binary(exp.Mod, total.copy(), limb.copy()), Kind.BIGINT), f"l{i}"))
    return DUCKDB.sql(select(columns, subquery(query.statement, "answer")))


def join_columns(found: Mapping[str, Any], query: Query, kinds: Sequence[Type]) -> tuple[list[Array], list[Array]]:
    """The key columns and sums of such an answer."""
    sums = [_join_limbs(found[f"h{i}"], found[f"l{i}"]) for i in range(len(query.names))]
    return [key_array(found[f"k{i}"], kind) for i, kind in enumerate(kinds)], sums


def can_read_batches() -> bool:
    """Whether answers can be read some rows at a time: as Arrow batches, whose package is an extra."""
    return importlib.util.find_spec("pyarrow") is not None


def arrow_array(found: Any) -> Any:
    """An Arrow column as DuckDB itself would give it: an array, masked where something is missing."""
    if not found.null_count:
        return read_arrow(found)
    missing = read_arrow(found.is_null())
    if (plain := {"int64": 0, "double": 0.0, "bool": False}.get(str(found.type))) is not None:
        found = found.fill_null(plain)
    return np.ma.MaskedArray(read_arrow(found), mask=missing)


def read_arrow(found: Any) -> Array:
    """An Arrow column as an array, as Arrow itself would give it.

    Arrow loads pandas to do so, which takes longer than most first answers: where pandas is not there yet, numbers are
    looked at where they are, and a few texts are taken one by one.
    """
    kind = str(found.type)
    if "pandas" not in sys.modules:
        if kind in _IN_PLACE and not found.null_count:
            words = np.dtype(_IN_PLACE[kind])
            start = found.offset * words.itemsize
            return np.frombuffer(found.buffers()[1], words, len(found), start) if len(found) else np.empty(0, words)
        if kind == "string" and len(found) <= SHORT:
            return object_array(found.to_pylist())
        if kind == "bool" and not found.null_count and len(found) <= SHORT:
            return np.array(found.to_pylist(), np.bool_)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def key_array(values: Any, kind: Type) -> Array:
    """A key column in plain form: int64 or float64 where nothing is missing, else Python objects."""
    masked = isinstance(values, np.ma.MaskedArray)
    missing = np.ma.getmaskarray(values) if masked else np.zeros(len(values), dtype=bool)
    data = np.asarray(values.data if masked else values)
    if kind.numeric and not missing.any():
        return data.astype(np.int64 if kind is Type.INTEGER else np.float64)
    if kind.temporal:
        data = data.astype("datetime64[D]" if kind is Type.DATE else "datetime64[us]").astype(object)
    return object_array([None if gone else value for gone, value in zip(missing.tolist(), data.tolist(), strict=True)])


def _join_limbs(high: Array, low: Array) -> Array:
    """Whole numbers that came back as two limbs of 62 bits."""
    high, low = np.asarray(high, dtype=np.int64), np.asarray(low, dtype=np.int64)
    if not high.any():
        return low
    return integers([upper * LIMB + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)])


def count_rows(place: str) -> str:
    """The statement for the number of rows of Parquet files."""
    return DUCKDB.sql(select([exp.Sum(this=column("num_rows"))], call("PARQUET_FILE_METADATA", text(place))))


def list_types(ask: Callable[[str], list[Any]], described: str, place: str) -> dict[str, str]:
    """The types of the columns of Parquet files, where they agree about them.

    DuckDB casts every file to the types of the first, which may merge two persons, or fail at one row.

    Args:
        ask: what runs a statement.
        described: a statement that reads the files.
        place: a path or glob.
    """
    rows, differing = ask(f"DESCRIBE {described}"), set[str]()
    if len(glob.glob(place, recursive=True)) > 1:  # noqa: PTH207
        names = ("file_name", "name", "duckdb_type", "num_children")
        listed = select([column(name) for name in names], call("PARQUET_SCHEMA", text(place)))
        differing = find_differing(
            ask(DUCKDB.sql(listed.order_by(column("file_name"), column("column_id"), copy=False)))
        )
    return {row[0]: row[1] for row in rows if row[0] not in differing}


def list_units(place: str) -> str:
    """The statement for the columns of Parquet files with their types and the units of their moments."""
    units = [column(name) for name in ("name", "type", "logical_type")]
    return DUCKDB.sql(select(units, call("PARQUET_SCHEMA", text(place))))


def find_coarse(rows: Sequence[Any], fields: Sequence[Field]) -> list[str]:
    """Those of these columns that have moments in milliseconds, or in days and nanoseconds, from their units."""
    coarse = {name for name, kind, unit in rows if kind == "INT96" or "MILLIS=Milli" in f"{unit}"}
    return [field.name for field in fields if field.name in coarse]


def find_differing(rows: Sequence[Any]) -> set[str]:
    """The columns that some files lack or have with another type; rows of their schemas, file by file."""
    seen: defaultdict[str, list[str]] = defaultdict(list)
    files = 0
    for _, (_, *columns) in groupby(rows, key=itemgetter(0)):
        nested, files = 0, files + 1
        for _, name, kind, children in columns:
            if not nested:
                seen[name].append(kind)
            nested = max(0, nested - 1) + (children or 0)
    return {name for name, kinds in seen.items() if len(kinds) != files or len(set(kinds)) > 1}


def count_table(parts: Sequence[str]) -> exp.Select:
    """How many rows the catalogue gives a table of an attached file, and whether none of its columns is worked out.

    No row for a view.
    """
    names = ("database_name", "schema_name", "table_name")
    here = [binary(exp.EQ, column(name), text(part)) for name, part in zip(names, parts, strict=True)]
    plain = exp.Not(this=call("CONTAINS", call("UPPER", column("sql")), text("GENERATED")))
    return select([column("estimated_size"), plain], call("DUCKDB_TABLES"), where=all_of(here))
