"""How a table is put behind glass: where it lives, whose presence is hidden, who pays, what is publicly known."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mosha.connect.engines.opening import source as open_source
from mosha.connect.engines.other_formats import JSON_LINES
from mosha.connect.plan.relation import Relation, private, public
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, WrongUnit
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.unit import Person, Row, Unit
from mosha.tables.declaration import Declaration, apply_types, beside
from mosha.tables.links import Links, find_schema
from mosha.tables.table import Table

__all__ = ["protect", "public_table"]


@explain_wrong_calls
def protect(
    source: Any,
    *,
    unit: Unit | None = None,
    account: Account | None = None,
    schema: Declaration | Mapping[str, object] | str | os.PathLike[str] | None = None,
    **options: Any,
) -> Table:
    """Put a table behind frosted glass.

    Args:
        source: a file or folder (CSV, Parquet, JSON lines, Excel, SQLite, DuckDB, Delta, Iceberg), a dict of columns, a
            pandas, Polars or Arrow table, a PostgreSQL or MariaDB URL (with table=...), a Spark DataFrame.
        unit: whose presence is hidden: `Row()`, or `Person(column)` with limits. May be left out where the declaration
            says it; another unit than the declared one is refused, other limits are not.
        account: what pays for releases. Without one a question can be planned, forecast and explained, and `release`
            is refused.
        schema: what is publicly known (`Declaration`): the columns with their types ("integer", "real", "boolean",
            "text", "date", "timestamp", "instant"), ranges and keys, as a file, as plain data, or as {column: type}.
            Left out, `visits.schema.yaml` (.toml, .json) beside `visits.csv` is read. A CSV file has no types of its
            own: declare them.
        options: for the engine (see `mosha.connect.source`).

    >>> import mosha
    >>> protect({"ward": ["a", "b"]}, unit=mosha.Row()).unit.describe()
    'one row is added or removed'
    """
    said = Declaration.of(beside(source) if schema is None else schema)
    unit = _choose_unit(unit, said)
    if not isinstance(unit, Row | Person):
        raise InvalidParameter("tables.unit_row_or_person", parameter="unit")
    if account is not None and not hasattr(account, "unit"):
        raise InvalidParameter("tables.not_an_account", parameter="account", spent="nothing")
    if account is not None and not account.unit.covers(unit):
        raise WrongUnit(
            "tables.account_of_other_unit", account=account.name, protects=account.unit.describe(), unit=unit.describe()
        )
    if isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith(JSON_LINES):
        options.setdefault("columns", tuple(said.types))
    opened = apply_types(open_source(source, **options), said.types)
    for name in {**said.ranges, **said.keys}:
        opened.schema[name]  # a slip in the file is told now, not when somebody asks
    relation = private(opened, person=unit.column if isinstance(unit, Person) else None)
    return Table(relation, unit, account, said, Links(place=find_schema(source, options.get("table"))))


def _choose_unit(unit: Unit | None, said: Declaration) -> Unit | None:
    if unit is None:
        return said.unit
    if not isinstance(unit, Unit) or said.unit is None or unit.covers(said.unit):
        return unit
    if not said.unit.covers(unit):
        raise WrongUnit(
            "tables.declaration_of_other_unit",
            parameter="unit",
            declared=said.unit.describe(),
            given=unit.describe(),
            spent="nothing",
        )
    return replace(unit, of=said.unit.of)


@explain_wrong_calls
def public_table(source: Any, **options: Any) -> Relation:
    """A table that is no secret, from a `source` with the `options` that `protect` takes: for `Table.join_public`.

    >>> list(public_table({"ward": ["a", "b"], "floor": [1, 2]}).schema)
    ['ward', 'floor']
    """
    return public(open_source(source, **options))
