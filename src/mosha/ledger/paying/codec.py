"""Answers as JSON and back, bit for bit: what a retry gets is what left the first time.

Plain JSON values stand for themselves; everything else is an object with one key that names its kind.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

__all__ = ["Unkept", "decode", "encode"]


class Unkept(Exception):
    """This answer has no exact JSON form: the book notes the release and not the answer."""


def encode(value: object) -> Any:
    """The answer as plain JSON data; types are exact, for a subclass would come back as its parent.

    >>> encode([1, (2.5, b"x"), {"a": None}])
    [1, {'tuple': [2.5, {'bytes': 'eA=='}]}, {'dict': [['a', None]]}]
    """
    try:
        return _encode(value)
    except RecursionError:  # a list that holds itself
        raise Unkept from None


def _encode(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind is list:
        return [_encode(item) for item in value]
    if kind in (tuple, set, frozenset):
        items = value if kind is tuple else sorted(value, key=repr)
        return {kind.__name__: [_encode(item) for item in items]}
    if kind is dict:
        return {"dict": [[_encode(key), _encode(item)] for key, item in value.items()]}
    return _encode_numpy(value)


def _float(value: float) -> Any:
    return value if math.isfinite(value) else {"float": struct.pack("<d", value).hex()}


def _integer(value: int) -> Any:
    return value if value.bit_length() < 4096 else {"int": hex(value)}  # longer decimals are slow and refused


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unkept from None
    return value


def _encode_numpy(value: object) -> Any:
    if type(value).__module__ != "numpy":
        raise Unkept
    import numpy as np  # noqa: PLC0415  (there is a numpy value, so numpy is loaded)

    if not isinstance(value, np.generic) and type(value) is not np.ndarray:
        raise Unkept
    array = np.asarray(value)
    if array.dtype.kind not in "biufcSUmM" or array.dtype.metadata:
        raise Unkept
    described = {"dtype": array.dtype.str, "data": base64.b64encode(array.tobytes()).decode()}
    if isinstance(value, np.generic):
        return {"scalar": described}
    return {"array": described | {"shape": list(array.shape)}}


def decode(stored: object) -> Any:
    """The answer that `encode` described.

    >>> decode(encode({"table": (1, 2.5, float("inf"))}))
    {'table': (1, 2.5, inf)}
    """
    if isinstance(stored, list):
        return [decode(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    ((kind, body),) = stored.items()
    return _DECODERS[kind](body)


def _decode_numpy(body: dict[str, Any]) -> Any:
    import numpy as np  # noqa: PLC0415  (only where an array was kept)

    flat = np.frombuffer(base64.b64decode(body["data"]), dtype=np.dtype(body["dtype"]))
    return flat.reshape(body["shape"]).copy() if "shape" in body else flat[0]


_SCALARS: dict[type, Callable[[Any], Any]] = {
    int: _integer,
    float: _float,
    str: _text,
    bytes: lambda value: {"bytes": base64.b64encode(value).decode()},
    Fraction: lambda value: {"Fraction": str(value)},
    Decimal: lambda value: {"Decimal": str(value)},
}
_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": lambda bits: struct.unpack("<d", bytes.fromhex(bits))[0],
    "int": lambda digits: int(digits, 16),
    "tuple": lambda items: tuple(map(decode, items)),
    "set": lambda items: set(map(decode, items)),
    "frozenset": lambda items: frozenset(map(decode, items)),
    "dict": lambda pairs: {decode(key): decode(item) for key, item in pairs},
    "bytes": base64.b64decode,
    "Fraction": Fraction,
    "Decimal": Decimal,
    "scalar": _decode_numpy,
    "array": _decode_numpy,
}
