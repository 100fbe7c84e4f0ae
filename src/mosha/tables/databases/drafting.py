"""A declaration begun from the catalogue: tables, types and keys. Whose rows are whose is for people to say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mosha.connect.engines.catalogue import TableKeys, read_catalogue
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.names.calls import explain_wrong_calls
from mosha.tables.databases.database import list_files, open_table

__all__ = ["draft_database"]


@explain_wrong_calls
def draft_database(place: str, *, person: str) -> str:
    """The beginning of a declaration, in YAML, from the catalogue of a DuckDB file or a server's database.

    A table from which foreign keys lead to the person is drafted as theirs. Of the others nobody can tell from a
    catalogue whether they are public: they are drafted with a question mark, and refused until somebody decides. A
    folder of files has no catalogue: its tables are drafted with the types that the files say, and without keys.

    Args:
        place: a DuckDB file, a PostgreSQL or a MariaDB URL, a folder of CSV and Parquet files.
        person: the key that identifies a person, such as "customer.id".

    >>> import pathlib, tempfile
    >>> import duckdb
    >>> place = str(pathlib.Path(tempfile.mkdtemp()) / "shop.duckdb")
    >>> with duckdb.connect(place) as shop:
    ...     _ = shop.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR)")
    >>> "customer" in draft_database(place, person="customer.id")
    True
    """
    files = list_files(Path(place))
    catalogue = dict.fromkeys(files, TableKeys()) if files else read_catalogue(place)
    table, _, column = person.rpartition(".")
    if table not in catalogue or column not in open_table(place, table).schema:
        raise InvalidParameter("tables.draft_person", parameter="person", tables=sorted(catalogue), spent="nothing")
    kind = table.rpartition(".")[2]
    reached = _find_reached(catalogue, table)
    lines = ["# What follows is public: check every line. between and keys come from what a column means.", "persons:"]
    lines[1:1] = ["# Files have no keys: say them, such as foreign_keys: {customer_id: customer.id}."] if files else []
    lines += [
        f"  {_quote(kind)}: {{key: {_quote(person)}}}  # add at_most: how many rows one person counts for",
        "tables:",
    ]
    loose = False
    for name, keys in catalogue.items():
        lines.append(f"  {_quote(name)}:")
        whose = kind if name in reached else "?"
        lines.append(
            f"    rows_of: {_quote(whose)}" + ("" if name in reached else "  # or, in its place, public: true")
        )
        if keys.primary:
            lines.append(f"    primary_key: {_quote(', '.join(keys.primary))}")
        if keys.foreign:
            lines.append("    foreign_keys:")
            for columns, target, key in keys.foreign:
                refers = f"{target}.{', '.join(key)}"
                lines.append(f"      {_quote(', '.join(columns))}: {_quote(refers)}")
        lines.append("    columns:")
        schema = open_table(place, name).schema
        loose = loose or bool(schema.loose)
        lines += [f"      {_quote(c)}: {'{}' if c in schema.loose else f'{{type: {t}}}'}" for c, t in schema.items()]
    lines[1:1] = [f"# {say('tables.draft_type')}"] if loose else []
    return "\n".join(lines) + "\n"


def _find_reached(catalogue: Mapping[str, TableKeys], table: str) -> set[str]:
    """The tables from which foreign keys lead to a table, and itself."""
    reached = {table}
    while more := {
        name for name, keys in catalogue.items() if name not in reached and {k[1] for k in keys.foreign} & reached
    }:
        reached |= more
    return reached


def _quote(text: str) -> str:
    """A text as YAML and JSON both read it."""
    return json.dumps(text, ensure_ascii=False)
