"""A small file beside the data that says once what everybody needs to know: unit, ranges and public keys.

    [unit]
    person = "patient_id"
    at_most = 5

    [columns.days]
    between = [0, 30]

    [columns.ward]
    keys = ["cardiology", "surgery"]

TOML or JSON. What it says is public: it must come from what a column means, never from looking at the private rows.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.number import real
from mosha.core.unit import Person, Row, Unit

__all__ = ["Declaration", "read_declaration"]


@dataclass(frozen=True)
class Declaration:
    """What is publicly known about a table."""

    unit: Unit | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    keys: Mapping[str, list[Any]] = field(default_factory=dict)


def read_declaration(place: str | Path) -> Declaration:
    """The declaration in a TOML or JSON file."""
    path = Path(place)
    try:
        text = path.read_text(encoding="utf-8")
        stored = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError:
        raise InvalidParameter(f"the declaration {str(path)!r} cannot be read: is the path right?") from None
    except ValueError:
        raise InvalidParameter(f"the declaration {str(path)!r} is neither TOML nor (with .json) JSON.") from None
    return declaration(stored)


def declaration(stored: Any) -> Declaration:
    """The declaration that plain data describe.

    >>> declaration({"unit": {"person": "who"}, "columns": {"days": {"between": [0, 30]}}}).ranges
    {'days': (0.0, 30.0)}
    """
    if not isinstance(stored, dict) or set(stored) - {"unit", "columns"}:
        raise InvalidParameter("a declaration has two parts, [unit] and [columns.NAME].")
    ranges, keys = {}, {}
    for name, said in _table(stored.get("columns"), "columns").items():
        column = _table(said, f"columns.{name}")
        if unknown := set(column) - {"between", "keys"}:
            raise InvalidParameter(f"[columns.{name}] says between and keys, not {min(unknown)}.")
        if "between" in column:
            ranges[name] = _range(name, column["between"])
        if "keys" in column:
            if not isinstance(column["keys"], list) or not column["keys"]:
                raise InvalidParameter(f"[columns.{name}] keys is a list of the public values.")
            keys[name] = column["keys"]
    return Declaration(_unit(stored.get("unit")), ranges, keys)


def _table(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidParameter(f"[{name}] must be a table of names and values.")
    return value


def _range(name: str, between: Any) -> tuple[float, float]:
    if not isinstance(between, list) or len(between) != 2:
        raise InvalidParameter(f"[columns.{name}] between is a pair: between = [low, high].")
    low, high = (real(f"[columns.{name}] between", edge) for edge in between)
    if not low < high:
        raise InvalidParameter(f"[columns.{name}] between = [low, high] must have low < high.")
    return low, high


def _unit(stored: Any) -> Unit | None:
    said = dict(_table(stored, "unit"))
    if not said:
        return None
    person = said.pop("person", None)
    try:
        return Row(**said) if person is None else Person(person, **said)
    except TypeError:
        raise InvalidParameter("[unit] says person, at_most, groups, per_group, total and neighbours.") from None
