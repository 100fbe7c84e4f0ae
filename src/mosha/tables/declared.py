"""Types that a steward declares, in place of types that nobody vouches for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from mosha.connect.engines.duckdb import LocalSource
from mosha.connect.engines.duckdb_fields import csv_field
from mosha.connect.engines.source import Field, Source
from mosha.connect.language.schema import Type
from mosha.connect.sql.dialect import Node
from mosha.core.errors import DataError

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


def declared(source: Source, types: Mapping[str, str]) -> Source:
    """The columns of `types` and no others. A CSV file is read by these types; any other table must have them.

    A column whose type is not said ("") keeps the one that it has.
    """
    if not types:
        return source
    there = {field.name: field for field in source.fields}
    if missing := [name for name in types if name not in there]:
        raise DataError(f"the schema declares {', '.join(map(repr, missing))}, which the table does not have.")
    read = _written if _is_csv(source) else _checked
    fields = (read(there[name], Type(kind)) if kind else there[name] for name, kind in types.items())
    if isinstance(source, LocalSource):  # which lets go of a frame when it is itself let go of: the new one holds it
        return replace(source, fields=tuple(fields), origin=partial(_origin, source))
    return replace(source, fields=tuple(fields))


def _origin(source: LocalSource) -> Node:
    return source.origin()


def _is_csv(source: Source) -> bool:
    return isinstance(source, LocalSource) and all(field.loose for field in source.fields)


def _written(field: Field, kind: Type) -> Field:
    return csv_field(field.name, _WRITTEN[kind], {})


def _checked(field: Field, kind: Type) -> Field:
    if field.type is not kind:
        raise DataError(f"the schema declares {field.name!r} as {kind}, and the table has it as {field.type}.")
    return field
