"""A table that is somewhere else: its columns are known, and no row can be read from here.

Questions about it can be written, checked, priced and forecast: none of that needs a row. A server does so before a
question is paid for, and a client before it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from mosha.connect.engines.source import Engine
from mosha.connect.language.schema import Type
from mosha.connect.plan.aggregation import Question
from mosha.connect.plan.source import Array, Field, Source
from mosha.connect.sql.dialect import DUCKDB, Node
from mosha.connect.sql.statement import Query
from mosha.core.errors import DataError

__all__ = ["AbsentSource", "absent_table"]


class _Nowhere(Engine):
    dialect = DUCKDB

    def run(self, found: list[Query], question: Question) -> list[tuple[list[Array], list[Array]]]:  # noqa: ARG002
        raise DataError("connect.table_elsewhere", spent="nothing")


_NOWHERE = _Nowhere()


@dataclass(frozen=True, eq=False, repr=False)
class AbsentSource(Source):
    """The columns of a table that is somewhere else, under its public name."""

    name: str = ""

    @property
    def origin_name(self) -> str:
        return self.name

    def table(self, name: str) -> Node:
        return exp.alias_(exp.to_table(self.name), name, table=True, quoted=True, copy=False)


def absent_table(name: str, columns: Mapping[str, str]) -> AbsentSource:
    """A table of these columns, each with the name of its type.

    >>> absent_table("visits", {"days": "integer"}).schema["days"]
    <Type.INTEGER: 'integer'>
    """
    fields = tuple(Field(column, Type(kind)) for column, kind in columns.items())
    return AbsentSource(_NOWHERE, fields, name=name)
