"""A ward: an ordinary Flower client. Only `mods` knows of privacy, and only where noise is made on the client."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import mosha
from wards import task
from wards.plan import plan_for


def privately(message: Message, context: Context, call: Callable[[Message, Context], Message]) -> Message:
    """Where the plan is kept on the client, its modifier stands between the app and the network."""
    where = context.run_config["where"]
    if where == "server":
        return call(message, context)
    plan = plan_for(where, context.run_config["rounds"], context.run_config["wards"])
    modifier: Any = mosha.federated.flower_mod(plan, purse if where == "client" else None)
    reply: Message = modifier(message, context, call)
    return reply


def purse(context: Context) -> mosha.Account:
    """The ward's own account, in a file of its own."""
    ledger = mosha.Ledger(f"{context.run_config['ledger']}.ward{context.node_config['ward']}")
    return ledger.account("me", unit=mosha.Self(), epsilon=1000, delta=1e-3, rule="pure")


app = ClientApp(mods=[privately])


@app.train()
def train(message: Message, context: Context) -> Message:
    ward = context.node_config["ward"]
    model = {name: array.numpy() for name, array in message.content["arrays"].items()}
    new = task.fit(model, *task.data(ward))
    new, examples = misbehave(context.run_config["fault"], ward, new)
    arrays = ArrayRecord({name: Array(array) for name, array in new.items()})
    metrics = MetricRecord({"num-examples": examples})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


def misbehave(faults: str, ward: int, new: task.Model) -> tuple[task.Model, float]:
    """For tests: "1:nan 2:huge" makes ward 1 and ward 2 do what broken or hostile clients do. Empty in earnest."""
    fault = dict(pair.split(":") for pair in faults.split() if ":" in pair).get(str(ward))
    if fault is None:
        return new, 200
    if fault == "vanish":
        os._exit(1)
    bad = {
        "nan": lambda array: np.full_like(array, np.nan),
        "huge": lambda array: array + np.float32(1e30),
        "shape": lambda array: np.zeros(array.size + 1, np.float32),
        "text": lambda array: np.full(array.shape, "x"),
        "weight": lambda array: array,
    }
    return {name: bad[fault](array) for name, array in new.items()}, 1e6
