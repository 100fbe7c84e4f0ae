"""What is publicly known about a table, said once, in a small file beside the data or in Python.

    unit: {person: patient_id, at_most: 5}
    columns:
      patient_id: {type: integer}
      days: {type: integer, between: [0, 30]}
      ward: {type: text, keys: [cardiology, surgery]}

The file is YAML, TOML or JSON, and `visits.schema.yaml` beside `visits.csv` is found by itself.
What it says is public: it must come from what a column means, never from looking at the private rows.
"""

from __future__ import annotations

import glob
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

from mosha.connect.engines.duckdb_fields import csv_field
from mosha.connect.engines.local_source import LocalSource
from mosha.connect.language.schema import Type, literal_type
from mosha.connect.plan.source import Field, Source
from mosha.connect.sql.dialect import Node
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import real
from mosha.core.unit import Person, Row, Unit

__all__ = ["ENDINGS", "Declaration", "apply_types", "beside", "declaration", "read_declaration", "read_stored"]

ENDINGS = (".yaml", ".yml", ".toml", ".json")
_SAID = {"type", "between", "keys"}
ROW = "row"
"""A unit in one word: one row."""


@dataclass(frozen=True)
class Declaration:
    """What is publicly known about a table.

    Fields:
        unit: whose presence is hidden.
        types: the columns that may be asked about, and what they hold; empty: all that the table has, as it has them.
        ranges: the (low, high) that a column's values are clamped into, where a question does not say.
        keys: the public groups of a column, where a question does not say.

    >>> from mosha.core.unit import Row
    >>> declared = Declaration(unit=Row(), ranges={"days": (0, 30)})
    >>> declared.ranges["days"]
    (0, 30)
    """

    unit: Unit | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    keys: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @staticmethod
    def of(said: object) -> Declaration:
        """A declaration, however it was `said`: as one, as plain data, as {column: type}, or as the path of a file."""
        if said is None:
            return Declaration()
        if isinstance(said, Declaration):
            return said
        if isinstance(said, str | os.PathLike):
            return read_declaration(os.fspath(said))
        return declaration(said)

    def without(self, columns: Iterable[str]) -> Declaration:
        """What is still true after these `columns` were computed anew."""
        gone = set(columns)
        ranges = {name: found for name, found in self.ranges.items() if name not in gone}
        keys = {name: found for name, found in self.keys.items() if name not in gone}
        return replace(self, ranges=ranges, keys=keys)

    def rename(self, names: Mapping[str, str]) -> Declaration:
        """What is known of some columns under new `names`: {old name: new name}."""
        ranges = {names[name]: found for name, found in self.ranges.items() if name in names}
        keys = {names[name]: found for name, found in self.keys.items() if name in names}
        return replace(self, types={}, ranges=ranges, keys=keys)

    def beside(self, other: Declaration) -> Declaration:
        """What is known after a join with a table of which `other` is declared: the table's own words first."""
        return replace(self, ranges={**other.ranges, **self.ranges}, keys={**other.keys, **self.keys})

    def either(self, other: Declaration) -> Declaration:
        """What is known of rows of which some are declared so and the others as `other`: what both say, together."""
        ends = {name: (*found, *other.ranges[name]) for name, found in self.ranges.items() if name in other.ranges}
        keys = {name: (*found, *other.keys[name]) for name, found in self.keys.items() if name in other.keys}
        ranges = {name: (min(found), max(found)) for name, found in ends.items()}
        return Declaration(ranges=ranges, keys={name: tuple(dict.fromkeys(found)) for name, found in keys.items()})


def beside(place: object) -> Path | None:
    """The declaration beside a file, folder or glob: its name without its ending, then .schema and one of `ENDINGS`."""
    if not isinstance(place, str | os.PathLike) or "://" in (text := os.fspath(place)):
        return None
    path = Path(re.sub(r"[/\\]*\**(/\*[^/]*)*$", "", text))
    stem = path.name.split(".")[0]
    if not stem or glob.has_magic(stem):
        return None
    found = [there for ending in ENDINGS if (there := path.with_name(f"{stem}.schema{ending}")).is_file()]
    if len(found) > 1:
        raise InvalidParameter("tables.two_declarations", parameter="schema", first=found[0].name, second=found[1].name)
    return found[0] if found else None


@explain_wrong_calls
def read_declaration(place: str | Path) -> Declaration:
    """The declaration in the YAML, TOML or JSON file at `place`.

    >>> import json, tempfile
    >>> place = Path(tempfile.mkdtemp()) / "visits.json"
    >>> _ = place.write_text(json.dumps({"unit": {"person": "patient"}, "columns": {"days": {"type": "integer"}}}))
    >>> read_declaration(place).unit.column
    'patient'
    """
    return declaration(read_stored(place))


def read_stored(place: str | Path) -> Any:
    """The plain data in a YAML, TOML or JSON file."""
    path = Path(place)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidParameter("tables.declaration_ending", parameter="schema", endings=list(ENDINGS), given=ending)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter("tables.declaration_unreadable", parameter="schema", path=str(path)) from None
    try:
        return _yaml(text) if ending in ENDINGS[:2] else _parse(text, ending)
    except (ValueError, RecursionError):
        raise InvalidParameter(
            "tables.declaration_not_parsed", parameter="schema", path=str(path), kind=ending[1:].upper()
        ) from None


def _parse(text: str, ending: str) -> Any:
    return json.loads(text) if ending == ".json" else tomllib.loads(text)


def _yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415  (only whoever writes YAML)

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ValueError from None


def declaration(stored: object) -> Declaration:
    """The declaration that plain data describe.

    >>> declaration({"unit": {"person": "who"}, "columns": {"days": {"between": [0, 30]}}}).ranges
    {'days': (0.0, 30.0)}
    >>> declaration({"days": "integer"}).types
    {'days': 'integer'}
    >>> declaration({"unit": "row", "columns": {"days": "integer"}}).unit.noun
    'one row'
    """
    if not isinstance(stored, Mapping) or not stored:
        raise InvalidParameter("tables.declaration_shape", parameter="schema")
    if _has_two_parts(stored):
        columns, unit = _table(stored.get("columns"), "columns"), _unit(stored.get("unit"))
    else:
        columns, unit = dict(stored), None
    types: dict[str, str] = {}
    ranges: dict[str, tuple[float, float]] = {}
    keys: dict[str, tuple[Any, ...]] = {}
    for name, said in columns.items():
        if not isinstance(name, str):
            raise InvalidParameter("tables.declaration_names", parameter="schema")
        column = {"type": said} if isinstance(said, str) else _table(said, f"columns.{name}")
        if unknown := set(column) - _SAID:
            raise InvalidParameter("tables.declaration_field", column=name, field=min(map(str, unknown)))
        if "type" in column:
            types[name] = _type(name, column["type"])
        if "between" in column:
            ranges[name] = _range(name, column["between"])
        if "keys" in column:
            keys[name] = _keys(name, column["keys"], types.get(name))
    if types:
        types = {name: types.get(name, "") for name in columns}
    return Declaration(unit, types, ranges, keys)


def _has_two_parts(stored: Mapping[Any, Any]) -> bool:
    """Whether this is a unit and columns, and not columns that are called so."""
    unit, columns = stored.get("unit"), stored.get("columns")
    if set(stored) - {"unit", "columns"} or isinstance(columns, str):
        return False
    return not isinstance(unit, str) or columns is not None or unit == ROW


def _table(value: object, name: str) -> dict[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidParameter("tables.declaration_not_names", parameter=name)
    return dict(value)


def _type(name: str, kind: object) -> str:
    if kind not in list(Type):
        raise InvalidParameter("tables.declaration_type", column=name, allowed=[str(kind) for kind in Type])
    return str(kind)


def _range(name: str, between: object) -> tuple[float, float]:
    if not isinstance(between, list | tuple) or len(between) != 2:
        raise InvalidParameter("tables.declaration_between", column=name)
    low, high = (real(f"between of column {name!r}", edge) for edge in between)
    if not low < high:
        raise InvalidParameter("tables.declaration_reversed", column=name)
    return low, high


def _keys(name: str, listed: object, kind: str | None) -> tuple[Any, ...]:
    if not isinstance(listed, list | tuple) or not listed:
        raise InvalidParameter("tables.declaration_keys", column=name)
    return tuple(None if key is None else _key(name, key, kind) for key in listed)


def _key(name: str, key: object, kind: str | None) -> Any:
    """A public value; dates may be written as text where the column is declared to hold them."""
    if isinstance(key, str) and kind in {Type.DATE, Type.TIMESTAMP, Type.INSTANT}:
        try:
            return date.fromisoformat(key) if kind == Type.DATE else datetime.fromisoformat(key)
        except ValueError:
            raise InvalidParameter("tables.declaration_key", column=name, kind=str(kind)) from None
    literal_type(key)
    return key


def _unit(stored: object) -> Unit | None:
    if stored == ROW:
        return Row()
    if isinstance(stored, str):
        raise InvalidParameter("tables.declaration_unit", parameter="unit")
    said = _table(stored, "unit")
    if not said:
        return None
    person = said.pop("person", None)
    try:
        return Row(**said) if person is None else Person(person, **said)
    except TypeError:
        raise InvalidParameter("tables.declaration_unit", parameter="unit") from None


_WRITTEN = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
    Type.INSTANT: "TIMESTAMP WITH TIME ZONE",
}


def apply_types(source: Source, types: Mapping[str, str]) -> Source:
    """The columns of `types` and no others. A CSV file is read by these types; any other table must have them.

    A column whose type is not said ("") keeps the one that it has.
    """
    if not types:
        return source
    there = {field.name: field for field in source.fields}
    if missing := [name for name in types if name not in there]:
        raise DataError("tables.declared_missing", columns=[repr(name) for name in missing])
    read = _read_csv_field if _is_csv(source) else _check_type
    fields = (read(there[name], Type(kind)) if kind else there[name] for name, kind in types.items())
    if isinstance(source, LocalSource):  # which lets go of a frame when it is itself let go of: the new one holds it
        return replace(source, fields=tuple(fields), origin=partial(_origin, source))
    return replace(source, fields=tuple(fields))


def _origin(source: LocalSource) -> Node:
    return source.origin()


def _is_csv(source: Source) -> bool:
    return isinstance(source, LocalSource) and all(field.loose for field in source.fields)


def _read_csv_field(field: Field, kind: Type) -> Field:
    return csv_field(field.name, _WRITTEN[kind], {})


def _check_type(field: Field, kind: Type) -> Field:
    if field.type is not kind:
        raise DataError("tables.declared_other_type", column=field.name, declared=str(kind), found=str(field.type))
    return field
