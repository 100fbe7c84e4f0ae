"""What a value is made of, as text: two fingerprints differ where anything in the value does."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

__all__ = ["fingerprint"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))


def fingerprint(value: object) -> str:
    """A digest of a value and of everything inside it, by the way it would be copied; nothing is run to read it back.

    >>> rows = [np.arange(3), {"a": 1}]
    >>> before = fingerprint(rows)
    >>> rows[0][1] = 7
    >>> before == fingerprint(rows)
    False

    Raises:
        TypeError: for what cannot be copied: a connection, a lock, a generator.
    """
    digest = hashlib.sha256()
    _add(value, digest, {})
    return digest.hexdigest()


def _add(value: Any, digest: Any, seen: dict[int, tuple[int, Any]]) -> None:
    kind = type(value)
    digest.update(f"<{kind.__module__}.{kind.__qualname__}>".encode())
    if kind in _PLAIN:
        digest.update(repr(value).encode("utf-8", "surrogatepass"))
        return
    if id(value) in seen:
        digest.update(f"#{seen[id(value)][0]}".encode())
        return
    seen[id(value)] = len(seen), value  # held, so that no other value takes its place in memory
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
        return
    if kind is np.ndarray and value.dtype.kind != "O":
        digest.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
        return
    for part in _parts(value, kind):
        _add(part, digest, seen)


def _parts(value: Any, kind: type) -> list[Any]:
    if kind is np.ndarray:
        return [str(value.dtype), value.shape, *value.ravel().tolist()]
    if kind in (list, tuple):
        return [len(value), *value]
    if kind is dict:
        return [len(value), *(part for pair in value.items() for part in pair)]
    if kind in (set, frozenset):
        return [sorted(fingerprint(member) for member in value)]
    reduced = value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return [reduced]
    make, arguments, *rest = reduced
    return [make, arguments, *(list(part) if hasattr(part, "__next__") else part for part in rest)]
