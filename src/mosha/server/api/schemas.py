"""A small part of JSON Schema: what bodies are checked against, and what openapi.json says of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from mosha.core.language import Phrase, phrase
from mosha.server.errors import BadRequest

__all__ = [
    "DEEPEST",
    "Schema",
    "array",
    "boolean",
    "check",
    "integer",
    "mapping",
    "number",
    "one_of",
    "read_json",
    "record",
    "text",
]

Schema = dict[str, Any]
DEEPEST = 64
LARGEST = 2**63
_TELLING = 1e12  # a bound above it says nothing to anybody
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_PATTERNS = {
    "^[a-z0-9][a-z0-9-]*$": "server.name_letters",
    "^[a-z][a-z0-9_]*$": "server.column_letters",
    "^[A-Za-z0-9_-]+$": "server.block_letters",
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}": "server.a_day",
    r"^[^/\u0000-\u001f\u007f]+$": "server.no_slash",
}


def text(most: int = 300, *, least: int = 1, pattern: str | None = None, null: bool = False, **more: object) -> Schema:
    schema: Schema = {"type": ["string", "null"] if null else "string", "minLength": least, "maxLength": most}
    return schema | ({"pattern": pattern} if pattern else {}) | more


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def number(
    *, above: float | None = None, least: float | None = None, most: float | None = None, null: bool = False
) -> Schema:
    schema: Schema = {"type": ["number", "null"] if null else "number"}
    schema |= {"exclusiveMinimum": above} if above is not None else {}
    schema |= {"minimum": least} if least is not None else {}
    return schema | ({"maximum": most} if most is not None else {})


def integer(*, least: int = 0, most: int = 2**53) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def boolean() -> Schema:
    return {"type": "boolean"}


def array(items: Schema, *, most: int = 1000, null: bool = False) -> Schema:
    return {"type": ["array", "null"] if null else "array", "items": items, "maxItems": most}


def mapping(values: Schema | None = None) -> Schema:
    return {"type": "object", "additionalProperties": True if values is None else values}


def record(
    required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None, *, null: bool = False
) -> Schema:
    return {
        "type": ["object", "null"] if null else "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _refuse_constant(_: str) -> Any:
    raise ValueError


def _unique(pairs: list[tuple[str, object]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def read_json(body: bytes) -> Any:
    """One JSON object: UTF-8, no name twice, no NaN, nothing deeper or larger than it may be."""
    try:
        said = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except RecursionError:
        raise BadRequest("server.body_too_deep", most=DEEPEST) from None
    except ValueError:
        raise BadRequest("server.body_not_json") from None
    if not isinstance(said, dict):
        raise BadRequest("server.body_not_json")
    _check_plain(said, DEEPEST)
    return said


def _check_plain(value: object, depth: int) -> None:
    """Numbers that are finite and not absurd, text that can be written down, and bounded nesting."""
    if depth == 0:
        raise BadRequest("server.body_too_deep", most=DEEPEST)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadRequest("server.body_not_json")
    if isinstance(value, int) and not -LARGEST <= value < LARGEST:
        raise BadRequest("server.body_not_json")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_text(name)
            _check_plain(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _check_plain(inner, depth - 1)


def _check_text(value: str) -> None:
    if "\x00" in value or (not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value)):
        raise BadRequest("server.body_not_json")


def check(value: Any, schema: Schema, place: str) -> None:
    """Refuse a value that is not what its schema says, naming the place."""
    kinds = schema.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds] if kinds else []
    if listed and not any(_is(value, kind) for kind in listed):
        raise BadRequest("server.field_wrong", parameter=place, expected=_words_of(listed))
    if value is None:
        return
    if isinstance(value, str):
        _check_string(value, schema, place)
    elif isinstance(value, dict):
        _check_object(value, schema, place)
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            raise BadRequest(
                "server.field_wrong", parameter=place, expected=phrase("server.items", most=schema["maxItems"])
            )
        for number_of, item in enumerate(value):
            check(item, schema.get("items", {}), f"{place}[{number_of}]")
    elif not isinstance(value, bool):
        _check_number(value, schema, place)


def _words_of(kinds: list[str]) -> Phrase:
    """The types of JSON in words."""
    return phrase("server.either", parts=[phrase(f"server.kind_{kind}") for kind in kinds if kind != "null"])


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def _check_string(value: str, schema: Schema, place: str) -> None:
    if "enum" in schema and value not in schema["enum"]:
        raise BadRequest("server.field_wrong", parameter=place, expected=" | ".join(schema["enum"]))
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        if not value:
            raise BadRequest("server.field_missing", parameter=place)
        expected = phrase("server.characters", most=schema.get("maxLength", 0))
        raise BadRequest("server.field_wrong", parameter=place, expected=expected)
    if "pattern" in schema and not re.search(_end_strictly(schema["pattern"]), value):
        pattern = schema["pattern"]
        expected = phrase(_PATTERNS[pattern]) if pattern in _PATTERNS else pattern
        raise BadRequest("server.field_wrong", parameter=place, expected=expected)


def _end_strictly(pattern: str) -> str:
    r"""A pattern as JSON Schema means it: `$` is the end, where Python's allows one more new line.

    >>> _end_strictly("^[a-z]+$")
    '^[a-z]+\\Z'
    """
    return pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern


def _check_number(value: float, schema: Schema, place: str) -> None:
    low, above, high = schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")
    wrong = (low is not None and value < low) or (above is not None and value <= above)
    if wrong or (high is not None and value > high):
        bounds = [phrase("server.at_least", least=low)] if low is not None else []
        bounds += [phrase("server.above", above=above)] if above is not None else []
        if high is not None and (high < _TELLING or not bounds):
            bounds.append(phrase("server.at_most", most=high))
        expected = phrase("server.both", parts=bounds)
        raise BadRequest("server.field_wrong", parameter=place, expected=expected)


def _check_object(value: dict[str, object], schema: Schema, place: str) -> None:
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            raise BadRequest("server.field_missing", parameter=_join(place, name))
    for name, inner in value.items():
        if name in known:
            check(inner, known[name], _join(place, name))
        elif other is False:
            raise BadRequest("server.field_unknown", parameter=_join(place, name)[:200])
        elif isinstance(other, dict):
            check(inner, other, _join(place, name)[:200])


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
