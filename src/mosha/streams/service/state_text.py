"""The state of a stream as plain data and back, exactly: whole numbers of any size, floats bit for bit."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from mosha.core.errors import StateRefused
from mosha.streams.alarms import AlarmState
from mosha.streams.noise.exact_toeplitz import LiftedState
from mosha.streams.noise.honaker import BinaryState
from mosha.streams.noise.tree import TreeState
from mosha.streams.plan import StreamState
from mosha.streams.w_event import WindowState

__all__ = ["from_plain", "to_plain"]

_KINDS: dict[str, type] = {
    kind.__name__: kind for kind in (AlarmState, BinaryState, LiftedState, StreamState, TreeState, WindowState)
}


def to_plain(value: object) -> Any:  # noqa: PLR0911  (one line a kind)
    """As JSON can hold it; what a tape has drawn ahead is left out, for it can be drawn again.

    >>> to_plain((1 << 70, 0.5, {"ann": (1, 2)}))
    {'tuple': [{'int': '400000000000000000'}, {'float': '0x1.0000000000000p-1'}, {'dict': [['ann', {'tuple': [...]}]]}]}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return {"int": format(int(value), "x")}
    if isinstance(value, float | np.floating):
        return {"float": float(value).hex()}
    if is_dataclass(value) and not isinstance(value, type):
        return {
            type(value).__name__: {f.name: to_plain(getattr(value, f.name)) for f in fields(value) if f.name != "tape"}
        }
    if isinstance(value, np.ndarray):
        return {"array": [to_plain(item) for item in value.tolist()], "exact": value.dtype.kind in "Oi"}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [to_plain(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[to_plain(key), to_plain(item)] for key, item in value.items()]}
    raise StateRefused("streams.state_holds_other", kind=type(value).__name__)


def from_plain(stored: object) -> Any:  # noqa: PLR0911  (one line a kind)
    """What `to_plain` described.

    >>> from_plain(to_plain([1, (2.5, None)]))
    [1, (2.5, None)]
    """
    if not isinstance(stored, dict):
        return stored
    if "array" in stored:
        return np.array([from_plain(item) for item in stored["array"]], object if stored["exact"] else float)
    ((kind, body),) = stored.items()
    if kind == "int":
        return int(body, 16)
    if kind == "float":
        return float.fromhex(body)
    if kind in ("tuple", "list"):
        items = [from_plain(item) for item in body]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {from_plain(key): from_plain(item) for key, item in body}
    if kind not in _KINDS:
        raise StateRefused("streams.state_of_unknown_kind")
    return _KINDS[kind](**{name: from_plain(item) for name, item in body.items()})
