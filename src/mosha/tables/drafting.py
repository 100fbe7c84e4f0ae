"""A declaration to begin with: the columns of a table's public header, and words that say what to fill in."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mosha.connect.engines.opening import source as open_source
from mosha.connect.plan.source import Source
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.unit import Person, Row
from mosha.tables.declaration import Declaration

__all__ = ["Advice", "check_declaration", "draft_declaration", "gather_advice", "guess_person"]

PERSON_WORDS = (
    "patient", "person", "people", "user", "client", "customer", "member", "citizen", "resident", "employee", "pupil",
    "student", "card", "device", "visitor", "subject", "who", "id",
    "患者", "病人", "用户", "客户", "学生", "居民", "员工", "会员", "身份证",
)  # fmt: skip
"""Whole words of a column's name that say whose a row is; the first that fits."""

MOST_SAMPLE = 2000
FEW = 12


def draft_declaration(
    place: str | os.PathLike[str],
    *,
    table: str | None = None,
    encoding: str | None = None,
    sample: str | None = None,
    person: str | None = None,
) -> str:
    """The text of a `.schema.yaml`: names and types from the header or the file's own schema, and nothing from rows.

    Args:
        place: the data.
        table: in a database, or the sheet.
        encoding: of a CSV file.
        sample: a *public* CSV file of the same columns, whose values may be looked at for types, ranges and keys.
        person: the column that says whose a row is; else one whose name says so, or the draft leaves it open.
    """
    opened = open_source(place, table=table, encoding=encoding)
    known = _look_at_sample(sample) if sample else {}
    names = list(opened.schema)
    if person is not None and person not in names:
        raise InvalidParameter("tables.draft_no_column", parameter="person", column=person, columns=names)
    whose = person or guess_person(names)
    columns = [_write_column(opened, name, known.get(name, {}), whose) for name in names]
    lines = [
        f"# {say('tables.draft_public')}",
        _write_unit(whose, guessed=person is None),
        *([f"# {say('tables.draft_type')}"] if any(name in opened.schema.loose for name in names) else []),
        *([f"# {say('tables.draft_between')}"] if len(known) < len(names) else []),
        "columns:",
        *columns,
    ]
    return "\n".join(lines) + "\n"


def guess_person(names: list[str]) -> str | None:
    """The column whose *name* says that it tells whose a row is, or None: which column that is cannot be guessed.

    >>> guess_person(["year", "patientId"]), guess_person(["idp", "width"])
    ('patientId', None)
    """
    words = {name: _split_words(name) for name in names}
    return next((name for word in PERSON_WORDS for name in names if word in words[name]), None)


def _split_words(name: str) -> set[str]:
    """The words of a column's name, in lower case, without an s at the end; of Chinese, all that it contains."""
    latin = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    found = {word.lower() for word in latin} | {word.lower().removesuffix("s") for word in latin}
    return found | {word for word in PERSON_WORDS if not word.isascii() and word in name}


def _write_unit(person: str | None, *, guessed: bool) -> str:
    if person is None:
        return f"# unit: {{person: ..., at_most: 5}}  # {say('tables.draft_whose')}"
    said = f"{say('tables.draft_unit')}{say('tables.draft_guessed') if guessed else ''}"
    return f"unit: {{person: {_quote(person)}, at_most: 5}}  # {said}"


def _write_column(opened: Source, name: str, seen: Mapping[str, Any], person: str | None) -> str:
    kind = seen.get("type") or ("" if name in opened.schema.loose else str(opened.schema[name]))
    said = {"type": kind} if kind else {}
    if "between" in seen and name != person:
        said["between"] = seen["between"]
    if "keys" in seen and name != person:
        said["keys"] = seen["keys"]
    inner = ", ".join(
        f"{field}: {value if field == 'type' else json.dumps(value, ensure_ascii=False)}"
        for field, value in said.items()
    )
    return f"  {_quote(name)}: {{{inner}}}"


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


def gather_advice(advice: list[Advice]) -> list[Advice]:
    """The same advice about many columns as one."""
    found: dict[tuple[str, bool], list[Advice]] = {}
    for each in advice:
        said = each.text.removeprefix(each.column) if each.column else each.text
        found.setdefault((said, each.missing), []).append(each)
    gathered = []
    for (said, missing), alike in found.items():
        names = ", ".join(each.column for each in alike)
        gathered.append(Advice(names, f"{names}{said}" if names else said, missing=missing))
    return gathered


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
    loose = name in opened.schema.loose and not declared.types.get(name)
    lacks = "no_type" if loose else {"integer": "no_range", "real": "no_range", "text": "no_keys"}.get(kind)
    return [Advice(name, say(f"tables.check_{lacks}", column=name))] if lacks else []
