"""The keys of GROUP BY: which they are, what is said about them, and where their groups come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from mosha.connect.language.expression import Column
from mosha.core.errors import DataError, InvalidParameter
from mosha.tables.functions.constants import fold_numbers
from mosha.tables.sql.aggregate import is_aggregate
from mosha.tables.sql.output import find_position
from mosha.tables.sql.scalar import Refused, constant, name_of, scalar
from mosha.tables.sql.scope import Scope
from mosha.tables.table import FROM_DATA, is_from_data

__all__ = ["check_columns", "check_grouped", "check_shared", "find_public", "list_columns", "read_keys"]


def read_keys(
    nodes: Sequence[Any], items: list[tuple[str, exp.Expression]], scope: Scope
) -> dict[str, tuple[str, Any]]:
    """The keys: name -> (SQL text, expression); GROUP BY takes expressions, positions and aliases."""
    found: dict[str, tuple[str, Any]] = {}
    aliases = dict(items)
    columns = {name.lower() for name in list_columns(scope)}
    for node in nodes:
        target = find_position(node, items)
        if isinstance(target, exp.Column) and target.name in aliases and target.name.lower() not in columns:
            target = aliases[target.name]
        name = next((alias for alias, item in items if name_of(item) == name_of(target)), None)
        name = name or (target.name if isinstance(target, exp.Column) else name_of(target))
        if any(is_aggregate(part) for part in target.walk()):
            raise Refused("tables.sql_group_by_aggregate", text=name_of(target))
        found[name] = (name_of(target), scalar(target, scope))
    return found


def check_shared(groups: Mapping[str, tuple[str, object]], scope: Scope) -> None:
    """Refuse groups from the data that hold one person's rows each: none of them could ever be shown."""
    columns = [expression.name for _, expression in groups.values() if isinstance(expression, Column)]
    implied = {name for key in scope.implied if set(key) <= set(columns) for name in key}
    if own := scope.persons & set(columns) | implied:
        refusal = Refused("tables.groups_of_one_person", spent="nothing")
        near = {name for place in scope.names.values() if own & set(place.values()) for name in place.values()}
        private = [text for text, key in groups.values() if isinstance(key, Column) and key.name in near]
        refusal.__dict__["private_keys"] = private
        raise refusal


def check_columns(what: str, given: object, known: set[str]) -> None:
    """What is said about columns is said by name, about columns that are there."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidParameter("tables.sql_by_column", parameter=what)
    if unknown := [name for name in given or {} if name not in known]:
        raise DataError(
            "tables.sql_unknown_column",
            parameter=what,
            column=str(unknown[0]),
            columns=[repr(name) for name in sorted(known)],
        )


def check_grouped(given: Mapping[str, object], groups: Mapping[str, tuple[str, object]]) -> None:
    """Keys are said of what the query groups by, and of nothing else."""
    for name in given:
        if not any(name in _list_names(key, text, expression) for key, (text, expression) in groups.items()):
            raise InvalidParameter("tables.sql_keys_without_group", parameter="keys", column=name, spent="nothing")


def _list_names(key: str, text: str, expression: object) -> tuple[str, ...]:
    """What a key may be called: as SELECT names it, as GROUP BY writes it, as its column is called."""
    return (key, text, expression.name) if isinstance(expression, Column) else (key, text)


def list_columns(scope: Scope) -> set[str]:
    """The names of all columns that a query may write."""
    return {name for columns in scope.names.values() for name in columns}


def find_public(
    select: exp.Select, groups: Mapping[str, tuple[str, object]], given: dict[str, object], scope: Scope
) -> dict[str, list[Any]] | str | None:
    """Public keys of the columns that have them: as given, as WHERE lists them, as declared; others' come from data."""
    listed = _listed_in_where(select, scope)
    found: dict[str, list[Any]] = {}
    asked = False
    for name, (text, expression) in groups.items():
        declared = scope.table.declared.keys.get(expression.name) if isinstance(expression, Column) else None
        said = [given.get(called) for called in _list_names(name, text, expression)]
        for source in (*said, listed.get(repr(expression)), declared):
            if is_from_data(source):
                asked = True
                break
            if source is not None:
                if isinstance(source, str | bytes) or not isinstance(source, Iterable):
                    raise InvalidParameter("tables.keys_of_column", parameter="keys", column=name)
                found[name] = list(source)
                break
    return found or (FROM_DATA if asked else None)


def _listed_in_where(select: exp.Select, scope: Scope) -> dict[str, list[Any]]:
    where = select.args.get("where")
    if where is None:
        return {}
    parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    listed: dict[str, list[Any]] = {}
    for part in parts:
        if isinstance(part, exp.In) and part.expressions:
            listed[repr(scalar(part.this, scope))] = [constant(item) for item in part.expressions]
        elif isinstance(part, exp.EQ) and _is_constant(part.expression):
            listed[repr(scalar(part.this, scope))] = [constant(part.expression)]
    return listed


def _is_constant(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) or fold_numbers(node) is not None
