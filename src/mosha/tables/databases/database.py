"""A database as one protected thing: every table with its person, asked by SQL or by verbs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from mosha.connect.engines.opening import DATABASES, source
from mosha.connect.engines.source import Engine
from mosha.connect.plan.bounding import KeyedScan
from mosha.connect.plan.person_steps import OwnerJoin
from mosha.connect.plan.relation import Relation, Scan, private, public
from mosha.connect.plan.source import Source
from mosha.core.account import Account
from mosha.core.errors import DataError, InvalidParameter, WrongUnit
from mosha.core.language import say
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.showing import Card, Shown
from mosha.tables.answer import Answer
from mosha.tables.databases.declaration import DatabaseDeclaration, DeclaredTable, read_database_declaration
from mosha.tables.databases.paths import Path, find_paths
from mosha.tables.declaration import apply_types, beside
from mosha.tables.links import Links, PublicTable, find_schema
from mosha.tables.sql.asking import explain, query
from mosha.tables.table import Table

__all__ = ["Database", "list_files", "open_table", "protect_database"]

FILES = (".parquet", ".csv", ".tsv", ".csv.gz", ".csv.zst")


@dataclass(frozen=True, eq=False, repr=False)
class Database(Shown):
    """The `tables` behind frosted glass, and public ones beside them.

    `database.query(sql, epsilon=...)` asks all of them, `database["orders"]` is one of them for the verbs.

    >>> import mosha
    >>> customer = {"rows_of": "customer"}
    >>> schema = {"persons": {"customer": {"key": "customer.id"}}, "tables": {"customer": customer}}
    >>> account = mosha.Ledger.memory().account("shop", unit=mosha.Person("customer"), epsilon=2)
    >>> shop = mosha.protect_database({"customer": {"id": [1, 2]}}, schema=schema, account=account)
    >>> list(shop.query("SELECT COUNT(*) AS n FROM customer", epsilon=1).columns)
    ['n']
    """

    tables: Mapping[str, Table | PublicTable]

    def __repr__(self) -> str:
        """Public words alone: the tables and whose rows they hold."""
        said = [f"{name} (public)" if isinstance(t, PublicTable) else name for name, t in self.tables.items()]
        return f"Database({', '.join(said)})"

    def make_card(self) -> Card:
        """The tables, and how each of their rows finds its person: all of it declared."""
        paths = self.paths
        rest = {name: say("tables.shown_own" if name in paths else "tables.shown_public") for name in self.tables}
        lines = [[name, paths.get(name) or rest[name]] for name in self.tables]
        return Card(title=say("tables.shown_database"), heads=["", say("tables.shown_path")], lines=lines, numbers=2)

    def __getitem__(self, name: str) -> Table:
        """A protected table."""
        found = self.tables.get(name)
        if not isinstance(found, Table):
            protected = [repr(name) for name, table in self.tables.items() if isinstance(table, Table)]
            raise DataError("tables.database_no_protected", table=name, tables=protected, spent="nothing")
        return found

    @property
    def paths(self) -> dict[str, str]:
        """How each row finds its person: {table: path of keys}; public tables are left out."""
        return {name: table.links.path for name, table in self.tables.items() if isinstance(table, Table)}

    def query(self, sql: str, /, **options: Any) -> Answer | str:
        """Answer a SELECT (`sql`) about the tables; the `options` are those of `mosha.query`."""
        return query(sql, tables=self.tables, **options)

    def explain(self, sql: str, /, **options: Any) -> str:
        """How each person is found and bounded, and the SQL that would run with its price; nothing is spent.

        `sql` and `options` are those of `mosha.sql.explain`.
        """
        return explain(sql, tables=self.tables, **options)


@explain_wrong_calls
def protect_database(
    place: object,
    *,
    schema: object = None,
    account: Account | Mapping[str, Account] | None = None,
    engine: Engine | None = None,
) -> Database:
    """Put a whole database behind frosted glass.

    Args:
        place: a DuckDB file, a PostgreSQL or MariaDB URL, a folder of CSV and Parquet files (one for each table), a
            Spark session, or {name: anything that `mosha.protect` takes}.
        schema: the declaration of its tables and keys (see `DatabaseDeclaration`), as plain data or as a file. Left
            out, `shop.schema.yaml` (.toml, .json) beside `shop.duckdb` is read.
        account: what pays, opened for `mosha.Person(kind)`; {kind: account} where there are several kinds of persons.
        engine: as for `mosha.protect`.

    >>> import mosha
    >>> tables = {"customer": {"id": [1, 2]}, "orders": {"id": [1, 2, 3], "customer_id": [1, 1, 2]}}
    >>> orders = {"rows_of": "customer", "foreign_keys": {"customer_id": "customer.id"}}
    >>> declared = {"customer": {"rows_of": "customer"}, "orders": orders}
    >>> schema = {"persons": {"customer": {"key": "customer.id"}}, "tables": declared}
    >>> account = mosha.Ledger.memory().account("shop", unit=mosha.Person("customer"), epsilon=2)
    >>> shop = protect_database(tables, schema=schema, account=account)
    >>> len(shop.query("SELECT COUNT(*) AS n FROM orders", epsilon=1))
    1
    """
    found = beside(place) if schema is None else schema
    if found is None:
        raise InvalidParameter("tables.database_shape", parameter="schema")
    said = read_database_declaration(found)
    paths = find_paths(said)
    accounts = _choose_accounts(account, said)
    opened = {name: _open_declared(place, name, said, engine) for name in said.tables}
    _check_types(paths, opened, said)
    relations: dict[str, Relation] = {}
    for name, path in paths.items():
        relations[name] = _reach_person(path, opened[name], relations, said.tables[name])
    tables: dict[str, Table | PublicTable] = {}
    for name, table in said.tables.items():
        for column in {**table.columns.ranges, **table.columns.keys}:
            opened[name].schema[column]  # a slip in the file is told now, not when somebody asks
        if table.rows_of is None:
            row = _declare_key(public(opened[name]), table)
            tables[name] = PublicTable(row, table.columns, Links(place=find_schema(place)))
            continue
        links = replace(_find_links(name, paths, relations[name], said), place=find_schema(place))
        unit = said.persons[table.rows_of].unit
        tables[name] = Table(relations[name], unit, accounts.get(table.rows_of), table.columns, links)
    return Database(tables)


def _check_types(paths: Mapping[str, Path], opened: Mapping[str, Source], said: DatabaseDeclaration) -> None:
    """Refuse a key to the person that has another type: it holds something else, and would name nobody."""
    for name, path in paths.items():
        person = said.persons[str(said.tables[name].rows_of)]
        if path.column is None or name == person.table or person.table not in opened:
            continue
        kinds = [opened[name].schema[path.column], opened[person.table].schema[person.column]]
        if kinds[0] is not kinds[1]:
            said_kinds = [str(kind) for kind in kinds]
            raise DataError("connect.owner_key_type", left=path.column, right=person.column, kinds=said_kinds)


def _choose_accounts(account: Any, said: DatabaseDeclaration) -> dict[str, Account]:
    """The account of every kind of person, each checked against who it protects."""
    if account is None:
        return {}
    given = dict(account) if isinstance(account, Mapping) else dict.fromkeys(said.persons, account)
    if not isinstance(account, Mapping) and len(said.persons) > 1:
        raise InvalidParameter("tables.database_accounts", parameter="account", persons=sorted(said.persons))
    for kind, one in given.items():
        if kind not in said.persons:
            raise InvalidParameter("tables.database_accounts", parameter="account", persons=sorted(said.persons))
        if not hasattr(one, "unit"):
            raise InvalidParameter("tables.not_an_account", parameter="account", spent="nothing")
        unit = said.persons[kind].unit
        if not one.unit.covers(unit):
            raise WrongUnit(
                "tables.account_of_other_unit", account=one.name, protects=one.unit.describe(), unit=unit.describe()
            )
    return given


def _reach_person(path: Path, opened: Source, found: Mapping[str, Relation], table: DeclaredTable) -> Relation:
    if path.through is None:
        return _declare_key(private(opened, person=path.column), table)
    name = f"person of {path.table}"
    while name in opened.schema:
        name += "'"
    key = path.through
    found[key.table].sources[0].learn_unique(key.key)  # the first is the table that has the key
    return OwnerJoin(
        _declare_key(private(opened), table),
        found[key.table],
        tuple(zip(key.columns, key.key, strict=True)),
        name,
        table.several,
    )


def _declare_key(table: Scan, said: DeclaredTable) -> Scan:
    """The table with its primary key, if one is declared."""
    if not said.primary_key:
        return table
    for column in said.primary_key:
        table.schema[column]
    return KeyedScan(table.source, table.person, table.private, said.primary_key)


def _find_links(name: str, paths: Mapping[str, Path], relation: Relation, said: DatabaseDeclaration) -> Links:
    """Columns that imply the person: the key that the path takes, and the own key where the paths of others take it."""
    path = paths[name]
    implied: dict[tuple[str, ...], str] = {}
    if path.through is not None:
        implied[path.through.columns] = f"{path.through.table}.{', '.join(path.through.key)}"
    for other, step in paths.items():
        if step.through is not None and step.through.table == name and said.tables[other].several == "nobody":
            implied[step.through.key] = f"{name}.{', '.join(step.through.key)}"
    if path.through is not None and said.tables[name].several == "each":
        implied.pop(path.through.columns)
    hidden = frozenset() if path.through is None or relation.person is None else frozenset({relation.person})
    return Links(implied, hidden, path.text)


def _open_declared(place: object, name: str, said: DatabaseDeclaration, engine: Engine | None) -> Source:
    """A table with the types of its columns; those of keys, which say whose a row is, never stand for two values."""
    own = [column for key in said.tables[name].foreign_keys for column in key.columns]
    taken = [
        column
        for table in said.tables.values()
        for key in table.foreign_keys
        if key.table == name
        for column in key.key
    ]
    return apply_types(open_table(place, name, engine), said.tables[name].columns.types).identify({*own, *taken})


def open_table(place: Any, name: str, engine: Engine | None = None) -> Source:
    """The table `name` of a `place`, in its `engine`, as `protect_database` takes them."""
    if isinstance(place, Mapping):
        if name not in place:
            raise DataError("tables.database_absent", table=name, spent="nothing")
        return source(place[name], engine=engine)
    if type(place).__module__.startswith("pyspark."):
        return source(place.table(name))
    text = os.fspath(place)
    if "://" in text or FilePath(text).suffix.lower() in DATABASES:
        return source(text, table=name, engine=engine)
    folder = FilePath(text)
    files = list_files(folder).get(name, [])
    if len(files) != 1 and not (folder / name).is_dir():
        raise DataError("tables.database_absent", table=name, spent="nothing")
    return source(files[0] if files else folder / name, engine=engine)


def list_files(folder: FilePath) -> dict[str, list[FilePath]]:
    """The files of a `folder` that are tables, by the names of the tables."""
    found: dict[str, list[FilePath]] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else []:
        ending = next((ending for ending in FILES if file.name.endswith(ending)), None)
        if ending is not None and file.is_file():
            found.setdefault(file.name.removesuffix(ending), []).append(file)
    return found
