"""The path of foreign keys from each table to the person: one, or a refusal in words, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mosha.core.errors import InvalidParameter
from mosha.tables.databases.declaration import DatabaseDeclaration, DeclaredTable, ForeignKey

__all__ = ["Path", "find_paths"]


@dataclass(frozen=True)
class Path:
    """How a table reaches its person: by a column of its own, or through the key of another table."""

    table: str
    column: str | None = None
    through: ForeignKey | None = None
    text: str = ""


def find_paths(said: DatabaseDeclaration) -> dict[str, Path]:
    """The path of every table that holds people's rows, the tables nearest to the person first.

    >>> from mosha.tables.databases.declaration import read_database_declaration
    >>> shop = {"persons": {"client": {"key": "client.id"}},
    ...         "tables": {"orders": {"rows_of": "client", "foreign_keys": {"client_id": "client.id"}}}}
    >>> find_paths(read_database_declaration(shop))["orders"].text
    'orders.client_id'
    """
    for kind, person in said.persons.items():
        named = [key.table for table in said.tables.values() for key in table.foreign_keys]
        if person.table not in {*said.tables, *named}:
            raise InvalidParameter(
                "tables.database_person_table", person=kind, key=f"{person.table}.{person.column}", spent="nothing"
            )
    for name, table in said.tables.items():
        _check_table(name, table, said)
    found: dict[str, Path] = {}
    waiting = {name: table for name, table in said.tables.items() if table.rows_of is not None}
    while waiting:
        ready = {name: path for name, table in waiting.items() if (path := _find_path(name, table, said, found))}
        if not ready:
            raise _explain_dead_end(waiting, said)
        found |= ready
        waiting = {name: table for name, table in waiting.items() if name not in ready}
    for name, table in said.tables.items():
        _check_one_path(name, table, said, found)
    return found


def _check_table(name: str, table: DeclaredTable, said: DatabaseDeclaration) -> None:
    if table.rows_of is not None and table.rows_of not in said.persons:
        raise InvalidParameter(
            "tables.database_person", table=name, person=table.rows_of, persons=sorted(said.persons), spent="nothing"
        )
    for key in table.foreign_keys:
        target = said.tables.get(key.table)
        owner = next((kind for kind, person in said.persons.items() if person.table == key.table), None)
        whose = owner if target is None else target.rows_of
        if target is None and owner is None:
            raise InvalidParameter("tables.database_no_table", table=name, key=str(key), spent="nothing")
        if whose is not None and table.rows_of is None:
            raise InvalidParameter("tables.database_public_key", table=name, key=str(key), spent="nothing")
        if whose is not None and whose != table.rows_of:
            raise InvalidParameter(
                "tables.database_two_kinds", table=name, key=str(key), person=str(table.rows_of), other=whose,
                spent="nothing",
            )  # fmt: skip
    owners = [kind for kind, person in said.persons.items() if person.table == name]
    if owners and table.rows_of not in owners:
        raise InvalidParameter("tables.database_public_person", table=name, person=owners[0], spent="nothing")


def _find_path(name: str, table: DeclaredTable, said: DatabaseDeclaration, found: Mapping[str, Path]) -> Path | None:
    """The path of a table, once those that it leads through have theirs."""
    assert table.rows_of is not None
    person = said.persons[table.rows_of]
    if name == person.table:
        return Path(name, person.column, text=f"{name}.{person.column}")
    for key in _list_keys(name, table):
        if (key.table, key.key) == (person.table, (person.column,)):
            return Path(name, key.columns[0], text=f"{name}.{key.columns[0]}")
        if key.table in found and key.table != name:
            return Path(name, through=key, text=f"{name}.{', '.join(key.columns)} -> {found[key.table].text}")
    return None


def _list_keys(name: str, table: DeclaredTable) -> list[ForeignKey]:
    """The foreign keys that may lead to the person: the one that is said, or all."""
    if table.through is None:
        return list(table.foreign_keys)
    chosen = [key for key in table.foreign_keys if key.columns == table.through]
    if not chosen:
        raise InvalidParameter(
            "tables.database_through", table=name, through=", ".join(table.through),
            keys=[", ".join(key.columns) for key in table.foreign_keys] or ["-"], spent="nothing",
        )  # fmt: skip
    return chosen


def _check_one_path(name: str, table: DeclaredTable, said: DatabaseDeclaration, found: Mapping[str, Path]) -> None:
    """Refuse a table from which two foreign keys lead to the person, by tables that do not lead back to it."""
    if table.rows_of is None or name == said.persons[table.rows_of].table:
        return
    person = said.persons[table.rows_of]
    leading = []
    for key in _list_keys(name, table):
        direct = (key.table, key.key) == (person.table, (person.column,))
        if direct or (key.table in found and name not in _list_tables(key.table, found)):
            leading.append(key)
    if len(leading) > 1:
        raise InvalidParameter(
            "tables.database_two_paths", table=name, keys=[str(key) for key in leading], spent="nothing"
        )


def _list_tables(name: str, found: Mapping[str, Path]) -> list[str]:
    """The tables on the path of a table, itself first."""
    tables = [name]
    while (key := found[tables[-1]].through) is not None:
        tables.append(key.table)
    return tables


def _explain_dead_end(waiting: Mapping[str, DeclaredTable], said: DatabaseDeclaration) -> InvalidParameter:
    """Tables that lead in a circle, or nowhere."""
    for start, table in waiting.items():
        seen, at, current = [start], start, table
        while True:
            onward = [key.table for key in _list_keys(at, current) if key.table in waiting]
            if not onward:
                break
            at = onward[0]
            current = said.tables[at]
            if at in seen:
                circle = " -> ".join([*seen[seen.index(at) :], at])
                return InvalidParameter("tables.database_circle", table=start, circle=circle, spent="nothing")
            seen.append(at)
    name, table = next(iter(waiting.items()))
    return InvalidParameter("tables.database_no_path", table=name, person=str(table.rows_of), spent="nothing")
