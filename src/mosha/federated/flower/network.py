"""The network that Flower's grid is: nodes that are connected, messages to them, and what comes back."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import Any

from mosha.core.errors import MissingExtra, SourceUnavailable
from mosha.core.language import phrase
from mosha.federated.flower.records import messages, replies_by_node

try:
    from flwr.app import MessageType
except ImportError:
    raise MissingExtra("federated", needed_for=phrase("federated.on_flower")) from None

__all__ = ["Network"]


class Network:
    """The nodes behind a grid; `kind` is the type of the messages that they are sent."""

    def __init__(self, grid: Any, timeout: float, kind: str = MessageType.TRAIN) -> None:
        self.grid, self.timeout, self.kind = grid, timeout, kind

    def wait(self, wanted: int, patience: float) -> None:
        """Until so many nodes are connected, or until patience ends: then those that are there are enough."""
        end = time.monotonic() + patience
        while len(self.clients()) < wanted and time.monotonic() < end:
            time.sleep(0.5)

    def clients(self) -> Sequence[Hashable]:
        """The nodes that are connected."""
        return sorted(self.grid.get_node_ids())

    def exchange(self, contents: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Send each node its records, and give the first good reply of each."""
        if not contents:
            return {}
        try:
            replies = self.grid.send_and_receive(messages(contents, self.kind), timeout=self.timeout)
        except (ConnectionError, TimeoutError, OSError):
            raise SourceUnavailable("federated.no_superlink") from None
        return replies_by_node(replies, contents)
