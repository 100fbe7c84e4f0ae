"""What is publicly known about a dataset, version by version, and where each bound comes from.

A bound says its origin: `law` (an age is below 130), `codebook` (what the column was made to hold), or `paid` (bought
from the budget by an automatic range). A bound that was read off the data has no word here, and is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.unit import Unit
from mosha.server.catalogue.graphs import describe_graph, graph_unit, is_graph, public_graph_of
from mosha.server.errors import BadRequest

__all__ = [
    "ORIGINS",
    "check_declaration",
    "describe_declaration",
    "plain_declaration",
    "public_table_of",
    "sha256_of",
    "unit_of",
]

ORIGINS = ("law", "codebook", "paid")


def check_declaration(said: Mapping[str, Any], found: Mapping[str, str]) -> dict[str, Any]:
    """The declaration as it is kept: checked by the library, with the type of every column.

    Args:
        said: unit and columns, as in a declaration file; each bound with its origin.
        found: the columns that the source has, with their types.
    """
    columns = dict(said.get("columns") or {})
    for name, column in columns.items():
        if not isinstance(column, str | Mapping):
            raise BadRequest(
                "server.field_wrong", parameter=f"declaration.columns.{name}"[:200], expected="string | object"
            )
        if isinstance(column, str) or not ("between" in column or "keys" in column):
            continue
        if column.get("origin") not in ORIGINS:
            raise BadRequest("server.bound_origin", parameter=f"declaration.columns.{name}.origin", name=name)
    full = {name: _add_type(column, found.get(name, "")) for name, column in columns.items()}
    kept = {"unit": dict(said.get("unit") or {}), "columns": full}
    _parse(json.dumps(plain_declaration(kept), sort_keys=True))
    return kept


def _add_type(column: Any, kind: str) -> dict[str, Any]:
    said = {"type": column} if isinstance(column, str) else dict(column)
    return {"type": kind} | said if kind else said


def plain_declaration(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The part that `mosha.protect` reads: without origins and titles; that of a graph whole."""
    if is_graph(kept):
        return dict(kept)
    columns = {
        name: {part: value for part, value in column.items() if part in ("type", "between", "keys")}
        for name, column in kept["columns"].items()
    }
    return {"unit": kept["unit"], "columns": columns}


@lru_cache(maxsize=256)
def _parse(text: str) -> Any:
    from mosha.tables.declaration import Declaration  # noqa: PLC0415  (a server that only lists datasets needs no tables)

    declared = Declaration.of(json.loads(text))
    if declared.unit is None:
        raise BadRequest("server.field_missing", parameter="declaration.unit")
    if not declared.types:
        raise BadRequest("server.field_missing", parameter="declaration.columns")
    return declared


@lru_cache(maxsize=256)
def _table(name: str, text: str) -> Any:
    from mosha.connect.engines.absent import absent_table  # noqa: PLC0415
    from mosha.tables import protect  # noqa: PLC0415

    declared = _parse(text)
    if missing := [column for column, kind in declared.types.items() if not kind]:
        raise InvalidParameter("server.type_undeclared", parameter="schema", column=missing[0])
    return protect(absent_table(name, declared.types), unit=declared.unit, schema=declared)


def public_table_of(name: str, kept: Mapping[str, object]) -> Any:
    """The dataset as a protected table without rows, or a graph without edges: to check, price and forecast with."""
    if is_graph(kept):
        return public_graph_of(kept)
    return _table(name, json.dumps(plain_declaration(kept), sort_keys=True))


def unit_of(kept: Mapping[str, object]) -> Unit:
    """Whose presence a declaration hides."""
    if is_graph(kept):
        return graph_unit(kept)
    unit: Unit = _parse(json.dumps(plain_declaration(kept), sort_keys=True)).unit
    return unit


def sha256_of(kept: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(kept, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def describe_declaration(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration for readers: the unit in words, columns as a list."""
    if is_graph(kept):
        return describe_graph(kept)
    declared = _parse(json.dumps(plain_declaration(kept), sort_keys=True))
    columns = [{"name": name} | column for name, column in kept["columns"].items()]
    return {"unit": kept["unit"], "hidden": declared.unit.describe(), "columns": columns}
