"""What tells one question from another, made of its public fields and of nothing else.

Guarantee:
    `described` writes every public field of a plan with its type, nested as the plan is, and JSON can be read in one
    way only: two plans have the same description exactly where all their fields are equal. No text of SQL is
    looked at, so no constant can look like a name. A table enters by its public name (`Source.origin_name`); all
    frames have the same one, because a frame has no name, and a retry in another process must find its answer
    again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from mosha.connect.engines.source import Source
from mosha.connect.language.schema import Schema

__all__ = ["described", "fingerprint"]

_PLAIN: tuple[Any, ...] = (type(None), bool, int, float, str, bytes, datetime, date, Decimal, Fraction)


def described(value: Any) -> Any:
    """Nested lists of text that say everything public about a plan, and no two plans the same.

    >>> described((1, 1.0, "1", True))
    ['tuple', ['int', '1'], ['float', '1.0'], ['str', "'1'"], ['bool', 'True']]
    """
    kind = type(value).__name__
    if isinstance(value, Enum) and type(value).__module__.startswith("mosha."):
        return [kind, value.name]
    for plain in _PLAIN:
        if isinstance(value, plain):  # told as such, whatever a class of somebody else would say of itself
            return [plain.__name__, plain.__repr__(value)]
    return [kind, *_inner(value)]


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, Source):
        return [value.origin_name, described(value.schema)]
    if isinstance(value, Schema):
        return ([name, str(kind), name in value.loose] for name, kind in value.items())
    if isinstance(value, Mapping):
        return ([described(key), described(part)] for key, part in value.items())
    if isinstance(value, tuple | list):
        return map(described, value)
    if is_dataclass(value):
        return ([field.name, described(getattr(value, field.name))] for field in fields(value))
    raise TypeError(f"a plan holds no {type(value).__name__}")


def fingerprint(*values: Any) -> str:
    """A hash of the description, the same in every process."""
    return hashlib.sha256(json.dumps([described(value) for value in values]).encode()).hexdigest()
