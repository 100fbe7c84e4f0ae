"""Types that a steward declares, in place of types that were guessed from private rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from mosha.connect.duckdb import LocalSource
from mosha.connect.duckdb_fields import csv_field
from mosha.connect.schema import Type
from mosha.connect.source import Field, Source
from mosha.core.errors import DataError, InvalidParameter

__all__ = ["declared"]

_WRITTEN = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
    Type.INSTANT: "TIMESTAMP WITH TIME ZONE",
}


def declared(source: Source, schema: Mapping[str, str]) -> Source:
    """The columns of `schema` and no others. A CSV file is read by these types; any other table must have them."""
    if not isinstance(schema, Mapping) or not schema:
        raise InvalidParameter("schema names columns and their types: {'days': 'integer', 'ward': 'text'}.")
    kinds = {name: _type(name, kind) for name, kind in schema.items()}
    there = {field.name: field for field in source.fields}
    if missing := [name for name in kinds if name not in there]:
        raise DataError(f"the schema declares {', '.join(map(repr, missing))}, which the table does not have.")
    if _is_csv(source):
        return replace(source, fields=tuple(csv_field(name, _WRITTEN[kind], {}) for name, kind in kinds.items()))
    return replace(source, fields=tuple(_checked(there[name], kind) for name, kind in kinds.items()))


def _type(name: str, kind: str) -> Type:
    try:
        return Type(kind)
    except ValueError:
        raise InvalidParameter(f"the type of {name!r} must be one of {', '.join(Type)}.") from None


def _is_csv(source: Source) -> bool:
    return isinstance(source, LocalSource) and bool(re.match(r"READ_CSV", source.origin().sql(), re.IGNORECASE))


def _checked(field: Field, kind: Type) -> Field:
    if field.type is not kind:
        raise DataError(f"the schema declares {field.name!r} as {kind}, and the table has it as {field.type}.")
    return field
