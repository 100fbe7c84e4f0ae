"""What is publicly known about a database: its tables, whose rows they hold, and the keys that lead to the person.

    persons:
      customer: {key: customer.id, at_most: 50}
    tables:
      country: {public: true}
      customer: {rows_of: customer, primary_key: id}
      orders: {rows_of: customer, foreign_keys: {customer_id: customer.id}}
      line: {rows_of: customer, foreign_keys: {order_id: orders.id}}

Every table says whether it is public or whose rows it holds. A key of several columns is written with commas:
`"part, supplier": "offer.part, supplier"`. `several: each` counts a row that several people own once for each of them;
otherwise it counts for nobody. `through: order_id` picks a foreign key where two of them lead to the person.
`primary_key: id` says that no two rows share it: where it is the person, one row of a person is counted and no more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from mosha.connect.plan.person_steps import SeveralOwners
from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.unit import Person
from mosha.tables.declaration import Declaration, declaration, read_stored

__all__ = ["DatabaseDeclaration", "DeclaredTable", "ForeignKey", "PersonKey", "read_database_declaration"]

_TABLE = {"public", "rows_of", "primary_key", "foreign_keys", "through", "several", "columns"}


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that refer to a key of another."""

    columns: tuple[str, ...]
    table: str
    key: tuple[str, ...]

    def __str__(self) -> str:
        return f"{', '.join(self.columns)} -> {self.table}.{', '.join(self.key)}"


@dataclass(frozen=True)
class PersonKey:
    """A kind of person: the table and the column that identify one, and the unit that is protected."""

    table: str
    column: str
    unit: Person


@dataclass(frozen=True)
class DeclaredTable:
    """One table: whose rows it holds (None: it is public), its keys, and what is known of its columns."""

    rows_of: str | None
    foreign_keys: tuple[ForeignKey, ...] = ()
    through: tuple[str, ...] | None = None
    several: SeveralOwners = "nobody"
    primary_key: tuple[str, ...] = ()
    columns: Declaration = field(default_factory=Declaration)


@dataclass(frozen=True)
class DatabaseDeclaration:
    """All that is said of a database: its `persons` (each with a key) and its `tables`, by name.

    >>> said = {"persons": {"client": {"key": "client.id"}}, "tables": {"client": {"rows_of": "client"}}}
    >>> read_database_declaration(said).tables["client"].rows_of
    'client'
    """

    persons: Mapping[str, PersonKey]
    tables: Mapping[str, DeclaredTable]


@explain_wrong_calls
def read_database_declaration(said: object) -> DatabaseDeclaration:
    """The declaration that is `said` by plain data or by a YAML, TOML or JSON file.

    >>> said = {"persons": {"customer": {"key": "customer.id"}}, "tables": {"customer": {"rows_of": "customer"}}}
    >>> list(read_database_declaration(said).tables)
    ['customer']
    """
    if isinstance(said, DatabaseDeclaration):
        return said
    stored = read_stored(os.fspath(said)) if isinstance(said, str | os.PathLike) else said
    if not isinstance(stored, Mapping) or set(stored) != {"persons", "tables"}:
        raise InvalidParameter("tables.database_shape", parameter="schema")
    persons = {str(name): _read_person(str(name), part) for name, part in _names(stored["persons"], "persons").items()}
    tables = {str(name): _read_table(str(name), part) for name, part in _names(stored["tables"], "tables").items()}
    if not persons or not tables:
        raise InvalidParameter("tables.database_shape", parameter="schema")
    return DatabaseDeclaration(persons, tables)


def _names(value: object, what: str) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        raise InvalidParameter("tables.declaration_not_names", parameter=what)
    return value


def _split_columns(text: object, what: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",")) if isinstance(text, str) else ()
    if not found or not all(found):
        raise InvalidParameter("tables.database_key", parameter=what)
    return found


def _split_reference(text: object, what: str) -> tuple[str, tuple[str, ...]]:
    """A table and columns of it: `orders.id`, `sales.orders.id`, `offer.part, supplier`."""
    first, *others = _split_columns(text, what)
    table, _, column = first.rpartition(".")
    if not table or not column:
        raise InvalidParameter("tables.database_key", parameter=what)
    return table, (column, *others)


def _read_person(name: str, said: object) -> PersonKey:
    options = dict(_names(said, f"persons.{name}"))
    table, key = _split_reference(options.pop("key", None), f"persons.{name}.key")
    if len(key) != 1:
        raise InvalidParameter("tables.database_key", parameter=f"persons.{name}.key")
    try:
        unit = Person(name, **{str(option): value for option, value in options.items()})  # type: ignore[arg-type]
    except TypeError:
        raise InvalidParameter("tables.declaration_unit", parameter=f"persons.{name}") from None
    return PersonKey(table, key[0], unit)


def _read_table(name: str, said: object) -> DeclaredTable:
    if said == "public":
        return DeclaredTable(None)
    part = dict(_names(said, f"tables.{name}"))
    if unknown := [str(key) for key in part if key not in _TABLE]:
        raise InvalidParameter("tables.database_field", table=name, field=unknown[0], fields=sorted(_TABLE))
    rows_of = part.get("rows_of")
    if (part.get("public") is True) == isinstance(rows_of, str):
        raise InvalidParameter("tables.database_whose", table=name, spent="nothing")
    keys = []
    for columns, target in _names(part.get("foreign_keys", {}), f"tables.{name}.foreign_keys").items():
        from_ = _split_columns(columns, f"tables.{name}.foreign_keys")
        table, key = _split_reference(target, f"tables.{name}.foreign_keys")
        if len(from_) != len(key):
            raise InvalidParameter("tables.database_key", parameter=f"tables.{name}.foreign_keys")
        keys.append(ForeignKey(from_, table, key))
    several: Any = part.get("several", "nobody")
    if several not in get_args(SeveralOwners):
        raise InvalidParameter("connect.several_owners", parameter="several", options=list(get_args(SeveralOwners)))
    through = part.get("through")
    chosen = None if through is None else _split_columns(through, f"tables.{name}.through")
    primary = part.get("primary_key")
    key = () if primary is None else _split_columns(primary, f"tables.{name}.primary_key")
    columns_said = declaration({"columns": part["columns"]}) if part.get("columns") else Declaration()
    return DeclaredTable(
        rows_of if isinstance(rows_of, str) else None, tuple(keys), chosen, several, key, columns_said,
    )  # fmt: skip
