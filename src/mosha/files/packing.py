"""Plain values and arrays as bytes, and back: JSON with raw arrays behind it. Reading makes values and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, StateRefused

__all__ = ["Kind", "pack", "unpack"]

_KINDS = "biufc"  # of NumPy: truths, whole numbers, reals, complex numbers; never objects
_LEAST = 4096


class Kind(NamedTuple):
    """Another type that may be packed: how it is taken apart into plain values and arrays, and put together again."""

    type: type
    apart: Callable[[Any], Any]
    together: Callable[[Any], Any]


def pack(value: object, kinds: Mapping[str, Kind] | None = None) -> list[bytes | memoryview]:
    """The bytes of a tree of None, truths, numbers, texts, lists, tuples, dictionaries and arrays, in parts.

    Filled up to one of a few lengths, so that the length of a file tells little about who is in it.

    >>> unpack(b"".join(pack({"a": (1, 2.5), 3: [None, np.arange(3)]})))
    {'a': (1, 2.5), 3: [None, array([0, 1, 2])]}

    Raises:
        InvalidParameter: naming the type of what cannot be packed.
    """
    arrays: list[NDArray[Any]] = []
    tree = _pack_value(value, arrays, kinds or {})
    heads = [{"type": array.dtype.str, "shape": list(array.shape)} for array in arrays]
    head = json.dumps({"tree": tree, "arrays": heads}).encode()
    parts: list[bytes | memoryview] = [len(head).to_bytes(8, "little"), head]
    parts += [array.reshape(-1).view(np.uint8).data for array in arrays if array.size]
    length = sum(len(part) for part in parts)
    return [*parts, bytes(-length % max(_LEAST, 1 << max(0, length.bit_length() - 4)))]


def unpack(data: bytes | bytearray, kinds: Mapping[str, Kind] | None = None) -> Any:
    """The value that was packed.

    Raises:
        StateRefused: for bytes that `pack` did not make.
    """
    try:
        end = 8 + int.from_bytes(data[:8], "little")
        content = json.loads(bytes(data[8:end]))
        arrays = list(_arrays(data, end, content["arrays"]))
        return _read(content["tree"], arrays, kinds or {})
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, MemoryError):
        raise StateRefused("files.other_layout") from None


def _arrays(data: bytes | bytearray, start: int, heads: Any) -> Iterator[NDArray[Any]]:
    for head in heads:
        kind, shape = np.dtype(str(head["type"])), tuple(int(length) for length in head["shape"])
        if kind.kind not in _KINDS or min(shape, default=0) < 0:
            raise ValueError(kind)
        count = int(np.prod(shape, dtype=object))
        yield np.frombuffer(data, kind, count, start).reshape(shape).copy() if count else np.zeros(shape, kind)
        start += count * kind.itemsize


def _pack_value(value: Any, arrays: list[NDArray[Any]], kinds: Mapping[str, Kind]) -> Any:
    """The value as JSON: what JSON has itself, and ["what it is", parts] for everything else."""
    if value is None or isinstance(value, bool | str):
        return value
    if type(value) in (int, float):
        return value
    for name, kind in kinds.items():
        if isinstance(value, kind.type):
            return [name, _pack_value(kind.apart(value), arrays, kinds)]
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value, order="C")
        if array.dtype.kind not in _KINDS:
            raise InvalidParameter("files.array_not_storable", kind=str(array.dtype))
        arrays.append(array)
        return ["array" if isinstance(value, np.ndarray) else "scalar", len(arrays) - 1]
    if isinstance(value, Mapping):
        return ["dict", [[_pack_value(k, arrays, kinds), _pack_value(v, arrays, kinds)] for k, v in value.items()]]
    if type(value) in (list, tuple):
        return [type(value).__name__, [_pack_value(v, arrays, kinds) for v in value]]
    raise InvalidParameter("files.value_not_storable", kind=type(value).__name__)


def _read(tree: object, arrays: list[NDArray[np.generic]], kinds: Mapping[str, Kind]) -> Any:
    if not isinstance(tree, list):
        return tree
    name, content = tree
    if name in kinds:
        return kinds[name].together(_read(content, arrays, kinds))
    readers: dict[str, Callable[[Any], Any]] = {
        "array": lambda place: arrays[place],
        "scalar": lambda place: arrays[place][()],
        "dict": lambda pairs: {_read(k, arrays, kinds): _read(v, arrays, kinds) for k, v in pairs},
        "list": lambda values: [_read(v, arrays, kinds) for v in values],
        "tuple": lambda values: tuple(_read(v, arrays, kinds) for v in values),
    }
    return readers[name](content)
