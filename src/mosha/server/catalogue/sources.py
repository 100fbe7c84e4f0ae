"""Where a dataset lives: a file under one of the operator's folders, or a database whose URL is in the environment.

A reference is kept, never a secret: `{"path": "visits.csv"}`, `{"url": "env:VISITS_URL", "table": "visits"}`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosha.core.language import phrase
from mosha.server.errors import BadRequest
from mosha.server.settings import Settings

__all__ = ["check_source", "hash_source", "is_same_file", "open_place", "shares_rows"]

DATABASES = ("postgresql://", "postgres://", "mariadb://", "mysql://", "sc://")


def check_source(said: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The reference as it is kept: a path becomes a real one, inside of a folder that data may come from.

    A variable must hold the address of a database: others may hold paths, or the server's own store and ledger.
    """
    source = {name: value for name, value in said.items() if value is not None}
    if ("path" in source) == ("url" in source):
        raise BadRequest("server.one_of", parameter="source", names="path, url")
    if "url" in source:
        place = os.environ.get(source["url"][4:], "") if source["url"].startswith("env:") else ""
        if not place.startswith(DATABASES) or place in (settings.store_place, settings.ledger_place):
            raise BadRequest("server.field_wrong", parameter="source.url", expected=phrase("server.a_database"))
        return source
    found = {part: _place_in(settings, source[part], part) for part in ("path", "vertices") if part in source}
    return source | found


def _place_in(settings: Settings, said: str, part: str) -> str:
    """A file as it really is, inside of a folder that data may come from."""
    roots = settings.data_roots
    for root in roots:
        place = Path(os.path.realpath(root / said))
        if place.is_relative_to(root) and place.exists():
            return str(place)
    raise BadRequest("server.outside_root", parameter=f"source.{part}", names=", ".join(root.name for root in roots))


def hash_source(source: Mapping[str, Any], *, identity: bool = True) -> str:
    """What tells one source from another: the same table has the same hash, however it is called.

    A database says which table it is (`identity`): another address or a longer name makes no other table of it.
    """
    if identity and "identity" in source:
        return hashlib.sha256(json.dumps(source["identity"]).encode()).hexdigest()
    place = os.environ.get(source["url"][4:], "") if "url" in source else source["path"]
    return hashlib.sha256(json.dumps([place, source.get("table")]).encode()).hexdigest()


def shares_rows(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool | None:
    """Whether two sources may show the same rows; None where one of them is a view of which nobody can tell.

    >>> visits = {"path": "/data/a.duckdb", "origin": {"server": "", "reads": ["visits"], "within": []}}
    >>> view = visits | {"origin": {"server": "", "reads": None, "within": []}}
    >>> stays = visits | {"origin": {"server": "", "reads": ["stays"], "within": []}}
    >>> shares_rows(visits, visits), shares_rows(visits, stays), shares_rows(visits, view)
    (True, False, None)
    >>> shares_rows(view, {"path": "/data/visits.csv"}), shares_rows(stays, {"path": "/data/visits.csv"})
    (None, False)
    """
    first, second = one.get("origin"), other.get("origin")
    unknown = any(origin is not None and origin["reads"] is None for origin in (first, second))
    if "path" in one and "path" in other:
        if not is_same_file(one, other):
            return None if unknown else False  # a view in a file may read any other
        if first is None or second is None:
            return True
    elif first is None or second is None or first["server"] != second["server"]:
        return False
    if unknown:
        return None
    mine, theirs = set(first["reads"]), set(second["reads"])
    return not (mine.isdisjoint(theirs | set(second["within"])) and theirs.isdisjoint(first["within"]))


def is_same_file(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two sources share a file: under two names, or one in a folder that is the other.

    >>> is_same_file({"path": "/data/2026"}, {"path": "/data/2026/may.parquet"})
    True
    >>> is_same_file({"path": "/data/2026"}, {"path": "/data/2026.parquet"})
    False
    """
    if "path" not in one or "path" not in other:
        return False
    first, second = Path(one["path"]), Path(other["path"])
    if first.is_relative_to(second) or second.is_relative_to(first):
        return True
    try:
        return first.samefile(second)
    except OSError:
        return False


def open_place(source: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """What `mosha.protect` is given: the place, and options of the engine."""
    place = os.environ.get(source["url"][4:], "") if "url" in source else source["path"]
    return place, {name: source[name] for name in ("table", "separator", "multiline", "vertices") if name in source}
