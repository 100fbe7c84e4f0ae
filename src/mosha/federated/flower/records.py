"""Flower's records and messages, read with suspicion: what a node sends never raises."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import MissingExtra
from mosha.core.language import phrase

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
except ImportError:
    raise MissingExtra("federated", needed_for=phrase("federated.on_flower")) from None

__all__ = ["ARRAYS", "CONFIG", "STAGE", "Reply", "arrays_of", "message_of", "messages", "record_of", "replies_by_node"]

ARRAYS, CONFIG, STAGE = "arrays", "config", "mosha-stage"
_MODEL_BYTES = 1 << 34  # no reply is read beyond this


def arrays_of(record: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a record of one's own."""
    return {name: array.numpy() for name, array in record.items()}


def record_of(arrays: Mapping[str, NDArray[np.generic]], config: Mapping[str, Any] | None = None) -> Any:
    """Arrays as a record; with a configuration, as the records of a message."""
    record = ArrayRecord({name: Array(np.ascontiguousarray(array)) for name, array in arrays.items()})
    if config is None:
        return record
    return RecordDict({ARRAYS: record, CONFIG: ConfigRecord(dict(config))})


def message_of(config: Mapping[str, Any]) -> Any:
    """A message without a model."""
    return RecordDict({CONFIG: ConfigRecord(dict(config))})


def messages(contents: Mapping[Any, Any], kind: str) -> list[Any]:
    """One message of this kind for each node."""
    return [Message(content=content, message_type=kind, dst_node_id=node) for node, content in contents.items()]


@dataclass
class Reply:
    """What a node sent back: arrays and settings that could be read, and the weight it claims."""

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    weight: float = 1.0


def replies_by_node(replies: Iterable[Any], asked: Mapping[Hashable, Any]) -> dict[Hashable, Reply]:
    """The first reply of each node that was asked; errors, strangers and repetitions are left out."""
    found: dict[Hashable, Reply] = {}
    for reply in replies:
        node = reply.metadata.src_node_id
        if node in asked and node not in found and not reply.has_error():
            found[node] = _read(reply.content)
    return found


def _read(content: Any) -> Reply:
    """The records of a reply; what cannot be read is empty."""
    read = Reply()
    try:
        for record in content.array_records.values():
            if sum(len(array.data) for array in record.values()) <= _MODEL_BYTES:
                read.arrays = arrays_of(record)
            break
        for record in content.config_records.values():
            read.config |= dict(record)
        for record in content.metric_records.values():
            read.weight = float(record.get("num-examples", 1.0))
            break
    except Exception:  # noqa: BLE001  (whatever a stranger's bytes do)
        return Reply()
    return read
