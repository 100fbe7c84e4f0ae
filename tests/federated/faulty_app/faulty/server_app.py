"""Runs what it is told and writes down every round; dies by SIGKILL where it is told to."""

import json
import os
import pathlib
import signal
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp import ServerApp

import mosha
from faulty.terms import QUESTION, WIDTH, plan_for

app = ServerApp()
TIMEOUT = 300  # a node whose app has vanished is silent for about a minute, and others are slow on a busy machine


@app.main()
def main(grid: Any, context: Any) -> None:
    config, told = context.run_config, {"rounds": [], "run": str(context.run_id)}
    account = mosha.Ledger(config["ledger"]).account(
        "wards", unit=mosha.Client(), epsilon=1e12, delta=1e-3, rule="pure"
    )

    def write(**more: Any) -> None:
        told.update(more, spent=account.spent)  # type: ignore[call-overload]
        beside = pathlib.Path(config["report"] + ".part")
        beside.write_text(json.dumps(told))
        beside.replace(config["report"])

    def note(done: Any) -> None:
        told["rounds"].append(done.weights.tolist())  # type: ignore[attr-defined]
        write()
        if done.number == config["dies-after"]:
            os.kill(os.getpid(), signal.SIGKILL)

    patience = {"wait_for": config["wards"], "patience": 120}
    if config["what"] == "question":
        answer = mosha.federated.flower_ask(QUESTION, account, grid, action="wards", timeout=TIMEOUT, **patience)
        write(done=True, answer=answer.value.tolist())
        return
    secret = config["secret"] if config["what"] == "turns" else None
    plan = plan_for(config["what"], config["rounds"])
    kept = {"key": "k", "checkpoint": config["checkpoint"], "secret": secret}
    strategy = mosha.federated.flower(plan, account, on_round=note, **kept, **patience)
    blank = ArrayRecord({"w": Array(np.zeros(WIDTH, np.float32))})
    strategy.start(grid=grid, initial_arrays=blank, timeout=TIMEOUT)
    write(done=True)
