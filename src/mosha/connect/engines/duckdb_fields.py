"""How DuckDB's column types are read as the seven types, and how key columns come back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sqlglot import exp

from mosha.connect.engines.source import Field
from mosha.connect.language.schema import Type
from mosha.connect.plan.totals import Array, object_array
from mosha.connect.sql.dialect import DUCKDB, Kind, Listed, Node, binary, call, cast, choose, text

__all__ = ["by_code_point", "csv_field", "field_of", "key_array", "listed_array"]

Read = Callable[[Node], Node]


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

    return Field(name, base.type, read, base.wild)


def listed_array(column: Listed) -> Array:
    """Public values as an array that DuckDB reads in place."""
    if column.kind.temporal:
        return np.array(column.values, dtype="datetime64[us]")
    kinds = {Type.INTEGER: np.int64, Type.REAL: np.float64, Type.BOOLEAN: np.bool_}
    return (
        object_array(column.values) if column.kind is Type.TEXT else np.array(column.values, dtype=kinds[column.kind])
    )


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
