"""A declaration to begin with: the columns of a table's public header, and words that say what to fill in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mosha.connect.engines.opening import source as open_source
from mosha.connect.language.schema import Type
from mosha.connect.plan.source import Source
from mosha.core.language import say
from mosha.core.unit import Person, Row
from mosha.tables.declaration import Declaration

__all__ = ["Advice", "check_declaration", "draft_declaration"]

PERSON_WORDS = ("patient", "person", "user", "client", "customer", "member", "card", "device", "pupil", "student", "id")
MOST_SAMPLE = 2000
FEW = 12


def draft_declaration(
    place: str | os.PathLike[str], *, table: str | None = None, encoding: str | None = None, sample: str | None = None
) -> str:
    """The text of a `.schema.yaml`: names and types from the header or the file's own schema, and nothing from rows.

    Args:
        place: the data.
        table: in a database, or the sheet.
        encoding: of a CSV file.
        sample: a *public* CSV file of the same columns, whose values may be looked at for types, ranges and keys.
    """
    opened = open_source(place, table=table, encoding=encoding)
    known = _look_at_sample(sample) if sample else {}
    names = list(opened.schema)
    person = _guess_person(names)
    lines = [
        f"# {say('tables.draft_public')}",
        f"unit: {{person: {_quote(person)}, at_most: 5}}  # {say('tables.draft_unit')}",
        "columns:",
        *(_write_column(opened, name, known.get(name, {}), person) for name in names),
    ]
    return "\n".join(lines) + "\n"


def _guess_person(names: list[str]) -> str:
    """The column whose *name* looks like a person's; the first one otherwise."""
    scored = [(word in name.lower(), name) for word in PERSON_WORDS for name in names]
    return next((name for fits, name in scored if fits), names[0] if names else "person")


def _write_column(opened: Source, name: str, seen: Mapping[str, Any], person: str) -> str:
    kind = opened.schema[name]
    loose = name in opened.schema.loose
    said = {"type": str(seen.get("type", kind))}
    if "between" in seen and name != person:
        said["between"] = seen["between"]
    if "keys" in seen and name != person:
        said["keys"] = seen["keys"]
    hint = ""
    if loose and not seen:
        hint = f"  # {say('tables.draft_type')}"
    elif name != person and kind in {Type.INTEGER, Type.REAL} and "between" not in said:
        hint = f"  # {say('tables.draft_between')}"
    inner = ", ".join(
        f"{field}: {value if field == 'type' else json.dumps(value, ensure_ascii=False)}"
        for field, value in said.items()
    )
    return f"  {_quote(name)}: {{{inner}}}{hint}"


def _quote(text: str) -> str:
    return text if text.isidentifier() and text.isascii() else json.dumps(text, ensure_ascii=False)


def _look_at_sample(sample: str) -> dict[str, dict[str, Any]]:
    """Types, ranges and keys of a public file, which somebody has said is public."""
    import csv  # noqa: PLC0415  (only whoever gives a sample)

    with open(sample, encoding="utf-8-sig", newline="") as file:  # noqa: PTH123
        rows = [row for row, _ in zip(csv.DictReader(file), range(MOST_SAMPLE), strict=False)]
    found: dict[str, dict[str, Any]] = {}
    for name in rows[0] if rows else []:
        values = [row[name] for row in rows if row.get(name)]
        numbers = [_as_number(value) for value in values]
        if values and None not in numbers:
            whole = all(float(n).is_integer() for n in numbers if n is not None)
            ends = [min(n for n in numbers if n is not None), max(n for n in numbers if n is not None)]
            found[name] = {"type": "integer" if whole else "real", "between": [int(e) if whole else e for e in ends]}
        elif values:
            distinct = sorted(set(values))
            found[name] = {"type": "text"} | ({"keys": distinct} if len(distinct) <= FEW else {})
    return found


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Advice:
    """One thing to know about a declaration: `missing` where something has to be done first."""

    column: str
    text: str
    missing: bool = False


def check_declaration(declared: Declaration, opened: Source) -> list[Advice]:
    """What a declaration lacks, and what each of its choices means; no row is read."""
    found: list[Advice] = []
    unit = declared.unit
    if unit is None:
        found.append(Advice("", say("tables.check_no_unit"), missing=True))
    elif isinstance(unit, Person):
        if unit.column not in opened.schema:
            found.append(Advice(unit.column, say("tables.check_no_column", column=unit.column), missing=True))
        limit = unit.at_most
        code = "tables.check_person" if limit is not None else "tables.check_person_unlimited"
        found.append(Advice("", say(code, **({"limit": limit} if limit is not None else {}))))
    elif isinstance(unit, Row):
        found.append(Advice("", say("tables.check_row")))
    absent = [name for name in declared.types if name not in opened.schema]
    found += [Advice(name, say("tables.check_no_column", column=name), missing=True) for name in absent]
    for name in opened.schema:
        found += _check_column(name, declared, opened)
    return found


def _check_column(name: str, declared: Declaration, opened: Source) -> list[Advice]:
    if isinstance(declared.unit, Person) and name == declared.unit.column:
        return []
    kind = declared.types.get(name) or str(opened.schema[name])
    if declared.types and name not in declared.types:
        return [Advice(name, say("tables.check_hidden_column", column=name))]
    if name in declared.keys:
        return [Advice(name, say("tables.check_keys", column=name, count=len(declared.keys[name])))]
    if name in declared.ranges:
        low, high = declared.ranges[name]
        return [Advice(name, say("tables.check_range", column=name, low=f"{low:g}", high=f"{high:g}"))]
    if kind in {"integer", "real"}:
        return [Advice(name, say("tables.check_no_range", column=name))]
    return [Advice(name, say("tables.check_no_keys", column=name))] if kind == "text" else []
