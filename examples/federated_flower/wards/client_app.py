"""A ward: an ordinary Flower client. Only `mods` knows of privacy, and only where noise is made on the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import mosha
from wards import task
from wards.plan import plan_for, question_for


def privately(message: Message, context: Context, call: Callable[[Message, Context], Message]) -> Message:
    """Where the plan is kept on the client, its modifier stands between the app and the network."""
    where = context.run_config["where"]
    if where not in ("client", "shares"):
        return call(message, context)
    plan = plan_for(where, context.run_config["rounds"], context.run_config["wards"])
    modifier: Any = mosha.federated.flower_mod(plan, purse if where == "client" else None)
    reply: Message = modifier(message, context, call)
    return reply


def purse(context: Context) -> mosha.Account:
    """The ward's own account, in a file of its own."""
    ledger = mosha.Ledger(f"{context.run_config['ledger']}.ward{context.node_config['ward']}")
    return ledger.account("me", unit=mosha.Own(), epsilon=1000, delta=1e-3)


app = ClientApp(mods=[privately])


@app.train()
def train(message: Message, context: Context) -> Message:
    if context.run_config["where"] == "hospitals":
        return train_hospital(message, context)
    ward = context.node_config["ward"]
    model = {name: array.numpy() for name, array in message.content["arrays"].items()}  # type: ignore[union-attr]
    new = task.fit(model, *task.data(ward))
    arrays = ArrayRecord({name: Array(array) for name, array in new.items()})
    return Message(RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 200})}), reply_to=message)


def train_hospital(message: Message, context: Context) -> Message:
    """Nothing leaves but a masked sum of clipped gradients with the hospital's share of the noise."""
    plan = plan_for("hospitals", context.run_config["rounds"], context.run_config["wards"])
    reply: Message = mosha.federated.flower_examples(plan, patients)(message, context)
    return reply


def patients(context: Context) -> tuple[Any, Any, Any]:
    """Three of four patients of a hospital have what it is known for: the case mix differs from one to the next."""
    import torch  # noqa: PLC0415  (this plan alone needs it)

    readings, labels = task.data(context.node_config["ward"], rows=400, mix=2 / 3)
    columns = torch.from_numpy(readings).float(), torch.from_numpy(labels)
    return torch.nn.Linear(task.READINGS, task.KINDS), torch.nn.CrossEntropyLoss(reduction="none"), columns


@app.query()
def answer(message: Message, context: Context) -> Message:
    """A question without training: which kind this ward sees most; it leaves masked and noised."""
    answering = mosha.federated.flower_answer(question_for(context.run_config["wards"]), most_seen)
    reply: Message = answering(message, context)
    return reply


def most_seen(context: Context) -> int:
    _, labels = task.data(context.node_config["ward"])
    return int(np.bincount(labels).argmax())
