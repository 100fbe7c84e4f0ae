"""A node pushes the coordinate of its ward by PUSH, unless `faults` says "place.round:fault" of it."""

import os
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from faulty.terms import PUSH, QUESTION, plan_for
from mosha import federated


def privately(message: Any, context: Any, call: Any) -> Any:
    if context.run_config["what"] != "shares" or message.metadata.message_type != "train":
        return call(message, context)
    return federated.flower_mod(plan_for("shares", context.run_config["rounds"]))(message, context, call)


app = ClientApp(mods=[privately])


def fault_of(context: Any, number: Any) -> Any:
    listed = dict(pair.split(":") for pair in context.run_config["faults"].split())
    return listed.get(f"{context.node_config['place']}.{number}")


@app.train()
def train(message: Any, context: Any) -> Any:
    weights = message.content["arrays"]["w"].numpy()
    fault = fault_of(context, message.content["config"]["server-round"])
    if fault == "vanish":
        os._exit(1)
    own = np.eye(len(weights), dtype=np.float32)[context.node_config["ward"] - 1]
    sent = {
        None: weights + PUSH * own,
        "weight": weights + PUSH * own,
        "nan": np.full_like(weights, np.nan),
        "inf": np.full_like(weights, np.inf),
        "shape": np.zeros(len(weights) + 1, np.float32),
        "type": np.full(len(weights), "x"),
        "zero": weights,
        "huge": weights + np.float32(1e30) * own,
    }[fault]
    told = MetricRecord({"num-examples": 1e6 if fault == "weight" else 10})
    return Message(RecordDict({"arrays": ArrayRecord({"w": Array(sent)}), "metrics": told}), reply_to=message)


def value(context: Any) -> Any:
    if fault_of(context, 1) == "vanish":  # between letters and the masked value
        os._exit(1)
    return context.node_config["ward"]


app.query("wards")(federated.flower_answer(QUESTION, value))
