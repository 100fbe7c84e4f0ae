"""What tells one question from another, made of its public fields and of nothing else.

Guarantee:
    `describe` writes every public field of a plan with its type, nested as the plan is, and JSON can be read in one
    way only: two plans have the same description exactly if all their fields are equal. No text of SQL is looked at,
    so no constant can look like a name. A class that is more than its fields says what is public about it by a method
    `public_parts`: a table enters by its public name, and all frames have the same one, because a frame has no name and
    a retry in another process must find its answer again.

Each kind of question is hashed as it was on its first day: whoever paid under a key, or began a stream, before
something was renamed finds the same book and the same fingerprint afterwards. A class says what it was called first as
`stored_as`, a field as `field(metadata=stored_as(...))`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import Field, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "Description", "HasPublicParts", "WrittenWhole", "describe", "describe_fields", "fingerprint", "fingerprint_plan",
    "fingerprint_synthesis", "is_storing", "name_as_stored", "stored_as", "write_as_stored", "write_fields",
]  # fmt: skip

Description = str | bool | list["Description"]

_PLAIN: tuple[type[object], ...] = (type(None), bool, int, float, str, bytes, datetime, date, Decimal, Fraction)


@runtime_checkable
class HasOrigin(Protocol):
    """A table, known by its public name."""

    @property
    def origin_name(self) -> str:
        """What tells this table from others, publicly."""


@runtime_checkable
class HasShape(Protocol):
    """An array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How long it is in each direction."""

    def tolist(self) -> list[object]:
        """Its public numbers."""


class HasPublicParts(Protocol):
    """Something that says itself what is public about it."""

    def public_parts(self) -> Iterable[Description]:
        """All that tells it from others, as nested lists of text and truth values (`describe`)."""


class WrittenWhole:
    """What a fingerprint of synthetic tables writes by its `repr`, not field by field."""


def describe(value: object) -> Description:
    """Nested lists of text that say everything public about a plan, and no two plans the same.

    >>> describe((1, 1.0, "1", True))
    ['tuple', ['int', '1'], ['float', '1.0'], ['str', "'1'"], ['bool', 'True']]
    """
    kind = getattr(type(value), "stored_as", type(value).__name__)
    if isinstance(value, Enum) and type(value).__module__.startswith("mosha."):
        return [kind, value.name]
    for plain in _PLAIN:
        if isinstance(value, plain):  # described as such, whatever a subclass says about itself
            return [plain.__name__, plain.__repr__(value)]
    return [kind, *_describe_parts(value)]


def _describe_parts(value: object) -> Iterable[Description]:
    if hasattr(type(value), "public_parts"):  # of the class: expressions answer names that they lack with a sentence
        return cast("HasPublicParts", value).public_parts()
    if isinstance(value, Mapping):
        return ([describe(key), describe(part)] for key, part in value.items())
    if isinstance(value, tuple | list):
        return map(describe, value)
    if is_dataclass(value) and not isinstance(value, type):
        return ([name_as_stored(field), describe(getattr(value, field.name))] for field in fields(value))
    raise TypeError(f"a plan holds no {type(value).__name__}")


def fingerprint_plan(*values: object) -> str:
    """A hash of the description, the same in every process: what questions about tables and graphs are known by.

    >>> fingerprint_plan("count", 1)[:12]
    '3c084904fbae'
    """
    written = ", ".join(map(_write_description, values))
    return hashlib.sha256(f"[{written}]".encode()).hexdigest()


def _write_description(value: object) -> str:
    """`json.dumps(describe(value))`, letter for letter; of a list of a million keys in a moment.

    >>> _write_description((1, (2.5, None)))
    '["tuple", ["int", "1"], ["tuple", ["float", "2.5"], ["NoneType", "None"]]]'
    """
    if type(value) is int:
        return f'["int", "{value}"]'
    if type(value) is str:
        return f'["str", {json.dumps(repr(value))}]'
    if type(value) is tuple:
        written = ", ".join(['"tuple"', *map(_write_description, value)])
        return f"[{written}]"
    return json.dumps(describe(value))


def fingerprint(statistic: object, unit: object, *parameters: object) -> str:
    """A hash of texts: what the question of any other measurement is known by.

    Public things alone go in. A statistic without a text of its own is known by the name of its class.

    >>> from mosha.core.unit import Row
    >>> count = fingerprint("count", Row())
    >>> count == fingerprint("count", Row()), count == fingerprint("sum", Row())
    (True, False)
    """
    kind = type(statistic)
    plain = getattr(kind, "__repr__", None) is object.__repr__
    text = f"{kind.__module__}.{kind.__qualname__}" if plain else write_as_stored(statistic)
    return hashlib.sha256(write_as_stored((text, unit, parameters)).encode("utf-8", "backslashreplace")).hexdigest()


def fingerprint_synthesis(*values: object) -> str:
    """A hash of public fields, arrays among them: what questions about synthetic tables are known by."""
    return hashlib.sha256(json.dumps([_describe_synthesis(v) for v in values], default=repr).encode()).hexdigest()


def _describe_synthesis(value: object) -> object:
    if isinstance(value, Mapping):
        return ["map", *([_describe_synthesis(key), _describe_synthesis(part)] for key, part in value.items())]
    if isinstance(value, tuple | list):
        return [type(value).__name__, *map(_describe_synthesis, value)]
    if isinstance(value, HasOrigin):
        return ["source", value.origin_name, *filter(None, [getattr(value, "database", None)])]
    if isinstance(value, HasShape) and value.shape:
        return ["array", value.shape, value.tolist()]
    kind = getattr(type(value), "stored_as", type(value).__name__)
    if is_dataclass(value) and not isinstance(value, type | WrittenWhole):
        return [kind, *([name_as_stored(f), _describe_synthesis(getattr(value, f.name))] for f in fields(value))]
    return [kind, write_as_stored(value)]


_AS_STORED: ContextVar[bool] = ContextVar("_AS_STORED", default=False)


def write_as_stored(value: object) -> str:
    """The `repr` of a value as fingerprints have it: classes and fields under the names they had first.

    >>> from mosha.core.unit import Reading
    >>> write_as_stored(Reading())
    "Event(neighbours=<Neighbours.ADD_REMOVE: 'add-remove'>)"
    """
    token = _AS_STORED.set(True)
    try:
        return repr(value)
    finally:
        _AS_STORED.reset(token)


def is_storing() -> bool:
    """Whether a `repr` is being written for a fingerprint."""
    return _AS_STORED.get()


def stored_as(name: str) -> dict[str, str]:
    """The metadata of a field that books and fingerprints call `name`."""
    return {"stored_as": name}


def name_as_stored(field: Field[Any]) -> str:
    """What books and fingerprints call this field."""
    return str(field.metadata.get("stored_as", field.name))


def describe_fields(described: Iterable[Field[Any]], of: object) -> str:
    """The arguments of a `repr`: these fields of a value, by name."""
    name = name_as_stored if is_storing() else _name
    return ", ".join(f"{name(field)}={getattr(of, field.name)!r}" for field in described)


def write_fields(value: DataclassInstance) -> str:
    """The `repr` of a dataclass with a renamed field: `__repr__ = write_fields`."""
    return f"{type(value).__qualname__}({describe_fields((f for f in fields(value) if f.repr), value)})"


def _name(field: Field[Any]) -> str:
    return field.name
