"""Names as books and fingerprints keep them, whatever a class or a field is called today.

Whoever paid under a key, or began a stream, before something was renamed finds the same book and the same fingerprint
afterwards: a class says what it was called first as `stored_as`, a field as `field(metadata=stored_as(...))`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["describe_fields", "is_storing", "name_as_stored", "stored_as", "write_as_stored", "write_fields"]

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
