"""A grid of nodes inside this process: the messages are Flower's own, the network is a function call."""

from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1  # what a SuperLink would set


class Nodes(Grid):
    """Each node is a ClientApp with a context of its own; `vanishing(node, round, stage)` may take it away."""

    def __init__(self, apps: Any, vanishing: Any = lambda node, config: False) -> None:
        self.apps, self.vanishing = dict(apps), vanishing
        self.contexts = {
            node: Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={}) for node in apps
        }
        self.sent = []  # type: ignore[var-annotated]

    def get_node_ids(self) -> list[Any]:
        return list(self.apps)

    def send_and_receive(self, messages: Any, *, timeout: Any = None) -> Any:
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            config = dict(next(iter(message.content.config_records.values())))
            self.sent.append((node, config))
            if self.vanishing(node, config):
                continue
            try:
                reply = self.apps[node](message, self.contexts[node])
            except Exception as problem:  # noqa: BLE001  (what a SuperNode does)
                reply = Message(Error(code=2, reason=type(problem).__name__), reply_to=message)
            replies.append(reply)
        return replies

    def set_run(self, run: Any) -> None: ...
    @property
    def run(self) -> None: ...
    def create_message(self, *args: Any, **kwargs: Any) -> None: ...
    def push_messages(self, messages: Any) -> None: ...
    def pull_messages(self, message_ids: Any) -> None: ...


def model(**arrays: Any) -> Any:
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})


def app(train: Any, *mods: Any, examples: Any = 10) -> Any:
    """A ClientApp as a user writes it: takes the arrays, gives new ones and a metric."""
    made = ClientApp(mods=list(mods))

    @made.train()
    def local(message: Any, context: Any) -> Any:
        arrays = {name: array.numpy() for name, array in message.content["arrays"].items()}
        new = train(arrays)
        if isinstance(new, Message):
            return new
        told = MetricRecord({"num-examples": examples, "loss": 0.123})
        return Message(RecordDict({"arrays": model(**new), "metrics": told}), reply_to=message)

    return made


def towards(target: Any) -> Any:
    return lambda arrays: arrays | {"w": (arrays["w"] + np.asarray(target)).astype(arrays["w"].dtype)}


__all__ = ["ConfigRecord", "Nodes", "app", "model", "towards"]
